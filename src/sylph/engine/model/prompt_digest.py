"""Digests of a prompt: by them one sees whether it still begins as the one before."""

import hashlib
from collections.abc import Sequence

import msgspec

from sylph.core.messages import Message
from sylph.core.provider import (
    ToolSpec,
)


def head_digest(system: str, tools: Sequence[ToolSpec]) -> str:
    """What is byte-stable in a prompt, as two hashes: one of the system text, one of the tools."""
    parts = (system.encode(), msgspec.json.encode(tools))
    return "-".join(hashlib.blake2b(part, digest_size=6).hexdigest() for part in parts)


def prefix_digest(messages: Sequence[Message]) -> str:
    return hashlib.blake2b(msgspec.json.encode(messages), digest_size=12).hexdigest()


def prompt_digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
