"""What was configured, and where it comes from."""

from sylph.config.load import Config, Proxy, Terminal, load, locate
from sylph.config.settings import Compaction, Limits, Model, Provider, Settings

__all__ = ["Compaction", "Config", "Limits", "Model", "Provider", "Proxy", "Settings", "Terminal", "load", "locate"]
