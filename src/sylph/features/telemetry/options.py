"""What a user wants to have told, and to whom."""

from msgspec import Struct


class TelemetryOptions(Struct, frozen=True, kw_only=True):
    endpoint: str = ""
    """Where the collector is; empty for what the standard variables say."""
    content: bool = False
    """Whether what is said is told, too."""
    version: str = ""
