"""What a person types while a question is open, and just after."""

import time

from sylph.core.commands import Answer
from sylph.core.errors import UserError
from sylph.core.facts import Asked
from sylph.interfaces.cli import asking

# For this many seconds after an approval a lone `y` is no message.
ECHO = 3.0


class Replies:
    """Remembers what was doubted, and when something was approved."""

    def __init__(self) -> None:
        self._doubted = ""
        self._approved = 0.0
        self._editing = ""

    def editing(self, asked: Asked | None) -> bool:
        """Whether the next line is what the call is to be changed into."""
        return asked is not None and asked.id == self._editing

    def prompt(self, asked: Asked, arguments: str = "", columns: int = 80, *, cut: bool = False) -> str:
        """What is asked for now."""
        if self.editing(asked):
            return f"{asking.changing(arguments)} (just Enter goes back)"
        return asking.prompt_of(asked, columns, cut=cut)

    def answer(self, asked: Asked, text: str, arguments: str = "") -> Answer | None:
        """The answer that the text gives; None where it only begins one, or takes that back.

        Raises UserError where it gives none, or where that is not sure.
        """
        if asking.begins_edit(asked, text) and not self.editing(asked):
            self._editing = asked.id
            return None
        if self.editing(asked):
            return self._changed(asked, text.strip(), arguments)
        if asking.doubtful(asked, text) and text != self._doubted:
            self._doubted = text
            again = ["the same once more gives it as your own words"] if asked.free else []
            raise UserError(f"There is no choice {text.strip()}.", next=[*asking.ways(asked), *again])
        answer = asking.answer_of(asked, text, arguments)
        if answer is None:
            raise UserError("That does not answer the open question.", next=asking.ways(asked, arguments))
        self._doubted = ""
        if asked.kind == "approval":
            self._approved = time.monotonic()
        return answer

    def _changed(self, asked: Asked, text: str, arguments: str) -> Answer | None:
        changed = asking.edited(arguments, text)
        if text and not changed:
            raise UserError(f"That is not {asking.changing(arguments)}.", next=["just Enter goes back"])
        self._editing = ""
        if not text:
            return None
        self._approved = time.monotonic()
        return Answer(id=asked.id, answer="edit", arguments=changed)

    def is_echo(self, text: str) -> bool:
        """Whether it was meant for an approval that is answered already: a key typed once too often."""
        key = text.strip().lower() in (*asking.KEYS, *asking.KEYS.values())
        return key and time.monotonic() - self._approved < ECHO
