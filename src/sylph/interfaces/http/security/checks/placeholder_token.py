"""What stands where a token should be: left from an example, or from a program that had none."""

import re

PLACEHOLDER_WORDS = frozenset(
    {
        "",
        "undefined",
        "null",
        "none",
        "nil",
        "nan",
        "true",
        "false",
        "[object object]",
        "changeme",
        "change-me",
        "change_me",
        "secret",
        "password",
        "token",
        "test",
        "example",
        "placeholder",
        "todo",
        "xxx",
        "admin",
        "default",
        "sylph",
        "sylph_",
    }
)
PLACEHOLDER_PATTERN = re.compile(
    r"(?i)[<\[{$%].*|.*[>}\]%]|(your|my|insert|replace|enter)[-_ ].*|(.)\2*|sylph_(x+|\.+|\*+|…)"
)


def is_placeholder(token: str) -> bool:
    return token.strip().lower() in PLACEHOLDER_WORDS or bool(PLACEHOLDER_PATTERN.fullmatch(token.strip()))
