"""The sandbox, through the program as a user starts it."""

import asyncio
import sys

import pytest
from tests.flows.program import Done, Model, Sylph
from tests.flows.told import results
from tests.model_server import call, say

from sylph.engine.sandbox.layer_probe import LayerProbe, landlock_abi

LAYER = LayerProbe().wait_for_layer()
boxed = pytest.mark.skipif(LAYER.name != "bwrap", reason=f"no bubblewrap here: {LAYER.said}")
FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=100).read())"


def fetch(url: str) -> str:
    return f"{sys.executable} -c '{FETCH}' {url} 2>&1 | tail -1"


def configure(sylph: Sylph, text: str) -> None:
    with (sylph.home / "sylph" / "config.toml").open("a") as file:
        file.write(text)


async def prove(sylph: Sylph, *options: str) -> Done:
    process = await sylph.start("prove", "sandbox", "--json", *options)
    out, err = await process.communicate()
    return Done(process.returncode or 0, out.decode(), err.decode())


@boxed
@pytest.mark.lengthy
async def test_every_way_out_is_shut(sylph: Sylph) -> None:
    done = await prove(sylph)
    assert [one for one in done.json["tried"] if not one["held"]] == [], done.err
    assert (done.code, done.json["layer"]) == (0, "bwrap")
    assert len(done.json["tried"]) > 50


@pytest.mark.skipif(not landlock_abi(), reason="the kernel has no Landlock")
@pytest.mark.lengthy
async def test_the_weaker_layer_is_honest_about_what_it_does_not_hold(sylph: Sylph) -> None:
    done = await prove(sylph, "--layer", "landlock")
    assert [one for one in done.json["tried"] if one["expected"] and not one["held"]] == [], done.err
    assert (done.code, done.json["layer"]) == (0, "landlock")
    assert "weaker" in done.json["said"]
    open_ways = {one["name"] for one in done.json["tried"] if not one["held"]}
    assert "secret in the workspace" in open_ways


@boxed
async def test_a_command_stays_in_its_workspace_and_the_model_is_told_why(sylph: Sylph, model: Model) -> None:
    outside = sylph.workspace.parent / "outside"
    outside.mkdir()
    (sylph.workspace / ".env").write_text("SECRET=canary")
    server = await model(
        [
            call("shell", command=f"echo here > here; {sys.executable} -c 'print(open(chr(46) + \"env\").read())'"),
            call("shell", command=f"mkdir -p {outside}/deep; touch {outside}/x; touch /etc/x"),
            call("shell", command="python3 -c 'import urllib.request as u; u.urlopen(\"http://example.test\")'"),
            say("I stayed."),
        ]
    )
    done = await sylph.run("--mode", "trust", "try it")
    assert done.code == 0, done.err
    assert (sylph.workspace / "here").read_text() == "here\n"
    assert list(outside.iterdir()) == []
    secret, unwritable, offline = results(server)
    assert "canary" not in secret
    assert "only the workspace" in unwritable
    assert "has no network" in offline


@boxed
async def test_switched_off_it_is_said_all_the_time_and_is_a_fact(sylph: Sylph, model: Model) -> None:
    outside = sylph.workspace.parent / "outside"
    await model([call("shell", command=f"touch {outside}"), say("Done."), say("Again."), say("On.")])
    done = await sylph.run("--mode", "trust", "--sandbox", "off", "leave")
    assert outside.exists()
    assert done.err.count("sandbox off") >= 2
    assert "sandbox off" in (await sylph.run("session", "show", "last")).out
    assert (await sylph.run("session", "show", "last", "--json")).json["sandbox"] is False
    # It goes on as it was begun, and says so, until it is switched on again.
    assert "sandbox off" in (await sylph.run("-s", "last", "again")).err
    again = await sylph.run("-s", "last", "--json", "--sandbox", "on", "again")
    assert "session.sandbox" in [event["type"] for event in again.events]
    assert "sandbox off" not in (await sylph.run("session", "show", "last")).out
    assert (await sylph.run("replay", "last")).code == 0


async def test_the_chat_shows_that_it_is_off(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    terminal = await sylph.open("chat", "--sandbox", "off")
    await terminal.see("commands run with all your rights")
    await terminal.see("sandbox off> ")
    terminal.type("\x04")
    await terminal.end()


async def test_mode_sandbox_does_not_go_without_it(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    done = await sylph.run("--mode", "sandbox", "--sandbox", "off", "hello")
    assert (done.code, "cannot do without" in done.err) == (2, True)
    await sylph.run("--mode", "sandbox", "hello")
    later = await sylph.run("-s", "last", "--sandbox", "off", "hello")
    assert (later.code, "cannot do without" in later.err) == (2, True)


@boxed
async def test_the_config_switches_it_off_and_doctor_and_status_say_so(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command=f"touch {sylph.workspace.parent}/outside"), say("Done.")])
    assert "bubblewrap" in (await sylph.run("doctor")).out
    assert (await sylph.run("status", "--json")).json["sandbox"]["layer"] == "bwrap"
    assert (await sylph.run("config", "set", "sandbox.enabled", "false")).code == 0
    finding = next(one for one in (await sylph.run("doctor", "--json")).json["findings"] if one["what"] == "sandbox")
    assert (finding["grade"], "sandbox.enabled" in finding["said"]) == ("warn", True)
    assert "sandbox off" in (await sylph.run("status")).out
    assert "sandbox off" in (await sylph.run("--mode", "trust", "go")).err
    assert (sylph.workspace.parent / "outside").exists()


@boxed
async def test_neither_variables_nor_files_of_the_workspace_switch_it_off(sylph: Sylph, model: Model) -> None:
    outside = sylph.workspace.parent / "outside"
    off = "[sandbox]\nenabled = false\n"
    for name in ("config.toml", ".sylph/config.toml", "sylph.toml"):
        path = sylph.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(off)
    env = {"SANDBOX": "off", "BWRAP": "off", "LD_PRELOAD": "/nowhere.so"}
    await model([call("shell", command=f"touch {outside}", env=env), say("No.")])
    await sylph.run("--mode", "trust", "leave", SYLPH_SANDBOX="off")
    assert not outside.exists()


async def test_leaving_for_one_command_is_a_persons_to_allow(sylph: Sylph, model: Model) -> None:
    outside = sylph.workspace.parent / "outside"
    server = await model([call("shell", command=f"touch {outside}", outside=True), say("No.")])
    done = await sylph.run("leave")
    assert done.code == 3
    assert not outside.exists()
    assert "not permitted" in results(server)[0]


@boxed
async def test_a_person_lets_one_command_out(sylph: Sylph, model: Model) -> None:
    outside = sylph.workspace.parent / "outside"
    leave = f"touch {outside}"
    await model([call("shell", command=leave, outside=True), call("shell", command=f"touch {outside}2"), say("Done.")])
    terminal = await sylph.open("leave")
    await terminal.see("outside of the sandbox:")
    await terminal.see("[n] no")
    terminal.type("y")
    await terminal.see("[n] no", times=2)
    terminal.type("y")
    assert await terminal.end() == 0
    assert [path.name for path in sylph.workspace.parent.glob("outside*")] == ["outside"]


@boxed
async def test_a_list_of_hosts_is_kept(sylph: Sylph, model: Model) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    there = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = there.sockets[0].getsockname()[1]
    await sylph.run("config", "set", "sandbox.network", "hosts")
    await sylph.run("config", "set", "sandbox.hosts", "127.0.0.1, *.example.test")
    server = await model(
        [
            call("shell", command=fetch(f"http://127.0.0.1:{port}/")),
            call("shell", command=fetch("http://evil.test/") + "; exit 1"),
            call("job", action="start", command=fetch(f"http://127.0.0.1:{port}/")),
            call("job", action="wait", id="t1_c3", seconds=100),
            say("Done."),
        ]
    )
    done = await sylph.run("--mode", "trust", "fetch")
    assert done.code == 0, done.err
    listed, other, _, job = results(server)
    assert "b'hi'" in listed
    assert "evil.test is not on the list: sandbox.hosts" in other
    assert "b'hi'" in job
    assert "127.0.0.1, *.example.test" in (await sylph.run("doctor")).out
    there.close()


@boxed
async def test_limits_come_from_the_config(sylph: Sylph, model: Model) -> None:
    configure(sylph, "[limits]\ncommand_cpu = 0.4\ncommand_processes = 30\ncommand_file_size = 1\ncommand_files = 64\n")
    configure(sylph, "command_output = 0.01\n")
    server = await model(
        [
            call("shell", command="while :; do :; done"),
            call("shell", command="for i in $(seq 60); do sleep 3 & done; wait"),
            call("shell", command="head -c 3000000 /dev/zero > big; wc -c < big; ulimit -n"),
            call("shell", command="head -c 100000 /dev/zero | tr '\\0' x"),
            say("Done."),
        ]
    )
    await sylph.run("--mode", "trust", "use it up")
    cpu, many, size, output = results(server)
    assert "too much processor time" in cpu
    assert "too many processes" in many or "fork" in many
    assert "1000000\n64" in size.replace("999936", "1000000")
    assert "bytes dropped" in output


@boxed
async def test_hidden_names_are_the_users_to_choose(sylph: Sylph, model: Model) -> None:
    readable = sylph.home / "library"
    readable.mkdir()
    (readable / "book").write_text("a story")
    (sylph.workspace / "mine.secret").write_text("canary")
    configure(sylph, f'[sandbox]\nhide = ["*.secret"]\nread = ["{readable}"]\n')
    server = await model([call("shell", command=f"cat mine.secret; cat {readable}/book; ls -A ~"), say("Done.")])
    await sylph.run("--mode", "trust", "read")
    assert "canary" not in results(server)[0]
    assert "a story" in results(server)[0]
