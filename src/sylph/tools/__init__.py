"""The workspace tools, one module per family."""

from sylph.tools.all import workspace_tools

__all__ = ["workspace_tools"]
