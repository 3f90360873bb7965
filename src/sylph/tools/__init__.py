"""The workspace tools, one module per family."""

from sylph.tools.toolset import build_workspace_tools

__all__ = ["build_workspace_tools"]
