"""The small pure parts of the command line."""

import pytest

from sylph.core.commands import Answer
from sylph.core.errors import RETRYABLE_FAILURES, ErrorReport, LogConflict, SessionBusy, StoreError, UserError
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import TurnEnded
from sylph.engine.folds.session_state import SessionState
from sylph.interfaces.actions.config_file import change_setting, remove_setting, validate_config
from sylph.interfaces.cli.chat.answer_input import AnswerInput
from sylph.interfaces.cli.chat.key_bindings import continues_line
from sylph.interfaces.cli.commands.session.fork_tree import draw_fork_tree
from sylph.interfaces.cli.commands.session.group import command as session_command
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.argv import SESSION_COMMANDS, arrange_argv
from sylph.interfaces.cli.kit.colours import paint_line
from sylph.interfaces.cli.kit.table import align_rows, fit_rows
from sylph.interfaces.cli.terminal.session_picker import filter_sessions, session_rows
from sylph.interfaces.cli.terminal.wrap import RowWrapper, wrap_line, wrap_text
from sylph.interfaces.cli.turn.question_prompt import answer_prompt, is_doubtful, parse_answer, unattended_answer
from sylph.interfaces.text.render import TextSpan, styled_line

COMMANDS = {"run", "chat", "session", "task", "config"}
APPROVAL = Asked(id="q", kind="approval", question="?", choices=("yes", "session", "no"))
CHOICE = Asked(id="q", kind="question", question="?", choices=("red", "blue"))
FREE = Asked(id="q", kind="question", question="?", choices=("red",), free=True)


@pytest.mark.parametrize(
    ("words", "arranged"),
    [
        ([], ["start"]),
        (["-m", "a/b"], ["start", "-m", "a/b"]),
        (["--help"], ["--help"]),
        (["help"], ["--help"]),
        (["help", "session"], ["session", "--help"]),
        (["chat"], ["chat"]),
        (["-m", "a/b", "chat"], ["chat", "-m", "a/b"]),
        (["--json", "session", "list"], ["session", "list", "--json"]),
        (["fix the bug"], ["run", "fix the bug"]),
        (["-q", "fix", "it"], ["run", "-q", "fix", "it"]),
        (["hello"], ["run", "hello"]),
        (["--", "-x"], ["run", "--", "-x"]),
        (["-"], ["run", "-"]),
        (["test all of the code"], ["run", "test all of the code"]),
    ],
)
def test_commands_and_tasks(words: list[str], arranged: list[str]) -> None:
    assert arrange_argv(words, COMMANDS) == arranged


def test_a_command_of_a_group_without_its_group_is_refused() -> None:
    for words in (["list"], ["show", "last"], ["delete", "k7x8s75tz6fk"], ["export", "k7x8", "-o", "x"]):
        with pytest.raises(UserError, match="Did you mean"):
            arrange_argv(words, COMMANDS)
    for words in (["list", "the", "files"], ["show", "me"], ["delete a.txt"], ["fork", "it"]):
        assert arrange_argv(words, COMMANDS)[0] == "run"
    assert set(SESSION_COMMANDS) <= set(session_command.commands)


@pytest.mark.parametrize("words", [["sesion"], ["sesion", "list"], ["tsak"], ["confg", "--json"]])
def test_a_mistyped_command_is_refused(words: list[str]) -> None:
    with pytest.raises(UserError, match="Did you mean"):
        arrange_argv(words, COMMANDS)


@pytest.mark.parametrize(
    ("asked", "typed", "answer"),
    [
        (APPROVAL, "y", Answer(id="q", answer="yes")),
        (APPROVAL, " A ", Answer(id="q", answer="session")),
        (APPROVAL, "no", Answer(id="q", answer="no")),
        (APPROVAL, "n use the other", Answer(id="q", answer="no", reason="use the other")),
        (APPROVAL, "no, use another name", Answer(id="q", answer="no", reason="use another name")),
        (APPROVAL, "nothing", None),
        (APPROVAL, "yes but", None),
        (APPROVAL, "", None),
        (CHOICE, "2", Answer(id="q", answer="blue")),
        (CHOICE, "red", Answer(id="q", answer="red")),
        (CHOICE, "3", None),
        (CHOICE, "green", None),
        (FREE, "green", Answer(id="q", answer="green")),
        (FREE, " ", None),
    ],
)
def test_answers(asked: Asked, typed: str, answer: Answer | None) -> None:
    assert parse_answer(asked, typed) == answer


def test_what_can_be_answered() -> None:
    assert answer_prompt(APPROVAL) == "[y] yes  [a] yes, for this session  [n] no"
    assert answer_prompt(FREE) == "a number from 1 to 1, or your own words"
    assert unattended_answer(CHOICE).actor == "nobody"


def test_choices_stay_visible_where_there_is_little_room() -> None:
    assert answer_prompt(APPROVAL, 40) == "[y] yes\n[a] yes, for this session\n[n] no"


def test_a_number_that_is_no_choice_is_doubted() -> None:
    assert is_doubtful(CHOICE, "3")
    assert is_doubtful(FREE, "7 ")
    assert not is_doubtful(FREE, "1")
    assert not is_doubtful(Asked(id="q", kind="question", question="How many?", free=True), "7")
    assert not is_doubtful(Asked(id="q", kind="question", question="?", choices=("8", "9")), "8")


def test_the_same_once_more_is_meant() -> None:
    replies = AnswerInput()
    with pytest.raises(UserError, match="no choice 7"):
        replies.take_answer(FREE, "7")
    assert replies.take_answer(FREE, "7") == Answer(id="q", answer="7")


def test_a_change_is_asked_for_and_can_be_left() -> None:
    asked = Asked(id="q", kind="approval", question="?", choices=("yes", "edit", "no"))
    call, replies = '{"command":"make one","cwd":"."}', AnswerInput()
    assert replies.take_answer(asked, "e", call) is None
    assert replies.prompt_text(asked, call) == "the command to run instead (just Enter goes back)"
    assert replies.take_answer(asked, "", call) is None
    assert replies.prompt_text(asked, call).startswith("[y] yes")
    replies.take_answer(asked, "e", call)
    answer = replies.take_answer(asked, "{ cat; } < a", call)
    assert answer == Answer(id="q", answer="edit", arguments='{"command":"{ cat; } < a","cwd":"."}')
    replies.take_answer(asked, "e", '{"path":"a"}')
    with pytest.raises(UserError, match="what to change, as JSON"):
        replies.take_answer(asked, "b", '{"path":"a"}')


def test_what_does_not_answer_is_told_what_to_type() -> None:
    asked = Asked(id="q", kind="approval", question="?", choices=("yes", "session", "edit", "no"))
    with pytest.raises(UserError) as raised:
        AnswerInput().take_answer(asked, "perhaps", '{"command":"make"}')
    told = ("y: yes", "a: yes, for this session", "e COMMAND: change it", "n, or n WHY: no")
    assert raised.value.trouble.next == told


def test_all_of_a_long_call_can_be_viewed() -> None:
    assert answer_prompt(APPROVAL, cut=True) == "[y] yes  [a] yes, for this session  [v] view all of it  [n] no"


def test_a_key_typed_twice_is_no_message() -> None:
    replies = AnswerInput()
    assert not replies.is_echo("y")
    replies.take_answer(APPROVAL, "y")
    assert replies.is_echo("y")
    assert not replies.is_echo("yes, and then the tests")


def test_exit_codes() -> None:
    for kind in RETRYABLE_FAILURES | {"overflow", "refusal", "bad_request"}:
        assert exit_code.for_turn(TurnEnded(outcome="failed", trouble=ErrorReport(kind, "x"))) == 4
    assert exit_code.for_error(UserError("x")) == 2
    assert exit_code.for_error(StoreError("x", kind="store_full")) == 7
    assert exit_code.for_error(LogConflict("x")) == exit_code.for_error(SessionBusy("x")) == 5
    assert exit_code.for_turn(TurnEnded(outcome="finished")) == 0
    assert exit_code.for_turn(TurnEnded(outcome="failed", trouble=ErrorReport("auth", "x"))) == 4
    assert exit_code.for_turn(TurnEnded(outcome="failed", trouble=ErrorReport("bug", "x"))) == 1
    assert exit_code.for_turn(TurnEnded(outcome="budget")) == 6


def test_rows_stream_out_as_they_fill() -> None:
    rows = RowWrapper()
    assert rows.add("\n\none two", 10) == ""
    assert rows.open == "one two"
    assert rows.add(" three", 10) == "one two\n"
    assert rows.finish("\n\none two three", 10) == "three\n"
    assert rows.finish("whole\n\ntext", 10) == "whole\n\ntext\n"


def test_something_between_does_not_repeat_a_text() -> None:
    rows = RowWrapper()
    rows.add("one tw", 80)
    assert rows.end_row() == "one tw\n"
    assert rows.finish("one two", 80) == "o\n"


def test_long_words_are_broken() -> None:
    assert wrap_text("abcdefgh", 5) == ["abcd", "efgh"]
    assert wrap_text("漢字漢字", 5) == ["漢字", "漢字"]


def test_columns_line_up() -> None:
    assert align_rows([["a", "漢", "x"], ["bbb", "c", "y"]]) == ["a    漢  x", "bbb  c   y"]
    assert align_rows([]) == []


def test_columns_that_matter_least_go_first() -> None:
    rows = [["id", "title", "cost"], ["k7x8", "a thing", "$1.00"]]
    assert fit_rows(rows, 80, drop=(2, 1)) == align_rows(rows)
    assert fit_rows(rows, 16, drop=(2, 1)) == ["id    title", "k7x8  a thing"]
    assert fit_rows(rows, 8, drop=(2, 1)) == ["id", "k7x8"]


def test_a_line_is_folded_between_words_and_keeps_its_styles() -> None:
    rows = wrap_line((TextSpan("  sylph: ", "bad"), TextSpan("one two three four")), 16)
    assert rows[0] == (TextSpan("  sylph: ", "bad"), TextSpan("one"))
    assert ["".join(span.text for span in row) for row in rows] == ["  sylph: one", "  two three", "  four"]
    assert wrap_line(styled_line("+ " + "x " * 30, "add"), 16) == [styled_line("+ " + "x " * 30, "add")]


def test_a_note_does_not_cut_a_word() -> None:
    rows = RowWrapper()
    rows.add("one tw", 80)
    assert (rows.break_row(), rows.open) == ("one\n", "tw")
    assert (rows.break_row(), rows.open) == ("", "tw")
    assert rows.finish("one two", 80) == "two\n"


def test_enter_goes_on_in_an_open_block() -> None:
    assert continues_line("```py\nx")
    assert continues_line("more \\")
    assert not continues_line("```py\nx\n```")


def test_a_fork_is_drawn_below_its_parent() -> None:
    parent, one, two = (
        SessionState(id="p"),
        SessionState(id="a", parent="p", created=1),
        SessionState(id="b", parent="p", created=2),
    )
    assert [row.split("  ")[0] for row in draw_fork_tree([two, one, parent])] == ["p", "├─ a", "└─ b"]
    assert len(draw_fork_tree([one])) == 1


def test_a_list_is_narrowed() -> None:
    found = [SessionState(id="a", title="Red thing"), SessionState(id="b", title="Blue thing")]
    assert [one.id for one in filter_sessions(found, "thing blue")] == ["b"]


def test_a_list_to_pick_from_names_what_was_interrupted() -> None:
    found = [SessionState(id="k7x8", title="Red thing", open_turn="t2")]
    assert session_rows(found, {"k7x8": "paint it blue"}, 200)[0].startswith("1  k7x8  interrupted: paint it blue  ")
    assert session_rows(found, {}, 20) == ["1  k7x8  Red thing"]


def test_paint_cleans_last() -> None:
    assert paint_line((TextSpan("a\x1b[2Jb", "bad"),), colour=True) == "\x1b[31mab\x1b[0m"
    assert paint_line((TextSpan("x", "ok"),), colour=False) == "x"


def test_a_config_file_is_changed_in_place() -> None:
    text = "# top\nmodel = 'a/b' # mine\n"
    assert change_setting(text, "limits.rounds", "5") == f"{text}\n[limits]\nrounds = 5\n"
    assert change_setting(text, "model", "c/d") == '# top\nmodel = "c/d" # mine\n'
    assert remove_setting(change_setting(text, "probe", "false"), "probe") == text


@pytest.mark.parametrize(
    ("key", "value"), [("limits", "1"), ("limits.rounds", "many"), ("mode", "fast"), ("nope", "1")]
)
def test_a_wrong_change_is_refused(key: str, value: str) -> None:
    with pytest.raises(UserError):
        change_setting("", key, value)


def test_a_wrong_file_is_mended_step_by_step() -> None:
    text = "prob = true\n[limits]\nround = 3\nrounds = 0\n"
    mended = change_setting(remove_setting(remove_setting(text, "limits.round"), "prob"), "limits.rounds", "5")
    assert validate_config(mended) == "[limits]\nrounds = 5\n"
    with pytest.raises(UserError):
        validate_config("x = 1\n", "y = 1\n")


def test_only_what_is_set_can_be_removed() -> None:
    with pytest.raises(UserError):
        remove_setting("", "limits.rounds")
    with pytest.raises(UserError):
        validate_config("[limits\n")


def test_a_list_is_set_as_toml_or_as_words() -> None:
    assert change_setting("", "undo.skip", '["a", "b c"]') == '[undo]\nskip = ["a", "b c"]\n'
    assert change_setting("", "undo.skip", "x, y") == '[undo]\nskip = ["x", "y"]\n'
    assert change_setting("", "undo.skip", "") == "[undo]\nskip = []\n"
    for wrong in ("[1]", "["):
        with pytest.raises(UserError):
            change_setting("", "undo.skip", wrong)
