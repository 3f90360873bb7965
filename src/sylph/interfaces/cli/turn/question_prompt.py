"""Questions of a turn, put to the person at the terminal."""

import re
import shutil
from typing import Any

import msgspec

from sylph.core.commands import Answer
from sylph.core.facts.tool_call import Asked, ToolCalled
from sylph.interfaces.cli.kit.table import text_width
from sylph.interfaces.cli.terminal.keyboard import END_OF_INPUT, Keyboard
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.text.render import full_argument_lines, question_lines, styled_line

NOBODY_REASON = "no terminal to ask on"
APPROVAL_KEYS = {"y": "yes", "a": "session", "r": "always", "e": "edit", "n": "no"}
VIEW_KEY = "v"
APPROVAL_WORDS = {
    "yes": "yes",
    "session": "yes, for this session",
    "always": "yes, from now on",
    "edit": "change it",
    "no": "no",
}
# A word, and after it whatever else was typed: `n`, `no, use another name`, `e make two`.
ANSWER_PATTERN = re.compile(r"(\w*)[,;:.!]*(?:\s+(.*))?", re.DOTALL)


def unattended_answer(asked: Asked) -> Answer:
    """The answer where nobody can give one."""
    return Answer(id=asked.id, answer="no", reason=NOBODY_REASON, actor="nobody")


def closed_input_answer(asked: Asked) -> Answer:
    """The answer of a person who closed the input instead of giving one."""
    return Answer(id=asked.id, answer="no")


def answer_prompt(asked: Asked, columns: int = 80, *, cut: bool = False) -> str:
    """What the person can answer, in as many rows as that needs; and look at, where what is shown was `cut`."""
    if asked.kind == "approval":
        parts = [f"[{key}] {APPROVAL_WORDS[word]}" for key, word in APPROVAL_KEYS.items() if word in asked.choices]
        return pack_choices([*parts[:-1], f"[{VIEW_KEY}] view all of it", parts[-1]] if cut else parts, columns)
    if not asked.choices:
        return "your answer"
    return f"a number from 1 to {len(asked.choices)}" + (", or your own words" if asked.free else "")


def pack_choices(parts: list[str], columns: int) -> str:
    """Side by side where there is room for them all, else one below the other."""
    row = "  ".join(parts)
    return row if text_width(row) < columns - 4 else "\n".join(parts)


def answer_hints(asked: Asked, arguments: str = "") -> list[str]:
    """Each thing that can be typed, and what it means."""
    if asked.kind != "approval":
        return [answer_prompt(asked)]
    instead = "e COMMAND" if "command" in _json_fields(arguments) else 'e {"NAME": "VALUE"}'
    typed = {"edit": instead, "no": "n, or n WHY"}
    return [
        f"{typed.get(word, key)}: {APPROVAL_WORDS[word]}"
        for key, word in APPROVAL_KEYS.items()
        if word in asked.choices
    ]


def edit_prompt(arguments: str) -> str:
    """What is asked for when a call is to be changed."""
    command = "command" in _json_fields(arguments)
    return "the command to run instead" if command else 'what to change, as JSON like {"path": "b.txt"}'


def begins_edit(asked: Asked, text: str) -> bool:
    """Whether the person wants to change the call, but has not said into what."""
    return asked.kind == "approval" and "edit" in asked.choices and text.strip().lower() in ("e", "edit")


def parse_answer(asked: Asked, text: str, arguments: str = "") -> Answer | None:
    """The answer that `text` gives; None where it gives none.

    After `n` comes the reason, if there is one; after `e` what is to be run instead of the call's `arguments`.
    """
    text = text.strip()
    if asked.kind == "approval":
        typed = ANSWER_PATTERN.fullmatch(text)
        word, rest = (typed[1].lower(), typed[2] or "") if typed else ("", "")
        choice = APPROVAL_KEYS.get(word, word)
        if choice == "edit" and choice in asked.choices:
            changed = edit_arguments(arguments, rest.strip())
            return Answer(id=asked.id, answer=choice, arguments=changed) if changed else None
        known = choice in asked.choices and (choice == "no" or not rest)
        return Answer(id=asked.id, answer=choice, reason=rest.strip()) if known else None
    if text.isdecimal() and 1 <= int(text) <= len(asked.choices):
        return Answer(id=asked.id, answer=asked.choices[int(text) - 1])
    if text in asked.choices or (text and (asked.free or not asked.choices)):
        return Answer(id=asked.id, answer=text)
    return None


def edit_arguments(arguments: str, text: str) -> str:
    """A call's arguments with those that `text` names as JSON, or with another command line; empty if it is neither."""
    before, changed = _json_fields(arguments), _json_fields(text)
    if not changed and text and "command" in before:
        changed = {"command": text}
    return msgspec.json.encode({**before, **changed}).decode() if changed else ""


def _json_fields(text: str) -> dict[str, Any]:
    """A JSON object; what is none has no fields."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def is_doubtful(asked: Asked, text: str) -> bool:
    """Whether it is a number, but not one of a choice: probably mistyped, even where own words are welcome."""
    word = text.strip()
    return (
        bool(asked.choices)
        and word.isdecimal()
        and word not in asked.choices
        and int(word) not in _choice_numbers(asked)
    )


def _choice_numbers(asked: Asked) -> range:
    return range(1, len(asked.choices) + 1)


async def ask_person(asked: Asked, called: ToolCalled | None, keyboard: Keyboard, screen: TerminalScreen) -> Answer:
    """Shows the question and waits for its answer."""
    screen.print_lines(question_lines(asked, called), always=True)
    if asked.kind == "approval":
        return await _ask_approval(asked, called, keyboard, screen)
    return await _ask_question(asked, keyboard, screen)


async def _ask_question(asked: Asked, keyboard: Keyboard, screen: TerminalScreen) -> Answer:
    doubted = ""
    while True:
        screen.show_prompt(f"  {answer_prompt(asked)}: ")
        text = await keyboard.read_line()
        screen.end_prompt()
        if text == END_OF_INPUT:
            return unattended_answer(asked)
        if is_doubtful(asked, text) and text != doubted:
            doubted = text
            again = " Once more gives it as your own words." if asked.free else ""
            screen.print_lines([styled_line(f"  There is no choice {text.strip()}.{again}", "warn")], always=True)
        elif answer := parse_answer(asked, text):
            return answer


async def _ask_approval(asked: Asked, called: ToolCalled | None, keyboard: Keyboard, screen: TerminalScreen) -> Answer:
    whole = full_argument_lines(asked, called)
    *above, last = answer_prompt(asked, shutil.get_terminal_size().columns, cut=bool(whole)).split("\n")

    def invite() -> None:
        screen.print_lines([styled_line(f"  {row}", "bold") for row in above], always=True)
        screen.show_prompt(f"  {last}: ")

    def wanted(key: str) -> bool:
        typed = key.strip().lower()
        return APPROVAL_KEYS.get(typed) in asked.choices or (typed == VIEW_KEY and bool(whole))

    while (key := await keyboard.read_key(wanted, invite)).strip().lower() == VIEW_KEY:
        screen.end_prompt("view")
        screen.print_lines(whole, always=True)
    choice = APPROVAL_KEYS.get(key.strip().lower())
    if choice is None:
        return closed_input_answer(asked) if key == END_OF_INPUT else unattended_answer(asked)
    screen.end_prompt(APPROVAL_WORDS[choice])
    if choice == "edit":
        return await _ask_edit(asked, called.arguments if called else "", keyboard, screen)
    if choice != "no":
        return Answer(id=asked.id, answer=choice)
    screen.show_prompt("  why, for the model (or just Enter): ")
    reason = await keyboard.read_line()
    screen.end_prompt()
    return Answer(id=asked.id, answer="no", reason="" if reason == END_OF_INPUT else reason.strip())


async def _ask_edit(asked: Asked, arguments: str, keyboard: Keyboard, screen: TerminalScreen) -> Answer:
    while True:
        screen.show_prompt(f"  {edit_prompt(arguments)}: ")
        text = await keyboard.read_line()
        # Ctrl-D ends no line.
        screen.end_prompt("no" if text == END_OF_INPUT else "")
        if text == END_OF_INPUT:
            return closed_input_answer(asked)
        if changed := edit_arguments(arguments, text.strip()):
            return Answer(id=asked.id, answer="edit", arguments=changed)
        screen.print_lines([styled_line(f"  That is not {edit_prompt(arguments)}.", "warn")], always=True)
