"""Which other tools on this machine have credentials, and how they write them down. Read only after a yes."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sylph.core.errors import ProviderError


class Lent(Struct, frozen=True, kw_only=True):
    """What a tool's file gives. `expires` is in seconds since the epoch, 0 where it does not say."""

    token: str
    expires: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    base_url: str = ""

    def __repr__(self) -> str:
        return "Lent()"


class Tool(Struct, frozen=True, kw_only=True):
    """One tool's credential for one provider. Its file is only ever read: renewing it would log the tool out."""

    name: str
    title: str
    provider: str
    path: tuple[str, ...]
    """The variable that may name its folder, that folder under the home, and the file in it."""
    read: Callable[[bytes], Lent | None]
    bearer: bool = False
    """Whether it is a token where the service usually wants a key."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    renewed_by: str = ""
    """What a person does to have it renewed."""
    terms: str


def found(tool: Tool, environ: Mapping[str, str]) -> Path | None:
    """The tool's file, if there is one. It is not opened."""
    path = place(tool, environ)
    return path if path.is_file() else None


def place(tool: Tool, environ: Mapping[str, str]) -> Path:
    variable, folder, name = tool.path
    home = Path(environ.get("HOME") or Path.home())
    root = environ.get(variable, "") if variable else ""
    if variable == "XDG_CONFIG_HOME":
        root = f"{root or home / '.config'}/{folder}"
    return Path(root or home / folder) / name


def borrow(tool: Tool, environ: Mapping[str, str]) -> Lent:
    """What the tool has now. Raises ProviderError where it has nothing that can be used."""
    path = place(tool, environ)
    try:
        data = path.read_bytes()
        if len(data) > 1 << 20:
            raise ValueError("it is too long")
        lent = tool.read(data)
    except (OSError, ValueError) as error:
        raise _useless(tool, f"{path} cannot be read") from error
    if lent is None or not (lent.token.isascii() and lent.token.isprintable()):
        raise _useless(tool, f"there is none in {path}")
    return lent


def _useless(tool: Tool, why: str) -> ProviderError:
    return ProviderError(
        "auth",
        f"{tool.provider} was to use the login of {tool.title}, but {why}.",
        next=[tool.renewed_by, f"or sylph connect {tool.provider}, with a key of your own"],
    )


class _Claude(Struct):
    accessToken: str = ""
    expiresAt: float = 0.0


class _ClaudeFile(Struct):
    claudeAiOauth: _Claude | None = None


class _Codex(Struct):
    access_token: str = ""
    account_id: str | None = None


class _CodexFile(Struct):
    OPENAI_API_KEY: str | None = None
    tokens: _Codex | None = None


class _Qwen(Struct):
    access_token: str = ""
    expiry_date: float = 0.0
    resource_url: str | None = None


class _Host(Struct):
    oauth_token: str | None = None


def _claude(data: bytes) -> Lent | None:
    login = msgspec.json.decode(data, type=_ClaudeFile).claudeAiOauth or _Claude()
    return _lent(login.accessToken, expires=login.expiresAt / 1000)


def _codex_key(data: bytes) -> Lent | None:
    return _lent(msgspec.json.decode(data, type=_CodexFile).OPENAI_API_KEY)


def _codex_login(data: bytes) -> Lent | None:
    tokens = msgspec.json.decode(data, type=_CodexFile).tokens or _Codex()
    return _lent(tokens.access_token, headers={"chatgpt-account-id": tokens.account_id} if tokens.account_id else {})


def _gemini(data: bytes) -> Lent | None:
    told = _variables(data)
    return _lent(told.get("GEMINI_API_KEY") or told.get("GOOGLE_API_KEY"))


def _qwen(data: bytes) -> Lent | None:
    told = msgspec.json.decode(data, type=_Qwen)
    host = told.resource_url or ""
    url = host if host.startswith("https://") or not host else f"https://{host}"
    base = f"{url.rstrip('/').removesuffix('/v1')}/v1" if url else ""
    return _lent(told.access_token, expires=told.expiry_date / 1000, base_url=base)


def _gh(data: bytes) -> Lent | None:
    import yaml

    try:
        told = msgspec.convert(yaml.safe_load(data), dict[str, _Host])
    except yaml.YAMLError as error:
        raise ValueError("it is not YAML") from error
    return _lent(told.get("github.com", _Host()).oauth_token)


def _editor(data: bytes) -> Lent | None:
    """hosts.json has `github.com`, apps.json `github.com:` and the id of the app."""
    told = msgspec.json.decode(data, type=dict[str, _Host])
    tokens = [each.oauth_token for name, each in told.items() if name.split(":")[0] == "github.com"]
    return _lent(next((token for token in tokens if token), ""))


def _lent(
    token: str | None, *, expires: float = 0.0, headers: Mapping[str, str] | None = None, base_url: str = ""
) -> Lent | None:
    return Lent(token=token, expires=expires, headers=headers or {}, base_url=base_url) if token else None


def _variables(data: bytes) -> dict[str, str]:
    lines = (line.removeprefix("export ").partition("=") for line in data.decode().splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in lines if not name.lstrip().startswith("#")}


_OWN = "{} made this for its own use. Using it from another program may be against its maker's terms of use."
_KEY = "It is an API key that you gave to {}; what Sylph uses is billed to the same account."

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="claude-code", title="Claude Code", provider="anthropic", read=_claude, bearer=True,
        headers={"anthropic-beta": "oauth-2025-04-20"},
        path=("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
        renewed_by="start `claude` once: it renews its login", terms=_OWN.format("Claude Code"),
    ),
    Tool(
        name="codex", title="Codex CLI", provider="chatgpt", read=_codex_login,
        path=("CODEX_HOME", ".codex", "auth.json"),
        renewed_by="start `codex` once: it renews its login", terms=_OWN.format("Codex CLI"),
    ),
    Tool(
        name="codex-key", title="Codex CLI", provider="openai", read=_codex_key,
        path=("CODEX_HOME", ".codex", "auth.json"),
        renewed_by="give `codex` a key", terms=_KEY.format("Codex CLI"),
    ),
    Tool(
        name="gemini-cli", title="Gemini CLI", provider="google", read=_gemini,
        path=("", ".gemini", ".env"),
        renewed_by="put GEMINI_API_KEY into ~/.gemini/.env", terms=_KEY.format("Gemini CLI"),
    ),
    Tool(
        name="qwen-code", title="Qwen Code", provider="qwen", read=_qwen,
        path=("", ".qwen", "oauth_creds.json"),
        renewed_by="start `qwen` once: it renews its login", terms=_OWN.format("Qwen Code"),
    ),
    Tool(
        name="copilot-editor", title="Copilot in an editor", provider="copilot", read=_editor,
        path=("XDG_CONFIG_HOME", "github-copilot", "apps.json"),
        renewed_by="log in to Copilot in the editor", terms=_OWN.format("The editor"),
    ),
    Tool(
        name="copilot-vim", title="Copilot in an editor (older)", provider="copilot", read=_editor,
        path=("XDG_CONFIG_HOME", "github-copilot", "hosts.json"),
        renewed_by="log in to Copilot in the editor", terms=_OWN.format("The editor"),
    ),
    Tool(
        name="gh", title="GitHub CLI", provider="copilot", read=_gh,
        path=("XDG_CONFIG_HOME", "gh", "hosts.yml"),
        renewed_by="gh auth login", terms=_OWN.format("The GitHub CLI"),
    ),
)  # fmt: skip
