"""What is kept to the byte and lies about sealed: it comes back, also from before there was a key."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sylph.engine.redact.terms import Terms
from sylph.engine.redact.veil import Redactor
from sylph.engine.runs import Runner
from sylph.engine.sealed import closed, derived, opened, sealed, sealed_at
from sylph.engine.undo.contents import Contents, digest_of

KEY = b"k" * 32
SECRET = b"sk-proj-abcDEF123456789012345678"


@given(data=some.binary(max_size=3000), cuts=some.lists(some.integers(0, 700), max_size=8), at=some.integers(0, 2000))
def test_what_is_sealed_in_pieces_is_read_from_anywhere(data: bytes, cuts: list[int], at: int) -> None:
    whole, rest, place = b"", data, 0
    for cut in [*cuts, len(data)]:
        whole += sealed_at(rest[:cut], KEY, place)
        place, rest = place + len(rest[:cut]), rest[cut:]
    assert sealed_at(whole, KEY, 0) == data
    assert sealed_at(whole[at:], KEY, min(at, len(whole))) == data[at:]
    assert sealed(sealed(data, KEY), KEY) == data
    assert opened(closed(data, KEY), KEY) == data


def test_each_content_has_a_key_of_its_own() -> None:
    zeros = bytes(64)
    assert sealed(zeros, derived(KEY, b"a")) != sealed(zeros, derived(KEY, b"b"))
    assert closed(zeros, KEY) != closed(zeros, KEY)
    assert closed(zeros, b"") == zeros == opened(zeros, KEY)


def test_contents_are_sealed_and_older_ones_still_there(tmp_path: Path) -> None:
    old, new = b"from before", SECRET
    Contents(tmp_path).put([(digest_of(old), old)])
    contents = Contents(tmp_path, lambda: KEY)
    contents.put([(digest_of(new), new)])
    assert (contents.get(digest_of(old)), contents.get(digest_of(new))) == (old, new)
    packs = b"".join(path.read_bytes() for path in tmp_path.glob("*.pack"))
    assert new not in packs
    assert old in packs
    # A sweep seals what was not.
    contents.put([(digest_of(b"gone"), b"gone")])
    contents.keep({digest_of(old), digest_of(new)})
    assert (contents.get(digest_of(old)), contents.get(digest_of(new))) == (old, new)
    assert old not in b"".join(path.read_bytes() for path in tmp_path.glob("*.pack"))
    assert Contents(tmp_path, lambda: b"x" * 32).get(digest_of(new)) is None


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_journal_tells_whether_its_output_is_sealed(tmp_path: Path, is_sealed: bool) -> None:
    veil = Redactor(Terms(), tmp_path / "vault")
    intent = {"runner": 1, "runner_start": "", "boot": "", **({"sealed": True} if is_sealed else {})}
    (tmp_path / "s.c.run").write_text(json.dumps({"intent": intent}) + "\n")
    seal = derived(veil.key(), "out s.c")
    (tmp_path / "s.c.out").write_bytes(sealed_at(SECRET, seal, 0) if is_sealed else SECRET)
    runner = Runner(tmp_path, veil=veil)
    assert runner.output("s.c") == SECRET
    assert runner.output("s.c", 3, 4) == SECRET[3:7]
    assert runner.output("s.c", 3000) == b""
