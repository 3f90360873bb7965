"""Where the person, Sylph and its source live on this machine."""

import os
from pathlib import Path

from msgspec import Struct


class PathPolicy(Struct, frozen=True, kw_only=True):
    """What a judgement of paths must know. Paths are absolute with their links followed, as `real` gives them."""

    home: Path
    """The person's own folder."""
    sylph: tuple[Path, ...] = ()
    """Sylph's home, its data and its config file."""
    source: tuple[Path, ...] = ()
    """The program itself."""
    temporary: tuple[Path, ...] = (Path("/tmp"), Path("/var/tmp"))
    """Where anybody may put what is not kept."""


def real_path(path: str | os.PathLike[str]) -> Path:
    """`path` with its links followed as far as they lead; what does not exist yet stays as it is named."""
    return Path(os.path.realpath(path))
