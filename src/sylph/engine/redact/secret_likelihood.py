"""Whether a value is a secret or only stands where one could: examples, names, types and versions are not."""

import math
import re
from collections import Counter

_DUMMY = re.compile(
    r"(?i)(?:x{3,}|\*{2,}|\.{3,}|…|-{3,}|_{3,}|0{4,}|1234|changeme|change[-_]me|replace|example|sample|placeholder|dummy|redacted|"
    r"your[-_ ]|my[-_]?(?:secret|token|key|password)|insert|todo|fixme|not[-_]?(?:set|used|a)|undefined|required|"
    r"optional|process\.env|os\.environ|getenv|environ|#[0-9a-f]{3,8}$|\(\?)"
)
_WORDS = frozenset(
    [
        "password",
        "passwd",
        "pass",
        "secret",
        "token",
        "key",
        "user",
        "username",
        "root",
        "admin",
        "guest",
        "test",
        "testing",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "string",
        "number",
        "boolean",
        "object",
        "bearer",
        "basic",
        "default",
        "empty",
        "unknown",
        "invalid",
        "hidden",
        "masked",
        "postgres",
        "mysql",
        "redis",
        "mongo",
        "rabbitmq",
        "minioadmin",
        "password1",
        "password123",
        "passw0rd",
        "pass123",
        "test123",
        "admin123",
        "secret123",
        "changeit",
        "letmein",
        "qwerty",
    ]
)
_TYPE = re.compile(
    r"(?i)(?:u?int|float|str|string|bytes?|bool|char|varchar|vec|array|option|list|map|any|buffer|uuid)[0-9]*\??"
)
_VERSION = re.compile(r"[~^<>=v ]*\d+(?:\.\d+|\.[x*])+[\w.+-]*")
_TEMPLATE = re.compile(r"[{$<%#@]\{|\$[({A-Za-z_]|^<.*>$|^%.*%$|^\{.*\}$|^\[.*\]$|⟦|⟧")
_PATH = re.compile(r"(?:\.{0,2}/|~/|[A-Za-z]:\\|file:|https?:)")
# Words, numbers and short versions, joined: the name of something.
_NAME = re.compile(r"(?:[A-Za-z]+|v?\d{1,4}|[a-z]+\d{1,2})(?:[-_./:][A-Za-z]+|[-_./:]v?\d{1,4}|[-_./:][a-z]+\d{1,2})+")
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|self\..*|this\..*|\w+::.*|\(\?.*")
_SPECIAL = re.compile(r"[!@#$%^&*+=~?:/.,-]")
_HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}|[0-9A-F]{40}|[0-9A-F]{64}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# More words than this are a sentence.
MAX_WORDS = 8
# Of what is said to a person about passwords one word is nearly always among these.
_SPEECH = re.compile(
    r"(?i)passw|passphrase|contrase|mot de passe|kennwort|senha|\bpwd\b|secret\b|token|credential|\bkey\b|\benter|"
    r"\byour?\b|please|\bmust\b|invalid|\bwrong|incorrect|missing|required|\bminimum|\bleast\b|character|zeichen|"
    r"digits?\b|\bthe\b|\bhash|\bstring\b|\buser\b|\blogin|\bfield|\bvalue|\bnot\b|\btype\b|\bshould\b|\bfor\b|\bof\b"
)
_PARTS = re.compile(r"[{}<>()\[\]`|;]|%[sdr(]|==|=>|&&|\+ | \+|https?:|…|\.{3}")
# Names of things that have a figure in them.
_TERM = re.compile(
    r"(?i)\b(?:sha-?\d+|md5|utf-?\d+|base-?\d+|oauth\d?|ipv\d|x509|v\d[\d.]*|\d+(?:st|nd|rd|th|s|ms|px|kb|mb))\b"
)
_ODD = re.compile(r"[^\W\d_]\d|\d[^\W\d_]|\w[!@#$%^&*+=~?]\w")
_OPTION = re.compile(r"(?:assw|ort\b|rotocol|rint|ager)|[\d.]*:\d")


def accept_any(_: str) -> bool:
    return True


def looks_like_key(value: str) -> bool:
    """A key with its vendor's mark: examples in documents are mostly one letter repeated."""
    body = value[len(value) // 4 :]
    return len(set(body)) >= 3 and "xxxx" not in value.lower() and not _TEMPLATE.search(value)


def looks_like_token(value: str) -> bool:
    """A mark that is also the beginning of ordinary names: it needs figures, and more than words."""
    body = value.partition("-")[2] or value.partition("_")[2]
    return (
        looks_like_key(value)
        and any(map(str.isdigit, body))
        and any(map(str.isalpha, body))
        and not _NAME.fullmatch(body)
    )


def is_quoted_secret(value: str) -> bool:
    """A text in quotes that a name calls secret."""
    return _is_plausible(value) and _is_mixed(value) and not _NAME.fullmatch(value)


def is_bare_secret(value: str) -> bool:
    """A word without quotes, which may just as well be code."""
    return is_quoted_secret(value) and not _CALL.fullmatch(value)


def is_spaced_secret(value: str) -> bool:
    """What stands alone after `name = `: in a settings file a value, in code mostly another name."""
    return is_bare_secret(value) and (not value.isidentifier() or is_distinctive(value))


def is_variable_secret(value: str) -> bool:
    """The value of a variable in capitals: there even a plain word is one."""
    return _is_plausible(value) and not _PATH.match(value) and not value.isdigit()


def is_passphrase(value: str) -> bool:
    """Several words that are given to a variable in capitals: a password, unless they speak of one."""
    return (
        " " in value
        and _is_plausible(value)
        and not _is_prose(value)
        and (value == value.lower() or _has_odd_word(value))
    )


def is_password_phrase(value: str) -> bool:
    """Several words that are called a password elsewhere, in code, forms and translations too: not without a figure."""
    return " " in value and _is_plausible(value) and not _is_prose(value) and _has_odd_word(value)


def is_flag_password(value: str) -> bool:
    """What follows `-p`: a password, unless it is a port or the rest of a longer option."""
    return _is_plausible(value) and any(map(str.isalpha, value)) and not _OPTION.match(value)


def _is_prose(value: str) -> bool:
    """Whether it is said to a person, or made up of parts."""
    return len(value.split()) > MAX_WORDS or bool(_SPEECH.search(value) or _PARTS.search(value))


def _has_odd_word(value: str) -> bool:
    """A figure or a sign inside of a word, or a number at the end."""
    words = _TERM.sub("", value).split()
    return any(map(_ODD.search, words)) or bool(words and words[-1].isdigit() and len(words) > 1)


def is_url_password(value: str) -> bool:
    return value.lower() not in _WORDS and not _TEMPLATE.search(value) and not re.fullmatch(r"[*.xX…-]+|\d{1,5}", value)


def _is_plausible(value: str) -> bool:
    low = value.lower()
    return not (
        low in _WORDS
        or value.endswith(("…", "..."))
        or len(set(value)) < 4
        or _DUMMY.match(value)
        or _TEMPLATE.search(value)
        or _TYPE.fullmatch(value)
        or _VERSION.fullmatch(value)
        or _PATH.match(value)
    )


def _is_mixed(value: str) -> bool:
    """Letters, and figures or signs among them; a sign at the end belongs to a sentence."""
    letters = any(map(str.isalpha, value))
    return letters and (any(map(str.isdigit, value)) or bool(_SPECIAL.search(value.rstrip(".,!?:;")[1:])))


def is_card_number(value: str) -> bool:
    """The number of a payment card: of a length and a beginning that are in use, with a right check digit."""
    digits = re.sub(r"[ -]", "", value)
    return len(set(digits)) > 1 and _is_issued_range(digits) and _passes_luhn(digits)


def _is_issued_range(digits: str) -> bool:
    two, three, four, size = int(digits[:2]), int(digits[:3]), int(digits[:4]), len(digits)
    return (
        (digits[0] == "4" and size in (13, 16, 19))
        or (
            size == 16 and (51 <= two <= 55 or 2221 <= four <= 2720 or four == 6011 or two == 65 or 644 <= three <= 649)
        )
        or (size == 15 and two in (34, 37))
        or (size == 14 and (300 <= three <= 305 or two in (36, 38)))
        or (size == 16 and 3528 <= four <= 3589)
    )


def _passes_luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def is_host_address(value: str) -> bool:
    """The address of a machine, other than of this one; no version, no time."""
    from ipaddress import ip_address

    try:
        found = ip_address(value)
    except ValueError:
        return False
    return not (found.is_loopback or found.is_unspecified or found.is_multicast) and len(value) > 6


def is_high_entropy(value: str) -> bool:
    """Too much disorder for a word. What is a hash of a usual length is left alone: they are everywhere in code."""
    if _HASH.fullmatch(value) or _UUID.fullmatch(value) or _NAME.fullmatch(value) or not _is_mixed(value):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= (3.2 if re.fullmatch(r"[0-9a-fA-F]+", value) else 4.2)


def is_distinctive(value: str) -> bool:
    """Whether a value is so much its own that it may be taken for the secret wherever it stands."""
    if len(value) < 10 or _NAME.fullmatch(value) or value.isalpha() or value.isdigit():
        return False
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
    return bits >= 2.8 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
