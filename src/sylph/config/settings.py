"""What the config file may say: keys, types, limits, defaults and explanations, declared once."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sylph.core.permission.secret_names import SECRET_FILE_NAMES
from sylph.core.permission.types import Mode, PermissionRule

LogLevel = Literal["debug", "info", "warning", "error"]
NotifyOccasion = Literal["asked", "ended", "budget"]
SandboxNetwork = Literal["judged", "off", "on", "hosts"]
CredentialBackend = Literal["auto", "keyring", "file"]
TlsMode = Literal["off", "self"]
Dialect = Literal["", "chat", "responses", "anthropic", "gemini", "ollama", "bedrock"]


class SettingsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the config file."""


class ModelSettings(SettingsTable, frozen=True, kw_only=True):
    window: Annotated[int, Meta(ge=1, description="Context window in tokens.")] | None = None
    price_in: Annotated[float, Meta(ge=0, description="US dollars per million input tokens.")] | None = None
    price_out: Annotated[float, Meta(ge=0, description="US dollars per million output tokens.")] | None = None
    price_cached: Annotated[float, Meta(ge=0, description="US dollars per million cached input tokens.")] | None = None


class ProviderSettings(SettingsTable, frozen=True, kw_only=True):
    base_url: Annotated[str, Meta(description="Its address; for a provider that is known by name, another one.")] = ""
    dialect: Annotated[
        Dialect, Meta(description="What it speaks; empty for what the provider of that name speaks, else `chat`.")
    ] = ""
    api_key: Annotated[str, Meta(description="Its key. Better kept in a variable: see `api_key_env`.")] = ""
    api_key_env: Annotated[str, Meta(description="Name of the environment variable that holds the key.")] = ""
    key_command: Annotated[str, Meta(description="A command that prints the key, where keys do not last.")] = ""
    headers: dict[str, Annotated[str, Meta(description="A header that goes with every request.")]] = {}
    place: dict[str, Annotated[str, Meta(description="What fills a blank in the address: `region`, `project`.")]] = {}
    websocket: Annotated[bool, Meta(description="Speak `responses` over a WebSocket that stays open.")] = False
    models: dict[str, ModelSettings] = {}


class LocalModelSettings(SettingsTable, frozen=True, kw_only=True):
    path: Annotated[
        str, Meta(description="A model file in GGUF; `sylph models add` checks one and writes it here.")
    ] = ""
    window: (
        Annotated[int, Meta(ge=256, description="Context window in tokens; a larger one takes more memory.")] | None
    ) = None
    tools: Annotated[bool, Meta(description="Whether it is given tools; without them it can only chat.")] = False


class LocalSettings(SettingsTable, frozen=True, kw_only=True):
    models: dict[str, LocalModelSettings] = {}
    threads: Annotated[int, Meta(ge=0, description="Threads of the runtime; 0 for all cores but one.")] = 0
    idle_seconds: Annotated[
        float, Meta(gt=0, description="Seconds after which a runtime that is not asked anything is let go.")
    ] = 300.0


class RoleSettings(SettingsTable, frozen=True, kw_only=True):
    scout: Annotated[str, Meta(description="Model that looks around before the work; the session's own if empty.")] = ""
    judge: Annotated[str, Meta(description="Model that judges results; the session's own if empty.")] = ""
    background: Annotated[
        str, Meta(description="Model for what nobody waits for, like summaries; the session's own if empty.")
    ] = ""
    embed: Annotated[str, Meta(description="Model that turns text into vectors.")] = ""
    fallback: Annotated[
        tuple[str, ...],
        Meta(description="Models that take over, in this order, for a turn whose model does not answer."),
    ] = ()


class LoginSettings(SettingsTable, frozen=True, kw_only=True):
    client_id: Annotated[
        str, Meta(description="The client that you may log in with. Sylph brings none: without it the login is off.")
    ] = ""
    client_secret: Annotated[str, Meta(description="Its secret, if it has one.")] = ""
    authorize_url: Annotated[str, Meta(description="Another address of the login page.")] = ""
    token_url: Annotated[str, Meta(description="Another address that gives out tokens.")] = ""
    device_url: Annotated[str, Meta(description="Another address that gives out codes to type in.")] = ""
    exchange_url: Annotated[str, Meta(description="Another address that lends tokens for Copilot.")] = ""
    redirect: Annotated[
        str, Meta(description="Where the browser comes back to on this machine; a port of 0 is any that is free.")
    ] = ""
    scope: Annotated[str, Meta(description="What the login is to be good for.")] = ""


class CredentialSettings(SettingsTable, frozen=True, kw_only=True):
    keep: Annotated[
        CredentialBackend,
        Meta(description="Where keys and logins are kept: in the system's keyring if there is one, or in files."),
    ] = "auto"


class LimitSettings(SettingsTable, frozen=True, kw_only=True):
    rounds: Annotated[int, Meta(ge=1, description="Model calls in one turn.")] = 250
    turn_seconds: Annotated[float, Meta(gt=0, description="How long one turn may take; no limit if unset.")] | None = (
        None
    )
    first_seconds: Annotated[float, Meta(gt=0, description="How long a model may take to begin its answer.")] = 300.0
    idle_seconds: Annotated[float, Meta(gt=0, description="How long a model may stay silent after that.")] = 120.0
    retries: Annotated[int, Meta(ge=0, description="Further tries after a failed model call.")] = 4
    concurrency: Annotated[int, Meta(ge=1, description="Model calls at the same time.")] = 8
    tool_seconds: Annotated[float, Meta(gt=0, description="How long one tool call may take at the most.")] = 3600.0
    command_memory: Annotated[
        int, Meta(ge=0, description="Megabytes that a command and all it starts may use together; 0 for no limit.")
    ] = 8192
    command_cpu: Annotated[
        float, Meta(ge=0, description="Seconds of processor time that a command may use; 0 for no limit.")
    ] = 36_000.0
    command_processes: Annotated[
        int, Meta(ge=0, description="Processes that a command may have at a time; 0 for no limit.")
    ] = 2048
    command_files: Annotated[
        int, Meta(ge=0, description="Files that a process of a command may have open; 0 for what the system sets.")
    ] = 16_384
    command_file_size: Annotated[
        int, Meta(ge=0, description="Megabytes that one file written by a command may have; 0 for no limit.")
    ] = 20_000
    command_output: Annotated[
        float, Meta(gt=0, description="Megabytes of a command's output that are kept: its beginning and its end.")
    ] = 10.0
    output_lines: Annotated[int, Meta(ge=10, description="Lines of a tool's output that the model sees.")] = 2000
    output_bytes: Annotated[int, Meta(ge=1024, description="Bytes of a tool's output that the model sees.")] = 51_200


class CompactionSettings(SettingsTable, frozen=True, kw_only=True):
    at: Annotated[float, Meta(gt=0, le=1, description="Summarise when this share of the window is used.")] = 0.75
    keep: Annotated[float, Meta(ge=0, lt=1, description="Share of the window that stays as it was said.")] = 0.3


class NotifySettings(SettingsTable, frozen=True, kw_only=True):
    webhook: Annotated[
        str, Meta(description="Address that gets each notification as JSON, with an idempotency key.")
    ] = ""
    command: Annotated[
        tuple[str, ...],
        Meta(description="Program that shows a notification; `{title}`, `{text}`, `{urgency}` are filled in."),
    ] = ()
    on: Annotated[
        tuple[NotifyOccasion, ...],
        Meta(
            description="What Sylph itself notifies of: `asked` (a question waits), `ended` (a turn is over), `budget` "
            "(80 % of one are used, or all of it)."
        ),
    ] = ()


class ApprovalTimeSettings(SettingsTable, frozen=True, kw_only=True):
    wait_seconds: Annotated[float, Meta(gt=0, description="How long a question stands until silence means no.")] = (
        86_400.0
    )
    session_hours: Annotated[float, Meta(gt=0, description="How long a yes for the session counts.")] = 24.0


SearchService = Literal["duckduckgo", "tavily", "brave", "searxng"]


class SearchSettings(SettingsTable, frozen=True, kw_only=True):
    provider: Annotated[SearchService, Meta(description="Who searches the web. `duckduckgo` needs no key.")] = (
        "duckduckgo"
    )
    base_url: Annotated[str, Meta(description="Its address, if it is another than usual; `searxng` needs one.")] = ""
    api_key: Annotated[str, Meta(description="Its key. Better kept in a variable: see `api_key_env`.")] = ""
    api_key_env: Annotated[
        str,
        Meta(
            description="Name of the environment variable that holds the key; TAVILY_API_KEY or BRAVE_API_KEY if empty."
        ),
    ] = ""


class WebSettings(SettingsTable, frozen=True, kw_only=True):
    allow: Annotated[
        tuple[str, ...],
        Meta(
            description="Hosts and networks that may be reached though they are private: `intranet.example`, "
            "`*.example`, `10.0.0.0/8`, `127.0.0.1:8080`."
        ),
    ] = ()
    seconds: Annotated[float, Meta(gt=0, le=600, description="How long getting one page may take.")] = 30.0
    bytes: Annotated[int, Meta(ge=1024, description="How much of one page is read at the most.")] = 10_000_000
    browser: Annotated[str, Meta(description="Chromium's program or path; the one that is installed if empty.")] = ""
    browser_idle: Annotated[
        float, Meta(gt=0, description="Seconds after which a browser that is not used is closed.")
    ] = 300.0
    search: SearchSettings = SearchSettings()


class SandboxSettings(SettingsTable, frozen=True, kw_only=True):
    enabled: Annotated[bool, Meta(description="Confine commands. The agent has no way to change this.")] = True
    network: Annotated[
        SandboxNetwork,
        Meta(
            description="Which commands reach the network: those judged `external` and allowed (`judged`), none, all, "
            "or all, but only the `hosts`. What only looks never does."
        ),
    ] = "judged"
    hosts: Annotated[
        tuple[str, ...], Meta(description='Hosts that commands may reach if `network` is `hosts`, like "*.github.com".')
    ] = ()
    hide: Annotated[
        tuple[str, ...], Meta(description="Names of files in a workspace that no command can read, as globs.")
    ] = SECRET_FILE_NAMES
    read: Annotated[
        tuple[str, ...], Meta(description="More folders under the home folder that commands may read.")
    ] = ()


class UndoSettings(SettingsTable, frozen=True, kw_only=True):
    enabled: Annotated[bool, Meta(description="Take a checkpoint before a call changes files.")] = True
    skip: Annotated[tuple[str, ...], Meta(description="Names of folders that commands may change unnoticed.")] = (
        "node_modules",
        ".venv",
        "venv",
        "target",
        "__pycache__",
        ".cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".gradle",
        ".next",
    )
    max_files: Annotated[
        int, Meta(ge=1, description="In a folder with more files, what commands change is not covered.")
    ] = 100_000
    max_file_mb: Annotated[int, Meta(ge=0, description="Larger files are noticed, but their content is not kept.")] = 20
    max_mb: Annotated[int, Meta(ge=0, description="Megabytes that one look at a folder keeps at the most.")] = 1000
    keep_days: Annotated[
        int, Meta(ge=1, description="Contents are kept so long after the last use of a session that changed them.")
    ] = 30


class CapSettings(SettingsTable, frozen=True, kw_only=True):
    money: Annotated[float, Meta(gt=0, description="US dollars.")] | None = None
    tokens: Annotated[int, Meta(ge=1, description="Tokens, in and out, cached ones too.")] | None = None
    rounds: Annotated[int, Meta(ge=1, description="Model calls.")] | None = None
    seconds: Annotated[float, Meta(gt=0, description="Seconds that models and tools are at work.")] | None = None


class LabelBudgetSettings(SettingsTable, frozen=True, kw_only=True):
    day: CapSettings = CapSettings()
    month: CapSettings = CapSettings()


class BudgetSettings(SettingsTable, frozen=True, kw_only=True):
    turn: CapSettings = CapSettings()
    session: CapSettings = CapSettings()
    tree: CapSettings = CapSettings()
    day: CapSettings = CapSettings()
    month: CapSettings = CapSettings()
    labels: dict[str, LabelBudgetSettings] = {}
    answer: Annotated[
        int, Meta(ge=256, description="Tokens of one answer at the most, where money or tokens are limited.")
    ] = 16_384


class RedactSettings(SettingsTable, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, Meta(description="Put placeholders in the place of secrets in all that is sent and written.")
    ] = True
    email: Annotated[bool, Meta(description="Take e-mail addresses for secrets.")] = False
    ip: Annotated[bool, Meta(description="Take IP addresses for secrets, other than this machine's own.")] = False
    entropy: Annotated[
        bool, Meta(description="Take long words that look random for secrets. Finds more, and more that is none.")
    ] = False
    patterns: dict[str, Annotated[str, Meta(description="Regular expression for a secret of your own.")]] = {}
    literals: Annotated[tuple[str, ...], Meta(description="Values that are secret wherever they stand.")] = ()
    variables: Annotated[
        tuple[str, ...],
        Meta(description="More environment variables with secret values; those whose names say so are found anyway."),
    ] = ()
    allow: Annotated[
        tuple[str, ...], Meta(description="Regular expressions for what is no secret, though it looks like one.")
    ] = ()
    keep_days: Annotated[
        int, Meta(ge=1, description="A secret that was not met for so long is forgotten; so is its placeholder.")
    ] = 30


class ServerSettings(SettingsTable, frozen=True, kw_only=True):
    host: Annotated[
        str, Meta(min_length=1, description="Address to listen on; another than this machine's own needs TLS.")
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 for any that is free.")] = 8090
    tls: Annotated[
        TlsMode, Meta(description="`self` for a certificate that Sylph makes itself and keeps up to date.")
    ] = "off"
    tls_cert: Annotated[str, Meta(description="Your own certificate, with those that vouch for it, in PEM.")] = ""
    tls_key: Annotated[str, Meta(description="The private key of `tls_cert`; if empty it is in the same file.")] = ""
    names: Annotated[
        tuple[str, ...],
        Meta(description='More names and addresses that the server is asked by, like "sylph.home.example".'),
    ] = ()
    url: Annotated[
        str,
        Meta(
            pattern="^(https?://[^/?#@]+)?$",
            description='Address that people use where a proxy stands in front, like "https://sylph.example".',
        ),
    ] = ""
    origins: Annotated[
        tuple[str, ...],
        Meta(description='Other sites whose pages may use the API with a token (CORS), like "https://app.example".'),
    ] = ()
    connections: Annotated[int, Meta(ge=1, description="Connections at a time.")] = 1000
    requests: Annotated[
        float, Meta(gt=0, description="Requests that one credential may make per second; four seconds' worth at once.")
    ] = 500.0
    body_mb: Annotated[float, Meta(gt=0, description="Megabytes that the body of a request may have.")] = 1.0
    upload_mb: Annotated[float, Meta(gt=0, description="Megabytes that an uploaded file may have.")] = 250.0
    body_seconds: Annotated[
        float, Meta(gt=0, description="Seconds that a body may take; one more for each 8 kB that have come.")
    ] = 20.0
    header_seconds: Annotated[float, Meta(gt=0, description="Seconds that the head of a request may take.")] = 10.0
    mode: Annotated[
        Mode, Meta(description="Loosest mode of sessions that clients of `/v1` begin; none of them can loosen it.")
    ] = "ask"
    resume: Annotated[
        bool, Meta(description="When the server starts, go on with turns and deliveries that were left open.")
    ] = True


class LogSettings(SettingsTable, frozen=True, kw_only=True):
    to: Annotated[
        Literal["file", "stderr", "off"],
        Meta(description="Where the server writes what it does, as JSON lines: data/logs/server.log, stderr, nowhere."),
    ] = "file"
    level: Annotated[LogLevel, Meta(description="What it writes there; `info` has every request.")] = "info"
    max_mb: Annotated[float, Meta(gt=0, description="Megabytes of a file before the next one is begun.")] = 10.0
    keep: Annotated[int, Meta(ge=0, le=100, description="Earlier files that are kept.")] = 5


class TelemetrySettings(SettingsTable, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, Meta(description="Send traces and metrics to an OpenTelemetry collector. Needs sylph[otel].")
    ] = False
    endpoint: Annotated[
        str,
        Meta(description="Where it is, as http://host:4318; if empty, OTEL_EXPORTER_OTLP_ENDPOINT, else this machine."),
    ] = ""
    content: Annotated[
        bool, Meta(description="Send what is said, and what tools are given and answer, too; secrets are replaced.")
    ] = False


class Settings(SettingsTable, frozen=True, kw_only=True):
    model: Annotated[str, Meta(description="Default model, as `provider/model`; the best one found if empty.")] = ""
    mode: Annotated[Mode, Meta(description="Default permission mode.")] = "ask"
    providers: dict[str, ProviderSettings] = {}
    local: LocalSettings = LocalSettings()
    roles: RoleSettings = RoleSettings()
    logins: dict[str, LoginSettings] = {}
    credentials: CredentialSettings = CredentialSettings()
    rules: Annotated[
        tuple[PermissionRule, ...],
        Meta(description="Allow, ask or deny by tool, path, command, host; the first that fits."),
    ] = ()
    approvals: ApprovalTimeSettings = ApprovalTimeSettings()
    limits: LimitSettings = LimitSettings()
    budget: BudgetSettings = BudgetSettings()
    sandbox: SandboxSettings = SandboxSettings()
    compaction: CompactionSettings = CompactionSettings()
    notify: NotifySettings = NotifySettings()
    web: WebSettings = WebSettings()
    undo: UndoSettings = UndoSettings()
    redact: RedactSettings = RedactSettings()
    server: ServerSettings = ServerSettings()
    probe: Annotated[bool, Meta(description="Look for model servers on this machine.")] = True
    logs: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    log_level: Annotated[LogLevel, Meta(description="What the log on stderr tells.")] = "warning"
