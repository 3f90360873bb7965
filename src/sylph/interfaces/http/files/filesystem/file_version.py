"""Which version of a file somebody saw, so that nobody's work is overwritten unseen."""

import hashlib
import os

from sylph.core.errors import UserError
from sylph.interfaces.http.files.filesystem.location import FileLocation
from sylph.interfaces.http.kit.problem_details import AccessDenied
from sylph.interfaces.http.kit.route import etag_matches, version_conflict

# Up to here the version is that of the content itself; to read more for each request would cost too much.
MAX_HASHED_BYTES = 32_000_000
CHUNK = 262_144


def file_etag(fd: int) -> str:
    """The version of an open file."""
    found = os.fstat(fd)
    if found.st_size > MAX_HASHED_BYTES:
        return f"s{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
    digest, at = hashlib.blake2b(digest_size=16), 0
    while data := os.pread(fd, CHUNK, at):
        digest.update(data)
        at += len(data)
    return digest.hexdigest()


def check_file_version(spot: FileLocation, if_match: str) -> None:
    """Raises where what is there is not what the one who asks has seen."""
    if not if_match:
        return
    fd = spot.open_file()
    try:
        tag = file_etag(fd)
    finally:
        os.close(fd)
    if not etag_matches(tag, if_match):
        raise version_conflict(tag, if_match, spot.display_path)


def check_overwrite(spot: FileLocation, *, if_match: str, if_none_match: str, overwrite: bool) -> os.stat_result | None:
    """What is there and may be replaced; None for a free place. Raises where the one who asks did not expect it."""
    if spot.stat() is None:
        if if_match:
            raise AccessDenied(
                f"{spot.display_path} does not exist any more.", kind="changed", next=["write it without If-Match"]
            )
        return None
    fd = spot.open_file()
    try:
        tag, was = file_etag(fd), os.fstat(fd)
    finally:
        os.close(fd)
    if if_none_match and etag_matches(tag, if_none_match):
        raise AccessDenied(
            f"{spot.display_path} exists already.",
            kind="changed",
            details={"etag": f'"{tag}"'},
            next=["use another name"],
        )
    if if_match and not etag_matches(tag, if_match):
        raise version_conflict(tag, if_match, spot.display_path)
    if not (if_match or overwrite):
        raise UserError(
            f"{spot.display_path} exists already.",
            kind="exists",
            details={"etag": f'"{tag}"'},
            next=["give If-Match with the version you saw", "or overwrite=true", "or another name"],
        )
    if not os.access(spot.name, os.W_OK, dir_fd=spot.fd):
        # A rename would get past a file's own write protection; the user meant it.
        raise UserError(
            f"{spot.display_path} is write-protected.", kind="permission_denied", next=["change its mode first"]
        )
    return was
