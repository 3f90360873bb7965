"""What a run writes where, with and without a terminal."""

from io import StringIO

import pytest

from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.text.render import styled_line
from sylph.interfaces.text.turn_presenter import (
    AnswerChunk,
    AnswerText,
    CallBegan,
    CallEnded,
    ChunksLost,
    DisplayEvent,
    NoticeShown,
    TurnConcluded,
)


class Tty(StringIO):
    def isatty(self) -> bool:
        return True


def written(*acts: DisplayEvent, tty: bool = False, quiet: bool = False) -> tuple[str, str]:
    out, err = (Tty(), Tty()) if tty else (StringIO(), StringIO())
    screen = TerminalScreen(out, err, colour=False, quiet=quiet, dumb=True)
    for act in acts:
        screen.display(act)
    return out.getvalue(), err.getvalue()


OK = styled_line("✓ 0.1 s")


def test_a_pipe_gets_the_answer_alone() -> None:
    acts = (
        AnswerChunk("Let me"),
        AnswerText("Let me look.", final=False),
        AnswerChunk("Do"),
        AnswerText("Done.\n", final=True),
    )
    assert written(*acts) == ("Done.\n", "Let me look.\n")
    assert written(*acts, quiet=True) == ("Done.\n", "")


def test_a_terminal_gets_every_piece_as_it_comes() -> None:
    acts = (
        AnswerChunk("\n\nOne.\n"),
        AnswerChunk("\nTwo"),
        AnswerChunk("."),
        AnswerText("\n\nOne.\n\nTwo.", final=True),
    )
    assert written(*acts, tty=True)[0] == "One.\n\nTwo.\n"


def test_what_did_not_come_in_pieces_is_made_good() -> None:
    assert written(AnswerChunk("Hal"), AnswerText("Hallo.", final=True), tty=True)[0] == "Hallo.\n"
    assert written(AnswerText("Hallo.", final=True), tty=True)[0] == "Hallo.\n"


def test_a_call_has_one_line() -> None:
    assert written(CallBegan("c1", "read  a"), CallEnded("c1", "read  a", OK))[1] == "▸ read  a  ✓ 0.1 s\n"


def test_calls_side_by_side_have_one_line_each() -> None:
    acts = (
        CallBegan("c1", "read  a"),
        CallBegan("c2", "read  b"),
        CallEnded("c1", "read  a", OK),
        CallEnded("c2", "read  b", OK),
    )
    assert written(*acts)[1] == "▸ read  a  ✓ 0.1 s\n▸ read  b  ✓ 0.1 s\n"


def test_a_note_begins_on_a_line_of_its_own() -> None:
    acts = (
        AnswerChunk("One mo"),
        NoticeShown((styled_line("noted"),)),
        AnswerChunk("re"),
        AnswerText("One more", final=True),
    )
    out, err = written(*acts, tty=True)
    assert (out, err) == ("One\nmore\n", "noted\n")


def test_lost_pieces_are_made_good_without_a_word() -> None:
    acts = (AnswerChunk("One "), ChunksLost(), AnswerChunk("four"), AnswerText("One two three four.", final=True))
    assert written(*acts, tty=True) == ("One two three four.\n", "")


def test_a_stopped_text_is_not_repeated_in_the_next_turn() -> None:
    stopped = (AnswerChunk("Hello the"), TurnConcluded("cancelled", None, ""))
    out, err = written(*stopped, AnswerChunk("Hello"), AnswerText("Hello.", final=True), tty=True)
    assert (out, err) == ("Hello the\nHello.\n", "stopped\n")


def test_sequences_cut_in_two_leave_nothing_behind() -> None:
    acts = (
        AnswerChunk("\x1b["),
        AnswerChunk("31"),
        AnswerChunk("mRED\x1b"),
        AnswerChunk("[0m."),
        AnswerText("\x1b[31mRED\x1b[0m.", final=True),
    )
    assert written(*acts, tty=True)[0] == "RED.\n"


def test_a_terminal_gets_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    acts = (
        AnswerChunk("- one two three fo"),
        AnswerChunk("ur five\n\n漢字漢字漢字漢字漢字漢字"),
        AnswerText("", final=True),
    )
    assert written(*acts, tty=True)[0] == "- one two three four\nfive\n\n漢字漢字漢字漢字漢字\n漢字\n"
    noted = written(NoticeShown((styled_line("  one two three four five"),)), tty=True)[1]
    assert noted == "  one two three\n  four five\n"


def test_an_error_begins_on_a_line_of_its_own() -> None:
    out, err = Tty(), Tty()
    screen = TerminalScreen(out, err, colour=False)
    screen.display(CallBegan("c1", "shell  seq 9"))
    screen.finish_output()
    assert err.getvalue() == "▸ shell  seq 9\n"


def test_an_end_without_trouble_says_nothing() -> None:
    assert written(TurnConcluded("finished", None, "1 round")) == ("", "")
