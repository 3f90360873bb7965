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

    def answer(self, asked: Asked, text: str, arguments: str = "") -> Answer:
        """The answer that the text gives. Raises UserError where it gives none, or where that is not sure."""
        if asking.doubtful(asked, text) and text != self._doubted:
            self._doubted = text
            again = ["the same once more gives it as your own words"] if asked.free else []
            raise UserError(f"There is no choice {text.strip()}.", next=[asking.prompt_of(asked), *again])
        answer = asking.answer_of(asked, text, arguments)
        if answer is None:
            raise UserError("That does not answer the open question.", next=[asking.prompt_of(asked)])
        self._doubted = ""
        if asked.kind == "approval":
            self._approved = time.monotonic()
        return answer

    def is_echo(self, text: str) -> bool:
        """Whether it was meant for an approval that is answered already: a key typed once too often."""
        key = text.strip().lower() in (*asking.KEYS, *asking.KEYS.values())
        return key and time.monotonic() - self._approved < ECHO
