"""A command line for bubblewrap: a view of the system in which only what was decided can be done."""

import os
from collections.abc import Mapping
from copy import copy

from msgspec.structs import replace

from sylph.core.run import Box, Order
from sylph.engine.sandbox import repository
from sylph.engine.sandbox.places import RESOLVER, SHARED, Places, within
from sylph.engine.sandbox.terms import Caps, Grip, Reach

# No further namespaces, no capability, a process space of its own that ends with whoever keeps the journal.
ALWAYS = (
    "--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--cap-drop", "ALL",
)  # fmt: skip
# Ways to services of the desktop and of the machine, none of which is there.
UNSET = frozenset({
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "DOCKER_HOST", "GPG_AGENT_INFO", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET",
    "SSH_AGENT_PID", "SSH_AUTH_SOCK", "TMPDIR", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
})  # fmt: skip
# What the project says about what Sylph may do here: not to be taken away by what it is about.
RULES = ".sylph"
SOCKET_FOLDER = "/run/sylph"

Mounts = dict[str, tuple[str, ...]]


class View:
    """Builds the view of one command. What lies deeper is mounted later, whatever was said first."""

    def __init__(self, places: Places, grip: Grip, reach: Reach, nothing: str) -> None:
        self._places, self._grip, self._nothing = places, grip, nothing
        self._workspace, self._private = str(grip.workspace), str(grip.private)
        self._empty: tuple[str, ...] = ()
        self._mounts: Mounts = {"/": ("--ro-bind", "/", "/"), "/dev": ("--dev", "/dev")}
        # Root outside is root to the files in here: without the remount it could set the kernel's own settings.
        self._mounts["/proc"] = ("--proc", "/proc", "--remount-ro", "/proc")
        self._hide()
        if reach != "none" and os.path.isdir(RESOLVER):
            self._mounts[RESOLVER] = ("--ro-bind", RESOLVER, RESOLVER)
        self._mounts[self._workspace] = ("--bind" if grip.writes else "--ro-bind", self._workspace, self._workspace)

    def _hide(self) -> None:
        private, own = self._grip.private, (self._workspace,)
        self._mounts["/run"] = ("--tmpfs", "/run")
        for folder in self._places.hidden:
            if folder != "/run" and not within(folder, own):
                name = "tmp" if folder in SHARED else "home"
                self._mounts[folder] = ("--bind", f"{private}/{name}", folder)
        for path in self._places.shown:
            if not within(path, own):
                self._mounts[path] = ("--ro-bind-try", path, path)
        # What is hidden with its folder need not be hidden again.
        seen = (*self._places.shown, *own)
        for path in self._places.secret:
            if within(path, seen) or not within(path, self._places.hidden):
                self.mask(path)

    def mask(self, path: str) -> None:
        """Puts nothing in the place of something."""
        if within(path, self._empty):
            return
        folder = os.path.isdir(path)
        self._empty += (path,) if folder else ()
        self._mounts[path] = ("--tmpfs", path, "--remount-ro", path) if folder else ("--ro-bind", self._nothing, path)

    def mask_sockets(self, paths: list[str]) -> None:
        """Sockets of the machine's services. What is in the workspace is its own."""
        for path in paths:
            if not within(path, (*self._places.hidden, self._workspace, self._private, "/dev")):
                self.mask(path)

    def copy(self) -> "View":
        """Another one, to be changed for one command."""
        other = copy(self)
        other._mounts = dict(self._mounts)
        return other

    def bind(self, source: str, folder: str) -> None:
        self._mounts[folder] = ("--ro-bind", source, folder)

    @property
    def options(self) -> list[str]:
        ordered = sorted(self._mounts.items(), key=lambda mount: mount[0].split("/"))
        return [word for _, mount in ordered for word in mount]


def wrapped(order: Order, program: str, view: View, caps: Caps, *, reach: Reach, box: Box) -> Order:
    """The order, to be run by bubblewrap in this view. Its environment begins only inside: bubblewrap has none."""
    head = (program, *ALWAYS, *(() if reach == "all" else ("--unshare-net",)), *view.options)
    return replace(order, env=kept(order.env), box=replace(box, head=head, limits=limits(caps)))


def kept(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that mean something in there; where Sylph lives is not among them."""
    return {name: value for name, value in env.items() if name not in UNSET and not name.startswith("SYLPH_")}


def limits(caps: Caps) -> str:
    """A line for the shell that sets what is counted per process."""
    told = ["ulimit -c 0"]
    if caps.files:
        told.append(f"ulimit -n {caps.files}")
    if caps.file_size:
        told.append(f"ulimit -f {caps.file_size // 512}")
    if caps.processes:
        # Counted in this user namespace alone. Shells differ in its letter; root is counted by the runner only.
        told.append(f"{{ ulimit -u {caps.processes} || ulimit -p {caps.processes}; }}")
    return "{ " + "; ".join(told) + "; } 2>/dev/null"


def held(grip: Grip, order: Order, places: Places, seccomp: str) -> Box:
    """What is handed over open."""
    workspace = str(grip.workspace)
    git = repository.holds(workspace, places.home, settings=order.repository) if grip.writes else ()
    rules = f"{workspace}/{RULES}"
    own = (("--ro-bind-fd", rules),) if grip.writes and os.path.isdir(rules) else ()
    filters = (("--seccomp", seccomp),) if seccomp else ()
    return Box(head=(), holds=(*git, *own, *filters))


def environment(env: Mapping[str, str], home: str) -> dict[str, str]:
    """The variables of a command; without a home folder to hide it gets one in its temporary folder."""
    return {"HOME": home, **env} if home else {**env, "HOME": "/tmp"}
