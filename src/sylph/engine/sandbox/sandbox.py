"""Every command goes through here on its way to the runner, and comes out confined, or it does not run."""

import re
import sys
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from sylph.core.command_run import CommandResult, CommandSpec
from sylph.core.errors import CallRefused
from sylph.engine.sandbox import bwrap, landlock, proxy_forwarder, seccomp
from sylph.engine.sandbox.host_allowlist import SOCKET, SandboxProxy
from sylph.engine.sandbox.layer_probe import LayerProbe, SandboxLayer
from sylph.engine.sandbox.path_visibility import PathVisibility, survey_paths
from sylph.engine.sandbox.policy import CommandRights, NetworkAccess, SandboxPolicy, network_access
from sylph.engine.sandbox.secret_files import SecretFileScanner

FILTER = "seccomp.bpf"
MASK_FILE = "hidden"
FORWARDER_PATH = "/run/sylph-forward.py"
PORT = 3128
# Where a command sees the folder that it is lent.
LENT_FOLDER = "/run/sylph-lent"
INSPECTED_TAIL = 20_000
# Compiled when a command has failed, and not before.
UNREACHED_PATTERN = (
    rb"resolve host|resolution|Name or service not known|etwork is unreachable|getaddrinfo|ENOTFOUND|EAI_AGAIN"
    rb"|onnection refused|NewConnectionError|dns error"
)
UNWRITABLE_PATTERN = rb"[Rr]ead-only file system|EROFS|Errno 30"


class CommandSandbox:
    def __init__(self, terms: SandboxPolicy, folder: Path) -> None:
        self.terms, self._folder = terms, folder
        self._watch = SecretFileScanner(terms.hide)
        self._trial: LayerProbe | None = None
        self._ways: dict[Path, SandboxProxy] = {}
        self._made = set[Path]()
        self._views: dict[tuple[Path, Path, bool, NetworkAccess], bwrap.MountPlan] = {}

    def warm_up(self) -> None:
        """A command is on its way: begins to find out what there is, without waiting."""
        self._trial = self._trial or LayerProbe(self.terms.layer)

    @cached_property
    def layer(self) -> SandboxLayer:
        """What confines commands on this machine."""
        self.warm_up()
        assert self._trial
        return self._trial.wait_for_layer()

    @cached_property
    def _visibility(self) -> PathVisibility:
        return survey_paths(self.terms)

    @cached_property
    def _seccomp_filter(self) -> str:
        """The path of the filter for system calls; empty where none is known for this machine."""
        program = seccomp.build_filter()
        if not program:
            return ""
        path = self._folder / FILTER
        if not path.exists() or path.read_bytes() != program:
            path.write_bytes(program)
            path.chmod(0o600)
        return str(path.resolve())

    @cached_property
    def _mask_file(self) -> str:
        """A file that nobody can read, put in the place of secrets. A device would make git take it for deleted."""
        path = self._folder / MASK_FILE
        path.touch(mode=0o000)
        path.chmod(0o000)
        return str(path.resolve())

    async def confine_command(self, order: CommandSpec, rights: CommandRights) -> CommandSpec:
        """The order as it may be run. Raises Refused where it may not be run at all."""
        order = replace(self._apply_limits(order), box=None)
        if rights.strict:
            self._require_confinement(rights)
        elif rights.off or (rights.outside and order.outside) or self.layer.name == "none":
            return order
        self._create_folders(rights)
        way = network_access(self.terms.network, rights.effect)
        if self.layer.name == "landlock":
            return self._confine_landlock(order, rights, way)
        return await self._confine_bwrap(order, rights, way)

    def explain_failure(self, order: CommandSpec, ran: CommandResult, rights: CommandRights) -> str:
        """What the sandbox has to do with a command that failed."""
        way = self._ways.get(rights.private)
        refused = way.drain_refused() if way else []
        notes = [f"{host} is not on the list: sandbox.hosts" for host in refused]
        if order.box and ran.exit:
            said = (ran.tail or ran.head)[-INSPECTED_TAIL:]
            if re.search(UNREACHED_PATTERN, said) and order.box.note:
                notes.append(order.box.note)
            if re.search(UNWRITABLE_PATTERN, said):
                notes.append(_explain_unwritable(rights))
        return "; ".join(notes)

    async def close(self) -> None:
        for way in self._ways.values():
            await way.close()

    def _require_confinement(self, rights: CommandRights) -> None:
        if self.layer.name == "none":
            raise CallRefused(
                f"In mode `sandbox` every command is confined, and here nothing can confine it: {self.layer.said}.",
                kind="no_sandbox",
                next=["Go on without commands; the user can look at `sylph doctor`, or choose another mode."],
            )
        if rights.outside:
            raise CallRefused(
                "In mode `sandbox` no command leaves the sandbox.",
                kind="sandboxed",
                next=["Run it without `outside`; the user can choose another mode."],
            )

    def _apply_limits(self, order: CommandSpec) -> CommandSpec:
        caps = self.terms.caps
        half = caps.output // 2
        return replace(
            order,
            cpu=caps.cpu,
            processes=caps.processes,
            head=min(order.head, half),
            tail=min(order.tail, half),
        )

    def _create_folders(self, rights: CommandRights) -> None:
        if rights.private not in self._made:
            for name in ("tmp", "home"):
                (rights.private / name).mkdir(parents=True, exist_ok=True, mode=0o700)
            self._made.add(rights.private)

    def _confine_landlock(self, order: CommandSpec, rights: CommandRights, way: NetworkAccess) -> CommandSpec:
        # A list of hosts needs a network of its own, which this layer does not have.
        network = way == "all"
        return landlock.confine_command(
            order, rights, self._visibility, self.terms.caps, abi=self.layer.abi, network=network
        )  # fmt: skip

    async def _confine_bwrap(self, order: CommandSpec, rights: CommandRights, way: NetworkAccess) -> CommandSpec:
        view = self._mount_plan(rights, way)
        for path in self._watch.secret_files(str(rights.workspace)):
            view.mask_path(path)
        view.mask_sockets(self._watch.open_sockets())
        order = replace(order, env=bwrap.command_environment(order.env, self._visibility.home))
        if order.lent:
            view.bind_readonly(order.lent, LENT_FOLDER)
            order = replace(
                order, env={name: value.replace(order.lent, LENT_FOLDER) for name, value in order.env.items()}
            )
        if way == "hosts":
            order = await self._add_proxy(order, rights, view)
        box = replace(
            bwrap.collect_handles(rights, order, self._visibility, self._seccomp_filter),
            note=_explain_no_network(way, rights, self.terms),
        )
        return bwrap.wrap_command(order, self.layer.program, view, self.terms.caps, reach=way, box=box)

    def _mount_plan(self, rights: CommandRights, way: NetworkAccess) -> bwrap.MountPlan:
        known = (rights.workspace, rights.private, rights.writes, way)
        if known not in self._views:
            self._views[known] = bwrap.MountPlan(self._visibility, rights, way, self._mask_file)
        return self._views[known].copy()

    async def _add_proxy(self, order: CommandSpec, rights: CommandRights, view: bwrap.MountPlan) -> CommandSpec:
        """The order with a proxy that knows the hosts on the list."""
        folder = rights.private / "net"
        if rights.private not in self._ways:
            self._ways[rights.private] = SandboxProxy(folder, self.terms.hosts, self.terms.proxies)
            await self._ways[rights.private].open()
        view.bind_readonly(str(folder), bwrap.SOCKET_FOLDER)
        view.bind_readonly(proxy_forwarder.__file__, FORWARDER_PATH)
        url = f"http://127.0.0.1:{PORT}"
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        env = {**order.env, **dict.fromkeys(names, url), "no_proxy": "", "NO_PROXY": ""}
        way = (sys.executable, "-I", "-S", FORWARDER_PATH, f"{bwrap.SOCKET_FOLDER}/{SOCKET}", str(PORT))
        return replace(order, env=env, argv=(*way, *order.argv))


def _explain_no_network(way: NetworkAccess, rights: CommandRights, terms: SandboxPolicy) -> str:
    if way == "all":
        return ""
    if way == "hosts":
        return "in the sandbox only the hosts of sandbox.hosts are reachable, by http and https"
    if terms.network == "off":
        return "the sandbox has no network: sandbox.network is off"
    judged = "only looks" if not rights.writes else "stays on this machine"
    return f"in the sandbox this command has no network, as it was judged as one that {judged}"


def _explain_unwritable(rights: CommandRights) -> str:
    if not rights.writes:
        return "in the sandbox this command cannot write, as it was judged as one that only looks"
    return "in the sandbox only the workspace, the home folder and /tmp can be written, and no hooks or settings of git"
