"""The keyring of the operating system, where there is one that works."""

from typing import Protocol

from sylph.core.errors import StoreError

SERVICE = "sylph"
REQUIREMENT = "keyring>=25.7"


class Keyring(Protocol):
    """Secrets by name. Each method raises StoreError where the keyring does not do it."""

    @property
    def name(self) -> str: ...

    def get_secret(self, name: str) -> str | None: ...

    def put_secret(self, name: str, secret: str) -> None: ...

    def remove_secret(self, name: str) -> None: ...


class SystemKeyring:
    """The keyring that the package `keyring` finds."""

    @property
    def name(self) -> str:
        import keyring

        return str(keyring.get_keyring().name)

    def get_secret(self, name: str) -> str | None:
        import keyring
        from keyring.errors import KeyringError

        try:
            return keyring.get_password(SERVICE, name)
        except KeyringError as error:
            raise _keyring_error(error) from error

    def put_secret(self, name: str, secret: str) -> None:
        import keyring
        from keyring.errors import KeyringError

        try:
            keyring.set_password(SERVICE, name, secret)
        except KeyringError as error:
            raise _keyring_error(error) from error

    def remove_secret(self, name: str) -> None:
        import keyring
        from keyring.errors import KeyringError, PasswordDeleteError

        try:
            keyring.delete_password(SERVICE, name)
        except PasswordDeleteError:
            return
        except KeyringError as error:
            raise _keyring_error(error) from error


def find_system_keyring() -> Keyring | None:
    """The system's keyring; None where the package is not installed, or finds nothing to keep secrets in."""
    try:
        import keyring
    except ImportError:
        return None
    # Those that only fail, or forget all, rank themselves at nothing; plain text files below one.
    return SystemKeyring() if keyring.get_keyring().priority >= 1 else None


def _keyring_error(error: Exception) -> StoreError:
    return StoreError(
        f"The keyring of the system did not do it: {error}",
        kind="keyring",
        next=["unlock the keyring", 'or keep credentials in files: sylph config set credentials.keep "file"'],
    )
