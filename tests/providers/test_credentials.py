"""Credentials at rest: files of their owner alone, sealed with a passphrase, or in the system's keyring."""

import logging
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sylph.core.errors import StoreError, UserError
from sylph.providers.credentials import encryption
from sylph.providers.credentials.entry import CredentialEntry, check_provider_name, secret_tail
from sylph.providers.credentials.keyring import Keyring, find_system_keyring
from sylph.providers.credentials.private_folder import CredentialFolder, draft_path
from sylph.providers.credentials.store import CredentialStore

SECRET = b'{"key":"sk-canary-0123456789"}'


class MemoryKeyring:
    """A keyring that forgets with the test, and fails when it is told to."""

    name = "memory"

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.broken = False

    def get_secret(self, name: str) -> str | None:
        return self.held.get(name)

    def put_secret(self, name: str, secret: str) -> None:
        if self.broken:
            raise StoreError("It is locked.", kind="keyring")
        self.held[name] = secret

    def remove_secret(self, name: str) -> None:
        self.held.pop(name, None)


def none() -> Keyring | None:
    return None


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt as costly as it must be takes 0.2 s each time."""
    monkeypatch.setattr(encryption, "COST", 1 << 10)


def store(home: Path, passphrase: str = "", find: Callable[[], Keyring | None] = none) -> CredentialStore:
    return CredentialStore(home / "credentials", passphrase=passphrase, find=find)


def save(kept: CredentialStore, provider: str = "openai", secret: bytes = SECRET) -> CredentialEntry:
    return kept.save_entry(CredentialEntry(provider=provider, kind="key", tail="…6789"), secret)


def read(kept: CredentialStore, provider: str = "openai") -> bytes:
    entry = kept.read_entry(provider, "key")
    assert entry
    return kept.read_secret(entry)


def on_disk(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((home / "credentials").iterdir()) if path.is_file())


def test_what_is_kept_is_read_again_and_only_the_owner_can(tmp_path: Path) -> None:
    os.umask(os.umask(0))  # whatever the umask is
    save(store(tmp_path))
    assert read(store(tmp_path)) == SECRET
    folder = tmp_path / "credentials"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "openai.key.json").stat().st_mode) == 0o600


def test_files_that_others_can_read_are_mended_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    save(store(tmp_path))
    path = tmp_path / "credentials" / "openai.key.json"
    path.chmod(0o644)
    path.parent.chmod(0o755)
    with caplog.at_level(logging.WARNING):
        assert read(store(tmp_path)) == SECRET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert caplog.text.count("could be read by other users") == 2
    assert "canary" not in caplog.text


def test_files_that_cannot_be_mended_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(store(tmp_path))
    (tmp_path / "credentials" / "openai.key.json").chmod(0o644)

    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fchmod", read_only)
    with pytest.raises(StoreError, match="other users can read it"):
        read(store(tmp_path))


def test_a_folder_that_may_not_be_looked_at_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    save(store(tmp_path))

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)
    assert store(tmp_path).preferred_kinds() == {}
    assert "Permission denied" in caplog.text


def test_without_the_extras_there_are_files_and_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setitem(sys.modules, "nacl.secret", None)
    assert find_system_keyring() is None
    kept = CredentialStore(tmp_path / "credentials")
    assert save(kept).place == "file"
    with pytest.raises(UserError, match="not installed") as caught:
        kept.set_passphrase("correct horse")
    assert caught.value.trouble.next[0].endswith("'pynacl>=1.6'")
    assert read(kept) == SECRET


def test_a_crash_while_the_passphrase_is_set_leaves_all_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store(tmp_path)
    for name in ("groq", "openai", "xai"):
        save(kept, name)
    written: list[CredentialEntry] = []
    write = CredentialFolder.write_entry

    def crash(self: CredentialFolder, entry: CredentialEntry) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(entry)
        write(self, entry)

    with monkeypatch.context() as patch:
        patch.setattr(CredentialFolder, "write_entry", crash)
        with pytest.raises(KeyboardInterrupt):
            kept.set_passphrase("correct horse")
    after = store(tmp_path, "correct horse")
    assert [read(after, name) for name in ("groq", "openai", "xai")] == [SECRET] * 3
    assert after.list_unsealed() == ["openai", "xai"]
    assert after.set_passphrase("correct horse") == 2
    assert after.list_unsealed() == []
    assert b"canary" not in on_disk(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    save(store(tmp_path))
    path = tmp_path / "credentials" / "openai.key.json"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="it is a link"):
        read(store(tmp_path))


def test_damage_is_told_and_can_be_replaced_or_removed(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for damage in (b"", b"{", b"\xff\xfe", b'{"provider": 3}', b"x" * 300_000):
        save(kept)
        (tmp_path / "credentials" / "openai.key.json").write_bytes(damage)
        with pytest.raises(StoreError, match=r"openai.key.json cannot be used"):
            read(kept)
        assert isinstance(next(kept.list_entries()), StoreError)
    save(kept)
    assert read(kept) == SECRET
    (tmp_path / "credentials" / "openai.key.json").write_bytes(b"{")
    assert kept.remove("openai") == ("key",)
    assert kept.preferred_kind("openai") is None


def test_a_file_of_another_provider_is_not_taken(tmp_path: Path) -> None:
    kept = store(tmp_path)
    save(kept)
    folder = tmp_path / "credentials"
    (folder / "openai.key.json").rename(folder / "groq.key.json")
    with pytest.raises(StoreError, match="belongs to openai"):
        read(kept, "groq")


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "a b", ".", "x" * 65, "a\0"])
def test_a_provider_cannot_name_another_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="is not the name of a provider"):
        check_provider_name(name)
    with pytest.raises(UserError):
        store(tmp_path).read_entry(name, "key")


def test_a_whole_draft_that_a_crash_left_is_taken(tmp_path: Path) -> None:
    kept = store(tmp_path)
    save(kept, secret=b'"old"')
    old = (tmp_path / "credentials" / "openai.key.json").read_bytes()
    save(kept, secret=b'"new"')
    path = tmp_path / "credentials" / "openai.key.json"
    path.rename(draft_path(path))
    path.write_bytes(old)
    assert read(store(tmp_path)) == b'"new"'
    kept.update_entry(kept.read_entry("openai", "key") or CredentialEntry(provider="openai", kind="key"))
    assert not draft_path(path).exists()
    assert read(store(tmp_path)) == b'"new"'


def test_half_a_draft_is_passed_over(tmp_path: Path) -> None:
    kept = store(tmp_path)
    save(kept)
    path = tmp_path / "credentials" / "openai.key.json"
    draft_path(path).write_bytes(path.read_bytes()[:40])
    assert read(store(tmp_path)) == SECRET


def test_a_draft_alone_counts(tmp_path: Path) -> None:
    kept = store(tmp_path)
    save(kept)
    path = tmp_path / "credentials" / "openai.key.json"
    path.rename(draft_path(path))
    assert store(tmp_path).preferred_kinds() == {"openai": "key"}
    assert read(store(tmp_path)) == SECRET


def test_a_login_goes_before_a_borrowed_one_and_that_before_a_key(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for kind in ("key", "borrowed", "login"):
        kept.save_entry(CredentialEntry(provider="openai", kind=kind), b"{}")
        assert kept.preferred_kinds() == {"openai": kind}
        assert kept.preferred_kind("openai") == kind
    assert kept.remove("openai") == ("login", "borrowed", "key")


def test_with_a_passphrase_nothing_of_a_secret_is_on_the_disk(tmp_path: Path) -> None:
    kept = store(tmp_path, "correct horse")
    kept.prepare_passphrase()
    save(kept)
    assert b"canary" not in on_disk(tmp_path)
    assert read(store(tmp_path, "correct horse")) == SECRET


def test_a_wrong_or_missing_passphrase_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    kept = store(tmp_path, "correct horse")
    kept.prepare_passphrase()
    save(kept)
    before = on_disk(tmp_path)
    with pytest.raises(UserError, match="That is not the passphrase"):
        read(store(tmp_path, "wrong"))
    with pytest.raises(UserError, match="nobody gave the passphrase"):
        read(store(tmp_path))
    with pytest.raises(UserError):
        save(store(tmp_path, "wrong"), secret=b'"other"')
    assert on_disk(tmp_path) == before
    assert read(store(tmp_path, "correct horse")) == SECRET


def test_the_passphrase_is_set_changed_and_removed(tmp_path: Path) -> None:
    save(store(tmp_path))
    save(store(tmp_path), "groq", b'"sk-canary-other"')
    assert store(tmp_path).set_passphrase("one horse") == 2
    assert b"canary" not in on_disk(tmp_path)
    assert store(tmp_path, "one horse").set_passphrase("two horses") == 0
    with pytest.raises(UserError):
        read(store(tmp_path, "one horse"))
    assert read(store(tmp_path, "two horses")) == SECRET
    with pytest.raises(UserError):
        store(tmp_path, "one horse").remove_passphrase()
    assert store(tmp_path, "two horses").remove_passphrase() == 2
    assert read(store(tmp_path)) == SECRET
    assert store(tmp_path).read_vault() is None


def test_what_is_sealed_opens_only_in_its_place(tmp_path: Path) -> None:
    kept = store(tmp_path, "one horse")
    kept.prepare_passphrase()
    save(kept)
    moved = (tmp_path / "credentials" / "openai.key.json").read_text().replace('"openai"', '"groq"')
    (tmp_path / "credentials" / "groq.key.json").write_text(moved)
    with pytest.raises(StoreError, match="was changed"):
        read(kept, "groq")


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    key = encryption.generate_key()
    box = encryption.seal_secret(key, SECRET, "x")
    assert encryption.unseal_secret(key, box, "x") == SECRET
    for at in range(0, len(box) - 2, 7):
        other = box[:at] + ("A" if box[at] != "A" else "B") + box[at + 1 :]
        assert encryption.unseal_secret(key, other, "x") is None
    assert encryption.unseal_secret(key, "no base64", "x") is None
    assert encryption.seal_secret(key, SECRET, "x") != box


def test_a_vault_that_would_take_forever_is_refused(tmp_path: Path) -> None:
    kept = store(tmp_path, "one horse")
    kept.prepare_passphrase()
    vault = tmp_path / "credentials" / "vault.json"
    vault.write_text(vault.read_text().replace('"cost":1024', '"cost":1099511627776'))
    with pytest.raises(StoreError, match=r"vault.json cannot be used"):
        kept.read_vault()


def test_a_keyring_is_used_where_there_is_one(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    kept = store(tmp_path, find=lambda: keyring)
    assert save(kept).place == "keyring"
    assert b"canary" not in on_disk(tmp_path)
    assert read(kept) == SECRET
    assert kept.remove("openai") == ("key",)
    assert keyring.held == {}


def test_two_homes_do_not_share_a_keyring_entry(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    save(store(tmp_path / "a", find=lambda: keyring), secret=b'"a"')
    save(store(tmp_path / "b", find=lambda: keyring), secret=b'"b"')
    assert read(store(tmp_path / "a", find=lambda: keyring)) == b'"a"'


def test_a_keyring_that_fails_is_told_unless_the_secret_would_be_lost(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    kept = store(tmp_path, find=lambda: keyring)
    keyring.broken = True
    with pytest.raises(StoreError, match="locked"):
        save(kept)
    entry = kept.save_entry(CredentialEntry(provider="chatgpt", kind="login"), SECRET, anyhow=True)
    assert entry.place == "file"
    assert kept.read_secret(entry) == SECRET


def test_a_keyring_that_is_gone_is_told(tmp_path: Path) -> None:
    save(store(tmp_path, find=MemoryKeyring))
    with pytest.raises(StoreError, match="none is found"):
        read(store(tmp_path))
    with pytest.raises(StoreError, match="not in the system's keyring any more"):
        read(store(tmp_path, find=MemoryKeyring))


def test_a_keyring_that_must_be_and_is_not(tmp_path: Path) -> None:
    kept = CredentialStore(tmp_path / "credentials", keep="keyring", find=none)
    with pytest.raises(UserError, match="says keyring"):
        save(kept)


def test_at_most_the_last_four_characters_are_told() -> None:
    assert secret_tail("sk-0123456789abcdef") == "…cdef"
    assert secret_tail("short") == "…"
    assert "canary" not in repr(CredentialEntry(provider="x", kind="key", secret="canary"))


def test_without_the_library_nothing_is_said_to_be_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nacl.secret", None)
    kept = store(tmp_path, "correct horse")
    assert "once the library for that is installed" in kept.describe_location()
    with pytest.raises(UserError, match="not installed") as raised:
        kept.check_ready()
    (step,) = raised.value.trouble.next
    assert step.endswith("'pynacl>=1.6'")
    assert sys.executable in step


def test_the_seal_goes_with_the_last_sealed_entry(tmp_path: Path) -> None:
    kept = store(tmp_path, "correct horse")
    kept.prepare_passphrase()
    save(kept, "one")
    save(kept, "two")
    kept.remove("one")
    assert kept.has_passphrase
    kept.remove("two")
    assert not kept.has_passphrase
    assert read_anew(tmp_path) == SECRET


def read_anew(home: Path) -> bytes:
    fresh = store(home)
    save(fresh)
    return read(fresh)
