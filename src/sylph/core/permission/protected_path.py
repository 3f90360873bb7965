"""Which files are nobody's business, whatever tool is used: a decision over a path alone."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from sylph.core.permission.path_policy import PathPolicy
from sylph.core.permission.types import Effect, Risk

ProtectionKind = Literal["secret", "git", "startup", "sylph", "source"]


class PathProtection(Struct, frozen=True):
    """Why a path is guarded, and what touching it makes of a call. `effect` is None where it stays what it was."""

    kind: ProtectionKind
    effect: Effect | None
    risk: Risk
    why: str


# Everything is compared in small letters: on some file systems .ENV is .env.
_ENVIRONMENT = re.compile(r"\.env(rc)?([._-].+)?|.+\.env")
_HARMLESS_ENVIRONMENT = re.compile(r".*[._-](examples?|samples?|templates?|tmpl|dist|defaults?|schema)")
_SECRET_NAMES = re.compile(
    r"id_(rsa|dsa|ecdsa|ed25519)(_sk)?|.+_(rsa|ed25519|ecdsa)|.+\.(pem|key|ppk|p12|pfx|jks|keystore|kdbx?|asc|gpg|keychain|keychain-db)"
    r"|\.?netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.mylogin\.cnf|\.git-credentials|\.htpasswd|\.vault-token|\.boto|\.s3cfg"
    r"|\.terraformrc|terraform\.tfstate(\.backup)?|.+\.tfvars|\.dockercfg|credentials\.(json|toml|ya?ml|db)|client_secrets?.*\.json"
    r"|service[-_]?account.*\.json|secrets?\.(json|toml|ya?ml|env|txt|ini)|application_default_credentials\.json"
    r"|wallet\.dat|\.?(bash|zsh|psql|mysql|python|node_repl|sqlite)_history|\.password-store|login\.keyring|cookies\.sqlite|key[34]\.db|logins\.json"
)
_PUBLIC = re.compile(r".*\.pub|.*(public|cert|chain|bundle|dhparam|\bca).*\.(pem|key|asc|gpg)|pubring\..*")
# Folders of which nothing is shown: below the home, or anywhere where the name says it all.
_SECRET_FOLDERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".password-store",
    ".docker/config.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".config/github-copilot",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/google-chrome",
    ".config/chromium",
    ".config/bravesoftware",
    ".config/microsoft-edge",
    ".config/keepassxc",
    ".mozilla",
    ".thunderbird",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".huggingface/token",
    ".cache/huggingface/token",
    "library/keychains",
    "library/application support/google/chrome",
    "library/application support/firefox",
    "library/cookies",
)
_SECRET_SYSTEM = re.compile(
    r"/etc/(shadow|gshadow|sudoers|krb5\.keytab|master\.passwd)-?(/.*)?|/etc/sudoers\.d(/.*)?|/etc/ssl/private(/.*)?|/etc/ssh/.*_key"
    r"|/proc/([^/]+|self/task/[^/]+)/(environ|mem|maps|fd|cwd|root)(/.*)?|/proc/kcore|/dev/(k?mem|port)|/run/secrets(/.*)?|/var/run/secrets(/.*)?"
    r"|/run/user/[^/]+/keyring(/.*)?|/var/lib/(sss|docker)(/.*)?"
)
# Where a file is a secret for its whole path, or may be.
_SYSTEM = ("/etc", "/proc", "/dev", "/run", "/var")
# Names that may be a secret's in a folder that is none: all others need no closer look there.
_SUSPECT_NAMES = re.compile(
    "|".join(
        (
            _ENVIRONMENT.pattern,
            _SECRET_NAMES.pattern,
            *(re.escape(folder.rpartition("/")[2]) for folder in _SECRET_FOLDERS),
        )
    )
)
_CERTIFICATES = re.compile(
    r"/etc/ssl/certs/.*|/etc/ca-certificates/.*|/usr/(local/)?share/.*|.*/(site|dist)-packages/.*"
)
# What is run when somebody logs in or opens a shell.
_STARTUP = re.compile(
    r"\.(bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|login|xprofile|xinitrc"
    r"|inputrc|vimrc|emacs|gitconfig|pam_environment|pythonrc)"
    r"|\.config/(autostart|systemd|fish|git|environment\.d|nvim)(/.*)?|library/launch(agents|daemons)(/.*)?|\.local/(bin|share/systemd)(/.*)?|bin(/.*)?"
)


def find_protection(path: str | Path, *, writing: bool, places: PathPolicy) -> PathProtection | None:
    """What guards `path`, which is absolute with its links followed; None where it is like any other file."""
    # Two slashes at the start are kept by normpath, and mean no more than one.
    text = re.sub("^//", "/", os.path.normpath(str(path)).casefold())
    found = _own_protection(text, writing=writing, places=places)
    if found:
        return found
    if writing and ".git" in text.split("/"):
        return PathProtection("git", None, "dangerous", "changes what belongs to git itself")
    if _is_secret_path(text):
        if not writing:
            return PathProtection("secret", None, "dangerous", "reads what looks like a secret")
        mild = bool(_ENVIRONMENT.fullmatch(text.rpartition("/")[2]))
        return PathProtection("secret", None, "caution" if mild else "dangerous", "changes what looks like a secret")
    if writing and any(_STARTUP.fullmatch(rest) for rest in _parts_below(text, [places.home])):
        return PathProtection("startup", None, "dangerous", "changes what runs when somebody logs in")
    return None


def build_read_guard(top: Path, places: PathPolicy) -> Callable[[str], bool]:
    """Tells of paths relative to `top` whether reading them is guarded, fast enough for a hundred thousand of them."""
    base = str(top).rstrip("/")
    dull: dict[str, bool] = {}

    def spared(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        known = dull.get(folder)
        if known is None:
            known = dull[folder] = _is_ordinary_folder(f"{base}/{folder}", places)
        if known and not _SUSPECT_NAMES.fullmatch(name.casefold()):
            return False
        return find_protection(f"{base}/{path}", writing=False, places=places) is not None

    return spared


def suspect_name_pattern(top: Path, places: PathPolicy) -> str:
    """A pattern that no guarded path relative to `top` is without, in any case of letters; empty where that is none.

    For programs that sift names faster than `unread` does; what they find it has to judge.
    """
    base = str(top).rstrip("/")
    return rf"(?s)(^|/)({_SUSPECT_NAMES.pattern})(/|$)" if base and _is_ordinary_folder(base, places) else ""


def _is_ordinary_folder(folder: str, places: PathPolicy) -> bool:
    """Whether nothing in the folder itself is guarded but by its own name."""
    text = os.path.normpath(folder).casefold().rstrip("/")
    if text.startswith(_SYSTEM) or any(str(place).casefold().startswith(f"{text}/") for place in places.sylph):
        return False
    return find_protection(f"{text}/x", writing=False, places=places) is None


def _is_secret_path(text: str) -> bool:
    """Whether a path in small letters names what looks like a secret."""
    name = text.rpartition("/")[2]
    if _ENVIRONMENT.fullmatch(name):
        return not _HARMLESS_ENVIRONMENT.fullmatch(name)
    if _SECRET_SYSTEM.fullmatch(text):
        return True
    if any(f"{text}/".find(f"/{folder}/") >= 0 for folder in _SECRET_FOLDERS):
        return not name.endswith(".pub")
    return bool(_SECRET_NAMES.fullmatch(name)) and not _PUBLIC.fullmatch(name) and not _CERTIFICATES.fullmatch(text)


def _own_protection(text: str, *, writing: bool, places: PathPolicy) -> PathProtection | None:
    if any(_parts_below(text, places.sylph)):
        if writing:
            return PathProtection("sylph", "self", "dangerous", "changes Sylph's own data or settings")
        return PathProtection("sylph", None, "dangerous", "reads Sylph's own data or settings")
    if not writing:
        return None
    if any(_parts_below(text, places.source)):
        return PathProtection("source", "self", "dangerous", "changes the program of Sylph itself")
    if ".sylph" in text.split("/"):
        return PathProtection("sylph", "self", "dangerous", "changes the rules that Sylph works under here")
    return None


def _parts_below(text: str, tops: Iterable[Path]) -> Iterable[str]:
    """What is left of `text` below each of the `tops` that hold it; `.` for the top itself."""
    for each in tops:
        top = str(each).casefold().rstrip("/")
        if text == top:
            yield "."
        elif text.startswith(f"{top}/"):
            yield text[len(top) + 1 :]
