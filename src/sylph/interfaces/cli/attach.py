"""`--attach`: files from the disk that go with a message."""

from collections.abc import Iterable
from pathlib import Path

from sylph.core.errors import UserError
from sylph.core.tool import Picture
from sylph.interfaces.attached import MOST_BYTES, few, picture


def attached(paths: Iterable[str]) -> tuple[Picture, ...]:
    """The files as they are now. Raises UserError for what no model could look at."""
    found = tuple(_file(Path(path).expanduser()) for path in paths)
    few(len(found))
    return found


def _file(path: Path) -> Picture:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", next=["give a path to a file"]) from error
    return picture(path.name, data, size, str(path))
