"""`--attach`: files from the disk that go with a message."""

from collections.abc import Iterable
from pathlib import Path

from sylph.core.errors import UserError
from sylph.core.tool import ImageData
from sylph.interfaces.actions.attachment import MAX_FILE_BYTES, check_attachment_count, make_attachment


def read_attachments(paths: Iterable[str]) -> tuple[ImageData, ...]:
    """The files as they are now. Raises UserError for what no model could look at."""
    found = tuple(_read_attachment(Path(path).expanduser()) for path in paths)
    check_attachment_count(len(found))
    return found


def _read_attachment(path: Path) -> ImageData:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", next=["give a path to a file"]) from error
    return make_attachment(path.name, data, size, str(path))
