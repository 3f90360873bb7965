"""Git for the model: typed arguments in, an answer that can be acted on out."""

from sylph.tools.git.tool import git

__all__ = ["git"]
