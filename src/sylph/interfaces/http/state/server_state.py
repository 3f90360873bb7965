"""What every route holds: the built program, and what the server adds to it."""

import asyncio
import time
from pathlib import Path

from msgspec import Struct, field

from sylph.app import App
from sylph.interfaces.http.hub.stream_hub import StreamHub
from sylph.interfaces.http.kit.idempotency import IdempotencyStore
from sylph.interfaces.http.security.rate_limit import LoginAttemptLimiter, RequestRateLimiter
from sylph.interfaces.http.security.server_address import ServerAddress
from sylph.interfaces.http.security.token_store import ServerTokenStore
from sylph.interfaces.http.state.log_counters import LogCounters
from sylph.interfaces.http.state.provider_status import ProviderStatusCache
from sylph.interfaces.http.state.request_counters import RequestCounters
from sylph.interfaces.http.state.workspace_cache import WorkspaceCache
from sylph.reload import ConfigReloader


class ServerState(Struct, frozen=True, kw_only=True):
    app: App
    token_store: ServerTokenStore
    hub: StreamHub
    idempotency: IdempotencyStore
    workspace: Path
    """Where sessions work that name no folder: where the server was started."""
    address: ServerAddress = ServerAddress()
    """Where it is reached by others than its owner."""
    login_attempts: LoginAttemptLimiter = field(default_factory=LoginAttemptLimiter)
    """To log in: counted for all who try."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: streams end then, too."""
    started: float = field(default_factory=time.time)
    live_config: ConfigReloader
    """Keeps the program up to its configuration."""
    provider_status: ProviderStatusCache = field(default_factory=ProviderStatusCache)
    """What the model services said last."""
    request_counters: RequestCounters = field(default_factory=RequestCounters)
    """What was served since the start."""
    log_counters: LogCounters = field(default_factory=LogCounters)
    """What the log says was done, as far as it was read."""
    report_limiter: RequestRateLimiter = field(default_factory=lambda: RequestRateLimiter(0.5, 30))
    """Of errors in browsers: some, and not all the time."""
    edit_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever changes a file of the user's."""
    workspace_cache: WorkspaceCache = field(default_factory=WorkspaceCache)
