"""Who is at the door, and what they may do there."""

from typing import Literal, get_args

from msgspec import Struct

Scope = Literal["read", "chat", "approve", "admin", "hook"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
CredentialKind = Literal["machine", "token", "cookie"]


class Principal(Struct, frozen=True, kw_only=True):
    """Somebody whose credential was found good. `machine` is the owner's own command line, by its socket."""

    id: str
    name: str
    way: CredentialKind
    scopes: frozenset[str]
    expires: int | None = None

    @property
    def actor(self) -> str:
        """How the log names them: a person at a door is the user, and a hook is none."""
        return "user" if self.scopes - {"hook"} else f"hook:{self.name}"

    @property
    def via(self) -> str:
        """The name of the credential, where the log should tell: the owner's own command line needs none."""
        return "" if self.way == "machine" else self.name

    def has_scope(self, scope: Scope) -> bool:
        # Who administers may do everything but be mistaken for a hook's caller.
        return scope in self.scopes or "admin" in self.scopes


OWNER = Principal(id="machine", name="owner", way="machine", scopes=frozenset({"admin"}))
