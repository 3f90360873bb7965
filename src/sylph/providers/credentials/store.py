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

from sylph.core import extra
from sylph.core.clock import Clock, SystemClock
from sylph.core.errors import StoreError, SylphError, UserError
from sylph.providers.credentials import seal
from sylph.providers.credentials.entry import KINDS, Entry, Kind
from sylph.providers.credentials.folder import Folder, draft_of
from sylph.providers.credentials.keyring import NEEDS, Keyring, system
from sylph.providers.credentials.lock import alone

Keep = Literal["auto", "keyring", "file"]
WRONG = "That is not the passphrase that the credentials are sealed with."
FORGET = "forgotten for good? sylph connect passphrase --forget  drops what is sealed with it"
logger = logging.getLogger(__name__)


def nobody() -> str:
    """Gives no passphrase."""
    return ""


class Store:
    """The credentials of one home. Nothing is opened, and no keyring looked for, before a secret is wanted.

    The passphrase is the one that the environment told, else what `ask` gets from a person.
    """

    def __init__(
        self,
        root: Path,
        *,
        keep: Keep = "auto",
        passphrase: str = "",
        ask: Callable[[], str] = nobody,
        find: Callable[[], Keyring | None] = system,
        clock: Clock | None = None,
    ) -> None:
        self.folder = Folder(root)
        self._keep, self._told, self._ask, self._find = keep, passphrase, ask, find
        self._clock = clock or SystemClock()
        self._opened: tuple[seal.Vault, bytes] | None = None
        self._answer = ""
        self._asking = threading.Lock()

    @property
    def answer(self) -> str:
        """The passphrase that a person gave; empty before they were asked."""
        return self._answer

    def kind(self, provider: str) -> Kind | None:
        """Which credential would be used for a provider; None where there is none."""
        return next((kind for kind in KINDS if self.folder.has(provider, kind)), None)

    def kinds(self) -> dict[str, Kind]:
        """The same for every provider that has one: a look at the names in a folder."""
        found: dict[str, Kind] = {}
        for provider, kind in self.folder.names():
            if provider not in found or KINDS.index(kind) < KINDS.index(found[provider]):
                found[provider] = kind
        return found

    def entries(self) -> Iterator[Entry | StoreError]:
        """All there is, for showing; in place of a damaged one, what is wrong with it."""
        for provider, kind in self.folder.names():
            try:
                found = self.folder.entry(provider, kind)
            except StoreError as error:
                yield error
            else:
                if found:
                    yield found

    def bare(self) -> list[str]:
        """The providers whose secrets lie in plain files although a passphrase is set: something was cut off."""
        entries = (each for each in self.entries() if isinstance(each, Entry)) if self.vault() else ()
        return [each.provider for each in entries if each.secret and not each.sealed]

    def entry(self, provider: str, kind: Kind) -> Entry | None:
        return self.folder.entry(provider, kind)

    def secret(self, entry: Entry) -> bytes:
        """What the entry guards. May ask for the passphrase, and may wait for the keyring."""
        if entry.place == "keyring":
            return self._from_keyring(entry)
        if not entry.sealed:
            return entry.secret.encode()
        key = self.key()
        found = seal.unseal(key, entry.secret, _name(entry)) if key else None
        if found is None:
            raise _unreadable(entry, "it was sealed with a key that is gone, or was changed")
        return found

    def keep(self, entry: Entry, secret: bytes, *, anyhow: bool = False) -> Entry:
        """Writes a credential; it is on the disk when this returns. The caller holds the provider's lock.

        With `anyhow` it is written to a plain file where the keyring fails or nobody knows the passphrase: what a
        service gives out only once must not be lost.
        """
        before = self._before(entry)
        fresh = replace(entry, serial=(before.serial if before else 0) + 1, at=self._clock.now())
        if secret and self._to_keyring(fresh, secret, anyhow=anyhow):
            return self._written(replace(fresh, place="keyring", sealed=False, secret=""))
        fresh = replace(fresh, place="file")
        with self._vault_lock(shared=True):
            fresh = self._written(self._sealed(fresh, secret, anyhow=anyhow))
        if before and before.place == "keyring" and (keyring := self._find()):
            with suppress(StoreError):  # It is an old one, and was not to be had.
                keyring.remove(self._place(fresh))
        return fresh

    def prepare(self) -> None:
        """Before something new is kept: a passphrase that the environment tells for the first time is set."""
        if self._told and self.vault() is None and not self._finds_keyring():
            self.set_passphrase(self._told)

    def ready(self) -> None:
        """Raises UserError where a new secret could not be sealed as it has to be: known before anybody types one."""
        vault = self.vault()
        if (vault is None and not self._told) or self._finds_keyring():
            return
        seal.need()
        if vault is None:
            seal.good(self._told)

    def note(self, entry: Entry) -> Entry:
        """Writes what is known of a credential anew, and leaves its secret where and how it is."""
        return self._written(replace(entry, serial=entry.serial + 1))

    def remove(self, provider: str) -> tuple[Kind, ...]:
        """Forgets all credentials of a provider; says which there were. With the last sealed one goes the seal."""
        gone: list[Kind] = []
        sealed = any(self._needs_seal(provider, kind) for kind in KINDS)
        with alone(self.folder.lock(provider)):
            for kind in KINDS:
                if self._in_keyring(provider, kind) and (keyring := self._find()):
                    keyring.remove(self._place(Entry(provider=provider, kind=kind)))
                if self.folder.remove(provider, kind):
                    gone.append(kind)
        if sealed:
            with self._vault_lock(shared=False):
                if not any(self._needs_seal(*each) for each in self.folder.names()):
                    self._drop_vault()
        return tuple(gone)

    def forget(self) -> list[tuple[str, Kind]]:
        """Drops the passphrase with all that is sealed with it, unopened; says what that was."""
        gone: list[tuple[str, Kind]] = []
        with self._vault_lock(shared=False):
            for provider, kind in self.sealed():
                with alone(self.folder.lock(provider)):
                    if self.folder.remove(provider, kind):
                        gone.append((provider, kind))
            self._drop_vault()
        return gone

    def sealed(self) -> list[tuple[str, Kind]]:
        """What only the passphrase opens; a damaged one counts, for nobody knows."""
        return [each for each in self.folder.names() if self._needs_seal(*each)]

    @property
    def locked(self) -> bool:
        """Whether a passphrase is set, be its file damaged or not."""
        return self._vault.exists()

    def _needs_seal(self, provider: str, kind: Kind) -> bool:
        try:
            entry = self.folder.entry(provider, kind)
        except StoreError:
            return True
        return entry is not None and entry.sealed

    def _drop_vault(self) -> None:
        draft_of(self._vault).unlink(missing_ok=True)
        self._vault.unlink(missing_ok=True)
        self._opened, self._answer = None, ""

    def key(self) -> bytes:
        """The key of the secrets; empty where no passphrase is set. Raises UserError where it is wrong or missing."""
        vault = self.vault()
        if vault is None:
            return b""
        if self._opened and self._opened[0] == vault:
            return self._opened[1]
        with self._asking:
            if self._opened and self._opened[0] == vault:
                return self._opened[1]
            key = self._unwrapped(vault)
            self._opened = (vault, key)
            return key

    def _unwrapped(self, vault: seal.Vault) -> bytes:
        # Asked once: whoever mistypes it starts the command again.
        self._answer = passphrase = self._answer or self._told or self._ask()
        if not passphrase:
            raise UserError(
                "The credentials are sealed, and nobody gave the passphrase.",
                kind="passphrase",
                next=["set SYLPH_PASSPHRASE", "or start this anew in a terminal, to be asked for it", FORGET],
            )
        key = seal.unwrap(vault, passphrase)
        if key is None:
            raise UserError(WRONG, kind="passphrase", next=["try again; nothing was changed", FORGET])
        return key

    def hush(self) -> None:
        """Asks nobody for the passphrase any more."""
        self._ask = nobody

    def vault(self) -> seal.Vault | None:
        data = self.folder.read(self._vault)
        if data is None:
            return None
        try:
            return seal.parse(data)
        except ValueError as error:
            raise StoreError(
                f"{self._vault} cannot be used: {error}.",
                kind="credentials",
                next=["put it back from a backup: without it, what was sealed cannot be opened"],
            ) from error

    def set_passphrase(self, fresh: str) -> int:
        """Sets or changes it, and seals what lies in plain files; says how many there were."""
        self.folder.made()
        seal.good(fresh)
        with self._vault_lock(shared=False):
            key = self.key() or seal.invent()
            vault = seal.wrap(key, fresh)
            self.folder.put(self._vault, msgspec.json.encode(vault))
            self._opened = (vault, key)
            return self._rewrite(lambda entry: not entry.sealed and entry.place == "file" and bool(entry.secret))

    def remove_passphrase(self) -> int:
        """Opens everything that was sealed; only then the passphrase is gone. Says how many there were."""
        with self._vault_lock(shared=False):
            if self.vault() is None:
                return 0
            self.key()
            count = self._rewrite(lambda entry: entry.sealed, plain=True)
            self._drop_vault()
            return count

    def where(self) -> str:
        """Where a new secret would be kept, for people."""
        if keyring := self._finds_keyring():
            return f"the system's keyring ({keyring.name})"
        if not (self.vault() or self._told):
            return "a file that only you can read, not encrypted"
        lacks = "" if seal.there() else f" once the library for that is installed ({extra.command(seal.NEEDS)})"
        return f"a file that only you can read, sealed with your passphrase{lacks}"

    def _finds_keyring(self) -> Keyring | None:
        return self._find() if self._keep != "file" else None

    @cached_property
    def _vault(self) -> Path:
        return self.folder.root / "vault.json"

    def _vault_lock(self, *, shared: bool) -> AbstractContextManager[None]:
        self.folder.made()
        return alone(self.folder.root / "vault.lock", shared=shared)

    def _sealed(self, entry: Entry, secret: bytes, *, anyhow: bool) -> Entry:
        try:
            key = self.key() if secret else b""
        except SylphError as error:
            if not anyhow:
                raise
            logger.warning("%s: kept without encryption for now: %s", entry.provider, error)
            key = b""
        if not key:
            return replace(entry, sealed=False, secret=secret.decode())
        return replace(entry, sealed=True, secret=seal.seal(key, secret, _name(entry)))

    def _rewrite(self, which: Callable[[Entry], bool], *, plain: bool = False) -> int:
        count = 0
        for provider, kind in list(self.folder.names()):
            with alone(self.folder.lock(provider)):
                entry = self.folder.entry(provider, kind)
                if entry is None or not which(entry):
                    continue
                secret = self.secret(entry)
                fresh = replace(entry, serial=entry.serial + 1)
                fresh = replace(fresh, sealed=False, secret=secret.decode()) if plain else fresh
                self._written(fresh if plain else self._sealed(fresh, secret, anyhow=False))
                count += 1
        return count

    def _written(self, entry: Entry) -> Entry:
        self.folder.write(entry)
        return entry

    def _before(self, entry: Entry) -> Entry | None:
        try:
            return self.folder.entry(entry.provider, entry.kind)
        except StoreError:
            return None  # It is damaged, and about to be replaced.

    def _to_keyring(self, entry: Entry, secret: bytes, *, anyhow: bool) -> bool:
        """Whether the keyring has it now."""
        keyring = self._finds_keyring()
        try:
            if keyring is None and self._keep == "keyring":
                raise _none()
            if keyring:
                keyring.put(self._place(entry), secret.decode())
        except SylphError as error:
            if not anyhow:
                raise
            logger.warning("%s: kept in a file instead, because of this: %s", entry.provider, error)
            return False
        return keyring is not None

    def _from_keyring(self, entry: Entry) -> bytes:
        keyring = self._find()
        if keyring is None:
            raise _unreadable(
                entry,
                f"it is in the system's keyring, and none is found; is its library installed ({extra.command(NEEDS)})?",
            )
        found = keyring.get(self._place(entry))
        if found is None:
            raise _unreadable(entry, "it is not in the system's keyring any more")
        return found.encode()

    def _in_keyring(self, provider: str, kind: Kind) -> bool:
        try:
            entry = self.folder.entry(provider, kind)
        except StoreError:
            return False
        return entry is not None and entry.place == "keyring"

    def _place(self, entry: Entry) -> str:
        """Its name in the keyring, which all homes of this user share."""
        return f"{_name(entry)} {self.folder.root}"


def _name(entry: Entry) -> str:
    return f"{entry.provider}.{entry.kind}"


def _none() -> UserError:
    return UserError(
        "credentials.keep says keyring, and there is none that works.",
        kind="config",
        next=[extra.command(NEEDS), "sylph config unset credentials.keep"],
    )


def _unreadable(entry: Entry, why: str) -> StoreError:
    return StoreError(
        f"The {entry.kind} of {entry.provider} cannot be read: {why}.",
        kind="credentials",
        next=[f"sylph connect {entry.provider}"],
    )
