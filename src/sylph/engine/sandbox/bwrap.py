"""A command line for bubblewrap: a view of the system in which only what was decided can be done."""

import os
from collections.abc import Mapping
from copy import copy

from msgspec.structs import replace

from sylph.core.command_run import CommandSpec, SandboxWrapper
from sylph.engine.sandbox import git_mounts
from sylph.engine.sandbox.path_visibility import RESOLVER_FOLDER, SHARED_FOLDERS, PathVisibility, is_within
from sylph.engine.sandbox.policy import CommandRights, NetworkAccess, SandboxLimits

# No further namespaces, no capability, a process space of its own that ends with whoever keeps the journal.
NAMESPACE_OPTIONS = (
    "--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--cap-drop", "ALL",
)  # fmt: skip
# Ways to services of the desktop and of the machine, none of which is there.
REMOVED_VARIABLES = frozenset({
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "DOCKER_HOST", "GPG_AGENT_INFO", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET",
    "SSH_AGENT_PID", "SSH_AUTH_SOCK", "TMPDIR", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
})  # fmt: skip
# What the project says about what Sylph may do here: not to be taken away by what it is about.
PROJECT_RULES_FOLDER = ".sylph"
SOCKET_FOLDER = "/run/sylph"

Mounts = dict[str, tuple[str, ...]]


class MountPlan:
    """Builds the view of one command. What lies deeper is mounted later, whatever was said first."""

    def __init__(self, places: PathVisibility, rights: CommandRights, reach: NetworkAccess, nothing: str) -> None:
        self._places, self._rights, self._nothing = places, rights, nothing
        self._workspace, self._private = str(rights.workspace), str(rights.private)
        self._empty: tuple[str, ...] = ()
        self._mounts: Mounts = {"/": ("--ro-bind", "/", "/"), "/dev": ("--dev", "/dev")}
        # Root outside is root to the files in here: without the remount it could set the kernel's own settings.
        self._mounts["/proc"] = ("--proc", "/proc", "--remount-ro", "/proc")
        self._hide_folders()
        if reach != "none" and os.path.isdir(RESOLVER_FOLDER):
            self._mounts[RESOLVER_FOLDER] = ("--ro-bind", RESOLVER_FOLDER, RESOLVER_FOLDER)
        self._mounts[self._workspace] = ("--bind" if rights.writes else "--ro-bind", self._workspace, self._workspace)

    def _hide_folders(self) -> None:
        private, own = self._rights.private, (self._workspace,)
        self._mounts["/run"] = ("--tmpfs", "/run")
        for folder in self._places.hidden:
            if folder != "/run" and not is_within(folder, own):
                name = "tmp" if folder in SHARED_FOLDERS else "home"
                self._mounts[folder] = ("--bind", f"{private}/{name}", folder)
        for path in self._places.shown:
            if not is_within(path, own):
                self._mounts[path] = ("--ro-bind-try", path, path)
        # What is hidden with its folder need not be hidden again.
        seen = (*self._places.shown, *own)
        for path in self._places.secret:
            if is_within(path, seen) or not is_within(path, self._places.hidden):
                self.mask_path(path)

    def mask_path(self, path: str) -> None:
        """Puts nothing in the place of something."""
        if is_within(path, self._empty):
            return
        folder = os.path.isdir(path)
        self._empty += (path,) if folder else ()
        self._mounts[path] = ("--tmpfs", path, "--remount-ro", path) if folder else ("--ro-bind", self._nothing, path)

    def mask_sockets(self, paths: list[str]) -> None:
        """Sockets of the machine's services. What is in the workspace is its own."""
        for path in paths:
            if not is_within(path, (*self._places.hidden, self._workspace, self._private, "/dev")):
                self.mask_path(path)

    def copy(self) -> "MountPlan":
        """Another one, to be changed for one command."""
        other = copy(self)
        other._mounts = dict(self._mounts)
        return other

    def bind_readonly(self, source: str, folder: str) -> None:
        self._mounts[folder] = ("--ro-bind", source, folder)

    @property
    def options(self) -> list[str]:
        ordered = sorted(self._mounts.items(), key=lambda mount: mount[0].split("/"))
        return [word for _, mount in ordered for word in mount]


def wrap_command(
    order: CommandSpec, program: str, view: MountPlan, caps: SandboxLimits, *, reach: NetworkAccess, box: SandboxWrapper
) -> CommandSpec:
    """The order, to be run by bubblewrap in this view. Its environment begins only inside: bubblewrap has none."""
    head = (program, *NAMESPACE_OPTIONS, *(() if reach == "all" else ("--unshare-net",)), *view.options)
    return replace(order, env=filter_environment(order.env), box=replace(box, head=head, limits=render_ulimits(caps)))


def filter_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that mean something in there; where Sylph lives is not among them."""
    return {
        name: value for name, value in env.items() if name not in REMOVED_VARIABLES and not name.startswith("SYLPH_")
    }


def render_ulimits(caps: SandboxLimits) -> str:
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


def collect_handles(rights: CommandRights, order: CommandSpec, places: PathVisibility, seccomp: str) -> SandboxWrapper:
    """What is handed over open."""
    workspace = str(rights.workspace)
    git = git_mounts.repository_mounts(workspace, places.home, settings=order.repository) if rights.writes else ()
    rules = f"{workspace}/{PROJECT_RULES_FOLDER}"
    own = (("--ro-bind-fd", rules),) if rights.writes and os.path.isdir(rules) else ()
    filters = (("--seccomp", seccomp),) if seccomp else ()
    return SandboxWrapper(head=(), holds=(*git, *own, *filters))


def command_environment(env: Mapping[str, str], home: str) -> dict[str, str]:
    """The variables of a command; without a home folder to hide it gets one in its temporary folder."""
    return {"HOME": home, **env} if home else {**env, "HOME": "/tmp"}
