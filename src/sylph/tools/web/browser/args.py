"""One step in a browser, as the model asks for it."""

from typing import Annotated, Literal

from msgspec import Meta

from sylph.core.tool import ToolArgs

BrowseAction = Literal[
    "open", "read", "click", "type", "select", "press", "wait", "scroll", "back", "screenshot", "tabs", "close"
]
WAIT_SECONDS = 60.0


class BrowseArgs(ToolArgs, frozen=True, kw_only=True):
    action: Annotated[
        BrowseAction,
        Meta(
            description="open (url), read, click (ref), type (ref, text, submit), select (ref, text), press (text: key)"
            ", wait (text, ref or seconds), scroll (text: up or down), back, screenshot, tabs (tab to switch), close."
        ),
    ]
    url: Annotated[str, Meta(max_length=8000)] = ""
    ref: Annotated[str, Meta(max_length=20, description="An element, as [ref=e12] names it in what was read last.")] = (
        ""
    )
    text: Annotated[str, Meta(max_length=20_000)] = ""
    submit: Annotated[bool, Meta(description="Press Enter after typing.")] = False
    seconds: Annotated[float, Meta(ge=0, le=WAIT_SECONDS)] = 0.0
    tab: Annotated[int, Meta(ge=0, description="Number of the tab to switch to.")] = 0
    offset: Annotated[int, Meta(ge=0, description="read: character to go on from.")] = 0
