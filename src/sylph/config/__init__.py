"""What was configured, and where it comes from."""

from sylph.config.load import Config, Proxy, Terminal, load, locate
from sylph.config.settings import Compaction, Limits, Model, Notify, Provider, Sandbox, Server, Settings, Web

__all__ = [
    "Compaction",
    "Config",
    "Limits",
    "Model",
    "Notify",
    "Provider",
    "Proxy",
    "Sandbox",
    "Server",
    "Settings",
    "Terminal",
    "Web",
    "load",
    "locate",
]
