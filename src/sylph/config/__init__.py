"""What was configured, and where it comes from."""

from sylph.config.load import Config, ProxyEnvironment, TerminalEnvironment, load_config, locate_config
from sylph.config.settings import (
    CompactionSettings,
    LimitSettings,
    ModelSettings,
    NotifySettings,
    ProviderSettings,
    SandboxSettings,
    ServerSettings,
    Settings,
    WebSettings,
)

__all__ = [
    "CompactionSettings",
    "Config",
    "LimitSettings",
    "ModelSettings",
    "NotifySettings",
    "ProviderSettings",
    "ProxyEnvironment",
    "SandboxSettings",
    "ServerSettings",
    "Settings",
    "TerminalEnvironment",
    "WebSettings",
    "load_config",
    "locate_config",
]
