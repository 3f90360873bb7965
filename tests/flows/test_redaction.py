"""Secrets with the real program: what the model, the log, the person and the files get of them."""

import msgspec
import pytest
from tests.flows.program import Model, Sylph, killed
from tests.model_server import Asked, Step, call, say
from tests.patience import eventually, waiting

from sylph.engine.redact.vault import SecretVault

KEY = "sk-proj-abcDEF123456789012345678"
ENV = f"OPENAI_API_KEY={KEY}\nDEBUG=1\n"


def stored(sylph: Sylph) -> bytes:
    return b"".join(path.read_bytes() for path in (sylph.home / "sylph").rglob("*") if path.is_file())


def configure(sylph: Sylph, text: str) -> None:
    with (sylph.home / "sylph" / "config.toml").open("a") as file:
        file.write(text)


def placeholder(asked: Asked) -> str:
    """The first placeholder that the model was sent."""
    text = msgspec.json.encode(asked.json).decode()
    at = text.index("⟦secret:")
    return text[at : text.index("⟧", at) + 1]


async def test_the_model_sees_a_placeholder_and_the_person_the_key(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "settings.txt").write_text(ENV)

    def script(asked: Asked) -> Step:
        if b"secret:openai-key" not in asked.body:
            return call("read", path="settings.txt")
        return say(f"Your key is {placeholder(asked)}.")

    server = await model(script)
    done = await sylph.run("what is my key?")
    assert done.out == f"Your key is {KEY}.\n"
    assert not any(KEY.encode() in request.body for request in server.requests)
    assert KEY.encode() not in stored(sylph)
    shown = await sylph.run("session", "show", "last", "--full")
    assert "⟦secret:openai-key:" in shown.out
    assert KEY not in shown.out
    export = await sylph.run("session", "export", "last")
    assert KEY not in export.out
    assert (await sylph.run("replay", "last")).code == 0


async def test_a_json_trace_holds_no_secret_that_the_model_says(sylph: Sylph, model: Model) -> None:
    await model([say(f"Take {KEY}, it is good.")])
    done = await sylph.run("--json", "make up a key")
    assert KEY not in done.out
    said = "".join(event["data"]["text"] for event in done.events if event["type"] == "delta.text")
    assert said.startswith("Take ⟦secret:openai-key:")
    assert (await sylph.run("make up a key")).err.count(KEY) == 0


SETTINGS = {
    "email": ("email = true", "write to ann@example.org", "ann@example.org"),
    "ip": ("ip = true", "look at 203.0.113.77", "203.0.113.77"),
    "entropy": ("entropy = true", "it is Zk3vQ9xWb7Lm2Np5Rt8YcDfHjKa4", "Zk3vQ9xWb7Lm2Np5Rt8YcDfHjKa4"),
    "patterns": ('patterns.badge = "EMP-[0-9]{6}"', "badge EMP-123456", "EMP-123456"),
    "literals": ('literals = ["blue moon rises"]', "the blue moon rises", "blue moon rises"),
    "variables": ('variables = ["PLAIN"]', "my plainvalue here", "plainvalue"),
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_every_kind_of_secret_can_be_opted_into(sylph: Sylph, model: Model, name: str) -> None:
    line, said, secret = SETTINGS[name]
    server = await model([say("Yes."), say("Yes.")])
    sylph.environ["PLAIN"] = "plainvalue"
    await sylph.run(said)
    configure(sylph, f"[redact]\n{line}\n")
    done = await sylph.run(said)
    assert done.code == 0, done.err
    assert secret in server.requests[0].users[0]
    assert secret not in server.requests[1].users[0]
    assert "⟦secret:" in server.requests[1].users[0]


async def test_it_can_be_switched_off_and_told_what_to_leave_alone(sylph: Sylph, model: Model) -> None:
    server = await model([say("Yes.")] * 3)
    await sylph.run(f"use {KEY}")
    configure(sylph, f'[redact]\nallow = ["{KEY[:8]}.*"]\n')
    await sylph.run(f"use {KEY}")
    configure(sylph, "enabled = false\n")
    await sylph.run("use sk-proj-otherABC123456789012345678")
    assert [KEY in request.users[0] for request in server.requests] == [False, True, False]
    assert "sk-proj-otherABC123456789012345678" in server.requests[2].users[0]


async def test_values_in_the_config_are_masked_where_it_is_shown(sylph: Sylph) -> None:
    configure(sylph, '[redact]\nliterals = ["a long value that nobody sees", "short one"]\n')
    for shown in (
        await sylph.run("config"),
        await sylph.run("config", "--json"),
        await sylph.run("config", "get", "redact.literals"),
    ):
        assert (shown.code, "nobody" in shown.out, "…sees, …" in shown.out) == (0, False, True)
    assert (await sylph.run("config", "set", "redact.patterns.badge", "EMP-[0-9]+")).code == 0
    assert (await sylph.run("config", "get", "redact.patterns.badge")).out == "EMP-[0-9]+\n"


async def test_configured_keys_and_variables_are_secret_wherever_they_stand(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command="echo a-key-for-tests; echo correcthorse"), say("Yes.")])
    sylph.environ["MY_SERVICE_TOKEN"] = "correcthorse"
    await sylph.run("--mode", "trust", "print them")
    assert b"correcthorse" not in server.requests[1].body
    results = [message for message in server.requests[1].json["messages"] if message["role"] == "tool"]
    assert "a-key-for-tests" not in str(results)


async def test_a_wrong_pattern_is_refused_with_what_to_do(sylph: Sylph, model: Model) -> None:
    await model([say("Yes.")])
    configure(sylph, '[redact]\npatterns.bad = "("\n')
    done = await sylph.run("hello")
    assert done.code != 0
    assert "redact.patterns.bad" in done.err
    assert "sylph config edit" in done.err


async def test_a_killed_turn_goes_on_with_its_secrets_and_forgotten_ones_are_told(sylph: Sylph, model: Model) -> None:
    command = f"printf %s {KEY} > out.txt; {waiting('go')}"
    await model([call("shell", command=command), say("Done."), say("Again.")])
    process = await sylph.start("--mode", "trust", "write it")
    await eventually((sylph.workspace / "out.txt").exists, "the command")
    await killed(process)
    (sylph.workspace / "go").touch()
    await process.communicate()
    assert KEY.encode() not in stored(sylph)
    done = await sylph.run("resume")
    assert done.code == 0, done.err
    assert (sylph.workspace / "out.txt").read_text() == KEY
    assert KEY.encode() not in stored(sylph)


async def test_a_value_is_forgotten_in_time(sylph: Sylph, model: Model) -> None:
    await model([say("Noted.")])
    await sylph.run(f"remember {KEY}")
    vault = SecretVault(sylph.home / "sylph" / "data" / "vault", 365)
    (known,) = vault.entries
    # As if it had been met last three days ago.
    file = sylph.home / "sylph" / "data" / "vault" / "values"
    file.write_bytes(vault.encrypt_entry(msgspec.structs.replace(known, day=known.day - 3)) + b"\n")
    await model([call("write", path="x", content=f"⟦secret:openai-key:{known.tag}⟧"), say("No.")] * 2)
    configure(sylph, "[redact]\nkeep_days = 1\n")
    await sylph.run("--mode", "trust", "write it")
    assert not (sylph.workspace / "x").exists()
    (sylph.home / "sylph" / "config.toml").write_text("probe = false\n")
    await sylph.run("--mode", "trust", "write it")
    assert (sylph.workspace / "x").read_text() == KEY


async def test_an_erased_secret_is_not_kept_anywhere(sylph: Sylph, model: Model) -> None:
    await model([say("Noted."), call("write", path="x", content="?"), say("No.")])
    await sylph.run(f"remember {KEY}")
    erased = await sylph.run("erase", "last", stdin=f"{KEY}\n".encode())
    assert (erased.code, erased.out.startswith("Erased in")) == (0, True), erased.err
    text = (await sylph.run("session", "show", "last", "--events")).out
    at = text.index("⟦secret:")
    known = text[at : text.index("⟧", at) + 1]
    await model([call("write", path="x", content=known), say("No.")])
    await sylph.run("--mode", "trust", "-s", "last", "write it")
    assert not (sylph.workspace / "x").exists()
    assert "unknown_secret" in (await sylph.run("session", "show", "last", "--events")).out


@pytest.mark.lengthy
async def test_canaries_are_found_nowhere_and_without_the_veil_everywhere(sylph: Sylph) -> None:
    process = await sylph.start("prove", "secrets", "--json")
    out, err = await process.communicate()
    report = msgspec.json.decode(out)
    assert (process.returncode, [row for row in report["tried"] if not row["held"]]) == (0, []), err.decode()
    assert len(report["tried"]) >= 28
    looked = {"sent to the model", "events.db", "events.db-wal", "runs", "undo", "history", "export"}
    assert looked <= report["places"].keys()
    off = await sylph.start("prove", "secrets", "--off", "--only", "output of a command")
    out, _ = await off.communicate()
    assert off.returncode == 1
    assert b"openai-key in events.db" in out


async def test_what_is_typed_in_the_chat_is_kept_without_secrets(sylph: Sylph, model: Model) -> None:
    await model([say("Noted.")])
    (sylph.home / "sylph" / "history").write_text(f"\n# long ago\n+use {KEY}\n")
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("my A_PASSWORD='correct horse battery staple'\r")
    await chat.see("1 round")
    chat.type(f"/rename {KEY}\r")
    await chat.see("renamed: ⟦secret:openai-key:")
    chat.type(f"/mode {KEY}\r")
    await chat.see("There is no mode '⟦secret:openai-key:")
    # Not Ctrl-D: before the prompt is back, the terminal would take it for its own.
    chat.type("/quit\r")
    assert await chat.end() == 0
    file = sylph.home / "sylph" / "history"
    kept = file.read_text()
    assert (KEY in kept, "horse" in kept, kept.count("⟦secret:openai-key:")) == (False, False, 3)
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY.encode() not in stored(sylph)


async def test_a_short_password_is_hidden_where_its_assignment_shows_again(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "settings.txt").write_text("ADMIN_PASSWORD=abc123\nDEBUG=1\n")
    (sylph.workspace / "list.txt").write_text("['ADMIN_PASSWORD=abc123', 'commit abc123']\n")
    server = await model([call("read", path="settings.txt"), call("read", path="list.txt"), say("Yes.")])
    await sylph.run("look at both")
    assert b"ADMIN_PASSWORD=abc123" not in server.requests[2].body
    assert b"commit abc123" in server.requests[2].body
