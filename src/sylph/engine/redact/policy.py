"""What is to be taken for a secret, besides what always is."""

from collections.abc import Mapping

from msgspec import Struct, field

# Shorter ones would be found everywhere.
SHORTEST = 6


class RedactionPolicy(Struct, frozen=True, kw_only=True):
    enabled: bool = True
    email: bool = False
    ip: bool = False
    entropy: bool = False
    patterns: Mapping[str, str] = field(default_factory=dict[str, str])
    """Regular expressions of the user's own, by name."""
    literals: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values that are secret wherever they stand, and what each is called."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of variables whose names say that they are secret: they are, unless they are plainly something else."""
    allow: tuple[str, ...] = ()
    """Regular expressions for what is left alone."""
    days: int = 30
    """A value that was not met for so long is forgotten, and its placeholder means nothing any more."""
