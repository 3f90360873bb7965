"""What was configured, and where it comes from."""

from sylph.config.load import Config, Proxy, Terminal, load, locate
from sylph.config.settings import Compaction, Limits, Model, Provider, Settings, Web

__all__ = [
    "Compaction",
    "Config",
    "Limits",
    "Model",
    "Provider",
    "Proxy",
    "Settings",
    "Terminal",
    "Web",
    "load",
    "locate",
]
