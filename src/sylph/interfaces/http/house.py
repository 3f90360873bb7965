"""What every route holds: the built program, and what the server adds to it."""

import asyncio
import time
from pathlib import Path

from msgspec import Struct, field

from sylph.app import App
from sylph.interfaces.http.keys import Keys


class House(Struct, frozen=True, kw_only=True):
    app: App
    keys: Keys
    workspace: Path
    """Where sessions work that name no folder: where the server was started."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: streams end then, too."""
    started: float = field(default_factory=time.time)
