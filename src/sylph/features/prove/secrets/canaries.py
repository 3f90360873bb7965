"""Secrets that are none: one of every kind, new ones for every way they are tried to get out."""

import random
import string
from collections.abc import Mapping

from msgspec import Struct

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
OWN_PATTERN = r"BADGE-[0-9]{12}"
"""A pattern such as a user may add."""


class CanarySet(Struct, frozen=True):
    """The values of one way out, by kind. Each is in no other way, so whatever is found tells where it comes from."""

    values: Mapping[str, tuple[str, ...]]
    text: str
    """All of them, as they stand in files, answers and outputs."""

    @property
    def labelled_values(self) -> list[tuple[str, str]]:
        return [(kind, value) for kind, values in self.values.items() for value in values]


def make_canaries(seed: str, *, entropy: bool = False) -> CanarySet:
    """As many as there are kinds; the same seed gives the same ones."""
    chance = random.Random(seed)

    def word(size: int, letters: str = LETTERS) -> str:
        return "".join(chance.choice(letters) for _ in range(size))

    def marked(before: str, size: int, letters: str = LETTERS) -> str:
        return f"{before}{word(size - 4, letters)}a1b2"

    password, db, bearer, mail = word(14) + "9x", word(16) + "7q", word(30) + "3k", f"{word(12).lower()}@example.org"
    address = f"203.0.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}"
    jwt = f"eyJ{word(20)}.eyJ{word(30)}.{word(32)}"
    key = [word(64, LETTERS + "+/") for _ in range(6)] + [f"{word(22)}=="]
    keys = {
        "openai-key": marked("sk-proj-", 40),
        "anthropic-key": marked("sk-ant-api03-", 60),
        "github-token": marked("ghp_", 36),
        "aws-key": "AKIA" + word(16, string.ascii_uppercase + string.digits),
        "google-key": marked("AIza", 35),
        "slack-token": marked("xoxb-", 30),
        "stripe-key": marked("sk_live_", 30),
        "jwt": jwt,
        "card": _card_number(chance),
        "own": f"BADGE-{word(12, string.digits)}",
        "email": mail,
        "ip": address,
    } | ({"entropy": f"{word(36)}Zq7k"} if entropy else {})
    lines = [
        *(f"the {kind} is {value} today" for kind, value in keys.items()),
        f"DB_PASSWORD={password}",
        f"postgres://app:{db}@db.internal:5432/app",
        f"Authorization: Bearer {bearer}",
        "-----BEGIN PRIVATE KEY-----",
        *key,
        "-----END PRIVATE KEY-----",
    ]
    values = {kind: (value,) for kind, value in keys.items()}
    values |= {"password": (password,), "connection": (db,), "authorization": (bearer,), "private-key": tuple(key)}
    return CanarySet(values, "\n".join(lines) + "\n")


def _card_number(chance: random.Random) -> str:
    digits = "4" + "".join(chance.choice(string.digits) for _ in range(14))
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(digits))]
    total = sum(each - 9 if each > 9 else each for each in doubled)
    return digits + str(-total % 10)
