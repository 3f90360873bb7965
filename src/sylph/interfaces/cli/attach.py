"""Files that go with a message: pictures and PDF documents, for a model to look at."""

from collections.abc import Iterable
from pathlib import Path

from sylph.core.errors import UserError
from sylph.core.tool import Picture
from sylph.tools import images

PDF = "application/pdf"
LARGEST = {PDF: 20_000_000}
MOST = 20


def attached(paths: Iterable[str]) -> tuple[Picture, ...]:
    """The files as they are now. Raises UserError for what no model could look at."""
    found = tuple(_file(Path(path).expanduser()) for path in paths)
    if len(found) > MOST:
        raise UserError(f"{len(found)} files go with one message; {MOST} may.", next=["attach fewer"])
    return found


def _file(path: Path) -> Picture:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            data = file.read(max(images.LARGEST, *LARGEST.values()) + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", next=["give a path to a file"]) from error
    media = PDF if data.startswith(b"%PDF-") else images.media_of(data[:16])
    if not media:
        said = "is empty" if not data else "is neither a picture (PNG, JPEG, GIF, WebP) nor a PDF document"
        raise UserError(f"{path} {said}.", next=["name the file in the message: it is read with the `read` tool"])
    most = LARGEST.get(media, images.LARGEST)
    if size > most:
        raise UserError(f"{path} has {size:,} bytes; {most:,} may be attached.", next=["attach a smaller version"])
    if media != PDF and not images.is_whole(data, media):
        raise UserError(f"{path} is cut off: its end is missing.", next=["get the file anew"])
    return Picture(data=data, media=media, name=path.name)
