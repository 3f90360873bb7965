"""The composition root: the one place where the parts meet."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from sylph import __version__
from sylph.access import Ask, ways_of
from sylph.config import Config
from sylph.core.commands import SetBudget, SetMode, SetModel, SetRole, SetSandbox
from sylph.core.errors import NoModel, ProviderError, UserError
from sylph.core.facts import Mode
from sylph.core.plugin import Plugin
from sylph.core.similar import guess
from sylph.core.text import count
from sylph.engine.archive import LogArchive
from sylph.engine.budget.accounts import Account, payer
from sylph.engine.budget.purse import FilePurse
from sylph.engine.budget.store import Hold, Stand
from sylph.engine.gateway import Gateway
from sylph.engine.routes import ALONE, FALLBACK, MAIN, ROLES
from sylph.engine.runtime import Parts, Runtime
from sylph.engine.summary import Summary
from sylph.engine.turn import chats
from sylph.faculties import identity, scout
from sylph.faculties.telemetry.terms import Terms as Telling
from sylph.faculties.telemetry.told import Telemetry
from sylph.net.http import Client
from sylph.providers import choose, discover, tour
from sylph.providers.endpoint import Endpoint
from sylph.providers.local import models as local
from sylph.providers.speak import Spoken, speak
from sylph.services import missing, sources_of
from sylph.tools.all import workspace_tools
from sylph.tools.history import history
from sylph.tools.web import Web
from sylph.wiring import (
    bounds_of,
    consent_of,
    courier_of,
    limits_of,
    open_log,
    patience_of,
    places_of,
    proxies_of,
    purse_of,
    remotes_of,
    routes_of,
    store_of,
    terms_of,
    undo_of,
    veil_of,
    web_of,
)

if TYPE_CHECKING:
    from sylph.providers.logins.ways import Ways

# How long a program that is done waits for what is still on its way to a person.
LAST_TRY = 5.0
# How long a service is waited for that is only asked for the sake of a good message.
GLANCE = 3.0
NO_MODEL = (
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
    client: Client
    web: Web
    sources: discover.Settings
    ways: "Ways | None" = None
    """The credentials that are stored, where there are some."""
    purse: FilePurse
    telemetry: Telemetry | None = None
    """Tells a collector of what happens, where the user wants it."""

    async def __aenter__(self) -> "App":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runtime.close()
        await self.web.close()
        await self.client.close()
        if self.telemetry:
            await asyncio.to_thread(self.telemetry.close)

    async def delivered(self, session: str) -> str:
        """Waits a little for what is on its way to the person; returns what there is to say of the rest of it."""
        await self.runtime.tried(LAST_TRY)
        left = len((await self.runtime.find(session)).outbox)
        return f"{count(left, 'notification')} could not be delivered yet: sylph resume {session}" if left else ""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return discover.offered(self.sources)

    def chats(self, model: str) -> bool:
        """Whether a model gets no tools: it only chats."""
        return bool(model) and chats(self.runtime.parts.gateway.info(model))

    def unlock(self, model: str = "") -> None:
        """Asks for the passphrase, if any service will need it; with a model: its service, or that of a role.

        With a model it is now or never: later the screen is somebody else's. Raises UserError where it is wrong.
        """
        if self.ways is None:
            return
        routes = routes_of(self.config)
        models = (model, *routes.roles.values(), *routes.fallback) if model else ()
        self.ways.unlock({each.partition("/")[0] for each in models})
        if model:
            self.ways.hush()

    async def choose(self, wanted: str = "") -> str:
        """The model to use, as `provider/model`: the one that is wanted or configured, else the best one there is."""
        if wanted.startswith("@") and (role := self._role(wanted[1:])):
            return await self._known(role)
        if wanted[1:] in ALONE and wanted.startswith("@"):
            raise NoModel(
                f"There is no model for the role {wanted[1:]}.",
                next=[f"sylph config set roles.{wanted[1:]} provider/model", "sylph roles"],
            )
        if wanted and not wanted.startswith("@"):
            return await self._known(wanted)
        if self.config.settings.model:
            return self.config.settings.model
        self.unlock()
        if found := await discover.first(self.sources, self.client):
            return f"{found.provider.name}/{found.model}"
        if not discover.configured(self.sources):
            if self.sources.packaged and (there := local.usable(self.sources.packaged)):
                # Weak, or slow, or both: only where there is nothing else.
                return f"{self.sources.packaged.name}/{there}"
            raise NoModel("There is no model to think with.", next=NO_MODEL)
        raise await self._silent()

    def _role(self, name: str) -> str:
        """The model of a role, empty where it is left to the session's own."""
        if name not in ROLES:
            known = ", ".join(f"@{role}" for role in ROLES)
            raise UserError(f"There is no role {name!r}.{guess(name, ROLES)}", next=[f"the roles: {known}"])
        found = routes_of(self.config).fallback[:1] if name == FALLBACK else (self.roles.get(name, ""),)
        return next(iter(found), "")

    def blind(self, model: str) -> bool:
        """Whether it is known to take no pictures; what can only chat has never been shown one."""
        info = self.runtime.parts.gateway.info(model)
        return info.sees is False or (info.sees is None and info.calls is False)

    def unknown(self, models: Iterable[str]) -> list[str]:
        """Which of them no service is set up for."""
        known = {each.name for each in discover.named(self.sources)}
        return [model for model in models if model.partition("/")[0] not in known or "/" not in model]

    @property
    def roles(self) -> Mapping[str, str]:
        """The models that are configured for roles."""
        return routes_of(self.config).roles

    async def _silent(self) -> NoModel:
        """Why none of the services that are set up can be used."""
        asked = (_complaint(endpoint, self.client) for endpoint in discover.configured(self.sources))
        said = await asyncio.gather(*asked)
        return NoModel("\n".join(said), kind="no_service", next=["sylph doctor", "or name another model with -m"])

    async def _known(self, wanted: str) -> str:
        """A model of a service that there is."""
        name, _, bare = wanted.partition("/")
        if name == tour.NAME and bare in tour.SCRIPTS:
            return wanted
        endpoint = next((each for each in discover.named(self.sources) if each.name == name), None)
        if name == local.NAME and bare not in (endpoint.models if endpoint else ()):
            raise local.absent(bare, endpoint)
        if endpoint is None or not bare:
            raise await self._unknown(wanted)
        # Whether the service has it, the service will say: lists are often incomplete, and asking costs a round trip.
        return wanted

    async def _unknown(self, wanted: str) -> NoModel:
        known = [each.name for each in self.endpoints]
        if steps := missing(wanted.partition("/")[0], self.config):
            return NoModel(f"{wanted!r} cannot be used yet.", details={"model": wanted}, next=steps)
        if provider := next((each for each in self.endpoints if each.name == wanted.rstrip("/")), None):
            return await self._modelless(provider)
        near = await self._having(wanted) or [f"{name}/…" for name in choose.close(wanted.partition("/")[0], known)]
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        return NoModel(
            f"There is no provider for the model {wanted!r}.{meant}",
            details={"model": wanted, "providers": " ".join(known)},
            next=["give it as provider/model", "sylph models"],
        )

    async def _having(self, bare: str) -> list[str]:
        """The model of that name at the services that have it; else what comes close to it there.

        Where the only service that is set up lists nothing, it may have it.
        """
        configured = discover.configured(self.sources)
        listed = await asyncio.gather(*(discover.listed(each, self.client, GLANCE) for each in self.endpoints))
        offers = [
            (each.name, [one.name for one in models]) for each, models in zip(self.endpoints, listed, strict=True)
        ]
        if found := [f"{name}/{bare}" for name, models in offers if bare in models]:
            return found
        if near := [f"{name}/{model}" for name, models in offers for model in choose.close(bare, models)]:
            return near[:3]
        alone = len(configured) == 1 and "/" not in bare and not any(models for _, models in offers)
        return [f"{configured[0].name}/{bare}"] if alone else []

    async def _modelless(self, provider: Endpoint) -> NoModel:
        models = choose.usable(info.name for info in await discover.listed(provider, self.client, GLANCE))
        meant = (
            f" Did you mean {' or '.join(repr(f'{provider.name}/{name}') for name in models[:3])}?" if models else ""
        )
        return NoModel(
            f"{provider.name!r} is a provider, and not a model.{meant}",
            details={"model": provider.name},
            next=["give it as provider/model", f"sylph models {provider.name}"],
        )

    async def budgets(self, summary: Summary | None = None) -> list[tuple[Account, Stand]]:
        """How the budgets stand that a session draws on, or that all share. Where nothing can be written, unknown."""
        return [] if self.runtime.log.read_only else await self.purse.stands(payer(summary) if summary else None)

    async def put_aside(self) -> list[Hold]:
        """What is put aside for calls whose end nobody knows."""
        return [] if self.runtime.log.read_only else await self.purse.unknown()

    def sandboxed(self, *, wanted: bool | None = None) -> bool:
        """Whether a session's commands are confined: as the user wants it now, else as it is set."""
        return self.config.settings.sandbox.enabled if wanted is None else wanted

    async def assign(self, session: str, wanted: Iterable[str]) -> None:
        """Gives roles of a session to models: `judge=provider/model`; an empty model leaves it to the configuration."""
        for each in await self.assigned(wanted):
            await self.runtime.send(session, each)

    async def assigned(self, wanted: Iterable[str]) -> list[SetRole]:
        """What gives the roles to the models. Raises UserError where there is no such role or model."""
        found: list[SetRole] = []
        for each in wanted:
            role, sign, model = each.partition("=")
            self._role(role)
            if not sign or role == MAIN:
                raise UserError(f"{each!r} is no role with its model.", next=["--role background=provider/model"])
            found.append(SetRole(role=role, model=await self.choose(model) if model else ""))
        return found

    async def adapt(
        self,
        summary: Summary,
        *,
        model: str = "",
        mode: Mode | None = None,
        sandbox: bool | None = None,
        budget: SetBudget | None = None,
    ) -> Summary:
        """The session with another model, mode, sandbox or budget, where they are wanted."""
        if sandbox is None and not self.config.settings.sandbox.enabled:
            sandbox = False
        if model and model != summary.model:
            await self.runtime.send(summary.id, SetModel(model=await self.choose(model)))
        if mode and mode != summary.mode:
            await self.runtime.send(summary.id, SetMode(mode=mode))
        if sandbox is not None and sandbox != summary.sandbox:
            await self.runtime.send(summary.id, SetSandbox(on=sandbox))
        if budget and budget.money != summary.budget:
            await self.runtime.send(summary.id, budget)
        changed = model or mode or sandbox is not None or budget
        return await self.runtime.find(summary.id) if changed else summary


async def _complaint(endpoint: Endpoint, client: Client) -> str:
    """Why a service cannot be used, in its own words."""
    where = f"{endpoint.name} at {endpoint.base_url}"
    try:
        async with asyncio.timeout(GLANCE):
            await speak(endpoint, client).models()
    except ProviderError as error:
        return f"{where}: {error}"
    except TimeoutError:
        return f"{where}: it does not answer."
    return f"{where}: it has no model that can chat."


def build(
    config: Config, ask: Ask = str, engine: Callable[[Parts], Runtime] | None = None, kind: type[App] = App
) -> App:
    """Everything, put together. Opens the store, reaches out to nobody. `ask` gets a passphrase from a person.

    With another `engine` the store is that one's affair.
    """
    proxies = proxies_of(config)
    client = Client(proxies=proxies)
    web = web_of(config, client, proxies)
    veil = veil_of(config)
    ways = ways_of(config, client, ask, veil.guard)
    sources = sources_of(config, ways=ways)
    endpoints = discover.named(sources)
    purse = purse_of(config)
    parts = Parts(
        gateway=Gateway(Spoken(endpoints, client, tour.Tour()), patience_of(config), purse=purse),
        plugins=(
            Plugin(name="workspace", tools=workspace_tools(config.environ, places_of(config), remotes_of(config))),
            Plugin(name="web", tools=web.tools),
            Plugin(name="history", tools=(history(LogArchive(store_of(config)), store_of(config)),)),
            scout.plugin(),
            identity.plugin(config.home),
        ),
        limits=limits_of(config),
        routes=routes_of(config),
        consent=consent_of(config),
        bounds=bounds_of(config),
        version=__version__,
        courier=courier_of(config, client),
        sandbox=terms_of(config),
        undo=undo_of(config),
        veil=veil,
    )
    runtime = engine(parts) if engine else Runtime(open_log(config), parts)
    telemetry = None if engine else _telemetry(config, runtime)
    return kind(
        config=config,
        runtime=runtime,
        client=client,
        web=web,
        sources=sources,
        purse=purse,
        ways=ways,
        telemetry=telemetry,
    )


def _telemetry(config: Config, runtime: Runtime) -> Telemetry | None:
    told = config.settings.telemetry
    if not told.enabled:
        return None
    terms = Telling(endpoint=told.endpoint, content=told.content, version=__version__)
    found = Telemetry(terms, runtime.veil.text)
    runtime.bus.hear(found.hear)
    return found
