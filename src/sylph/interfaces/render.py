"""Events and values as text for people. Pure, and the same for every door that shows text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from sylph.core.errors import Trouble
from sylph.core.facts import Answered, Asked, Step, ToolCalled, ToolFinished
from sylph.core.messages import Usage
from sylph.core.rule_words import all_told
from sylph.core.text import count, first_line
from sylph.interfaces.clean import clean, hides, visible

Style = Literal["plain", "dim", "bold", "ok", "bad", "warn", "code", "add", "del"]
# What is shown exactly as it is: a row that a door breaks where it likes could be taken for two.
EXACT: frozenset[Style] = frozenset({"code", "add", "del"})

# The argument that says most about a call, best first; the others follow as key=value.
TELLING = ("command", "path", "pattern", "query", "url", "glob", "question", "text")
LONG = frozenset({"content", "old", "new", "patch", "edits"})
# How much of what a call would do is shown with its approval.
SHOWN = 200
STEPS = {"pending": "○", "doing": "◐", "done": "●", "dropped": "✗"}


class Span(NamedTuple):
    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


def line(text: str, style: Style = "plain") -> Line:
    return (Span(text, style),)


def flat(text: str, limit: int = 72) -> str:
    """Cleaned, on one line, cut to `limit`: for titles and tables."""
    return first_line(clean(text), limit)


def took(ms: int) -> str:
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def ago(then: int, now: int) -> str:
    """How long ago, in one unit: `just now`, `5 min ago`, `3 h ago`, `2 days ago`."""
    minutes = max(now - then, 0) // 60_000
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    if minutes < 48 * 60:
        return f"{minutes // 60} h ago"
    return f"{minutes // 1440} days ago"


def money(micros: int | None) -> str:
    """Micro-dollars as dollars; empty where the price is not known."""
    if micros is None:
        return ""
    return f"${micros / 1e6:.2f}" if micros >= 1_000_000 or not micros else f"${micros / 1e6:.4f}"


def size(bytes: int) -> str:
    if bytes < 1024:
        return f"{bytes} B"
    value, unit = bytes / 1024, "KB"
    for larger in ("MB", "GB", "TB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}"


def spent(usage: Usage, cost: int | None) -> str:
    """`1,234 tokens in, 56 out, $0.0012`; what is not known is left out."""
    parts = [f"{count(usage.input, 'token')} in", f"{usage.output:,} out"] if usage.input or usage.output else []
    return ", ".join([*parts, *filter(None, [money(cost)])])


def arguments_of(text: str) -> dict[str, Any]:
    """A call's arguments; what cannot be read stands under the key `arguments`."""
    try:
        told = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        told = text
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {"arguments": told}


def call_title(name: str, arguments: str, limit: int = 100) -> str:
    """A call on one line: `shell  pytest -q`, `grep  TODO  path=src`."""
    told = arguments_of(arguments)
    first = next((key for key in TELLING if key in told), next(iter(told), ""))
    rest = [f"{key}={_short(value)}" for key, value in told.items() if key != first and key not in LONG]
    what = flat(" ".join([_short(told.get(first, ""), limit), *rest]), limit)
    return f"{flat(name)}  {what}".rstrip()


def _short(value: object, limit: int = 60) -> str:
    return first_line(visible(_text(value)), limit)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def dry_title(name: str, arguments: str) -> str:
    """A call that is only shown: `would edit  a.py`, `would run  pytest -q`."""
    return call_title(f"would {'run' if name == 'shell' else name}", arguments)


def dry_lines(output: str, *, limit: int = 20) -> list[Line]:
    """What a call of a dry run would have done; the first line of its output only says that it is one."""
    return diff_lines(output.partition("\n")[2], limit=limit)


def call_mark(body: ToolFinished) -> Line:
    """How a call ended: `✓ 0.4 s`, `✗ exit 1  0.4 s`, `✗ not permitted: …`, `not done: dry run`."""
    if body.dry:
        return line("not done: dry run", "warn")
    if body.ok and not body.exit:
        return line(f"✓ {took(body.ms)}", "ok")
    if body.exit is not None:
        return line(f"✗ exit {body.exit}  {took(body.ms)}", "bad")
    why = body.trouble.message if body.trouble else body.output
    return line(f"✗ {flat(why, 100)}", "bad")


def change_lines(arguments: str, *, limit: int = 12) -> list[Line]:
    """The change that an edit makes, as a short diff of its arguments; nothing for other calls."""
    told = arguments_of(arguments)
    old, new = told.get("old"), told.get("new")
    if not isinstance(old, str) or not isinstance(new, str):
        return []
    removed = [line(f"  - {text}", "del") for text in _rows(old)]
    added = [line(f"  + {text}", "add") for text in _rows(new)]
    return [*_head(removed, limit), *_head(added, limit)]


def diff_lines(text: str, *, limit: int = 60) -> list[Line]:
    """A preview, coloured where it is a diff, cut where it is long. Nothing in it hides."""
    return _head([line(f"  {row}", _diff_style(row)) for row in _rows(text)], limit)


def _rows(text: str) -> list[str]:
    """The lines of a text as they are: only a newline ends one, and nothing hides."""
    return visible(text).removesuffix("\n").split("\n") if text else []


def _diff_style(row: str) -> Style:
    if row.startswith(("+++", "---", "@@")):
        return "dim"
    if row.startswith("+"):
        return "add"
    return "del" if row.startswith("-") else "code"


def _head(lines: Sequence[Line], limit: int) -> list[Line]:
    more = len(lines) - limit
    return [*lines[:limit], line(f"  … {count(more, 'line')} more", "dim")] if more > 0 else list(lines)


def answered_line(answered: Answered) -> Line:
    """That somebody at another door was faster, and who, where that is known."""
    who = {"user": "elsewhere", "nobody": "by nobody"}.get(answered.by, f"by {answered.by}")
    why = f" ({flat(answered.reason, 100)})" if answered.reason else ""
    return line(f"answered {who}: {flat(answered.answer, 100)}{why}", "dim")


def question_lines(asked: Asked, called: ToolCalled | None = None) -> list[Line]:
    """A question as a person reads it before answering. An approval shows the whole of what would be done."""
    question = [line(f"? {row}", "bold") for row in _rows(asked.question)]
    if asked.kind == "question":
        return [*question, *diff_lines(asked.detail), *numbered(asked.choices)]
    arguments = called.arguments if called else ""
    detail = diff_lines(asked.detail, limit=SHOWN) or argument_lines(arguments)
    return [*question, *detail, *_danger(asked), *_warning(asked.detail, arguments), *_covered(asked)]


def unseen(asked: Asked, called: ToolCalled | None) -> list[Line]:
    """All that a call was given, where its approval shows less of it; else nothing."""
    if called is None or not asked.detail or asked.calls or asked.kind != "approval":
        return []
    whole = argument_lines(called.arguments)
    return whole if len(whole) > len(diff_lines(asked.detail, limit=SHOWN)) else []


def _danger(asked: Asked) -> list[Line]:
    why = asked.reach.why
    said = (
        [line(f"! dangerous: {flat(why, 200)}" if why else "! dangerous", "bad")] if asked.risk == "dangerous" else []
    )
    return [*said, line("! it would run outside of the sandbox", "bad")] if asked.reach.outside else said


def _warning(detail: str, arguments: str) -> list[Line]:
    told = [detail, *map(_text, arguments_of(arguments).values())]
    said = "! It holds characters that a terminal obeys or does not show; they stand here as escapes, like \\x1b."
    return [line(said, "warn")] if any(map(hides, told)) else []


def _covered(asked: Asked) -> list[Line]:
    """What a yes would cover beyond this call."""
    offers = (("[a] for this session", asked.grants), ("[r] from now on", asked.rules))
    return [line(f"  {key}: {flat(all_told(rules), 300)}", "dim") for key, rules in offers if rules]


def argument_lines(arguments: str) -> list[Line]:
    """A call's arguments, one below the other, uncut."""
    rows: list[Line] = []
    for key, value in arguments_of(arguments).items():
        head, *rest = _rows(_text(value)) or [""]
        rows += [
            (Span(f"  {visible(key)}: ", "dim"), Span(head, "code")),
            *(line(f"    {row}", "code") for row in rest),
        ]
    return rows


def numbered(choices: Iterable[str]) -> list[Line]:
    return [line(f"  {number}  {flat(choice, 200)}") for number, choice in enumerate(choices, 1)]


def plan_lines(steps: Iterable[Step]) -> list[Line]:
    return [line(f"  {STEPS[step.status]} {flat(step.text, 100)}", _step_style(step)) for step in steps]


def _step_style(step: Step) -> Style:
    styles: dict[str, Style] = {"pending": "plain", "doing": "bold", "done": "ok", "dropped": "dim"}
    return styles[step.status]


def trouble_lines(trouble: Trouble) -> Iterator[Line]:
    """The one shape of an error: what happened, then what to do next."""
    head, *rest = clean(trouble.message).splitlines() or [trouble.kind]
    yield (Span("sylph: ", "bad"), Span(head))
    yield from (line(f"       {row}") for row in rest)
    yield from (line(f"  → {clean(step)}", "dim") for step in trouble.next)
