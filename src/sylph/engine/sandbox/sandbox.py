"""Every command goes through here on its way to the runner, and comes out confined, or it does not run."""

import re
import sys
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from sylph.core.errors import Refused
from sylph.core.run import Order, Ran
from sylph.engine.sandbox import bwrap, forward, landlock, seccomp
from sylph.engine.sandbox.hosts import SOCKET, Way
from sylph.engine.sandbox.layers import Layer, Trial
from sylph.engine.sandbox.places import Places, survey
from sylph.engine.sandbox.secrets import Watch
from sylph.engine.sandbox.terms import Grip, Reach, Terms, reach

FILTER = "seccomp.bpf"
NOTHING = "hidden"
FORWARD = "/run/sylph-forward.py"
PORT = 3128
# Where a command sees the folder that it is lent.
LENT = "/run/sylph-lent"
TAIL = 20_000
# Compiled when a command has failed, and not before.
UNREACHED = (
    rb"resolve host|resolution|Name or service not known|etwork is unreachable|getaddrinfo|ENOTFOUND|EAI_AGAIN"
    rb"|onnection refused|NewConnectionError|dns error"
)
UNWRITABLE = rb"[Rr]ead-only file system|EROFS|Errno 30"


class Sandbox:
    def __init__(self, terms: Terms, folder: Path) -> None:
        self.terms, self._folder = terms, folder
        self._watch = Watch(terms.hide)
        self._trial: Trial | None = None
        self._ways: dict[Path, Way] = {}
        self._made = set[Path]()
        self._views: dict[tuple[Path, Path, bool, Reach], bwrap.View] = {}

    def warm(self) -> None:
        """A command is on its way: begins to find out what there is, without waiting."""
        self._trial = self._trial or Trial(self.terms.layer)

    @cached_property
    def layer(self) -> Layer:
        """What confines commands on this machine."""
        self.warm()
        assert self._trial
        return self._trial.layer()

    @cached_property
    def _places(self) -> Places:
        return survey(self.terms)

    @cached_property
    def _filter(self) -> str:
        """The path of the filter for system calls; empty where none is known for this machine."""
        program = seccomp.program()
        if not program:
            return ""
        path = self._folder / FILTER
        if not path.exists() or path.read_bytes() != program:
            path.write_bytes(program)
            path.chmod(0o600)
        return str(path.resolve())

    @cached_property
    def _nothing(self) -> str:
        """A file that nobody can read, put in the place of secrets. A device would make git take it for deleted."""
        path = self._folder / NOTHING
        path.touch(mode=0o000)
        path.chmod(0o000)
        return str(path.resolve())

    async def confine(self, order: Order, grip: Grip) -> Order:
        """The order as it may be run. Raises Refused where it may not be run at all."""
        order = replace(self._capped(order), box=None)
        if grip.strict:
            self._must_confine(grip)
        elif grip.off or (grip.outside and order.outside) or self.layer.name == "none":
            return order
        self._make(grip)
        way = reach(self.terms.network, grip.effect)
        if self.layer.name == "landlock":
            return self._landlocked(order, grip, way)
        return await self._wrapped(order, grip, way)

    def explain(self, order: Order, ran: Ran, grip: Grip) -> str:
        """What the sandbox has to do with a command that failed."""
        way = self._ways.get(grip.private)
        refused = way.drain() if way else []
        notes = [f"{host} is not on the list: sandbox.hosts" for host in refused]
        if order.box and ran.exit:
            said = (ran.tail or ran.head)[-TAIL:]
            if re.search(UNREACHED, said) and order.box.note:
                notes.append(order.box.note)
            if re.search(UNWRITABLE, said):
                notes.append(_unwritable(grip))
        return "; ".join(notes)

    async def close(self) -> None:
        for way in self._ways.values():
            await way.close()

    def _must_confine(self, grip: Grip) -> None:
        if self.layer.name == "none":
            raise Refused(
                f"In mode `sandbox` every command is confined, and here nothing can confine it: {self.layer.said}.",
                kind="no_sandbox",
                next=["Go on without commands; the user can look at `sylph doctor`, or choose another mode."],
            )
        if grip.outside:
            raise Refused(
                "In mode `sandbox` no command leaves the sandbox.",
                kind="sandboxed",
                next=["Run it without `outside`; the user can choose another mode."],
            )

    def _capped(self, order: Order) -> Order:
        caps = self.terms.caps
        half = caps.output // 2
        return replace(
            order,
            cpu=caps.cpu,
            processes=caps.processes,
            head=min(order.head, half),
            tail=min(order.tail, half),
        )

    def _make(self, grip: Grip) -> None:
        if grip.private not in self._made:
            for name in ("tmp", "home"):
                (grip.private / name).mkdir(parents=True, exist_ok=True, mode=0o700)
            self._made.add(grip.private)

    def _landlocked(self, order: Order, grip: Grip, way: Reach) -> Order:
        # A list of hosts needs a network of its own, which this layer does not have.
        network = way == "all"
        return landlock.confined(
            order, grip, self._places, self.terms.caps, abi=self.layer.abi, network=network
        )  # fmt: skip

    async def _wrapped(self, order: Order, grip: Grip, way: Reach) -> Order:
        view = self._view(grip, way)
        for path in self._watch.files(str(grip.workspace)):
            view.mask(path)
        view.mask_sockets(self._watch.sockets())
        order = replace(order, env=bwrap.environment(order.env, self._places.home))
        if order.lent:
            view.bind(order.lent, LENT)
            order = replace(order, env={name: value.replace(order.lent, LENT) for name, value in order.env.items()})
        if way == "hosts":
            order = await self._listed(order, grip, view)
        box = replace(bwrap.held(grip, order, self._places, self._filter), note=_no_network(way, grip, self.terms))
        return bwrap.wrapped(order, self.layer.program, view, self.terms.caps, reach=way, box=box)

    def _view(self, grip: Grip, way: Reach) -> bwrap.View:
        known = (grip.workspace, grip.private, grip.writes, way)
        if known not in self._views:
            self._views[known] = bwrap.View(self._places, grip, way, self._nothing)
        return self._views[known].copy()

    async def _listed(self, order: Order, grip: Grip, view: bwrap.View) -> Order:
        """The order with a proxy that knows the hosts on the list."""
        folder = grip.private / "net"
        if grip.private not in self._ways:
            self._ways[grip.private] = Way(folder, self.terms.hosts, self.terms.proxies)
            await self._ways[grip.private].open()
        view.bind(str(folder), bwrap.SOCKET_FOLDER)
        view.bind(forward.__file__, FORWARD)
        url = f"http://127.0.0.1:{PORT}"
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        env = {**order.env, **dict.fromkeys(names, url), "no_proxy": "", "NO_PROXY": ""}
        way = (sys.executable, "-I", "-S", FORWARD, f"{bwrap.SOCKET_FOLDER}/{SOCKET}", str(PORT))
        return replace(order, env=env, argv=(*way, *order.argv))


def _no_network(way: Reach, grip: Grip, terms: Terms) -> str:
    if way == "all":
        return ""
    if way == "hosts":
        return "in the sandbox only the hosts of sandbox.hosts are reachable, by http and https"
    if terms.network == "off":
        return "the sandbox has no network: sandbox.network is off"
    judged = "only looks" if not grip.writes else "stays on this machine"
    return f"in the sandbox this command has no network, as it was judged as one that {judged}"


def _unwritable(grip: Grip) -> str:
    if not grip.writes:
        return "in the sandbox this command cannot write, as it was judged as one that only looks"
    return "in the sandbox only the workspace, the home folder and /tmp can be written, and no hooks or settings of git"
