"""Where credentials are kept: in the system's keyring if there is one, else in files, sealed if a passphrase is set."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import StoreError, SylphError, UserError
from sylph.core.text import pip_extra
from sylph.providers.credentials import encryption
from sylph.providers.credentials.entry import KINDS, CredentialEntry, StoredCredentialKind
from sylph.providers.credentials.file_lock import hold_lock
from sylph.providers.credentials.keyring import REQUIREMENT, Keyring, find_system_keyring
from sylph.providers.credentials.private_folder import CredentialFolder, draft_path

StoragePreference = Literal["auto", "keyring", "file"]
WRONG_PASSPHRASE = "That is not the passphrase that the credentials are sealed with."
FORGET_HINT = "forgotten for good? sylph connect passphrase --forget  drops what is sealed with it"
logger = logging.getLogger(__name__)


def no_passphrase() -> str:
    """Gives no passphrase."""
    return ""


class CredentialStore:
    """The credentials of one home. Nothing is opened, and no keyring looked for, before a secret is wanted.

    The passphrase is the one that the environment told, else what `ask` gets from a person.
    """

    def __init__(
        self,
        root: Path,
        *,
        keep: StoragePreference = "auto",
        passphrase: str = "",
        ask: Callable[[], str] = no_passphrase,
        find: Callable[[], Keyring | None] = find_system_keyring,
        clock: Clock | None = None,
    ) -> None:
        self.folder = CredentialFolder(root)
        self._keep, self._told, self._ask, self._find = keep, passphrase, ask, find
        self._clock = clock or SystemClock()
        self._opened: tuple[encryption.WrappedKey, bytes] | None = None
        self._answer = ""
        self._asking = threading.Lock()

    @property
    def entered_passphrase(self) -> str:
        """The passphrase that a person gave; empty before they were asked."""
        return self._answer

    def preferred_kind(self, provider: str) -> StoredCredentialKind | None:
        """Which credential would be used for a provider; None where there is none."""
        return next((kind for kind in KINDS if self.folder.has_entry(provider, kind)), None)

    def preferred_kinds(self) -> dict[str, StoredCredentialKind]:
        """The same for every provider that has one: a look at the names in a folder."""
        found: dict[str, StoredCredentialKind] = {}
        for provider, kind in self.folder.list_names():
            if provider not in found or KINDS.index(kind) < KINDS.index(found[provider]):
                found[provider] = kind
        return found

    def list_entries(self) -> Iterator[CredentialEntry | StoreError]:
        """All there is, for showing; in place of a damaged one, what is wrong with it."""
        for provider, kind in self.folder.list_names():
            try:
                found = self.folder.read_entry(provider, kind)
            except StoreError as error:
                yield error
            else:
                if found:
                    yield found

    def list_unsealed(self) -> list[str]:
        """The providers whose secrets lie in plain files although a passphrase is set: something was cut off."""
        entries = (
            (each for each in self.list_entries() if isinstance(each, CredentialEntry)) if self.read_vault() else ()
        )
        return [each.provider for each in entries if each.secret and not each.sealed]

    def read_entry(self, provider: str, kind: StoredCredentialKind) -> CredentialEntry | None:
        return self.folder.read_entry(provider, kind)

    def read_secret(self, entry: CredentialEntry) -> bytes:
        """What the entry guards. May ask for the passphrase, and may wait for the keyring."""
        if entry.place == "keyring":
            return self._read_from_keyring(entry)
        if not entry.sealed:
            return entry.secret.encode()
        key = self.unlock_key()
        found = encryption.unseal_secret(key, entry.secret, _entry_name(entry)) if key else None
        if found is None:
            raise _unreadable_error(entry, "it was sealed with a key that is gone, or was changed")
        return found

    def save_entry(self, entry: CredentialEntry, secret: bytes, *, anyhow: bool = False) -> CredentialEntry:
        """Writes a credential; it is on the disk when this returns. The caller holds the provider's lock.

        With `anyhow` it is written to a plain file where the keyring fails or nobody knows the passphrase: what a
        service gives out only once must not be lost.
        """
        before = self._previous_entry(entry)
        fresh = replace(entry, serial=(before.serial if before else 0) + 1, at=self._clock.now())
        if secret and self._put_in_keyring(fresh, secret, anyhow=anyhow):
            return self._write_entry(replace(fresh, place="keyring", sealed=False, secret=""))
        fresh = replace(fresh, place="file")
        with self._vault_lock(shared=True):
            fresh = self._write_entry(self._seal_entry(fresh, secret, anyhow=anyhow))
        if before and before.place == "keyring" and (keyring := self._find()):
            with suppress(StoreError):  # It is an old one, and was not to be had.
                keyring.remove_secret(self._keyring_name(fresh))
        return fresh

    def prepare_passphrase(self) -> None:
        """Before something new is kept: a passphrase that the environment tells for the first time is set."""
        if self._told and self.read_vault() is None and not self._preferred_keyring():
            self.set_passphrase(self._told)

    def check_ready(self) -> None:
        """Raises UserError where a new secret could not be sealed as it has to be: known before anybody types one."""
        vault = self.read_vault()
        if (vault is None and not self._told) or self._preferred_keyring():
            return
        encryption.require_library()
        if vault is None:
            encryption.check_passphrase(self._told)

    def update_entry(self, entry: CredentialEntry) -> CredentialEntry:
        """Writes what is known of a credential anew, and leaves its secret where and how it is."""
        return self._write_entry(replace(entry, serial=entry.serial + 1))

    def remove(self, provider: str) -> tuple[StoredCredentialKind, ...]:
        """Forgets all credentials of a provider; says which there were. With the last sealed one goes the seal."""
        gone: list[StoredCredentialKind] = []
        sealed = any(self._is_sealed(provider, kind) for kind in KINDS)
        with hold_lock(self.folder.lock_path(provider)):
            for kind in KINDS:
                if self._is_in_keyring(provider, kind) and (keyring := self._find()):
                    keyring.remove_secret(self._keyring_name(CredentialEntry(provider=provider, kind=kind)))
                if self.folder.remove_entry(provider, kind):
                    gone.append(kind)
        if sealed:
            with self._vault_lock(shared=False):
                if not any(self._is_sealed(*each) for each in self.folder.list_names()):
                    self._drop_vault()
        return tuple(gone)

    def forget_sealed(self) -> list[tuple[str, StoredCredentialKind]]:
        """Drops the passphrase with all that is sealed with it, unopened; says what that was."""
        gone: list[tuple[str, StoredCredentialKind]] = []
        with self._vault_lock(shared=False):
            for provider, kind in self.list_sealed():
                with hold_lock(self.folder.lock_path(provider)):
                    if self.folder.remove_entry(provider, kind):
                        gone.append((provider, kind))
            self._drop_vault()
        return gone

    def list_sealed(self) -> list[tuple[str, StoredCredentialKind]]:
        """What only the passphrase opens; a damaged one counts, for nobody knows."""
        return [each for each in self.folder.list_names() if self._is_sealed(*each)]

    @property
    def has_passphrase(self) -> bool:
        """Whether a passphrase is set, be its file damaged or not."""
        return self._vault_path.exists()

    def _is_sealed(self, provider: str, kind: StoredCredentialKind) -> bool:
        try:
            entry = self.folder.read_entry(provider, kind)
        except StoreError:
            return True
        return entry is not None and entry.sealed

    def _drop_vault(self) -> None:
        draft_path(self._vault_path).unlink(missing_ok=True)
        self._vault_path.unlink(missing_ok=True)
        self._opened, self._answer = None, ""

    def unlock_key(self) -> bytes:
        """The key of the secrets; empty where no passphrase is set. Raises UserError where it is wrong or missing."""
        vault = self.read_vault()
        if vault is None:
            return b""
        if self._opened and self._opened[0] == vault:
            return self._opened[1]
        with self._asking:
            if self._opened and self._opened[0] == vault:
                return self._opened[1]
            key = self._unwrap_key(vault)
            self._opened = (vault, key)
            return key

    def _unwrap_key(self, vault: encryption.WrappedKey) -> bytes:
        # Asked once: whoever mistypes it starts the command again.
        self._answer = passphrase = self._answer or self._told or self._ask()
        if not passphrase:
            raise UserError(
                "The credentials are sealed, and nobody gave the passphrase.",
                kind="passphrase",
                next=["set SYLPH_PASSPHRASE", "or start this anew in a terminal, to be asked for it", FORGET_HINT],
            )
        key = encryption.unwrap_key(vault, passphrase)
        if key is None:
            raise UserError(WRONG_PASSPHRASE, kind="passphrase", next=["try again; nothing was changed", FORGET_HINT])
        return key

    def stop_asking(self) -> None:
        """Asks nobody for the passphrase any more."""
        self._ask = no_passphrase

    def read_vault(self) -> encryption.WrappedKey | None:
        data = self.folder.read_file(self._vault_path)
        if data is None:
            return None
        try:
            return encryption.parse_wrapped_key(data)
        except ValueError as error:
            raise StoreError(
                f"{self._vault_path} cannot be used: {error}.",
                kind="credentials",
                next=["put it back from a backup: without it, what was sealed cannot be opened"],
            ) from error

    def set_passphrase(self, fresh: str) -> int:
        """Sets or changes it, and seals what lies in plain files; says how many there were."""
        self.folder.ensure_folder()
        encryption.check_passphrase(fresh)
        with self._vault_lock(shared=False):
            key = self.unlock_key() or encryption.generate_key()
            vault = encryption.wrap_key(key, fresh)
            self.folder.write_file(self._vault_path, msgspec.json.encode(vault))
            self._opened = (vault, key)
            return self._rewrite_entries(
                lambda entry: not entry.sealed and entry.place == "file" and bool(entry.secret)
            )

    def remove_passphrase(self) -> int:
        """Opens everything that was sealed; only then the passphrase is gone. Says how many there were."""
        with self._vault_lock(shared=False):
            if self.read_vault() is None:
                return 0
            self.unlock_key()
            count = self._rewrite_entries(lambda entry: entry.sealed, plain=True)
            self._drop_vault()
            return count

    def describe_location(self) -> str:
        """Where a new secret would be kept, for people."""
        if keyring := self._preferred_keyring():
            return f"the system's keyring ({keyring.name})"
        if not (self.read_vault() or self._told):
            return "a file that only you can read, not encrypted"
        lacks = (
            ""
            if encryption.is_available()
            else f" once the library for that is installed ({pip_extra.install_command(encryption.REQUIREMENT)})"
        )
        return f"a file that only you can read, sealed with your passphrase{lacks}"

    def _preferred_keyring(self) -> Keyring | None:
        return self._find() if self._keep != "file" else None

    @cached_property
    def _vault_path(self) -> Path:
        return self.folder.root / "vault.json"

    def _vault_lock(self, *, shared: bool) -> AbstractContextManager[None]:
        self.folder.ensure_folder()
        return hold_lock(self.folder.root / "vault.lock", shared=shared)

    def _seal_entry(self, entry: CredentialEntry, secret: bytes, *, anyhow: bool) -> CredentialEntry:
        try:
            key = self.unlock_key() if secret else b""
        except SylphError as error:
            if not anyhow:
                raise
            logger.warning("%s: kept without encryption for now: %s", entry.provider, error)
            key = b""
        if not key:
            return replace(entry, sealed=False, secret=secret.decode())
        return replace(entry, sealed=True, secret=encryption.seal_secret(key, secret, _entry_name(entry)))

    def _rewrite_entries(self, which: Callable[[CredentialEntry], bool], *, plain: bool = False) -> int:
        count = 0
        for provider, kind in list(self.folder.list_names()):
            with hold_lock(self.folder.lock_path(provider)):
                entry = self.folder.read_entry(provider, kind)
                if entry is None or not which(entry):
                    continue
                secret = self.read_secret(entry)
                fresh = replace(entry, serial=entry.serial + 1)
                fresh = replace(fresh, sealed=False, secret=secret.decode()) if plain else fresh
                self._write_entry(fresh if plain else self._seal_entry(fresh, secret, anyhow=False))
                count += 1
        return count

    def _write_entry(self, entry: CredentialEntry) -> CredentialEntry:
        self.folder.write_entry(entry)
        return entry

    def _previous_entry(self, entry: CredentialEntry) -> CredentialEntry | None:
        try:
            return self.folder.read_entry(entry.provider, entry.kind)
        except StoreError:
            return None  # It is damaged, and about to be replaced.

    def _put_in_keyring(self, entry: CredentialEntry, secret: bytes, *, anyhow: bool) -> bool:
        """Whether the keyring has it now."""
        keyring = self._preferred_keyring()
        try:
            if keyring is None and self._keep == "keyring":
                raise _no_keyring_error()
            if keyring:
                keyring.put_secret(self._keyring_name(entry), secret.decode())
        except SylphError as error:
            if not anyhow:
                raise
            logger.warning("%s: kept in a file instead, because of this: %s", entry.provider, error)
            return False
        return keyring is not None

    def _read_from_keyring(self, entry: CredentialEntry) -> bytes:
        keyring = self._find()
        if keyring is None:
            raise _unreadable_error(
                entry,
                f"it is in the system's keyring, and none is found; "
                f"is its library installed ({pip_extra.install_command(REQUIREMENT)})?",
            )
        found = keyring.get_secret(self._keyring_name(entry))
        if found is None:
            raise _unreadable_error(entry, "it is not in the system's keyring any more")
        return found.encode()

    def _is_in_keyring(self, provider: str, kind: StoredCredentialKind) -> bool:
        try:
            entry = self.folder.read_entry(provider, kind)
        except StoreError:
            return False
        return entry is not None and entry.place == "keyring"

    def _keyring_name(self, entry: CredentialEntry) -> str:
        """Its name in the keyring, which all homes of this user share."""
        return f"{_entry_name(entry)} {self.folder.root}"


def _entry_name(entry: CredentialEntry) -> str:
    return f"{entry.provider}.{entry.kind}"


def _no_keyring_error() -> UserError:
    return UserError(
        "credentials.keep says keyring, and there is none that works.",
        kind="config",
        next=[pip_extra.install_command(REQUIREMENT), "sylph config unset credentials.keep"],
    )


def _unreadable_error(entry: CredentialEntry, why: str) -> StoreError:
    return StoreError(
        f"The {entry.kind} of {entry.provider} cannot be read: {why}.",
        kind="credentials",
        next=[f"sylph connect {entry.provider}"],
    )
