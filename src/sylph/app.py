"""The composition root: the one place where the parts meet."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from sylph import __version__
from sylph.compose.credentials import PassphrasePrompt, build_credential_sources
from sylph.compose.engine import (
    build_approvals,
    build_budget_ledger,
    build_call_limits,
    build_checkpoint_policy,
    build_courier,
    build_git_remotes,
    build_model_routes,
    build_path_policy,
    build_proxies,
    build_redactor,
    build_retry_policy,
    build_sandbox_policy,
    build_turn_limits,
    build_web,
    log_path,
    open_log,
)
from sylph.compose.models import build_model_sources, missing_steps
from sylph.config import Config
from sylph.core.commands import SetBudget, SetMode, SetModel, SetRole, SetSandbox
from sylph.core.errors import NoModel, ProviderError, UserError
from sylph.core.permission.types import Mode
from sylph.core.plugin import Plugin
from sylph.core.text.formatting import count_noun
from sylph.core.text.suggestion import suggest_word
from sylph.engine.budget.accounts import BudgetAccount, budget_owner_of
from sylph.engine.budget.ledger import SharedBudgetLedger
from sylph.engine.budget.ledger_store import AccountBalance, Reservation
from sylph.engine.folds.session_state import SessionState
from sylph.engine.log.search import LogSearch
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.routes import FALLBACK, MAIN, ROLES, UNSHARED_ROLES
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.engine.turn.agent_loop import is_chat_only
from sylph.features.identity import identity_notes
from sylph.features.scout import workspace_notes
from sylph.features.telemetry.listener import TelemetryListener
from sylph.features.telemetry.options import TelemetryOptions as Telling
from sylph.net.http_client import HttpClient
from sylph.providers import discover, scripted_tour
from sylph.providers.endpoint import Endpoint
from sylph.providers.local import models as local
from sylph.providers.registry import ProviderRegistry, create_provider
from sylph.providers.vendors import model_ranking
from sylph.tools.session_history import build_history_tool
from sylph.tools.toolset import build_workspace_tools
from sylph.tools.web import WebTools

if TYPE_CHECKING:
    from sylph.providers.logins.credential_sources import CredentialSources

# How long a program that is done waits for what is still on its way to a person.
FINAL_DELIVERY_SECONDS = 5.0
# How long a service is waited for that is only asked for the sake of a good message.
PROBE_SECONDS = 3.0
NO_MODEL_HINTS = (
    "sylph connect PROVIDER  saves a key, or logs in",
    "or set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY …; OPENAI_BASE_URL for any compatible service",
    "or start a local model server: Ollama, llama.cpp, vLLM and LM Studio are found by themselves",
    "or name a service in the config file: sylph config edit",
    "or chat with a small model on this machine, without tools: sylph models install small",
    "or use a model file of your own: sylph models add FILE.gguf",
    "sylph tour  shows everything with a scripted model, no key needed",
)


class App(Struct, kw_only=True):
    """The assembled program. Every door holds one; `reload` brings it up to a changed configuration."""

    config: Config
    runtime: Runtime
    client: HttpClient
    web: WebTools
    sources: discover.DiscoverySettings
    credentials: "CredentialSources | None" = None
    """The credentials that are stored, where there are some."""
    budget_ledger: SharedBudgetLedger
    telemetry: TelemetryListener | None = None
    """Tells a collector of what happens, where the user wants it."""

    async def __aenter__(self) -> "App":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runtime.close()
        await self.web.close()
        await self.client.close()
        if self.telemetry:
            await asyncio.to_thread(self.telemetry.close)

    async def await_deliveries(self, session: str) -> str:
        """Waits a little for what is on its way to the person; returns what there is to say of the rest of it."""
        await self.runtime.wait_for_deliveries(FINAL_DELIVERY_SECONDS)
        left = len((await self.runtime.find_session(session)).outbox)
        return f"{count_noun(left, 'notification')} could not be delivered yet: sylph resume {session}" if left else ""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return discover.listed_endpoints(self.sources)

    def is_chat_only(self, model: str) -> bool:
        """Whether a model gets no tools: it only chats."""
        return bool(model) and is_chat_only(self.runtime.parts.gateway.model_info(model))

    def unlock_credentials(self, model: str = "") -> None:
        """Asks for the passphrase, if any service will need it; with a model: its service, or that of a role.

        With a model it is now or never: later the screen is somebody else's. Raises UserError where it is wrong.
        """
        if self.credentials is None:
            return
        routes = build_model_routes(self.config)
        models = (model, *routes.roles.values(), *routes.fallback) if model else ()
        self.credentials.unlock({each.partition("/")[0] for each in models})
        if model:
            self.credentials.stop_asking()

    async def choose_model(self, wanted: str = "") -> str:
        """The model to use, as `provider/model`: the one that is wanted or configured, else the best one there is."""
        if wanted.startswith("@") and (role := self._role_model(wanted[1:])):
            return await self._check_model(role)
        if wanted[1:] in UNSHARED_ROLES and wanted.startswith("@"):
            raise NoModel(
                f"There is no model for the role {wanted[1:]}.",
                next=[f"sylph config set roles.{wanted[1:]} provider/model", "sylph roles"],
            )
        if wanted and not wanted.startswith("@"):
            return await self._check_model(wanted)
        if self.config.settings.model:
            return self.config.settings.model
        self.unlock_credentials()
        if found := await discover.find_first_model(self.sources, self.client):
            return f"{found.provider.name}/{found.model}"
        if not discover.configured_endpoints(self.sources):
            if self.sources.local_endpoint and (there := local.first_usable_model(self.sources.local_endpoint)):
                # Weak, or slow, or both: only where there is nothing else.
                return f"{self.sources.local_endpoint.name}/{there}"
            raise NoModel("There is no model to think with.", next=NO_MODEL_HINTS)
        raise await self._no_service_error()

    def _role_model(self, name: str) -> str:
        """The model of a role, empty where it is left to the session's own."""
        if name not in ROLES:
            known = ", ".join(f"@{role}" for role in ROLES)
            raise UserError(f"There is no role {name!r}.{suggest_word(name, ROLES)}", next=[f"the roles: {known}"])
        found = build_model_routes(self.config).fallback[:1] if name == FALLBACK else (self.roles.get(name, ""),)
        return next(iter(found), "")

    def lacks_vision(self, model: str) -> bool:
        """Whether it is known to take no pictures; what can only chat has never been shown one."""
        info = self.runtime.parts.gateway.model_info(model)
        return info.sees is False or (info.sees is None and info.calls is False)

    def unknown_models(self, models: Iterable[str]) -> list[str]:
        """Which of them no service is set up for."""
        known = {each.name for each in discover.all_endpoints(self.sources)}
        return [model for model in models if model.partition("/")[0] not in known or "/" not in model]

    @property
    def roles(self) -> Mapping[str, str]:
        """The models that are configured for roles."""
        return build_model_routes(self.config).roles

    async def _no_service_error(self) -> NoModel:
        """Why none of the services that are set up can be used."""
        asked = (_describe_failure(endpoint, self.client) for endpoint in discover.configured_endpoints(self.sources))
        said = await asyncio.gather(*asked)
        return NoModel("\n".join(said), kind="no_service", next=["sylph doctor", "or name another model with -m"])

    async def _check_model(self, wanted: str) -> str:
        """A model of a service that there is."""
        name, _, bare = wanted.partition("/")
        if name == scripted_tour.NAME and bare in scripted_tour.SCRIPTS:
            return wanted
        endpoint = next((each for each in discover.all_endpoints(self.sources) if each.name == name), None)
        if name == local.NAME and bare not in (endpoint.models if endpoint else ()):
            raise local.missing_model_error(bare, endpoint)
        if endpoint is None or not bare:
            raise await self._unknown_model_error(wanted)
        # Whether the service has it, the service will say: lists are often incomplete, and asking costs a round trip.
        return wanted

    async def _unknown_model_error(self, wanted: str) -> NoModel:
        known = [each.name for each in self.endpoints]
        if steps := missing_steps(wanted.partition("/")[0], self.config):
            return NoModel(f"{wanted!r} cannot be used yet.", details={"model": wanted}, next=steps)
        if provider := next((each for each in self.endpoints if each.name == wanted.rstrip("/")), None):
            return await self._missing_model_error(provider)
        near = await self._similar_models(wanted) or [
            f"{name}/…" for name in model_ranking.close_matches(wanted.partition("/")[0], known)
        ]
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        return NoModel(
            f"There is no provider for the model {wanted!r}.{meant}",
            details={"model": wanted, "providers": " ".join(known)},
            next=["give it as provider/model", "sylph models"],
        )

    async def _similar_models(self, bare: str) -> list[str]:
        """The model of that name at the services that have it; else what comes close to it there.

        Where the only service that is set up lists nothing, it may have it.
        """
        configured = discover.configured_endpoints(self.sources)
        listed = await asyncio.gather(
            *(discover.list_models(each, self.client, PROBE_SECONDS) for each in self.endpoints)
        )
        offers = [
            (each.name, [one.name for one in models]) for each, models in zip(self.endpoints, listed, strict=True)
        ]
        if found := [f"{name}/{bare}" for name, models in offers if bare in models]:
            return found
        if near := [
            f"{name}/{model}" for name, models in offers for model in model_ranking.close_matches(bare, models)
        ]:
            return near[:3]
        alone = len(configured) == 1 and "/" not in bare and not any(models for _, models in offers)
        return [f"{configured[0].name}/{bare}"] if alone else []

    async def _missing_model_error(self, provider: Endpoint) -> NoModel:
        models = model_ranking.chat_models(
            info.name for info in await discover.list_models(provider, self.client, PROBE_SECONDS)
        )
        meant = (
            f" Did you mean {' or '.join(repr(f'{provider.name}/{name}') for name in models[:3])}?" if models else ""
        )
        return NoModel(
            f"{provider.name!r} is a provider, and not a model.{meant}",
            details={"model": provider.name},
            next=["give it as provider/model", f"sylph models {provider.name}"],
        )

    async def budget_balances(self, summary: SessionState | None = None) -> list[tuple[BudgetAccount, AccountBalance]]:
        """How the budgets stand that a session draws on, or that all share. Where nothing can be written, unknown."""
        return (
            []
            if self.runtime.log.read_only
            else await self.budget_ledger.account_balances(budget_owner_of(summary) if summary else None)
        )

    async def open_reservations(self) -> list[Reservation]:
        """What is put aside for calls whose end nobody knows."""
        return [] if self.runtime.log.read_only else await self.budget_ledger.unknown_reservations()

    def sandbox_enabled(self, *, wanted: bool | None = None) -> bool:
        """Whether a session's commands are confined: as the user wants it now, else as it is set."""
        return self.config.settings.sandbox.enabled if wanted is None else wanted

    async def assign_roles(self, session: str, wanted: Iterable[str]) -> None:
        """Gives roles of a session to models: `judge=provider/model`; an empty model leaves it to the configuration."""
        for each in await self.parse_roles(wanted):
            await self.runtime.send(session, each)

    async def parse_roles(self, wanted: Iterable[str]) -> list[SetRole]:
        """What gives the roles to the models. Raises UserError where there is no such role or model."""
        found: list[SetRole] = []
        for each in wanted:
            role, sign, model = each.partition("=")
            self._role_model(role)
            if not sign or role == MAIN:
                raise UserError(f"{each!r} is no role with its model.", next=["--role background=provider/model"])
            found.append(SetRole(role=role, model=await self.choose_model(model) if model else ""))
        return found

    async def adapt_session(
        self,
        summary: SessionState,
        *,
        model: str = "",
        mode: Mode | None = None,
        sandbox: bool | None = None,
        budget: SetBudget | None = None,
    ) -> SessionState:
        """The session with another model, mode, sandbox or budget, where they are wanted."""
        if sandbox is None and not self.config.settings.sandbox.enabled:
            sandbox = False
        if model and model != summary.model:
            await self.runtime.send(summary.id, SetModel(model=await self.choose_model(model)))
        if mode and mode != summary.mode:
            await self.runtime.send(summary.id, SetMode(mode=mode))
        if sandbox is not None and sandbox != summary.sandbox:
            await self.runtime.send(summary.id, SetSandbox(on=sandbox))
        if budget and budget.money != summary.budget:
            await self.runtime.send(summary.id, budget)
        changed = model or mode or sandbox is not None or budget
        return await self.runtime.find_session(summary.id) if changed else summary


async def _describe_failure(endpoint: Endpoint, client: HttpClient) -> str:
    """Why a service cannot be used, in its own words."""
    where = f"{endpoint.name} at {endpoint.base_url}"
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await create_provider(endpoint, client).models()
    except ProviderError as error:
        return f"{where}: {error}"
    except TimeoutError:
        return f"{where}: it does not answer."
    return f"{where}: it has no model that can chat."


def build_app(
    config: Config,
    ask: PassphrasePrompt = str,
    engine: Callable[[RuntimeParts], Runtime] | None = None,
    kind: type[App] = App,
) -> App:
    """Everything, put together. Opens the store, reaches out to nobody. `ask` gets a passphrase from a person.

    With another `engine` the store is that one's affair.
    """
    proxies = build_proxies(config)
    client = HttpClient(proxies=proxies)
    web = build_web(config, client, proxies)
    redactor = build_redactor(config)
    ways = build_credential_sources(config, client, ask, redactor.add_secret)
    sources = build_model_sources(config, ways=ways)
    endpoints = discover.all_endpoints(sources)
    ledger = build_budget_ledger(config)
    parts = RuntimeParts(
        gateway=ModelGateway(
            ProviderRegistry(endpoints, client, scripted_tour.TourProvider()), build_retry_policy(config), ledger=ledger
        ),
        plugins=(
            Plugin(
                name="workspace",
                tools=build_workspace_tools(config.environ, build_path_policy(config), build_git_remotes(config)),
            ),
            Plugin(name="web", tools=web.tools),
            Plugin(name="history", tools=(build_history_tool(LogSearch(log_path(config)), log_path(config)),)),
            workspace_notes.build_plugin(),
            identity_notes.build_plugin(config.home),
        ),
        limits=build_turn_limits(config),
        routes=build_model_routes(config),
        consent=build_approvals(config),
        output_limits=build_call_limits(config),
        version=__version__,
        courier=build_courier(config, client),
        sandbox=build_sandbox_policy(config),
        undo=build_checkpoint_policy(config),
        redactor=redactor,
    )
    runtime = engine(parts) if engine else Runtime(open_log(config), parts)
    telemetry = None if engine else _build_telemetry(config, runtime)
    return kind(
        config=config,
        runtime=runtime,
        client=client,
        web=web,
        sources=sources,
        budget_ledger=ledger,
        credentials=ways,
        telemetry=telemetry,
    )


def _build_telemetry(config: Config, runtime: Runtime) -> TelemetryListener | None:
    told = config.settings.telemetry
    if not told.enabled:
        return None
    terms = Telling(endpoint=told.endpoint, content=told.content, version=__version__)
    found = TelemetryListener(terms, runtime.redactor.redact_text)
    runtime.bus.add_listener(found.handle_event)
    return found
