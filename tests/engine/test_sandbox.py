"""What a command may do is decided before it runs, and no order, variable or file of the workspace changes it."""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE
from tests.plain_user import ignores_modes, rerun_as_plain_user

from sylph.core.command_run import CommandResult, CommandSpec, SandboxWrapper
from sylph.core.errors import CallRefused, ToolError, UserError
from sylph.core.permission.secret_names import SECRET_FILE_NAMES
from sylph.core.permission.types import Effect
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient
from sylph.engine.sandbox import (
    CommandRights,
    CommandSandbox,
    Network,
    SandboxLayer,
    SandboxLimits,
    SandboxPolicy,
    git_mounts,
    seccomp,
)
from sylph.engine.sandbox.host_allowlist import SOCKET, SandboxProxy, parse_hosts
from sylph.engine.sandbox.layer_probe import LayerProbe
from sylph.engine.sandbox.path_visibility import survey_paths
from sylph.engine.sandbox.policy import network_access
from sylph.engine.sandbox.secret_files import SecretFileScanner
from sylph.features.prove.sandbox.targets import count_processes
from sylph.net.url import Proxies

NUMBERS = count(1)
LAYER = LayerProbe().wait_for_layer()
boxed = pytest.mark.skipif(LAYER.name != "bwrap", reason=f"no bubblewrap here: {LAYER.said}")


class Place:
    def __init__(self, root: Path) -> None:
        self.home, self.work, self.data = root / "person", root / "work", root / "data"
        for folder in (self.home / ".ssh", self.work, self.data):
            folder.mkdir(parents=True)
        (self.home / ".ssh" / "id_rsa").write_text("the key")

    @property
    def terms(self) -> SandboxPolicy:
        return SandboxPolicy(home=self.home, path=os.environ["PATH"], guarded=(self.data,), hide=SECRET_FILE_NAMES)

    def rights(self, effect: Effect = "write", **how: bool) -> CommandRights:
        return CommandRights(workspace=self.work, private=self.data / "private", effect=effect, **how)

    def order(self, command: str, **env: str) -> CommandSpec:
        return CommandSpec(argv=("/bin/sh", "-c", command), cwd=str(self.work), env={"PATH": "/usr/bin:/bin", **env})

    def sandbox(self, **terms: object) -> CommandSandbox:
        return CommandSandbox(replace(self.terms, **terms), self.data)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@pytest.fixture
async def runner(place: Place) -> AsyncGenerator[RunnerClient]:
    runner = RunnerClient(place.data / "runs", sandbox=place.sandbox())
    yield runner
    runner.close()


async def ran(runner: RunnerClient, place: Place, command: str, rights: CommandRights | None = None) -> CommandResult:
    found = await JournaledCommands(runner, f"k{next(NUMBERS)}", rights or place.rights()).run(
        place.order(command), lambda _: None
    )
    assert isinstance(found, CommandResult)
    return found


@pytest.mark.parametrize(
    ("network", "read", "write", "external"),
    [("judged", "none", "none", "all"), ("off", "none", "none", "none"), ("on", "none", "all", "all"),
     ("hosts", "none", "hosts", "hosts")],
)  # fmt: skip
def test_how_far_a_command_gets(network: Network, read: str, write: str, external: str) -> None:
    assert [network_access(network, effect) for effect in ("read", "write", "external")] == [read, write, external]


@boxed
async def test_bubblewrap_itself_gets_nothing_of_a_commands_environment(place: Place) -> None:
    order = await place.sandbox().confine_command(
        place.order("true", LD_PRELOAD="/evil.so", SYLPH_HOME="/x"), place.rights()
    )
    assert order.box
    assert "/evil.so" not in " ".join(order.box.head)
    assert set(order.env) == {"PATH", "HOME", "LD_PRELOAD"}


@boxed
async def test_an_order_cannot_let_itself_out(place: Place) -> None:
    sandbox = place.sandbox()
    sneaky = replace(place.order("true"), outside=True, box=SandboxWrapper(head=(), holds=(("--bind", "/"),)))
    held = (await sandbox.confine_command(sneaky, place.rights())).box
    assert held
    assert held.head[0] == LAYER.program
    assert ("--bind", "/") not in held.holds
    allowed = await sandbox.confine_command(sneaky, place.rights(outside=True))
    assert (allowed.argv, allowed.box) == (sneaky.argv, None)
    # Allowed to leave, and did not ask to: then it stays.
    assert (await sandbox.confine_command(place.order("true"), place.rights(outside=True))).box


async def test_off_is_off_but_not_in_a_mode_that_confines(place: Place) -> None:
    sandbox = place.sandbox()
    assert (await sandbox.confine_command(place.order("true"), place.rights(off=True))).argv == (
        "/bin/sh",
        "-c",
        "true",
    )
    if LAYER.name == "bwrap":
        assert (await sandbox.confine_command(place.order("true"), place.rights(off=True, strict=True))).box
    with pytest.raises(CallRefused):
        await sandbox.confine_command(place.order("true"), place.rights(outside=True, strict=True))


async def test_without_any_layer_commands_run_bare_but_never_where_that_is_forbidden(place: Place) -> None:
    sandbox = place.sandbox()
    sandbox.layer = SandboxLayer(name="none", said="nothing here")
    assert (await sandbox.confine_command(place.order("true"), place.rights())).argv[0] == "/bin/sh"
    with pytest.raises(CallRefused, match="nothing can confine it"):
        await sandbox.confine_command(place.order("true"), place.rights(strict=True))


async def test_a_command_that_nobody_decided_about_is_not_run(place: Place, runner: RunnerClient) -> None:
    with pytest.raises(ToolError, match="not decided"):
        await JournaledCommands(runner, "k").run(place.order("true"), lambda _: None)


@boxed
async def test_what_only_looks_cannot_write(place: Place, runner: RunnerClient) -> None:
    found = await ran(runner, place, "touch new", place.rights("read"))
    assert found.exit != 0
    assert "only looks" in found.note
    assert (await ran(runner, place, "touch new")).exit == 0


@boxed
async def test_two_commands_share_their_temporary_and_home_folder(place: Place, runner: RunnerClient) -> None:
    await ran(runner, place, "echo a > /tmp/a; echo b > ~/b; echo c > /var/tmp/c")
    assert (await ran(runner, place, f"cat /tmp/a {place.home}/b /var/tmp/c")).head == b"a\nb\nc\n"
    assert not (place.home / "b").exists()


@boxed
async def test_a_folder_that_is_gone_is_told_as_such(place: Place, runner: RunnerClient) -> None:
    order = replace(place.order("true"), cwd=str(place.work / "gone"))
    with pytest.raises(ToolError) as caught:
        await JournaledCommands(runner, f"caps{os.getpid()}", place.rights()).run(order, lambda _: None)
    assert caught.value.trouble.kind == "sandbox_failed"
    assert "gone" in caught.value.trouble.details["said"]


@boxed
async def test_a_command_that_says_what_bubblewrap_says_is_not_believed(place: Place, runner: RunnerClient) -> None:
    found = await ran(runner, place, "echo bwrap: Can\\'t find source path; exit 1")
    assert (found.exit, found.unboxed) == (1, False)


@boxed
async def test_a_command_may_end_by_itself_when_it_is_asked_to(place: Place, runner: RunnerClient) -> None:
    order = replace(
        place.order("trap 'echo cleaned > cleaned; exit 0' TERM; while :; do sleep 30 & wait; done"), seconds=0.5
    )
    found = await JournaledCommands(runner, f"caps{os.getpid()}", place.rights()).run(order, lambda _: None)
    assert isinstance(found, CommandResult)
    assert found.why == "time"
    assert (place.work / "cleaned").exists()


@boxed
async def test_when_a_command_is_told_as_ended_nothing_of_it_is_left(place: Place, runner: RunnerClient) -> None:
    await ran(runner, place, "for i in 1 2 3 4 5 6 7 8 9; do setsid sleep 31.7 & done; sleep 0.1")
    assert count_processes("31.7") == 0


@boxed
@pytest.mark.parametrize(("caps", "command", "why"), [
    (SandboxLimits(cpu=0.3), "while :; do :; done", "cpu"),
    (SandboxLimits(processes=20), "for i in $(seq 40); do sleep 5 & done; wait", "processes"),
])  # fmt: skip
async def test_limits_of_the_whole_family(place: Place, caps: SandboxLimits, command: str, why: str) -> None:
    sandbox = place.sandbox(caps=caps)
    runner = RunnerClient(place.data / "runs", sandbox=sandbox)
    try:
        # The limit per user may hold first, where this is not root.
        found = await JournaledCommands(runner, f"caps{os.getpid()}", place.rights()).run(
            place.order(command), lambda _: None
        )
    finally:
        runner.close()
    assert isinstance(found, CommandResult)
    assert found.why == why or (why == "processes" and b"fork" in found.head.lower())


def test_a_path_through_somebody_elses_folder_stops_nothing(place: Place, request: pytest.FixtureRequest) -> None:
    if ignores_modes():
        rerun_as_plain_user(request.node.nodeid)
        return
    shut = place.home / "shut"
    (shut / "tool" / "bin").mkdir(parents=True)
    shut.chmod(0)
    try:
        assert survey_paths(replace(place.terms, path=f"{shut}/tool/bin:/usr/bin")).hidden
    finally:
        shut.chmod(0o700)


@boxed
async def test_the_whole_home_as_a_workspace_still_has_its_secrets_hidden(place: Place, runner: RunnerClient) -> None:
    (place.home / "notes").write_text("mine")
    rights = replace(place.rights(), workspace=place.home)
    order = replace(place.order("cat notes .ssh/id_rsa; ls -A .ssh"), cwd=str(place.home))
    found = await JournaledCommands(runner, f"caps{os.getpid()}", rights).run(order, lambda _: None)
    assert isinstance(found, CommandResult)
    assert b"mine" in found.head
    assert b"the key" not in found.head


def test_secrets_in_a_workspace_are_found_and_examples_are_not(tmp_path: Path) -> None:
    for name in (".env", ".env.example", "a/b/.env.local", "node_modules/x/.env", "a/id_rsa", "real", "src/main.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / ".envrc").symlink_to(tmp_path / "real")
    (tmp_path / ".netrc").symlink_to("/etc/passwd")
    found = {
        os.path.relpath(path, tmp_path) for path in SecretFileScanner(SECRET_FILE_NAMES).secret_files(str(tmp_path))
    }
    assert found == {".env", "a/b/.env.local", "a/id_rsa", "real"}


def test_a_worktree_is_believed_only_if_its_repository_knows_it(tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    main, work = tmp_path / "main", tmp_path / "work"
    subprocess.run([*git, "init", "-q", str(main)], check=True)
    subprocess.run([*git, "-C", str(main), "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    subprocess.run([*git, "-C", str(main), "worktree", "add", "-q", str(work)], check=True)
    assert ("--bind-fd", f"{main}/.git") in list(git_mounts.repository_mounts(str(work), "/nowhere", settings=False))
    secret = tmp_path / "secret"
    secret.mkdir()
    (work / ".git").write_text(f"gitdir: {secret}\n")
    assert list(git_mounts.repository_mounts(str(work), "/nowhere", settings=False)) == []


def test_a_link_in_place_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to("/etc")
    assert list(git_mounts.repository_mounts(str(tmp_path), "/nowhere", settings=False)) == []


def test_programs_under_the_home_folder_are_seen_and_their_secrets_are_not(place: Place) -> None:
    for name in (".cargo/bin", ".cargo/registry", "venv/bin", "venv/lib", "scripts"):
        (place.home / name).mkdir(parents=True)
    (place.home / ".cargo" / "credentials.toml").touch()
    found = survey_paths(replace(place.terms, path=f"{place.home}/venv/bin:{place.home}/scripts:{place.home}/.ssh"))
    shown = {os.path.relpath(path, place.home) for path in found.shown if path.startswith(str(place.home))}
    assert shown == {".cargo", "venv", "scripts"}
    assert f"{place.home}/.cargo/credentials.toml" in found.secret


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_whole_program(machine: str) -> None:
    program = seccomp.build_filter(machine)
    assert len(program) % 8 == 0
    assert len(program) // 8 < 255  # a jump is one byte


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert seccomp.build_filter("vax") == b""


async def spoken(way: SandboxProxy, request: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(way.folder / SOCKET))
    writer.write(request)
    writer.write_eof()
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.fixture
async def origin() -> AsyncGenerator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + head)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("hosts", [("127.0.0.1",), ("127.0.0.1", "*.example.test")])
async def test_only_listed_hosts_are_reached(tmp_path: Path, origin: int, hosts: tuple[str, ...]) -> None:
    way = SandboxProxy(tmp_path / "n", hosts, Proxies())
    await way.open()
    plain = await spoken(
        way, b"GET http://127.0.0.1:%d/a?b HTTP/1.1\r\nHost: x\r\nProxy-Authorization: s\r\n\r\n" % origin
    )
    tunnel = await spoken(way, b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n" % origin)
    other = await spoken(way, b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")
    broken = [await spoken(way, each) for each in (b"nonsense\r\n\r\n", b"GET ftp://a/ HTTP/1.1\r\n\r\n", b"\r\n\r\n")]
    assert b"GET /a?b HTTP/1.1" in plain
    assert b"Proxy-Authorization" not in plain
    assert b"200 Connection established" in tunnel
    assert b"200 OK" in tunnel
    assert b"evil.test is not on the list: sandbox.hosts" in other
    assert all(b" 400 " in each for each in broken)
    assert way.drain_refused() == ["evil.test"]
    await way.close()


async def test_a_listed_name_does_not_lead_home(tmp_path: Path, origin: int) -> None:
    way = SandboxProxy(tmp_path / "n", ("localhost",), Proxies())
    await way.open()
    said = await spoken(way, b"GET http://localhost:%d/ HTTP/1.1\r\n\r\n" % origin)
    assert b"not a public address" in said
    await way.close()


async def test_the_list_is_refused_where_it_makes_no_sense() -> None:
    assert parse_hosts(["example.org", "*.github.com", "10.0.0.0/8", "127.0.0.1:80"])
    with pytest.raises(UserError, match=r"sandbox\.hosts: 'a b' is neither"):
        parse_hosts(["a b"])
