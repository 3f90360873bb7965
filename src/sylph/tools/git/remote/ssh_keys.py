"""SSH keys: taken in, made, and known by their fingerprints."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from sylph.core.errors import UserError
from sylph.tools.git.git_process import run_program

LONGEST = 20_000
BEGIN = "-----BEGIN "


class SshPublicKey(Struct, frozen=True):
    """What everybody may know of a key."""

    public: str
    fingerprint: str


async def derive_public_key(private: str, folder: Path, environ: Mapping[str, str]) -> tuple[bytes, str]:
    """A private key as it is to be kept, and its public half. Raises UserError for what cannot be used.

    `folder` is where it lies for a moment: one that nobody else can look into.
    """
    text = private.replace("\r\n", "\n").strip() + "\n"
    if not text.startswith(BEGIN) or "PRIVATE KEY-----" not in text or len(text) > LONGEST:
        raise UserError(
            "That is no private key.",
            kind="bad_key",
            next=["give the whole file, from -----BEGIN OPENSSH PRIVATE KEY----- on"],
        )
    with TemporaryDirectory(dir=folder) as place:
        file = _write_key(place, text)
        said = await run_program(("ssh-keygen", "-y", "-P", "", "-f", file), _keygen_env(environ))
    if said.code == 0:
        return text.encode(), said.out.strip()
    if "passphrase" in said.err:
        raise UserError(
            "The key is locked with a passphrase, which nobody could type in when it is used.",
            kind="locked_key",
            next=["make one without: POST …/git/key, or ssh-keygen -p -N ''"],
        )
    raise UserError("That is no private key that ssh can read.", kind="bad_key", next=["give the whole file"])


async def generate_key(comment: str, folder: Path, environ: Mapping[str, str]) -> tuple[bytes, str]:
    """A new key, and its public half."""
    with TemporaryDirectory(dir=folder) as place:
        argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", f"{place}/key")
        said = await run_program(argv, _keygen_env(environ))
        if said.code:
            raise UserError(f"No key could be made: {said.err.strip()}.", kind="no_program", next=["install OpenSSH"])
        return _read_key(place)


async def fingerprint_keys(lines: str, environ: Mapping[str, str]) -> list[str]:
    """Of public keys or lines of known hosts, one after the other."""
    said = await run_program(("ssh-keygen", "-l", "-f", "-"), _keygen_env(environ), stdin=f"{lines.strip()}\n".encode())
    return [" ".join(line.split()[1:2] + line.split()[-1:]) for line in said.out.splitlines() if line.count(" ") > 1]


async def describe_key(public: str, environ: Mapping[str, str]) -> SshPublicKey | None:
    if not public:
        return None
    found = await fingerprint_keys(public, environ)
    return SshPublicKey(public, found[0] if found else "")


def _write_key(place: str, text: str) -> str:
    file = Path(place, "key")
    file.touch(mode=0o600)
    file.write_text(text)
    return str(file)


def _read_key(place: str) -> tuple[bytes, str]:
    return Path(place, "key").read_bytes(), Path(place, "key.pub").read_text().strip()


def _keygen_env(environ: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": environ.get("PATH", ""), "LC_ALL": "C", "HOME": "/nonexistent"}
