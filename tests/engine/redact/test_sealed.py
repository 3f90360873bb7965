"""What is kept to the byte and lies about sealed: it comes back, also from before there was a key."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sylph.disk.encryption import apply_keystream, apply_keystream_at, decrypt_bytes, derive_key, encrypt_bytes
from sylph.engine.commands.runner_client import RunnerClient
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import Redactor
from sylph.engine.undo.content_store import FileContentStore, content_digest

KEY = b"k" * 32
SECRET = b"sk-proj-abcDEF123456789012345678"


@given(data=some.binary(max_size=3000), cuts=some.lists(some.integers(0, 700), max_size=8), at=some.integers(0, 2000))
def test_what_is_sealed_in_pieces_is_read_from_anywhere(data: bytes, cuts: list[int], at: int) -> None:
    whole, rest, place = b"", data, 0
    for cut in [*cuts, len(data)]:
        whole += apply_keystream_at(rest[:cut], KEY, place)
        place, rest = place + len(rest[:cut]), rest[cut:]
    assert apply_keystream_at(whole, KEY, 0) == data
    assert apply_keystream_at(whole[at:], KEY, min(at, len(whole))) == data[at:]
    assert apply_keystream(apply_keystream(data, KEY), KEY) == data
    assert decrypt_bytes(encrypt_bytes(data, KEY), KEY) == data


def test_each_content_has_a_key_of_its_own() -> None:
    zeros = bytes(64)
    assert apply_keystream(zeros, derive_key(KEY, b"a")) != apply_keystream(zeros, derive_key(KEY, b"b"))
    assert encrypt_bytes(zeros, KEY) != encrypt_bytes(zeros, KEY)
    assert encrypt_bytes(zeros, b"") == zeros == decrypt_bytes(zeros, KEY)


def test_contents_are_sealed_and_older_ones_still_there(tmp_path: Path) -> None:
    old, new = b"from before", SECRET
    FileContentStore(tmp_path).put_contents([(content_digest(old), old)])
    contents = FileContentStore(tmp_path, lambda: KEY)
    contents.put_contents([(content_digest(new), new)])
    assert (contents.get(content_digest(old)), contents.get(content_digest(new))) == (old, new)
    packs = b"".join(path.read_bytes() for path in tmp_path.glob("*.pack"))
    assert new not in packs
    assert old in packs
    # A sweep seals what was not.
    contents.put_contents([(content_digest(b"gone"), b"gone")])
    contents.retain_only({content_digest(old), content_digest(new)})
    assert (contents.get(content_digest(old)), contents.get(content_digest(new))) == (old, new)
    assert old not in b"".join(path.read_bytes() for path in tmp_path.glob("*.pack"))
    assert FileContentStore(tmp_path, lambda: b"x" * 32).get(content_digest(new)) is None


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_journal_tells_whether_its_output_is_sealed(tmp_path: Path, is_sealed: bool) -> None:
    redactor = Redactor(RedactionPolicy(), tmp_path / "vault")
    intent = {"runner": 1, "runner_start": "", "boot": "", **({"sealed": True} if is_sealed else {})}
    (tmp_path / "s.c.run").write_text(json.dumps({"intent": intent}) + "\n")
    seal = derive_key(redactor.encryption_key(), "out s.c")
    (tmp_path / "s.c.out").write_bytes(apply_keystream_at(SECRET, seal, 0) if is_sealed else SECRET)
    runner = RunnerClient(tmp_path, redactor=redactor)
    assert runner.read_output("s.c") == SECRET
    assert runner.read_output("s.c", 3, 4) == SECRET[3:7]
    assert runner.read_output("s.c", 3000) == b""
