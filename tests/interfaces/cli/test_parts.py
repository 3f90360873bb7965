"""The small pure parts of the command line."""

import pytest

from sylph.core.commands import Answer
from sylph.core.errors import PASSING, Conflict, SessionBusy, StoreError, Trouble, UserError
from sylph.core.facts import Asked, TurnEnded
from sylph.engine.summary import Summary
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.asking import answer_of, doubtful, prompt_of, refusal
from sylph.interfaces.cli.keys import goes_on
from sylph.interfaces.cli.paint import paint
from sylph.interfaces.cli.picker import narrowed, rows
from sylph.interfaces.cli.replies import Replies
from sylph.interfaces.cli.sessions import command as session_command
from sylph.interfaces.cli.table import aligned, fitted
from sylph.interfaces.cli.tree import drawn
from sylph.interfaces.cli.words import INNER, arrange
from sylph.interfaces.cli.wrap import Rows, folded, wrapped
from sylph.interfaces.render import Span, line
from sylph.interfaces.settings import change, checked, remove

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
    assert arrange(words, COMMANDS) == arranged


def test_a_command_of_a_group_without_its_group_is_refused() -> None:
    for words in (["list"], ["show", "last"], ["delete", "k7x8s75tz6fk"], ["export", "k7x8", "-o", "x"]):
        with pytest.raises(UserError, match="Did you mean"):
            arrange(words, COMMANDS)
    for words in (["list", "the", "files"], ["show", "me"], ["delete a.txt"], ["fork", "it"]):
        assert arrange(words, COMMANDS)[0] == "run"
    assert set(INNER) <= set(session_command.commands)


@pytest.mark.parametrize("words", [["sesion"], ["sesion", "list"], ["tsak"], ["confg", "--json"]])
def test_a_mistyped_command_is_refused(words: list[str]) -> None:
    with pytest.raises(UserError, match="Did you mean"):
        arrange(words, COMMANDS)


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
    assert answer_of(asked, typed) == answer


def test_what_can_be_answered() -> None:
    assert prompt_of(APPROVAL) == "[y] yes  [a] yes, for this session  [n] no"
    assert prompt_of(FREE) == "a number from 1 to 1, or your own words"
    assert refusal(CHOICE).actor == "nobody"


def test_choices_stay_visible_where_there_is_little_room() -> None:
    assert prompt_of(APPROVAL, 40) == "[y] yes\n[a] yes, for this session\n[n] no"


def test_a_number_that_is_no_choice_is_doubted() -> None:
    assert doubtful(CHOICE, "3")
    assert doubtful(FREE, "7 ")
    assert not doubtful(FREE, "1")
    assert not doubtful(Asked(id="q", kind="question", question="How many?", free=True), "7")
    assert not doubtful(Asked(id="q", kind="question", question="?", choices=("8", "9")), "8")


def test_the_same_once_more_is_meant() -> None:
    replies = Replies()
    with pytest.raises(UserError, match="no choice 7"):
        replies.answer(FREE, "7")
    assert replies.answer(FREE, "7") == Answer(id="q", answer="7")


def test_a_change_is_asked_for_and_can_be_left() -> None:
    asked = Asked(id="q", kind="approval", question="?", choices=("yes", "edit", "no"))
    call, replies = '{"command":"make one","cwd":"."}', Replies()
    assert replies.answer(asked, "e", call) is None
    assert replies.prompt(asked, call) == "the command to run instead (just Enter goes back)"
    assert replies.answer(asked, "", call) is None
    assert replies.prompt(asked, call).startswith("[y] yes")
    replies.answer(asked, "e", call)
    answer = replies.answer(asked, "{ cat; } < a", call)
    assert answer == Answer(id="q", answer="edit", arguments='{"command":"{ cat; } < a","cwd":"."}')
    replies.answer(asked, "e", '{"path":"a"}')
    with pytest.raises(UserError, match="what to change, as JSON"):
        replies.answer(asked, "b", '{"path":"a"}')


def test_what_does_not_answer_is_told_what_to_type() -> None:
    asked = Asked(id="q", kind="approval", question="?", choices=("yes", "session", "edit", "no"))
    with pytest.raises(UserError) as raised:
        Replies().answer(asked, "perhaps", '{"command":"make"}')
    told = ("y: yes", "a: yes, for this session", "e COMMAND: change it", "n, or n WHY: no")
    assert raised.value.trouble.next == told


def test_all_of_a_long_call_can_be_viewed() -> None:
    assert prompt_of(APPROVAL, cut=True) == "[y] yes  [a] yes, for this session  [v] view all of it  [n] no"


def test_a_key_typed_twice_is_no_message() -> None:
    replies = Replies()
    assert not replies.is_echo("y")
    replies.answer(APPROVAL, "y")
    assert replies.is_echo("y")
    assert not replies.is_echo("yes, and then the tests")


def test_exit_codes() -> None:
    for kind in PASSING | {"overflow", "refusal", "bad_request"}:
        assert codes.of_turn(TurnEnded(outcome="failed", trouble=Trouble(kind, "x"))) == 4
    assert codes.of_error(UserError("x")) == 2
    assert codes.of_error(StoreError("x", kind="store_full")) == 7
    assert codes.of_error(Conflict("x")) == codes.of_error(SessionBusy("x")) == 5
    assert codes.of_turn(TurnEnded(outcome="finished")) == 0
    assert codes.of_turn(TurnEnded(outcome="failed", trouble=Trouble("auth", "x"))) == 4
    assert codes.of_turn(TurnEnded(outcome="failed", trouble=Trouble("bug", "x"))) == 1
    assert codes.of_turn(TurnEnded(outcome="budget")) == 6


def test_rows_stream_out_as_they_fill() -> None:
    rows = Rows()
    assert rows.add("\n\none two", 10) == ""
    assert rows.open == "one two"
    assert rows.add(" three", 10) == "one two\n"
    assert rows.end("\n\none two three", 10) == "three\n"
    assert rows.end("whole\n\ntext", 10) == "whole\n\ntext\n"


def test_something_between_does_not_repeat_a_text() -> None:
    rows = Rows()
    rows.add("one tw", 80)
    assert rows.cut() == "one tw\n"
    assert rows.end("one two", 80) == "o\n"


def test_long_words_are_broken() -> None:
    assert wrapped("abcdefgh", 5) == ["abcd", "efgh"]
    assert wrapped("漢字漢字", 5) == ["漢字", "漢字"]


def test_columns_line_up() -> None:
    assert aligned([["a", "漢", "x"], ["bbb", "c", "y"]]) == ["a    漢  x", "bbb  c   y"]
    assert aligned([]) == []


def test_columns_that_matter_least_go_first() -> None:
    rows = [["id", "title", "cost"], ["k7x8", "a thing", "$1.00"]]
    assert fitted(rows, 80, drop=(2, 1)) == aligned(rows)
    assert fitted(rows, 16, drop=(2, 1)) == ["id    title", "k7x8  a thing"]
    assert fitted(rows, 8, drop=(2, 1)) == ["id", "k7x8"]


def test_a_line_is_folded_between_words_and_keeps_its_styles() -> None:
    rows = folded((Span("  sylph: ", "bad"), Span("one two three four")), 16)
    assert rows[0] == (Span("  sylph: ", "bad"), Span("one"))
    assert ["".join(span.text for span in row) for row in rows] == ["  sylph: one", "  two three", "  four"]
    assert folded(line("+ " + "x " * 30, "add"), 16) == [line("+ " + "x " * 30, "add")]


def test_a_note_does_not_cut_a_word() -> None:
    rows = Rows()
    rows.add("one tw", 80)
    assert (rows.pause(), rows.open) == ("one\n", "tw")
    assert (rows.pause(), rows.open) == ("", "tw")
    assert rows.end("one two", 80) == "two\n"


def test_enter_goes_on_in_an_open_block() -> None:
    assert goes_on("```py\nx")
    assert goes_on("more \\")
    assert not goes_on("```py\nx\n```")


def test_a_fork_is_drawn_below_its_parent() -> None:
    parent, one, two = Summary(id="p"), Summary(id="a", parent="p", created=1), Summary(id="b", parent="p", created=2)
    assert [row.split("  ")[0] for row in drawn([two, one, parent])] == ["p", "├─ a", "└─ b"]
    assert len(drawn([one])) == 1


def test_a_list_is_narrowed() -> None:
    found = [Summary(id="a", title="Red thing"), Summary(id="b", title="Blue thing")]
    assert [one.id for one in narrowed(found, "thing blue")] == ["b"]


def test_a_list_to_pick_from_names_what_was_interrupted() -> None:
    found = [Summary(id="k7x8", title="Red thing", open_turn="t2")]
    assert rows(found, {"k7x8": "paint it blue"}, 200)[0].startswith("1  k7x8  interrupted: paint it blue  ")
    assert rows(found, {}, 20) == ["1  k7x8  Red thing"]


def test_paint_cleans_last() -> None:
    assert paint((Span("a\x1b[2Jb", "bad"),), colour=True) == "\x1b[31mab\x1b[0m"
    assert paint((Span("x", "ok"),), colour=False) == "x"


def test_a_config_file_is_changed_in_place() -> None:
    text = "# top\nmodel = 'a/b' # mine\n"
    assert change(text, "limits.rounds", "5") == f"{text}\n[limits]\nrounds = 5\n"
    assert change(text, "model", "c/d") == '# top\nmodel = "c/d" # mine\n'
    assert remove(change(text, "probe", "false"), "probe") == text


@pytest.mark.parametrize(
    ("key", "value"), [("limits", "1"), ("limits.rounds", "many"), ("mode", "fast"), ("nope", "1")]
)
def test_a_wrong_change_is_refused(key: str, value: str) -> None:
    with pytest.raises(UserError):
        change("", key, value)


def test_a_wrong_file_is_mended_step_by_step() -> None:
    text = "prob = true\n[limits]\nround = 3\nrounds = 0\n"
    mended = change(remove(remove(text, "limits.round"), "prob"), "limits.rounds", "5")
    assert checked(mended) == "[limits]\nrounds = 5\n"
    with pytest.raises(UserError):
        checked("x = 1\n", "y = 1\n")


def test_only_what_is_set_can_be_removed() -> None:
    with pytest.raises(UserError):
        remove("", "limits.rounds")
    with pytest.raises(UserError):
        checked("[limits\n")


def test_a_list_is_set_as_toml_or_as_words() -> None:
    assert change("", "undo.skip", '["a", "b c"]') == '[undo]\nskip = ["a", "b c"]\n'
    assert change("", "undo.skip", "x, y") == '[undo]\nskip = ["x", "y"]\n'
    assert change("", "undo.skip", "") == "[undo]\nskip = []\n"
    for wrong in ("[1]", "["):
        with pytest.raises(UserError):
            change("", "undo.skip", wrong)
