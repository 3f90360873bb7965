"""What was configured, and where it comes from."""

from sylph.config.load import Config, Proxy, Terminal, load, locate
from sylph.config.settings import Compaction, Limits, Model, Provider, Sandbox, Settings, Web

__all__ = [
    "Compaction",
    "Config",
    "Limits",
    "Model",
    "Provider",
    "Proxy",
    "Sandbox",
    "Settings",
    "Terminal",
    "Web",
    "load",
    "locate",
]
