"""Name patterns as ignore files write them: *, ?, [a-z], {a,b}, and ** over folders."""

import re
from collections.abc import Callable

from sylph.core.errors import ToolError

GLOB_TOKEN = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|[{},]|\\.|.", re.DOTALL)
WILDCARD_REGEXES = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a path matches. A pattern without a slash is about the last name of the path."""
    try:
        wanted = re.compile(_glob_regex(pattern.lstrip("/")))
    except re.error as error:
        raise ToolError(f"{pattern!r} is not a glob pattern: {error}.", kind="bad_pattern") from error
    if "/" in pattern:
        return lambda path: wanted.fullmatch(path) is not None
    return lambda path: wanted.fullmatch(path.rpartition("/")[2]) is not None


def _glob_regex(pattern: str) -> str:
    depth, parts = 0, list[str]()
    for token in GLOB_TOKEN.findall(pattern):
        depth += (token == "{") - (token == "}")
        parts.append(_token_regex(token, inner=depth > 0))
    return "".join(parts)


def _token_regex(token: str, *, inner: bool) -> str:
    if token in WILDCARD_REGEXES:
        return WILDCARD_REGEXES[token]
    if token in ("{", "}"):
        return "(?:" if token == "{" else ")"
    if token == "," and inner:
        return "|"
    if token.startswith("[") and len(token) > 2:
        body = token[1:-1]
        flip = body[0] in "!^"
        return f"[{'^' if flip else ''}{re.escape(body[flip:]).replace(chr(92) + '-', '-')}]"
    return re.escape(token[-1])
