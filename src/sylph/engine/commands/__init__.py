"""Commands under a journaled runner of their own. Standard library only: the runner starts without any package."""
