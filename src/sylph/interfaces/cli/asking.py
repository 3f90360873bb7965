"""Questions of a turn, put to the person at the terminal."""

import re
import shutil
from typing import Any

import msgspec

from sylph.core.commands import Answer
from sylph.core.facts import Asked, ToolCalled
from sylph.interfaces.cli.keyboard import END, Keyboard
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.cli.table import width
from sylph.interfaces.render import line, question_lines, unseen

NOBODY = "no terminal to ask on"
KEYS = {"y": "yes", "a": "session", "r": "always", "e": "edit", "n": "no"}
VIEW = "v"
WORDS = {
    "yes": "yes",
    "session": "yes, for this session",
    "always": "yes, from now on",
    "edit": "change it",
    "no": "no",
}
# A word, and after it whatever else was typed: `n`, `no, use another name`, `e make two`.
TYPED = re.compile(r"(\w*)[,;:.!]*(?:\s+(.*))?", re.DOTALL)


def refusal(asked: Asked) -> Answer:
    """The answer where nobody can give one."""
    return Answer(id=asked.id, answer="no", reason=NOBODY, actor="nobody")


def declined(asked: Asked) -> Answer:
    """The answer of a person who closed the input instead of giving one."""
    return Answer(id=asked.id, answer="no")


def prompt_of(asked: Asked, columns: int = 80, *, cut: bool = False) -> str:
    """What the person can answer, in as many rows as that needs; and look at, where what is shown was `cut`."""
    if asked.kind == "approval":
        parts = [f"[{key}] {WORDS[word]}" for key, word in KEYS.items() if word in asked.choices]
        return packed([*parts[:-1], f"[{VIEW}] view all of it", parts[-1]] if cut else parts, columns)
    if not asked.choices:
        return "your answer"
    return f"a number from 1 to {len(asked.choices)}" + (", or your own words" if asked.free else "")


def packed(parts: list[str], columns: int) -> str:
    """Side by side where there is room for them all, else one below the other."""
    row = "  ".join(parts)
    return row if width(row) < columns - 4 else "\n".join(parts)


def ways(asked: Asked, arguments: str = "") -> list[str]:
    """Each thing that can be typed, and what it means."""
    if asked.kind != "approval":
        return [prompt_of(asked)]
    instead = "e COMMAND" if "command" in _fields(arguments) else 'e {"NAME": "VALUE"}'
    typed = {"edit": instead, "no": "n, or n WHY"}
    return [f"{typed.get(word, key)}: {WORDS[word]}" for key, word in KEYS.items() if word in asked.choices]


def changing(arguments: str) -> str:
    """What is asked for when a call is to be changed."""
    command = "command" in _fields(arguments)
    return "the command to run instead" if command else 'what to change, as JSON like {"path": "b.txt"}'


def begins_edit(asked: Asked, text: str) -> bool:
    """Whether the person wants to change the call, but has not said into what."""
    return asked.kind == "approval" and "edit" in asked.choices and text.strip().lower() in ("e", "edit")


def answer_of(asked: Asked, text: str, arguments: str = "") -> Answer | None:
    """The answer that `text` gives; None where it gives none.

    After `n` comes the reason, if there is one; after `e` what is to be run instead of the call's `arguments`.
    """
    text = text.strip()
    if asked.kind == "approval":
        typed = TYPED.fullmatch(text)
        word, rest = (typed[1].lower(), typed[2] or "") if typed else ("", "")
        choice = KEYS.get(word, word)
        if choice == "edit" and choice in asked.choices:
            changed = edited(arguments, rest.strip())
            return Answer(id=asked.id, answer=choice, arguments=changed) if changed else None
        known = choice in asked.choices and (choice == "no" or not rest)
        return Answer(id=asked.id, answer=choice, reason=rest.strip()) if known else None
    if text.isdecimal() and 1 <= int(text) <= len(asked.choices):
        return Answer(id=asked.id, answer=asked.choices[int(text) - 1])
    if text in asked.choices or (text and (asked.free or not asked.choices)):
        return Answer(id=asked.id, answer=text)
    return None


def edited(arguments: str, text: str) -> str:
    """A call's arguments with those that `text` names as JSON, or with another command line; empty if it is neither."""
    before, changed = _fields(arguments), _fields(text)
    if not changed and text and "command" in before:
        changed = {"command": text}
    return msgspec.json.encode({**before, **changed}).decode() if changed else ""


def _fields(text: str) -> dict[str, Any]:
    """A JSON object; what is none has no fields."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def doubtful(asked: Asked, text: str) -> bool:
    """Whether it is a number, but not one of a choice: probably mistyped, even where own words are welcome."""
    word = text.strip()
    return bool(asked.choices) and word.isdecimal() and word not in asked.choices and int(word) not in _numbers(asked)


def _numbers(asked: Asked) -> range:
    return range(1, len(asked.choices) + 1)


async def ask(asked: Asked, called: ToolCalled | None, keyboard: Keyboard, screen: Screen) -> Answer:
    """Shows the question and waits for its answer."""
    screen.note(question_lines(asked, called), always=True)
    if asked.kind == "approval":
        return await _approval(asked, called, keyboard, screen)
    return await _question(asked, keyboard, screen)


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


async def _approval(asked: Asked, called: ToolCalled | None, keyboard: Keyboard, screen: Screen) -> Answer:
    whole = unseen(asked, called)
    *above, last = prompt_of(asked, shutil.get_terminal_size().columns, cut=bool(whole)).split("\n")

    def invite() -> None:
        screen.note([line(f"  {row}", "bold") for row in above], always=True)
        screen.ask(f"  {last}: ")

    def wanted(key: str) -> bool:
        typed = key.strip().lower()
        return KEYS.get(typed) in asked.choices or (typed == VIEW and bool(whole))

    while (key := await keyboard.key(wanted, invite)).strip().lower() == VIEW:
        screen.heard("view")
        screen.note(whole, always=True)
    choice = KEYS.get(key.strip().lower())
    if choice is None:
        return declined(asked) if key == END else refusal(asked)
    screen.heard(WORDS[choice])
    if choice == "edit":
        return await _edit(asked, called.arguments if called else "", keyboard, screen)
    if choice != "no":
        return Answer(id=asked.id, answer=choice)
    screen.ask("  why, for the model (or just Enter): ")
    reason = await keyboard.line()
    screen.heard()
    return Answer(id=asked.id, answer="no", reason="" if reason == END else reason.strip())


async def _edit(asked: Asked, arguments: str, keyboard: Keyboard, screen: Screen) -> Answer:
    while True:
        screen.ask(f"  {changing(arguments)}: ")
        text = await keyboard.line()
        # Ctrl-D ends no line.
        screen.heard("no" if text == END else "")
        if text == END:
            return declined(asked)
        if changed := edited(arguments, text.strip()):
            return Answer(id=asked.id, answer="edit", arguments=changed)
        screen.note([line(f"  That is not {changing(arguments)}.", "warn")], always=True)
