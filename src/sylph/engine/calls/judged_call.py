"""A call that can be decided about: its tool, its typed arguments and what they would do."""

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from sylph.core.errors import ToolError
from sylph.core.messages import ToolCall
from sylph.core.text.enum_hints import find_enum_values
from sylph.core.tool import CallAssessment, Tool, ToolContext


class JudgedCall(Struct, frozen=True):
    call: ToolCall
    tool: Tool
    args: Any
    judged: CallAssessment
    context: ToolContext

    @property
    def runs_commands(self) -> bool:
        """Whether a command is what it runs, also where nobody can tell which."""
        return bool(self.judged.commands) or self.tool.recourse == "by_probe"

    async def render_preview(self) -> str:
        """What the call would do. A call that is sure to fail fails here: nobody is asked about it."""
        return await self.tool.preview(self.args, self.context) if self.tool.preview else self.judged.why


def parse_arguments(tool: Tool, arguments: str) -> Any:
    """The typed arguments, or an error that tells the model what to send instead."""
    try:
        return msgspec.json.decode(arguments or "{}", type=tool.args, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeEncodeError) as error:
        fields = ", ".join(tool.args.__struct_fields__)
        may = ", ".join(find_enum_values(tool.args, str(error)))
        raise ToolError(
            f"The arguments of {tool.name} are not right: {error}{f'; it may be {may}' if may else ''}.",
            kind="invalid_arguments",
            next=[f"Call it again with valid JSON. Its fields: {fields}."],
        ) from error


def call_digest(call: ToolCall) -> str:
    """Binds an approval to exactly this call."""
    return hashlib.blake2b(f"{call.name}\0{call.arguments}".encode("utf-8", "replace"), digest_size=16).hexdigest()
