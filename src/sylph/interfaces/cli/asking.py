"""Questions of a turn, put to the person at the terminal."""

import shutil

from sylph.core.commands import Answer
from sylph.core.facts import Asked, ToolCalled
from sylph.interfaces.cli.keyboard import END, Keyboard
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.cli.table import width
from sylph.interfaces.render import line, question_lines

NOBODY = "no terminal to ask on"
KEYS = {"y": "yes", "a": "session", "n": "no"}
WORDS = {"yes": "yes", "session": "yes, for this session", "no": "no"}


def refusal(asked: Asked) -> Answer:
    """The answer where nobody can give one."""
    return Answer(id=asked.id, answer="no", reason=NOBODY, actor="nobody")


def prompt_of(asked: Asked, columns: int = 80) -> str:
    """What the person can answer, in as many rows as that needs."""
    if asked.kind == "approval":
        return packed([f"[{key}] {WORDS[word]}" for key, word in KEYS.items() if word in asked.choices], columns)
    if not asked.choices:
        return "your answer"
    return f"a number from 1 to {len(asked.choices)}" + (", or your own words" if asked.free else "")


def packed(parts: list[str], columns: int) -> str:
    """Side by side where there is room for them all, else one below the other."""
    row = "  ".join(parts)
    return row if width(row) < columns - 4 else "\n".join(parts)


def answer_of(asked: Asked, text: str) -> Answer | None:
    """The answer that `text` gives; None where it gives none. After `n` comes the reason, if there is one."""
    text = text.strip()
    word, _, rest = text.partition(" ")
    if asked.kind == "approval":
        choice = KEYS.get(word.lower(), word.lower())
        known = choice in asked.choices and (choice == "no" or not rest)
        return Answer(id=asked.id, answer=choice, reason=rest.strip()) if known else None
    if text.isdecimal() and 1 <= int(text) <= len(asked.choices):
        return Answer(id=asked.id, answer=asked.choices[int(text) - 1])
    if text in asked.choices or (text and (asked.free or not asked.choices)):
        return Answer(id=asked.id, answer=text)
    return None


def doubtful(asked: Asked, text: str) -> bool:
    """Whether it is a number, but not one of a choice: probably mistyped, even where own words are welcome."""
    word = text.strip()
    return bool(asked.choices) and word.isdecimal() and word not in asked.choices and int(word) not in _numbers(asked)


def _numbers(asked: Asked) -> range:
    return range(1, len(asked.choices) + 1)


async def ask(asked: Asked, called: ToolCalled | None, keyboard: Keyboard, screen: Screen) -> Answer:
    """Shows the question and waits for its answer."""
    screen.note(question_lines(asked, called), always=True)
    return await (_approval if asked.kind == "approval" else _question)(asked, keyboard, screen)


async def _question(asked: Asked, keyboard: Keyboard, screen: Screen) -> Answer:
    doubted = ""
    while True:
        screen.ask(f"  {prompt_of(asked)}: ")
        text = await keyboard.line()
        screen.heard()
        if text == END:
            return refusal(asked)
        if doubtful(asked, text) and text != doubted:
            doubted = text
            again = " Once more gives it as your own words." if asked.free else ""
            screen.note([line(f"  There is no choice {text.strip()}.{again}", "warn")], always=True)
        elif answer := answer_of(asked, text):
            return answer


async def _approval(asked: Asked, keyboard: Keyboard, screen: Screen) -> Answer:
    *above, last = prompt_of(asked, shutil.get_terminal_size().columns).split("\n")

    def invite() -> None:
        screen.note([line(f"  {row}", "bold") for row in above], always=True)
        screen.ask(f"  {last}: ")

    key = await keyboard.key(lambda key: bool(answer_of(asked, key)), invite)
    answer = answer_of(asked, key)
    if answer is None:
        return refusal(asked)
    screen.heard(WORDS[answer.answer])
    if answer.answer != "no":
        return answer
    screen.ask("  why, for the model (or just Enter): ")
    reason = await keyboard.line()
    screen.heard()
    return Answer(id=asked.id, answer="no", reason="" if reason == END else reason.strip())
