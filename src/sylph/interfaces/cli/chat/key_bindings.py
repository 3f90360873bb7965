"""What keys do in the chat, and what can be completed."""

from collections.abc import Iterable
from typing import get_args

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from sylph.core.permission.types import Mode
from sylph.interfaces.cli.chat import slash_commands
from sylph.interfaces.cli.chat.conversation import TerminalChat

FENCE = "```"


class SlashCompleter(Completer):
    """Slash commands, and the modes after `/mode`."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's signature
        text = document.text_before_cursor
        if text.startswith("/mode "):
            word = text.removeprefix("/mode ")
            yield from (Completion(mode, -len(word)) for mode in get_args(Mode) if mode.startswith(word))
        elif text.startswith("/") and " " not in text:
            for each in slash_commands.COMMANDS.values():
                if each.name.startswith(text[1:]):
                    yield Completion(f"/{each.name}", -len(text), display_meta=each.help)


def continues_line(text: str) -> bool:
    """Whether Enter makes a new line instead of sending: after a backslash, and inside an open code block."""
    return text.endswith("\\") or text.count(FENCE) % 2 == 1


def make_bindings(chat: TerminalChat) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not continues_line(buffer.text):
            buffer.validate_and_handle()
            return
        if buffer.text.endswith("\\") and buffer.cursor_position == len(buffer.text):
            buffer.delete_before_cursor()
        buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text and not chat.is_running:
            event.current_buffer.reset()
        else:
            event.app.create_background_task(chat.handle_interrupt())

    return keys
