"""Parts made by what the configuration says; `app.py` puts them together."""

from contextlib import suppress
from pathlib import Path

from sylph.config import Config
from sylph.config.budget import budget_of
from sylph.config.rulebook import FileRulebook
from sylph.core.places import Places, real
from sylph.engine.budget.purse import FilePurse
from sylph.engine.compact import Squeeze
from sylph.engine.executor import Bounds
from sylph.engine.gateway import Patience
from sylph.engine.log import Log
from sylph.engine.permit import Consent
from sylph.engine.redact.terms import Terms as Hiding
from sylph.engine.redact.veil import Redactor
from sylph.engine.routes import Routes
from sylph.engine.sandbox import Caps, Terms
from sylph.engine.sandbox.hosts import rules_of
from sylph.engine.turn import Limits
from sylph.engine.undo.view import Rules
from sylph.faculties import courier
from sylph.net import visit
from sylph.net.address import Proxies
from sylph.net.http import Client
from sylph.net.reach import Reach
from sylph.tools.git.remotes import Remotes
from sylph.tools.shell import SECRET
from sylph.tools.web import Chromium, Service, Web

STORE = "events.db"


def consent_of(config: Config) -> Consent:
    told = config.settings.approvals
    return Consent(
        rulebook=rulebook_of(config),
        places=places_of(config),
        wait_seconds=told.wait_seconds,
        session_hours=told.session_hours,
    )


def bounds_of(config: Config) -> Bounds:
    limits = config.settings.limits
    return Bounds(
        seconds=limits.tool_seconds,
        lines=limits.output_lines,
        bytes=limits.output_bytes,
        memory=limits.command_memory * 1_000_000,
    )


def purse_of(config: Config) -> FilePurse:
    """What model calls are paid from. It touches no file before something is limited."""
    return FilePurse(config.data, store_of(config), budget_of(config.settings.budget))


def web_of(config: Config, client: Client, proxies: Proxies) -> Web:
    told = config.settings.web
    search = told.search
    return Web(
        reach=Reach(told.allow),
        proxies=proxies,
        bounds=visit.Bounds(bytes=told.bytes, seconds=told.seconds),
        service=Service(name=search.provider, base_url=search.base_url, api_key=search.api_key, seconds=told.seconds),
        client=client,
        chromium=Chromium(
            program=told.browser,
            idle_seconds=told.browser_idle,
            page_seconds=told.seconds,
            environ=config.environ,
        ),
    )


def proxies_of(config: Config) -> Proxies:
    return Proxies(http=config.proxy.http, https=config.proxy.https, no=config.proxy.no)


def terms_of(config: Config, layer: str = "") -> Terms:
    """How commands are confined: by what the user set, never by what lies in a workspace."""
    told, limits = config.settings.sandbox, config.settings.limits
    rules_of(told.hosts)
    home = Path(config.environ.get("HOME") or "~").expanduser()
    return Terms(
        home=home,
        path=config.environ.get("PATH", ""),
        guarded=(config.home, config.data, config.file),
        network=told.network,
        hosts=tuple(told.hosts),
        proxies=proxies_of(config),
        hide=tuple(told.hide),
        read=tuple(Path(path.replace("~", str(home), 1) if path.startswith("~") else path) for path in told.read),
        caps=Caps(
            cpu=limits.command_cpu,
            processes=limits.command_processes,
            files=limits.command_files,
            file_size=limits.command_file_size * 1_000_000,
            output=round(limits.command_output * 1_000_000),
        ),
        layer=layer,
    )


def courier_of(config: Config, client: Client) -> courier.SetUp:
    told = config.settings.notify
    return courier.SetUp(
        post=client.post, webhook=told.webhook, command=told.command, on=told.on, environ=config.environ
    )


def open_log(config: Config) -> Log:
    with suppress(OSError):
        # Where this is not possible, opening the store says why.
        config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Log.open(store_of(config))


def places_of(config: Config) -> Places:
    """What is protected on this machine, whatever the tool."""
    own = (config.home, config.data, config.file)
    home = Path(config.environ.get("HOME") or Path.home())
    return Places(home=real(home), sylph=tuple(map(real, own)), source=(real(Path(__file__).parent),))


def remotes_of(config: Config) -> Remotes:
    """What is set for the git remotes of workspaces."""
    return Remotes(config.home / "remotes")


def rulebook_of(config: Config) -> FileRulebook:
    return FileRulebook(config.settings.rules, config.home / "rules.toml")


def store_of(config: Config) -> Path:
    return config.data / STORE


def undo_of(config: Config) -> Rules | None:
    told = config.settings.undo
    if not told.enabled:
        return None
    return Rules(
        skip=frozenset(name.encode() for name in told.skip),
        files=told.max_files,
        total=told.max_mb * 1_000_000,
        each=told.max_file_mb * 1_000_000,
        days=told.keep_days,
    )


def veil_of(config: Config) -> Redactor:
    """What keeps secrets out of all that is written and sent: those that are set are known from the start."""
    told = config.settings.redact
    keys = {each.api_key: f"{name}-key" for name, each in config.settings.providers.items()}
    search = config.settings.web.search
    headers = [pair for each in config.settings.providers.values() for pair in each.headers.items()]
    named = {value: name for name, value in headers if SECRET.search(name) or name.lower() == "authorization"}
    named |= {value: name for name, value in config.environ.items() if SECRET.search(name) or name in told.variables}
    return Redactor(
        Hiding(
            enabled=told.enabled,
            email=told.email,
            ip=told.ip,
            entropy=told.entropy,
            patterns=told.patterns,
            literals={
                **keys,
                config.passphrase: "passphrase",
                search.api_key: f"{search.provider}-key",
                **dict.fromkeys(told.literals, "literal"),
            },
            variables=named,
            allow=told.allow,
            days=told.keep_days,
        ),
        config.data / "vault",
    )


def patience_of(config: Config) -> Patience:
    limits = config.settings.limits
    return Patience(
        retries=limits.retries,
        first_seconds=limits.first_seconds,
        idle_seconds=limits.idle_seconds,
        concurrency=limits.concurrency,
    )


def routes_of(config: Config) -> Routes:
    told = config.settings.roles
    roles = {"scout": told.scout, "judge": told.judge, "background": told.background, "embed": told.embed}
    return Routes(roles={role: model for role, model in roles.items() if model}, fallback=told.fallback)


def limits_of(config: Config) -> Limits:
    told = config.settings.compaction
    limits, turn = config.settings.limits, config.settings.budget.turn
    seconds = min((each for each in (limits.turn_seconds, turn.seconds) if each is not None), default=None)
    return Limits(rounds=limits.rounds, seconds=seconds, squeeze=Squeeze(at=told.at, keep=told.keep))
