"""What a run writes where, with and without a terminal."""

from io import StringIO

import pytest

from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.narrate import Act, Began, Done, Ended, Lost, Piece, Said, Shown
from sylph.interfaces.render import line


class Tty(StringIO):
    def isatty(self) -> bool:
        return True


def written(*acts: Act, tty: bool = False, quiet: bool = False) -> tuple[str, str]:
    out, err = (Tty(), Tty()) if tty else (StringIO(), StringIO())
    screen = Screen(out, err, colour=False, quiet=quiet, dumb=True)
    for act in acts:
        screen.perform(act)
    return out.getvalue(), err.getvalue()


OK = line("✓ 0.1 s")


def test_a_pipe_gets_the_answer_alone() -> None:
    acts = (Piece("Let me"), Said("Let me look.", final=False), Piece("Do"), Said("Done.\n", final=True))
    assert written(*acts) == ("Done.\n", "Let me look.\n")
    assert written(*acts, quiet=True) == ("Done.\n", "")


def test_a_terminal_gets_every_piece_as_it_comes() -> None:
    acts = (Piece("\n\nOne.\n"), Piece("\nTwo"), Piece("."), Said("\n\nOne.\n\nTwo.", final=True))
    assert written(*acts, tty=True)[0] == "One.\n\nTwo.\n"


def test_what_did_not_come_in_pieces_is_made_good() -> None:
    assert written(Piece("Hal"), Said("Hallo.", final=True), tty=True)[0] == "Hallo.\n"
    assert written(Said("Hallo.", final=True), tty=True)[0] == "Hallo.\n"


def test_a_call_has_one_line() -> None:
    assert written(Began("c1", "read  a"), Done("c1", "read  a", OK))[1] == "▸ read  a  ✓ 0.1 s\n"


def test_calls_side_by_side_have_one_line_each() -> None:
    acts = (Began("c1", "read  a"), Began("c2", "read  b"), Done("c1", "read  a", OK), Done("c2", "read  b", OK))
    assert written(*acts)[1] == "▸ read  a  ✓ 0.1 s\n▸ read  b  ✓ 0.1 s\n"


def test_a_note_begins_on_a_line_of_its_own() -> None:
    acts = (Piece("One mo"), Shown((line("noted"),)), Piece("re"), Said("One more", final=True))
    out, err = written(*acts, tty=True)
    assert (out, err) == ("One\nmore\n", "noted\n")


def test_lost_pieces_are_made_good_without_a_word() -> None:
    acts = (Piece("One "), Lost(), Piece("four"), Said("One two three four.", final=True))
    assert written(*acts, tty=True) == ("One two three four.\n", "")


def test_a_stopped_text_is_not_repeated_in_the_next_turn() -> None:
    stopped = (Piece("Hello the"), Ended("cancelled", None, ""))
    out, err = written(*stopped, Piece("Hello"), Said("Hello.", final=True), tty=True)
    assert (out, err) == ("Hello the\nHello.\n", "stopped\n")


def test_sequences_cut_in_two_leave_nothing_behind() -> None:
    acts = (Piece("\x1b["), Piece("31"), Piece("mRED\x1b"), Piece("[0m."), Said("\x1b[31mRED\x1b[0m.", final=True))
    assert written(*acts, tty=True)[0] == "RED.\n"


def test_a_terminal_gets_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    acts = (Piece("- one two three fo"), Piece("ur five\n\n漢字漢字漢字漢字漢字漢字"), Said("", final=True))
    assert written(*acts, tty=True)[0] == "- one two three four\nfive\n\n漢字漢字漢字漢字漢字\n漢字\n"
    noted = written(Shown((line("  one two three four five"),)), tty=True)[1]
    assert noted == "  one two three\n  four five\n"


def test_an_error_begins_on_a_line_of_its_own() -> None:
    out, err = Tty(), Tty()
    screen = Screen(out, err, colour=False)
    screen.perform(Began("c1", "shell  seq 9"))
    screen.rest()
    assert err.getvalue() == "▸ shell  seq 9\n"


def test_an_end_without_trouble_says_nothing() -> None:
    assert written(Ended("finished", None, "1 round")) == ("", "")
