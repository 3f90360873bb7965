"""Remotes of a repository, and the keys for them."""
