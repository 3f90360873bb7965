"""Values as people read them."""

import pytest

from sylph.core.errors import ErrorReport
from sylph.core.facts.tool_call import Asked, ToolCalled, ToolFinished
from sylph.core.facts.turn import PlanStep
from sylph.core.messages import Usage
from sylph.core.permission.types import PermissionRule
from sylph.interfaces.text.render import (
    argument_lines,
    call_result_line,
    call_title,
    dry_run_lines,
    dry_run_title,
    edit_lines,
    error_lines,
    format_age,
    format_duration,
    format_money,
    format_size,
    format_usage,
    one_line,
    plan_lines,
    preview_lines,
    question_lines,
)
from sylph.interfaces.text.sanitize import sanitize_text


def text(lines: object) -> list[str]:
    return ["".join(span.text for span in line) for line in lines]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1bPdata\x1b\\x", "x"),
        ("a\rb\bc\x00", "abc"),
        ("\x9b2Jx", "x"),
        ("\x1b]0;never closed\nx", "0;never closed\nx"),
        ("\x1b", ""),
        ("rm \u202etxt.\u202c", "rm txt."),
        ("tab\tand\nline", "tab\tand\nline"),
        ("äöü 漢字 🙂", "äöü 漢字 🙂"),
    ],
)
def test_no_text_controls_the_terminal(hostile: str, harmless: str) -> None:
    assert sanitize_text(hostile) == harmless


def test_times_and_sizes() -> None:
    assert [format_duration(ms) for ms in (40, 9_400, 42_000, 61_000, 7_260_000)] == [
        "0.0 s",
        "9.4 s",
        "42 s",
        "1 min 1 s",
        "2 h 1 min",
    ]
    assert [format_age(0, ms) for ms in (0, 300_000, 7_200_000, 259_200_000)] == [
        "just now",
        "5 min ago",
        "2 h ago",
        "3 days ago",
    ]
    assert [format_size(count) for count in (10, 2048, 5 << 20, 3 << 40)] == ["10 B", "2.0 KB", "5.0 MB", "3.0 TB"]


def test_money_is_told_only_where_it_is_known() -> None:
    assert [format_money(micros) for micros in (None, 0, 1_234, 2_500_000)] == ["", "$0.00", "$0.0012", "$2.50"]
    assert format_usage(Usage(input=1200, output=1), 1_234) == "1,200 tokens in, 1 out, $0.0012"
    assert format_usage(Usage(), None) == ""


def test_a_call_on_one_line() -> None:
    assert call_title("shell", '{"command":"pytest\\n -q","seconds":5}') == "shell  pytest -q seconds=5"
    assert call_title("write", '{"path":"a.txt","content":"long"}') == "write  a.txt"
    assert call_title("odd", "not json") == "odd  not json"
    assert call_title("list", "") == "list"
    assert len(call_title("shell", '{"command":"' + "x" * 500 + '"}')) < 120


def test_how_a_call_ended() -> None:
    assert text([call_result_line(ToolFinished(call="c", ok=True, output="", ms=400))]) == ["✓ 0.4 s"]
    assert text([call_result_line(ToolFinished(call="c", ok=True, output="", exit=0, ms=400))]) == ["✓ 0.4 s"]
    assert text([call_result_line(ToolFinished(call="c", ok=False, output="", exit=1, ms=400))]) == ["✗ exit 1  0.4 s"]
    refused = ToolFinished(call="c", ok=False, output="", trouble=ErrorReport("refused", "not permitted"))
    assert text([call_result_line(refused)]) == ["✗ not permitted"]


def test_a_change_is_a_short_diff() -> None:
    assert text(edit_lines('{"old":"a\\nb","new":"c"}')) == ["  - a", "  - b", "  + c"]
    assert edit_lines('{"path":"x"}') == []
    assert text(preview_lines("+new\n-old\n same", limit=2)) == ["  +new", "  -old", "  … 1 line more"]


def test_an_approval_shows_all_that_would_be_done() -> None:
    asked = Asked(id="q", kind="approval", question="May shell run?", choices=("yes", "no"), call="c")
    called = ToolCalled(call="c", name="shell", arguments='{"command":"a\\nb","seconds":5}')
    assert text(question_lines(asked, called)) == ["? May shell run?", "  command: a", "    b", "  seconds: 5"]
    assert text(argument_lines("{}")) == []


def test_an_approval_hides_nothing() -> None:
    asked = Asked(id="q", kind="approval", question="May shell run?", detail="would run in /x:\nrm a\x1b[8m b\rls")
    rows = text(question_lines(asked))
    assert rows[:3] == ["? May shell run?", "  would run in /x:", r"  rm a\x1b[8m b\rls"]
    assert rows[3].startswith("! It holds characters that a terminal obeys")


def test_an_approval_warns_of_what_only_its_arguments_hold() -> None:
    asked = Asked(id="q", kind="approval", question="May write run?", detail="a.sh: new file, 1 line", call="c")
    called = ToolCalled(call="c", name="write", arguments='{"path":"a.sh","content":"ls\\u202e"}')
    assert text(question_lines(asked, called))[-1].startswith("! It holds characters")


def test_an_approval_says_what_a_yes_for_the_session_covers() -> None:
    asked = Asked(
        id="q",
        kind="approval",
        question="May edit run?",
        detail="x",
        grants=(PermissionRule(decision="allow", tool="write"),),
    )
    assert text(question_lines(asked))[-1] == "  [a] for this session: allow write"


def test_a_dry_run_is_unmistakable() -> None:
    assert dry_run_title("shell", '{"command":"make"}') == "would run  make"
    assert dry_run_title("edit", '{"path":"a.py"}') == "would edit  a.py"
    done = ToolFinished(call="c", ok=True, output="[dry run: nothing was changed]\na.py: new file\n+x", dry=True)
    assert text([call_result_line(done)]) == ["not done: dry run"]
    assert text(dry_run_lines(done.output)) == ["  a.py: new file", "  +x"]


def test_a_question_numbers_its_choices() -> None:
    asked = Asked(id="q", kind="question", question="Which?", choices=("red", "blue"))
    assert text(question_lines(asked)) == ["? Which?", "  1  red", "  2  blue"]


def test_a_plan_and_a_trouble() -> None:
    assert text(plan_lines([PlanStep("one", "done"), PlanStep("two")])) == ["  ● one", "  ○ two"]
    trouble = ErrorReport("x", "It broke.\nBadly.", next=("mend it",))
    assert text(error_lines(trouble)) == ["sylph: It broke.", "       Badly.", "  → mend it"]


def test_titles_stay_on_one_line() -> None:
    assert one_line("a\nb\x1b[2J  c") == "a b c"
