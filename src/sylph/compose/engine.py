"""Parts made by what the configuration says; `app.py` puts them together."""

from contextlib import suppress
from pathlib import Path

from sylph.compose.budget import build_budget
from sylph.config import Config
from sylph.config.rules_file import FileRuleStore
from sylph.core.permission.path_policy import PathPolicy, real_path
from sylph.engine.budget.ledger import SharedBudgetLedger
from sylph.engine.calls.executor import CallLimits
from sylph.engine.calls.permission import ApprovalSettings
from sylph.engine.log.store import EventLog
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.model.routes import ConfiguredRoutes
from sylph.engine.redact.policy import RedactionPolicy as Hiding
from sylph.engine.redact.redactor import Redactor
from sylph.engine.sandbox import SandboxLimits, SandboxPolicy
from sylph.engine.sandbox.host_allowlist import parse_hosts
from sylph.engine.turn.agent_loop import TurnLimits
from sylph.engine.turn.compaction import CompactionLimits
from sylph.engine.undo.workspace_scan import CheckpointPolicy
from sylph.features.notify import channels
from sylph.net import page_fetch
from sylph.net.address_guard import AddressGuard
from sylph.net.http_client import HttpClient
from sylph.net.url import Proxies
from sylph.tools.git.remote.settings import GitRemoteStore
from sylph.tools.shell.command import SECRET_NAME
from sylph.tools.web import ChromiumSettings, SearchService, WebTools

LOG_FILE_NAME = "events.db"


def build_approvals(config: Config) -> ApprovalSettings:
    told = config.settings.approvals
    return ApprovalSettings(
        rulebook=build_rule_store(config),
        places=build_path_policy(config),
        wait_seconds=told.wait_seconds,
        session_hours=told.session_hours,
    )


def build_call_limits(config: Config) -> CallLimits:
    limits = config.settings.limits
    return CallLimits(
        seconds=limits.tool_seconds,
        lines=limits.output_lines,
        bytes=limits.output_bytes,
        memory=limits.command_memory * 1_000_000,
    )


def build_budget_ledger(config: Config) -> SharedBudgetLedger:
    """What model calls are paid from. It touches no file before something is limited."""
    return SharedBudgetLedger(config.data, log_path(config), build_budget(config.settings.budget))


def build_web(config: Config, client: HttpClient, proxies: Proxies) -> WebTools:
    told = config.settings.web
    search = told.search
    return WebTools(
        reach=AddressGuard(told.allow),
        proxies=proxies,
        bounds=page_fetch.FetchLimits(bytes=told.bytes, seconds=told.seconds),
        service=SearchService(
            name=search.provider, base_url=search.base_url, api_key=search.api_key, seconds=told.seconds
        ),
        client=client,
        chromium=ChromiumSettings(
            program=told.browser,
            idle_seconds=told.browser_idle,
            page_seconds=told.seconds,
            environ=config.environ,
        ),
    )


def build_proxies(config: Config) -> Proxies:
    return Proxies(http=config.proxy.http, https=config.proxy.https, no=config.proxy.no)


def build_sandbox_policy(config: Config, layer: str = "") -> SandboxPolicy:
    """How commands are confined: by what the user set, never by what lies in a workspace."""
    told, limits = config.settings.sandbox, config.settings.limits
    parse_hosts(told.hosts)
    home = Path(config.environ.get("HOME") or "~").expanduser()
    return SandboxPolicy(
        home=home,
        path=config.environ.get("PATH", ""),
        guarded=(config.home, config.data, config.file),
        network=told.network,
        hosts=tuple(told.hosts),
        proxies=build_proxies(config),
        hide=tuple(told.hide),
        read=tuple(Path(path.replace("~", str(home), 1) if path.startswith("~") else path) for path in told.read),
        caps=SandboxLimits(
            cpu=limits.command_cpu,
            processes=limits.command_processes,
            files=limits.command_files,
            file_size=limits.command_file_size * 1_000_000,
            output=round(limits.command_output * 1_000_000),
        ),
        layer=layer,
    )


def build_courier(config: Config, client: HttpClient) -> channels.ConfiguredCourier:
    told = config.settings.notify
    return channels.ConfiguredCourier(
        post=client.post, webhook=told.webhook, command=told.command, on=told.on, environ=config.environ
    )


def open_log(config: Config) -> EventLog:
    with suppress(OSError):
        # Where this is not possible, opening the store says why.
        config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return EventLog.open(log_path(config))


def build_path_policy(config: Config) -> PathPolicy:
    """What is protected on this machine, whatever the tool."""
    own = (config.home, config.data, config.file)
    home = Path(config.environ.get("HOME") or Path.home())
    return PathPolicy(
        home=real_path(home), sylph=tuple(map(real_path, own)), source=(real_path(Path(__file__).parent.parent),)
    )


def build_git_remotes(config: Config) -> GitRemoteStore:
    """What is set for the git remotes of workspaces."""
    return GitRemoteStore(config.home / "remotes")


def build_rule_store(config: Config) -> FileRuleStore:
    return FileRuleStore(config.settings.rules, config.home / "rules.toml")


def log_path(config: Config) -> Path:
    return config.data / LOG_FILE_NAME


def build_checkpoint_policy(config: Config) -> CheckpointPolicy | None:
    told = config.settings.undo
    if not told.enabled:
        return None
    return CheckpointPolicy(
        skip=frozenset(name.encode() for name in told.skip),
        files=told.max_files,
        total=told.max_mb * 1_000_000,
        each=told.max_file_mb * 1_000_000,
        days=told.keep_days,
    )


def build_redactor(config: Config) -> Redactor:
    """What keeps secrets out of all that is written and sent: those that are set are known from the start."""
    told = config.settings.redact
    keys = {each.api_key: f"{name}-key" for name, each in config.settings.providers.items()}
    search = config.settings.web.search
    headers = [pair for each in config.settings.providers.values() for pair in each.headers.items()]
    named = {value: name for name, value in headers if SECRET_NAME.search(name) or name.lower() == "authorization"}
    named |= {
        value: name for name, value in config.environ.items() if SECRET_NAME.search(name) or name in told.variables
    }
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


def build_retry_policy(config: Config) -> RetryPolicy:
    limits = config.settings.limits
    return RetryPolicy(
        retries=limits.retries,
        first_seconds=limits.first_seconds,
        idle_seconds=limits.idle_seconds,
        concurrency=limits.concurrency,
    )


def build_model_routes(config: Config) -> ConfiguredRoutes:
    told = config.settings.roles
    roles = {"scout": told.scout, "judge": told.judge, "background": told.background, "embed": told.embed}
    return ConfiguredRoutes(roles={role: model for role, model in roles.items() if model}, fallback=told.fallback)


def build_turn_limits(config: Config) -> TurnLimits:
    told = config.settings.compaction
    limits, turn = config.settings.limits, config.settings.budget.turn
    seconds = min((each for each in (limits.turn_seconds, turn.seconds) if each is not None), default=None)
    return TurnLimits(
        rounds=limits.rounds, seconds=seconds, compaction_limits=CompactionLimits(at=told.at, keep=told.keep)
    )
