"""Events and values as text for people. Pure, and the same for every door that shows text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from sylph.core.errors import ErrorReport
from sylph.core.facts.tool_call import Answered, Asked, ToolCalled, ToolFinished
from sylph.core.facts.turn import PlanStep
from sylph.core.messages import Usage
from sylph.core.permission.rule_text import describe_rules
from sylph.core.text.formatting import count_noun, first_line
from sylph.interfaces.text.sanitize import escape_hidden, has_hidden, sanitize_text

TextStyle = Literal["plain", "dim", "bold", "ok", "bad", "warn", "code", "add", "del"]
# What is shown exactly as it is: a row that a door breaks where it likes could be taken for two.
EXACT_STYLES: frozenset[TextStyle] = frozenset({"code", "add", "del"})

# The argument that says most about a call, best first; the others follow as key=value.
MAIN_ARGUMENTS = ("command", "path", "pattern", "query", "url", "glob", "question", "text")
LONG_ARGUMENTS = frozenset({"content", "old", "new", "patch", "edits"})
# How much of what a call would do is shown with its approval.
APPROVAL_LINES = 200
STEP_MARKS = {"pending": "○", "doing": "◐", "done": "●", "dropped": "✗"}


class TextSpan(NamedTuple):
    text: str
    style: TextStyle = "plain"


StyledLine = tuple[TextSpan, ...]


def styled_line(text: str, style: TextStyle = "plain") -> StyledLine:
    return (TextSpan(text, style),)


def one_line(text: str, limit: int = 72) -> str:
    """Cleaned, on one line, cut to `limit`: for titles and tables."""
    return first_line(sanitize_text(text), limit)


def format_duration(ms: int) -> str:
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_age(then: int, now: int) -> str:
    """How long ago, in one unit: `just now`, `5 min ago`, `3 h ago`, `2 days ago`."""
    minutes = max(now - then, 0) // 60_000
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    if minutes < 48 * 60:
        return f"{minutes // 60} h ago"
    return f"{minutes // 1440} days ago"


def format_money(micros: int | None) -> str:
    """Micro-dollars as dollars; empty where the price is not known."""
    if micros is None:
        return ""
    return f"${micros / 1e6:.2f}" if micros >= 1_000_000 or not micros else f"${micros / 1e6:.4f}"


def format_size(bytes: int) -> str:
    if bytes < 1024:
        return f"{bytes} B"
    value, unit = bytes / 1024, "KB"
    for larger in ("MB", "GB", "TB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}"


def format_usage(usage: Usage, cost: int | None) -> str:
    """`1,234 tokens in, 56 out, $0.0012`; what is not known is left out."""
    parts = [f"{count_noun(usage.input, 'token')} in", f"{usage.output:,} out"] if usage.input or usage.output else []
    return ", ".join([*parts, *filter(None, [format_money(cost)])])


def parse_arguments(text: str) -> dict[str, Any]:
    """A call's arguments; what cannot be read stands under the key `arguments`."""
    try:
        told = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        told = text
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {"arguments": told}


def call_title(name: str, arguments: str, limit: int = 100) -> str:
    """A call on one line: `shell  pytest -q`, `grep  TODO  path=src`."""
    told = parse_arguments(arguments)
    first = next((key for key in MAIN_ARGUMENTS if key in told), next(iter(told), ""))
    rest = [
        f"{key}={_shorten_value(value)}" for key, value in told.items() if key != first and key not in LONG_ARGUMENTS
    ]
    what = one_line(" ".join([_shorten_value(told.get(first, ""), limit), *rest]), limit)
    return f"{one_line(name)}  {what}".rstrip()


def _shorten_value(value: object, limit: int = 60) -> str:
    return first_line(escape_hidden(_value_text(value)), limit)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def dry_run_title(name: str, arguments: str) -> str:
    """A call that is only shown: `would edit  a.py`, `would run  pytest -q`."""
    return call_title(f"would {'run' if name == 'shell' else name}", arguments)


def dry_run_lines(output: str, *, limit: int = 20) -> list[StyledLine]:
    """What a call of a dry run would have done; the first line of its output only says that it is one."""
    return preview_lines(output.partition("\n")[2], limit=limit)


def call_result_line(body: ToolFinished) -> StyledLine:
    """How a call ended: `✓ 0.4 s`, `✗ exit 1  0.4 s`, `✗ not permitted: …`, `not done: dry run`."""
    if body.dry:
        return styled_line("not done: dry run", "warn")
    if body.ok and not body.exit:
        return styled_line(f"✓ {format_duration(body.ms)}", "ok")
    if body.exit is not None:
        return styled_line(f"✗ exit {body.exit}  {format_duration(body.ms)}", "bad")
    why = body.trouble.message if body.trouble else body.output
    return styled_line(f"✗ {one_line(why, 100)}", "bad")


def edit_lines(arguments: str, *, limit: int = 12) -> list[StyledLine]:
    """The change that an edit makes, as a short diff of its arguments; nothing for other calls."""
    told = parse_arguments(arguments)
    old, new = told.get("old"), told.get("new")
    if not isinstance(old, str) or not isinstance(new, str):
        return []
    removed = [styled_line(f"  - {text}", "del") for text in _visible_rows(old)]
    added = [styled_line(f"  + {text}", "add") for text in _visible_rows(new)]
    return [*_limit_lines(removed, limit), *_limit_lines(added, limit)]


def preview_lines(text: str, *, limit: int = 60) -> list[StyledLine]:
    """A preview, coloured where it is a diff, cut where it is long. Nothing in it hides."""
    return _limit_lines([styled_line(f"  {row}", _diff_style(row)) for row in _visible_rows(text)], limit)


def _visible_rows(text: str) -> list[str]:
    """The lines of a text as they are: only a newline ends one, and nothing hides."""
    return escape_hidden(text).removesuffix("\n").split("\n") if text else []


def _diff_style(row: str) -> TextStyle:
    if row.startswith(("+++", "---", "@@")):
        return "dim"
    if row.startswith("+"):
        return "add"
    return "del" if row.startswith("-") else "code"


def _limit_lines(lines: Sequence[StyledLine], limit: int) -> list[StyledLine]:
    more = len(lines) - limit
    return [*lines[:limit], styled_line(f"  … {count_noun(more, 'line')} more", "dim")] if more > 0 else list(lines)


def answered_line(answered: Answered) -> StyledLine:
    """That somebody at another door was faster, and who, where that is known."""
    who = {"user": "elsewhere", "nobody": "by nobody"}.get(answered.by, f"by {answered.by}")
    why = f" ({one_line(answered.reason, 100)})" if answered.reason else ""
    return styled_line(f"answered {who}: {one_line(answered.answer, 100)}{why}", "dim")


def question_lines(asked: Asked, called: ToolCalled | None = None) -> list[StyledLine]:
    """A question as a person reads it before answering. An approval shows the whole of what would be done."""
    question = [styled_line(f"? {row}", "bold") for row in _visible_rows(asked.question)]
    if asked.kind == "question":
        return [*question, *preview_lines(asked.detail), *choice_lines(asked.choices)]
    arguments = called.arguments if called else ""
    detail = preview_lines(asked.detail, limit=APPROVAL_LINES) or argument_lines(arguments)
    return [
        *question,
        *detail,
        *_danger_lines(asked),
        *_hidden_text_warning(asked.detail, arguments),
        *_grant_lines(asked),
    ]


def full_argument_lines(asked: Asked, called: ToolCalled | None) -> list[StyledLine]:
    """All that a call was given, where its approval shows less of it; else nothing."""
    if called is None or not asked.detail or asked.calls or asked.kind != "approval":
        return []
    whole = argument_lines(called.arguments)
    return whole if len(whole) > len(preview_lines(asked.detail, limit=APPROVAL_LINES)) else []


def _danger_lines(asked: Asked) -> list[StyledLine]:
    why = asked.reach.why
    said = (
        [styled_line(f"! dangerous: {one_line(why, 200)}" if why else "! dangerous", "bad")]
        if asked.risk == "dangerous"
        else []
    )
    return [*said, styled_line("! it would run outside of the sandbox", "bad")] if asked.reach.outside else said


def _hidden_text_warning(detail: str, arguments: str) -> list[StyledLine]:
    told = [detail, *map(_value_text, parse_arguments(arguments).values())]
    said = "! It holds characters that a terminal obeys or does not show; they stand here as escapes, like \\x1b."
    return [styled_line(said, "warn")] if any(map(has_hidden, told)) else []


def _grant_lines(asked: Asked) -> list[StyledLine]:
    """What a yes would cover beyond this call."""
    offers = (("[a] for this session", asked.grants), ("[r] from now on", asked.rules))
    return [styled_line(f"  {key}: {one_line(describe_rules(rules), 300)}", "dim") for key, rules in offers if rules]


def argument_lines(arguments: str) -> list[StyledLine]:
    """A call's arguments, one below the other, uncut."""
    rows: list[StyledLine] = []
    for key, value in parse_arguments(arguments).items():
        head, *rest = _visible_rows(_value_text(value)) or [""]
        rows += [
            (TextSpan(f"  {escape_hidden(key)}: ", "dim"), TextSpan(head, "code")),
            *(styled_line(f"    {row}", "code") for row in rest),
        ]
    return rows


def choice_lines(choices: Iterable[str]) -> list[StyledLine]:
    return [styled_line(f"  {number}  {one_line(choice, 200)}") for number, choice in enumerate(choices, 1)]


def plan_lines(steps: Iterable[PlanStep]) -> list[StyledLine]:
    return [styled_line(f"  {STEP_MARKS[step.status]} {one_line(step.text, 100)}", _step_style(step)) for step in steps]


def _step_style(step: PlanStep) -> TextStyle:
    styles: dict[str, TextStyle] = {"pending": "plain", "doing": "bold", "done": "ok", "dropped": "dim"}
    return styles[step.status]


def error_lines(trouble: ErrorReport) -> Iterator[StyledLine]:
    """The one shape of an error: what happened, then what to do next."""
    head, *rest = sanitize_text(trouble.message).splitlines() or [trouble.kind]
    yield (TextSpan("sylph: ", "bad"), TextSpan(head))
    yield from (styled_line(f"       {row}") for row in rest)
    yield from (styled_line(f"  → {sanitize_text(step)}", "dim") for step in trouble.next)
