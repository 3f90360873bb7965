"""Files that go with a message: pictures and PDF documents, for a model to look at."""

from sylph.core.errors import UserError
from sylph.core.tool import ImageData
from sylph.tools.files.read import images

PDF = "application/pdf"
MAX_BYTES_BY_TYPE = {PDF: 20_000_000}
MAX_ATTACHMENTS = 20
# All files of one message that comes over the network: more than any service takes.
MAX_TOTAL_BYTES = 30_000_000
MAX_FILE_BYTES = max(images.LARGEST, *MAX_BYTES_BY_TYPE.values())


def make_attachment(name: str, data: bytes, size: int, where: str = "") -> ImageData:
    """A file as a message takes it. Raises UserError for what no model could look at; `where` is what it is called."""
    where = where or name
    media = PDF if data.startswith(b"%PDF-") else images.media_of(data[:16])
    if not media:
        said = "is empty" if not data else "is neither a picture (PNG, JPEG, GIF, WebP) nor a PDF document"
        raise UserError(
            f"{where} {said}.",
            next=["name the file in the message: it is read with the `read` tool"],
        )
    most = MAX_BYTES_BY_TYPE.get(media, images.LARGEST)
    if size > most:
        raise UserError(
            f"{where} has {size:,} bytes; {most:,} may be attached.",
            next=["attach a smaller version"],
        )
    if media != PDF and not images.is_complete(data, media):
        raise UserError(f"{where} is cut off: its end is missing.", next=["get the file anew"])
    return ImageData(data=data, media=media, name=name)


def check_attachment_count(count: int) -> None:
    if count > MAX_ATTACHMENTS:
        raise UserError(f"{count} files go with one message; {MAX_ATTACHMENTS} may.", next=["attach fewer"])
