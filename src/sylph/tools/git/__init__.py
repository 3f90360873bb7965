"""Git for the model: typed arguments in, an answer that can be acted on out."""

from sylph.tools.git.tool import build_git_tool

__all__ = ["build_git_tool"]
