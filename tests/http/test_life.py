"""The life of the server: one per home, its start and its end, and what it leaves and finds."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import msgspec
import pytest
from tests.flows.program import SYLPH, Model, Sylph, finished
from tests.http.served import Served, serving
from tests.model_server import ModelServer, begin, say
from tests.patience import PATIENCE, eventually

MODEL = "openai/scripted"


async def test_one_server_per_home_and_the_second_says_where_the_first_is(served: Served) -> None:
    second = await served.sylph.run("serve", "--port", "0")
    assert second.code == 5
    assert served.url in second.err and str(served.process.pid) in second.err and "--stop" in second.err
    told = (await served.sylph.run("serve", "--status", "--json")).json
    assert (told["running"], told["pid"], told["url"]) == (True, served.process.pid, served.url)
    assert served.url in (await served.sylph.run("serve", "--status")).out
    status = await served.sylph.run("status")
    assert served.url in status.out
    assert (await served.sylph.run("status", "--json")).json["server"]["pid"] == served.process.pid
    stopped = await served.sylph.run("serve", "--stop")
    assert (stopped.code, "has ended" in stopped.out) == (0, True)
    assert (await finished(served.process)).code == 0
    assert not (served.sylph.home / "sylph" / "data" / "sylph.sock").exists()
    again = await served.sylph.run("serve", "--status")
    assert (again.code, again.out) == (1, "No server of this home runs.\n")
    assert (await served.sylph.run("serve", "--stop")).code == 0


async def test_what_a_killed_server_leaves_is_no_obstacle(sylph: Sylph, scripted: ModelServer) -> None:
    async with serving(sylph) as first:
        first.kill()
        await first.process.wait()
        assert (sylph.home / "sylph" / "data" / "sylph.sock").exists()
        # Nobody listens there any more: the command line passes it over.
        alone = await sylph.run("hello")
        assert (alone.code, alone.out.strip()) == (0, "Hello from the model.")
        async with serving(sylph) as second:
            assert (await second.client.get("/api/v1/sessions")).status_code == 200


async def test_a_turn_that_a_kill_left_open_goes_on_at_the_next_start(sylph: Sylph, model: Model) -> None:
    server = await model([begin("never all of it"), say("Here is the answer."), say("A title")])
    async with serving(sylph) as first:
        session = (await first.session(model=MODEL))["id"]
        await first.say(session, "a long task")
        await server.until(lambda: bool(server.requests))
        first.kill()
        await first.process.wait()
    async with serving(sylph) as second:
        seen = await second.until(session)
        assert any("Here is the answer." in str(event.data) for event in seen if event.type == "model.responded")


async def test_what_was_left_open_stays_open_where_that_is_configured(sylph: Sylph, model: Model) -> None:
    server = await model([begin("never all of it"), say("Here is the answer.")])
    (sylph.home / "sylph" / "config.toml").write_text("probe = false\n[server]\nresume = false\n")
    async with serving(sylph) as first:
        session = (await first.session(model=MODEL))["id"]
        await first.say(session, "a long task")
        await server.until(lambda: bool(server.requests))
        first.kill()
        await first.process.wait()
    async with serving(sylph):
        await asyncio.sleep(0.5)
        assert [one["session"] for one in (await sylph.run("status", "--json")).json["interrupted"]] == [session]
        assert len(server.requests) == 1


async def test_a_signal_ends_streams_at_once_and_leaves_turns_open_for_the_next_start(
    sylph: Sylph, model: Model
) -> None:
    server = await model([begin("never all of it"), say("Done after all."), say("A title")])
    async with serving(sylph) as first:
        session = (await first.session(model=MODEL))["id"]
        await first.say(session, "a long task")
        await server.until(lambda: bool(server.requests))
        opened = asyncio.Event()

        async def follow() -> None:
            with contextlib.suppress(httpx2.RemoteProtocolError):
                async for _ in first.events(f"/api/v1/sessions/{session}/events"):
                    opened.set()

        stream = asyncio.create_task(follow())
        async with asyncio.timeout(PATIENCE):
            await opened.wait()
            first.process.terminate()
            await stream
        assert (await finished(first.process)).code == 0
    async with serving(sylph) as second:
        seen = await second.until(session)
        assert seen[-1].data["data"]["outcome"] == "finished"


async def test_a_second_signal_ends_it_at_once(sylph: Sylph, model: Model, hearing: socket.socket) -> None:
    server = await model([begin("never all of it")])
    async with serving(sylph) as served:
        session = (await served.session(model=MODEL))["id"]
        await served.say(session, "a long task")
        await server.until(lambda: bool(server.requests))
        served.process.terminate()
        while await asyncio.to_thread(hearing.recv, 100) != b"STOPPING=1":
            pass
        served.process.terminate()
        assert (await finished(served.process)).code == 128 + signal.SIGTERM


@pytest.fixture
def hearing(sylph: Sylph, tmp_path: Path) -> Iterator[socket.socket]:
    """What a supervisor hears."""
    sylph.environ.update(NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="400000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(PATIENCE)
        yield made


async def test_a_supervisor_hears_when_it_is_ready_and_when_it_ends_and_that_it_lives(
    sylph: Sylph, scripted: ModelServer, hearing: socket.socket
) -> None:
    async with serving(sylph) as served:
        heard = [await asyncio.to_thread(hearing.recv, 100) for _ in range(3)]
        assert heard == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
        served.process.terminate()
        await finished(served.process)
        hearing.setblocking(False)
        rest: list[bytes] = []
        with pytest.raises(BlockingIOError):
            while True:
                rest.append(hearing.recv(100))
        assert b"STOPPING=1" in rest


async def test_it_takes_over_a_socket_that_listens_already(sylph: Sylph, scripted: ModelServer) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        os.set_inheritable(listening.fileno(), True)
        port = listening.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            "python", "-c", TAKING, str(listening.fileno()), SYLPH, "serve",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=sylph.env({}), cwd=sylph.workspace,
            pass_fds=[listening.fileno()],
        )  # fmt: skip
        assert process.stdout
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        process.terminate()
        await finished(process)
        assert line == f"Sylph serves at http://127.0.0.1:{port}\n"
    wrong = await sylph.run("serve", "--fd", "0")
    assert (wrong.code, "no socket" in wrong.err) == (2, True)


# As a supervisor does it: the socket is number 3, and the process itself is named.
TAKING = """
import os, sys
if sys.argv[1] != "3":
    os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


async def test_a_home_with_a_long_path_is_served_too(tmp_path: Path, scripted: ModelServer, sylph: Sylph) -> None:
    far = tmp_path / ("a-long-name" * 8) / ("another-long-name" * 6)
    shutil.copytree(sylph.home, far)
    distant = Sylph(far, sylph.workspace, sylph.environ)
    async with serving(distant) as served:
        said = await distant.run("hello")
        assert (said.code, said.out.strip()) == (0, "Hello from the model.")
        assert len((await served.client.get("/api/v1/sessions")).json()["items"]) == 1


async def test_without_its_folder_it_ends_and_says_why(sylph: Sylph, scripted: ModelServer) -> None:
    async with serving(sylph) as served:
        data = sylph.home / "sylph" / "data"
        data.rename(data.with_name("elsewhere"))
        ended = await finished(served.process)
        assert (ended.code, "removed or replaced" in ended.err) == (7, True)
        assert (data.with_name("elsewhere") / "events.db").exists()


async def test_on_a_full_disk_it_says_so_and_with_room_it_goes_on(
    sylph: Sylph, scripted: ModelServer, disk: Path
) -> None:
    sylph.environ["SYLPH_DATA"] = str(disk / "data")
    async with serving(sylph) as served:
        session = (await served.session(model=MODEL))["id"]
        filling = disk / "filling"
        with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        made = [await served.client.post("/api/v1/sessions", json={"model": MODEL}) for _ in range(40)]
        refused = [each.json() for each in made if each.status_code != 201]
        assert {each["status"] for each in refused} == {503}
        assert all("disk is full" in each["detail"] and each["next"] for each in refused)
        filling.unlink()
        assert (await served.client.post("/api/v1/sessions", json={"model": MODEL})).status_code == 201
        await served.say(session, "hello")
        assert (await served.until(session))[-1].data["data"]["outcome"] == "finished"
        assert (await sylph.run("verify")).code == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here: a really full disk was NOT tried")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_the_owners_own_way_stands_at_his_socket_only_and_takes_no_nonsense(served: Served) -> None:
    assert (await served.client.post("/own/runtime.list_sessions", content=b"\x80")).status_code == 404
    path = served.sylph.home / "sylph" / "data" / "sylph.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    over = httpx2.AsyncHTTPTransport(uds=str(path))
    async with httpx2.AsyncClient(base_url="http://sylph", transport=over, trust_env=False) as own:
        assert (await own.post("/own/runtime.list_sessions", content=b"\x80")).status_code == 200
        assert (await own.get("/api/v1/sessions")).status_code == 200
        for name, body in NONSENSE:
            refused = await own.post(f"/own/{name}", content=body)
            failure = msgspec.msgpack.decode(refused.content)
            assert (refused.status_code, bool(failure["trouble"]["message"])) == (400, True), name
            assert failure["trouble"]["kind"] in ("bad_body", "not_found"), failure
    assert (await served.client.get("/api/v1/sessions")).status_code == 200


def open_files(served: Served) -> int:
    return sum(1 for _ in Path(f"/proc/{served.process.pid}/fd").iterdir())


async def test_whoever_breaks_off_leaves_nothing_behind(served: Served) -> None:
    session = (await served.session(model=MODEL))["id"]
    path = served.sylph.home / "sylph" / "data" / "sylph.sock"
    before = open_files(served)
    wish = msgspec.msgpack.encode({"session": session, "after": 0})
    head = f"POST /own/runtime.watch HTTP/1.1\r\nHost: sylph\r\nContent-Length: {len(wish)}\r\n\r\n".encode()
    for whole in (head + wish, head + wish[:3], head[:20], b"") * 10:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(whole)
        if whole.endswith(wish):
            await reader.readuntil(b"session.created")
        writer.close()
    await eventually(lambda: open_files(served) <= before, "the files to be closed")
    assert (await served.sylph.run("session", "list")).code == 0


NONSENSE = (
    ("nothing", b""),
    ("runtime.close", b"\x80"),
    ("runtime.__init__", b"\x80"),
    ("runtime._log", b"\x80"),
    ("runtime.find_session", b""),
    ("runtime.find_session", b"\xc1"),
    ("runtime.find_session", b"\x80"),
    ("runtime.find_session", msgspec.msgpack.encode({"prefix": "last", "more": 1})),
    ("runtime.find_session", msgspec.msgpack.encode({"prefix": "no-such-session"})),
    ("runtime.send", msgspec.msgpack.encode({"session": "s", "command": ["System", {}]})),
    ("runtime.watch", b"[]"),
    ("hello", b"hello"),
)


async def test_a_unit_for_systemd(sylph: Sylph) -> None:
    unit = (await sylph.run("serve", "--unit", "--port", "8123")).out
    lines = unit.splitlines()
    assert "Type=notify" in lines and "WantedBy=default.target" in lines and "KillMode=process" in lines
    assert any(line.startswith("ExecStart=/") and line.endswith("sylph serve --port 8123") for line in lines)
    assert f'Environment="SYLPH_HOME={sylph.home}/sylph"' in lines
    assert f"WorkingDirectory={sylph.workspace}" in lines
