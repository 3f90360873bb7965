"""Why a body cannot be read, in words that help to mend it."""

from typing import Any

import msgspec

from sylph.core.text.enum_hints import find_enum_values


def explain_decode_error(error: Exception, data: bytes, shape: Any) -> str:
    if isinstance(error, msgspec.ValidationError):
        said = str(error)
        may = ", ".join(find_enum_values(shape, said))
        return f"The body cannot be read: {said}{f'; it may be {may}' if may else ''}"
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return f"The body is not UTF-8: byte {wrong.start} is no part of a character."
    if isinstance(error, RecursionError):
        return "The body is nested too deeply."
    return f"The body is not JSON: {str(error).removeprefix('JSON is malformed: ')}."
