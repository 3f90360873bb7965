"""What a person types while a question is open, and just after."""

import time

from sylph.core.commands import Answer
from sylph.core.errors import UserError
from sylph.core.facts.tool_call import Asked
from sylph.interfaces.cli.turn import question_prompt

# For this many seconds after an approval a lone `y` is no message.
ECHO_SECONDS = 3.0


class AnswerInput:
    """Remembers what was doubted, and when something was approved."""

    def __init__(self) -> None:
        self._doubted = ""
        self._approved = 0.0
        self._editing = ""

    def is_editing(self, asked: Asked | None) -> bool:
        """Whether the next line is what the call is to be changed into."""
        return asked is not None and asked.id == self._editing

    def prompt_text(self, asked: Asked, arguments: str = "", columns: int = 80, *, cut: bool = False) -> str:
        """What is asked for now."""
        if self.is_editing(asked):
            return f"{question_prompt.edit_prompt(arguments)} (just Enter goes back)"
        return question_prompt.answer_prompt(asked, columns, cut=cut)

    def take_answer(self, asked: Asked, text: str, arguments: str = "") -> Answer | None:
        """The answer that the text gives; None where it only begins one, or takes that back.

        Raises UserError where it gives none, or where that is not sure.
        """
        if question_prompt.begins_edit(asked, text) and not self.is_editing(asked):
            self._editing = asked.id
            return None
        if self.is_editing(asked):
            return self._take_edit(asked, text.strip(), arguments)
        if question_prompt.is_doubtful(asked, text) and text != self._doubted:
            self._doubted = text
            again = ["the same once more gives it as your own words"] if asked.free else []
            raise UserError(f"There is no choice {text.strip()}.", next=[*question_prompt.answer_hints(asked), *again])
        answer = question_prompt.parse_answer(asked, text, arguments)
        if answer is None:
            raise UserError(
                "That does not answer the open question.", next=question_prompt.answer_hints(asked, arguments)
            )
        self._doubted = ""
        if asked.kind == "approval":
            self._approved = time.monotonic()
        return answer

    def _take_edit(self, asked: Asked, text: str, arguments: str) -> Answer | None:
        changed = question_prompt.edit_arguments(arguments, text)
        if text and not changed:
            raise UserError(f"That is not {question_prompt.edit_prompt(arguments)}.", next=["just Enter goes back"])
        self._editing = ""
        if not text:
            return None
        self._approved = time.monotonic()
        return Answer(id=asked.id, answer="edit", arguments=changed)

    def is_echo(self, text: str) -> bool:
        """Whether it was meant for an approval that is answered already: a key typed once too often."""
        key = text.strip().lower() in (*question_prompt.APPROVAL_KEYS, *question_prompt.APPROVAL_KEYS.values())
        return key and time.monotonic() - self._approved < ECHO_SECONDS
