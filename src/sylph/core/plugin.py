"""The one seam: every faculty, built in or third party, is a Plugin value."""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct, field

from sylph.core.tool import Tool

PromptSection = Callable[[], str]
"""A part of the byte-stable head of the prompt; asked once per session."""


class PrepareContext(Struct, frozen=True, kw_only=True):
    """What a note may look at before a turn begins."""

    session: str
    workspace: str
    mode: str
    model: str
    now: int
    chat_only: bool = False
    """The model gets no tools: what is only of use with them need not be told."""
    last_notes: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was told last, by topic: who has nothing more to say on a topic may have to take it back."""


class ContextNote(Struct, frozen=True):
    """Late context: told to the model when `text` differs from what was told last under this topic."""

    topic: str
    text: str


PrepareStep = Callable[[PrepareContext], Awaitable[Iterable[ContextNote]]]


class Plugin(Struct, frozen=True, kw_only=True):
    """What a faculty adds to a turn. Every field but the name is optional."""

    name: str
    tools: tuple[Tool, ...] = ()
    sections: tuple[PromptSection, ...] = ()
    prepare: tuple[PrepareStep, ...] = ()


def merge_plugins(plugins: Iterable[Plugin]) -> Plugin:
    """Many plugins as one, in order."""
    parts = tuple(plugins)
    return Plugin(
        name="all",
        tools=tuple(tool for part in parts for tool in part.tools),
        sections=tuple(section for part in parts for section in part.sections),
        prepare=tuple(step for part in parts for step in part.prepare),
    )
