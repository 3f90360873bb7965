"""The words of permission: modes, effects, risks, rules, and what a call would touch."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Decision = Literal["allow", "ask", "deny"]
Mode = Literal["trust", "auto_noselfmod", "ask", "sandbox", "plan"]
Effect = Literal["read", "write", "external", "self"]
Risk = Literal["safe", "caution", "dangerous"]


class PermissionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to do about calls that fit all that is named here; what is not named fits everything."""

    decision: Annotated[Decision, Meta(description="allow, ask or deny.")]
    tool: Annotated[str, Meta(description="A tool's name, or a pattern of names.")] = "*"
    path: Annotated[str, Meta(description="A pattern of files, in the workspace unless it begins with / or ~.")] = ""
    command: Annotated[str, Meta(description="A pattern of simple commands, as `git push *`.")] = ""
    host: Annotated[str, Meta(description="A pattern of machines, as `*.example.org`.")] = ""
    until: Annotated[str, Meta(description="A date or moment after which it does not count any more.")] = ""
    why: Annotated[str, Meta(description="A reason, shown with the decision.")] = ""
    digest: Annotated[str, Meta(description="Binds it to one call with exactly these arguments.")] = ""


class AccessSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call would touch, as far as its arguments tell: real paths, hosts, simple commands."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    outside: bool = False
    why: str = ""


NO_ACCESS = AccessSummary()
