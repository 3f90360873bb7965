"""Which other tools on this machine have credentials, and how they write them down. Read only after a yes."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sylph.core.errors import ProviderError


class BorrowedToken(Struct, frozen=True, kw_only=True):
    """What a tool's file gives. `expires` is in seconds since the epoch, 0 where it does not say."""

    token: str
    expires: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    base_url: str = ""

    def __repr__(self) -> str:
        return "BorrowedToken()"


class ToolCredential(Struct, frozen=True, kw_only=True):
    """One tool's credential for one provider. Its file is only ever read: renewing it would log the tool out."""

    name: str
    title: str
    provider: str
    path: tuple[str, ...]
    """The variable that may name its folder, that folder under the home, and the file in it."""
    read: Callable[[bytes], BorrowedToken | None]
    bearer: bool = False
    """Whether it is a token where the service usually wants a key."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    renewal_hint: str = ""
    """What a person does to have it renewed."""
    terms: str


def find_tool_file(tool: ToolCredential, environ: Mapping[str, str]) -> Path | None:
    """The tool's file, if there is one. It is not opened."""
    path = tool_file_path(tool, environ)
    return path if path.is_file() else None


def tool_file_path(tool: ToolCredential, environ: Mapping[str, str]) -> Path:
    variable, folder, name = tool.path
    home = Path(environ.get("HOME") or Path.home())
    root = environ.get(variable, "") if variable else ""
    if variable == "XDG_CONFIG_HOME":
        root = f"{root or home / '.config'}/{folder}"
    return Path(root or home / folder) / name


def borrow_token(tool: ToolCredential, environ: Mapping[str, str]) -> BorrowedToken:
    """What the tool has now. Raises ProviderError where it has nothing that can be used."""
    path = tool_file_path(tool, environ)
    try:
        data = path.read_bytes()
        if len(data) > 1 << 20:
            raise ValueError("it is too long")
        lent = tool.read(data)
    except (OSError, ValueError) as error:
        raise _borrow_error(tool, f"{path} cannot be read") from error
    if lent is None or not (lent.token.isascii() and lent.token.isprintable()):
        raise _borrow_error(tool, f"there is none in {path}")
    return lent


def _borrow_error(tool: ToolCredential, why: str) -> ProviderError:
    return ProviderError(
        "auth",
        f"{tool.provider} was to use the login of {tool.title}, but {why}.",
        next=[tool.renewal_hint, f"or sylph connect {tool.provider}, with a key of your own"],
    )


class _ClaudeLogin(Struct):
    accessToken: str = ""
    expiresAt: float = 0.0


class _ClaudeFile(Struct):
    claudeAiOauth: _ClaudeLogin | None = None


class _CodexTokens(Struct):
    access_token: str = ""
    account_id: str | None = None


class _CodexFile(Struct):
    OPENAI_API_KEY: str | None = None
    tokens: _CodexTokens | None = None


class _QwenFile(Struct):
    access_token: str = ""
    expiry_date: float = 0.0
    resource_url: str | None = None


class _GithubHost(Struct):
    oauth_token: str | None = None


def _read_claude(data: bytes) -> BorrowedToken | None:
    login = msgspec.json.decode(data, type=_ClaudeFile).claudeAiOauth or _ClaudeLogin()
    return _make_token(login.accessToken, expires=login.expiresAt / 1000)


def _read_codex_key(data: bytes) -> BorrowedToken | None:
    return _make_token(msgspec.json.decode(data, type=_CodexFile).OPENAI_API_KEY)


def _read_codex_login(data: bytes) -> BorrowedToken | None:
    tokens = msgspec.json.decode(data, type=_CodexFile).tokens or _CodexTokens()
    return _make_token(
        tokens.access_token, headers={"chatgpt-account-id": tokens.account_id} if tokens.account_id else {}
    )


def _read_gemini(data: bytes) -> BorrowedToken | None:
    told = _parse_variables(data)
    return _make_token(told.get("GEMINI_API_KEY") or told.get("GOOGLE_API_KEY"))


def _read_qwen(data: bytes) -> BorrowedToken | None:
    told = msgspec.json.decode(data, type=_QwenFile)
    host = told.resource_url or ""
    url = host if host.startswith("https://") or not host else f"https://{host}"
    base = f"{url.rstrip('/').removesuffix('/v1')}/v1" if url else ""
    return _make_token(told.access_token, expires=told.expiry_date / 1000, base_url=base)


def _read_gh(data: bytes) -> BorrowedToken | None:
    import yaml

    try:
        told = msgspec.convert(yaml.safe_load(data), dict[str, _GithubHost])
    except yaml.YAMLError as error:
        raise ValueError("it is not YAML") from error
    return _make_token(told.get("github.com", _GithubHost()).oauth_token)


def _read_editor(data: bytes) -> BorrowedToken | None:
    """hosts.json has `github.com`, apps.json `github.com:` and the id of the app."""
    told = msgspec.json.decode(data, type=dict[str, _GithubHost])
    tokens = [each.oauth_token for name, each in told.items() if name.split(":")[0] == "github.com"]
    return _make_token(next((token for token in tokens if token), ""))


def _make_token(
    token: str | None, *, expires: float = 0.0, headers: Mapping[str, str] | None = None, base_url: str = ""
) -> BorrowedToken | None:
    return BorrowedToken(token=token, expires=expires, headers=headers or {}, base_url=base_url) if token else None


def _parse_variables(data: bytes) -> dict[str, str]:
    lines = (line.removeprefix("export ").partition("=") for line in data.decode().splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in lines if not name.lstrip().startswith("#")}


_FOREIGN_TERMS = "{} made this for its own use. Using it from another program may be against its maker's terms of use."
_KEY_TERMS = "It is an API key that you gave to {}; what Sylph uses is billed to the same account."

TOOL_CREDENTIALS: tuple[ToolCredential, ...] = (
    ToolCredential(
        name="claude-code", title="Claude Code", provider="anthropic", read=_read_claude, bearer=True,
        headers={"anthropic-beta": "oauth-2025-04-20"},
        path=("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
        renewal_hint="start `claude` once: it renews its login", terms=_FOREIGN_TERMS.format("Claude Code"),
    ),
    ToolCredential(
        name="codex", title="Codex CLI", provider="chatgpt", read=_read_codex_login,
        path=("CODEX_HOME", ".codex", "auth.json"),
        renewal_hint="start `codex` once: it renews its login", terms=_FOREIGN_TERMS.format("Codex CLI"),
    ),
    ToolCredential(
        name="codex-key", title="Codex CLI", provider="openai", read=_read_codex_key,
        path=("CODEX_HOME", ".codex", "auth.json"),
        renewal_hint="give `codex` a key", terms=_KEY_TERMS.format("Codex CLI"),
    ),
    ToolCredential(
        name="gemini-cli", title="Gemini CLI", provider="google", read=_read_gemini,
        path=("", ".gemini", ".env"),
        renewal_hint="put GEMINI_API_KEY into ~/.gemini/.env", terms=_KEY_TERMS.format("Gemini CLI"),
    ),
    ToolCredential(
        name="qwen-code", title="Qwen Code", provider="qwen", read=_read_qwen,
        path=("", ".qwen", "oauth_creds.json"),
        renewal_hint="start `qwen` once: it renews its login", terms=_FOREIGN_TERMS.format("Qwen Code"),
    ),
    ToolCredential(
        name="copilot-editor", title="Copilot in an editor", provider="copilot", read=_read_editor,
        path=("XDG_CONFIG_HOME", "github-copilot", "apps.json"),
        renewal_hint="log in to Copilot in the editor", terms=_FOREIGN_TERMS.format("The editor"),
    ),
    ToolCredential(
        name="copilot-vim", title="Copilot in an editor (older)", provider="copilot", read=_read_editor,
        path=("XDG_CONFIG_HOME", "github-copilot", "hosts.json"),
        renewal_hint="log in to Copilot in the editor", terms=_FOREIGN_TERMS.format("The editor"),
    ),
    ToolCredential(
        name="gh", title="GitHub CLI", provider="copilot", read=_read_gh,
        path=("XDG_CONFIG_HOME", "gh", "hosts.yml"),
        renewal_hint="gh auth login", terms=_FOREIGN_TERMS.format("The GitHub CLI"),
    ),
)  # fmt: skip
