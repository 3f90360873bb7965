"""Where the values are kept: known to all processes of a home, to nobody else, and not for ever."""

import stat
import threading
from pathlib import Path

import pytest

from sylph.engine.redact import vault
from sylph.engine.redact.terms import Terms
from sylph.engine.redact.vault import Vault, home_key
from sylph.engine.redact.veil import Redactor

KEY = "sk-proj-abcDEF123456789012345678"


def test_the_same_value_has_the_same_tag_in_a_home_and_another_one_elsewhere(tmp_path: Path) -> None:
    one, again, elsewhere = Vault(tmp_path / "a", 30), Vault(tmp_path / "a", 30), Vault(tmp_path / "b", 30)
    tag = one.put("password", "hunter2").tag
    assert again.put("token", "hunter2") == one.put("password", "hunter2")
    assert again.get(tag) == one.get(tag)
    assert elsewhere.put("password", "hunter2").tag != tag


def test_two_processes_see_what_the_other_adds(tmp_path: Path) -> None:
    one, other = Vault(tmp_path, 30), Vault(tmp_path, 30)
    assert list(other.entries) == []
    entry = one.put("password", "hunter2")
    assert other.get(entry.tag) == entry
    back = other.put("password", "another")
    assert one.get(back.tag) == back


def test_only_the_owner_can_read_it_and_no_value_lies_in_plain(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    Vault(folder, 30).put("password", "hunter2hunter2")
    for path in (folder, *folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert path.is_dir() or b"hunter2" not in path.read_bytes()


def test_a_damaged_line_costs_that_line(tmp_path: Path) -> None:
    one = Vault(tmp_path, 30)
    first, second = one.put("password", "first value"), one.put("password", "second value")
    file = tmp_path / "values"
    rows = [row for row in file.read_bytes().split(b"\n") if row]
    file.write_bytes(
        b"\xff\xfe not a line\n" + rows[0][:-8] + b"\n" + b"A" * 40 + b"\n" + rows[1] + b"\n" + rows[1][:30]
    )
    again = Vault(tmp_path, 30)
    assert again.get(first.tag) is None
    assert again.get(second.tag) == second
    third = again.put("password", "third value")
    assert Vault(tmp_path, 30).get(third.tag) == third


def test_what_was_not_met_for_long_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today = vault._today()  # pyright: ignore[reportPrivateUsage]
    tag = Vault(tmp_path, 30).put("password", "hunter2").tag
    monkeypatch.setattr(vault, "_today", lambda: today + 20)
    again = Vault(tmp_path, 30)
    assert again.get(tag)
    again.put("password", "hunter2")
    monkeypatch.setattr(vault, "_today", lambda: today + 45)
    assert Vault(tmp_path, 30).get(tag)
    assert Vault(tmp_path, 10).get(tag) is None
    monkeypatch.setattr(vault, "_today", lambda: today + 90)
    assert Vault(tmp_path, 30).get(tag) is None


def test_it_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today = vault._today()  # pyright: ignore[reportPrivateUsage]
    one = Vault(tmp_path, 3)
    for day in range(400):
        monkeypatch.setattr(vault, "_today", lambda day=day: today + day * 2)
        one.put("password", f"{'long value ' * 60}{day}")
    assert (tmp_path / "values").stat().st_size < 600_000
    assert one.get(Vault(tmp_path, 3).put("password", f"{'long value ' * 60}399").tag)


def test_many_threads_and_one_key(tmp_path: Path) -> None:
    found: set[bytes] = set()
    threads = [threading.Thread(target=lambda: found.add(home_key(tmp_path / "v"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert [path.name for path in (tmp_path / "v").iterdir()] == ["key"]


def test_where_nothing_can_be_written_values_are_known_to_this_process(tmp_path: Path) -> None:
    home_key(tmp_path)
    (tmp_path / "values").mkdir()
    veil = Redactor(Terms(), tmp_path)
    hidden = veil.text(f"key {KEY}")
    assert KEY not in hidden
    assert veil.restored(hidden) == f"key {KEY}"
