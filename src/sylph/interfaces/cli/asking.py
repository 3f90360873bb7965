"""Questions of a turn, put to the person at the terminal."""

from sylph.core.commands import Answer
from sylph.core.facts import Asked, ToolCalled
from sylph.interfaces.cli.keyboard import END, Keyboard
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.render import line, question_lines

NOBODY = "no terminal to ask on"
KEYS = {"y": "yes", "a": "session", "n": "no"}
WORDS = {"yes": "yes", "session": "yes, for this session", "no": "no"}


def refusal(asked: Asked) -> Answer:
    """The answer where nobody can give one."""
    return Answer(id=asked.id, answer="no", reason=NOBODY, actor="nobody")


def prompt_of(asked: Asked) -> str:
    """What the person can answer, on one line."""
    if asked.kind == "approval":
        return "  ".join(f"[{key}] {WORDS[word]}" for key, word in KEYS.items() if word in asked.choices)
    if not asked.choices:
        return "your answer"
    return "number" + (" or your own words" if asked.free else "")


def answer_of(asked: Asked, text: str) -> Answer | None:
    """The answer that `text` gives; None where it gives none. After `n` comes the reason, if there is one."""
    text = text.strip()
    word, _, rest = text.partition(" ")
    if asked.kind == "approval":
        choice = KEYS.get(word.lower(), word.lower())
        known = choice in asked.choices and (choice == "no" or not rest)
        return Answer(id=asked.id, answer=choice, reason=rest.strip()) if known else None
    if text.isdigit() and 1 <= int(text) <= len(asked.choices):
        return Answer(id=asked.id, answer=asked.choices[int(text) - 1])
    if text in asked.choices or (text and (asked.free or not asked.choices)):
        return Answer(id=asked.id, answer=text)
    return None


async def ask(asked: Asked, called: ToolCalled | None, keyboard: Keyboard, screen: Screen) -> Answer:
    """Shows the question and waits for its answer."""
    screen.note(question_lines(asked, called), always=True)
    if asked.kind == "approval":
        return await _approval(asked, keyboard, screen)
    while True:
        screen.ask(f"  {prompt_of(asked)}: ")
        text = await keyboard.line()
        if text == END:
            return refusal(asked)
        if answer := answer_of(asked, text):
            return answer


async def _approval(asked: Asked, keyboard: Keyboard, screen: Screen) -> Answer:
    key = await keyboard.key(lambda key: bool(answer_of(asked, key)), lambda: screen.ask(f"  {prompt_of(asked)} "))
    answer = answer_of(asked, key)
    if answer is None:
        return refusal(asked)
    screen.note([line(WORDS[answer.answer])], always=True)
    if answer.answer != "no":
        return answer
    screen.ask("  why, for the model (or just Enter): ")
    reason = await keyboard.line()
    return Answer(id=asked.id, answer="no", reason="" if reason == END else reason.strip())
