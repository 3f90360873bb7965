"""Where the values are kept: known to all processes of a home, to nobody else, and not for ever."""

import stat
import threading
from pathlib import Path

import pytest

from sylph.engine.redact import vault
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import Redactor
from sylph.engine.redact.vault import SecretVault, load_home_key

KEY = "sk-proj-abcDEF123456789012345678"


def test_the_same_value_has_the_same_tag_in_a_home_and_another_one_elsewhere(tmp_path: Path) -> None:
    one, again, elsewhere = (
        SecretVault(tmp_path / "a", 30),
        SecretVault(tmp_path / "a", 30),
        SecretVault(tmp_path / "b", 30),
    )
    tag = one.put_value("password", "hunter2").tag
    assert again.put_value("token", "hunter2") == one.put_value("password", "hunter2")
    assert again.get(tag) == one.get(tag)
    assert elsewhere.put_value("password", "hunter2").tag != tag


def test_two_processes_see_what_the_other_adds(tmp_path: Path) -> None:
    one, other = SecretVault(tmp_path, 30), SecretVault(tmp_path, 30)
    assert list(other.entries) == []
    entry = one.put_value("password", "hunter2")
    assert other.get(entry.tag) == entry
    back = other.put_value("password", "another")
    assert one.get(back.tag) == back


def test_only_the_owner_can_read_it_and_no_value_lies_in_plain(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    SecretVault(folder, 30).put_value("password", "hunter2hunter2")
    for path in (folder, *folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert path.is_dir() or b"hunter2" not in path.read_bytes()


def test_a_damaged_line_costs_that_line(tmp_path: Path) -> None:
    one = SecretVault(tmp_path, 30)
    first, second = one.put_value("password", "first value"), one.put_value("password", "second value")
    file = tmp_path / "values"
    rows = [row for row in file.read_bytes().split(b"\n") if row]
    file.write_bytes(
        b"\xff\xfe not a line\n" + rows[0][:-8] + b"\n" + b"A" * 40 + b"\n" + rows[1] + b"\n" + rows[1][:30]
    )
    again = SecretVault(tmp_path, 30)
    assert again.get(first.tag) is None
    assert again.get(second.tag) == second
    third = again.put_value("password", "third value")
    assert SecretVault(tmp_path, 30).get(third.tag) == third


def test_what_was_not_met_for_long_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today = vault._today()  # pyright: ignore[reportPrivateUsage]
    tag = SecretVault(tmp_path, 30).put_value("password", "hunter2").tag
    monkeypatch.setattr(vault, "_today", lambda: today + 20)
    again = SecretVault(tmp_path, 30)
    assert again.get(tag)
    again.put_value("password", "hunter2")
    monkeypatch.setattr(vault, "_today", lambda: today + 45)
    assert SecretVault(tmp_path, 30).get(tag)
    assert SecretVault(tmp_path, 10).get(tag) is None
    monkeypatch.setattr(vault, "_today", lambda: today + 90)
    assert SecretVault(tmp_path, 30).get(tag) is None


def test_it_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today = vault._today()  # pyright: ignore[reportPrivateUsage]
    one = SecretVault(tmp_path, 3)
    for day in range(400):
        monkeypatch.setattr(vault, "_today", lambda day=day: today + day * 2)
        one.put_value("password", f"{'long value ' * 60}{day}")
    assert (tmp_path / "values").stat().st_size < 600_000
    assert one.get(SecretVault(tmp_path, 3).put_value("password", f"{'long value ' * 60}399").tag)


def test_many_threads_and_one_key(tmp_path: Path) -> None:
    found: set[bytes] = set()
    threads = [threading.Thread(target=lambda: found.add(load_home_key(tmp_path / "v"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert [path.name for path in (tmp_path / "v").iterdir()] == ["key"]


def test_where_nothing_can_be_written_values_are_known_to_this_process(tmp_path: Path) -> None:
    load_home_key(tmp_path)
    (tmp_path / "values").mkdir()
    redactor = Redactor(RedactionPolicy(), tmp_path)
    hidden = redactor.redact_text(f"key {KEY}")
    assert KEY not in hidden
    assert redactor.restore_text(hidden) == f"key {KEY}"
