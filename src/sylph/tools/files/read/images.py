"""Images that models can look at: told by their first bytes, measured, and checked to be whole."""

import struct

# As much as the stricter services take.
LARGEST = 5_000_000
PNG, JPEG, GIF, WEBP = "image/png", "image/jpeg", "image/gif", "image/webp"
# JPEG segments that hold the size; the others of this row are tables.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def media_of(head: bytes) -> str:
    """The type of an image by how it begins; empty for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    return WEBP if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""


def is_complete(data: bytes, media: str) -> bool:
    """Whether its end is there: a service would refuse the whole conversation for half an image."""
    match media:
        case "image/png":
            return b"IEND" in data[-64:]
        case "image/jpeg":
            return b"\xff\xd9" in data[-4096:]
        case "image/gif":
            return b"\x3b" in data[-64:]
        case _:
            return len(data) >= 8 + int.from_bytes(data[4:8], "little")


def describe_size(data: bytes, media: str) -> str:
    """Width and height, to be followed by something else; empty where they cannot be told."""
    try:
        width, height = _image_size(data, media)
    except (struct.error, IndexError):
        return ""
    return f"{width} x {height}, " if width and height else ""


def _image_size(data: bytes, media: str) -> tuple[int, int]:
    if media == PNG:
        return struct.unpack(">II", data[16:24])
    if media == GIF:
        return struct.unpack("<HH", data[6:10])
    return _jpeg_size(data) if media == JPEG else _webp_size(data)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        if data[at + 1] in FRAMES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0
