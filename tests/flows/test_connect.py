"""`sylph connect`: keys through the real program, from the prompt to the wire."""

import json
from pathlib import Path

import pytest
from tests.flows.program import Done, Model, Sylph
from tests.flows.told import results
from tests.model_server import Asked, ModelServer, call, calls, say
from tests.oauth_server import OAuthServer, error, html, said

KEY = "gsk-canary-0123456789abcdef"
ROOT = Path(__file__).parents[2]


def configure(sylph: Sylph, *tables: str) -> None:
    (sylph.home / "sylph" / "config.toml").write_text("probe = false\n" + "".join(tables))


def at(server: ModelServer | OAuthServer, provider: str = "groq", dialect: str = "chat") -> str:
    url = server.url if isinstance(server, ModelServer) else f"{server.url}/v1"
    return f'[providers.{provider}]\nbase_url = "{url}"\ndialect = "{dialect}"\n'


def connected(sylph: Sylph, server: ModelServer) -> None:
    configure(sylph, at(server))
    sylph.environ.clear()


async def save(sylph: Sylph, *more: str, key: str = KEY, **env: str) -> Done:
    return await sylph.run("connect", "groq", "--stdin", *more, stdin=f"{key}\n".encode(), **env)


def bearer(asked: Asked) -> str:
    return asked.headers["authorization"].removeprefix("Bearer ")


def credentials(sylph: Sylph) -> str:
    folder = sylph.home / "sylph" / "credentials"
    return "".join(path.read_text() for path in sorted(folder.iterdir()) if path.is_file())


async def test_a_key_is_saved_shown_used_and_forgotten(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    connected(sylph, server)
    done = await save(sylph)
    assert done.code == 0, done.err
    assert "the key …cdef is kept in a file that only you can read" in done.out
    assert "1 model can be used" in done.out
    assert (await sylph.run("-m", "groq/scripted", "hi")).out == "Hello.\n"
    assert bearer(server.requests[0]) == KEY
    shown = [
        await sylph.run(*words)
        for words in (("connect", "status"), ("doctor",), ("models",), ("config",), ("session", "export", "last"))
    ]
    assert all("canary" not in one.out + one.err for one in shown)
    assert all("a saved key (…cdef) in Sylph's credentials" in one.out + one.err for one in shown[:3])
    (row,) = (await sylph.run("connect", "status", "--json")).json["connected"]
    assert (row["provider"], row["kind"], row["key"], row["used"]) == ("groq", "key", "…cdef", True)
    assert (await sylph.run("models", "--json")).json[0]["key_from"] == row["key_from"]
    assert "The key of groq is forgotten." in (await sylph.run("disconnect", "groq")).out
    assert (await sylph.run("connect", "status", "--json")).json["connected"] == []
    assert "canary" not in credentials(sylph)
    again = await sylph.run("disconnect", "groq")
    assert (again.code, "Nothing of 'groq' is stored" in again.err) == (1, True)


async def test_a_key_that_the_service_refuses_is_not_kept(sylph: Sylph) -> None:
    async with OAuthServer() as server:
        configure(sylph, at(server))
        for answer, words in ((error("bad", 401, message=f"no: {KEY}"), "does not accept"), (html(502), "--no-check")):
            server.trouble["v1/models"] = [answer]
            done = await save(sylph)
            assert done.code == 1
            assert words in done.err
            assert "The key was not kept" in done.err
            assert "canary" not in done.err
        assert (await sylph.run("connect", "status", "--json")).json["connected"] == []
        assert (await save(sylph, "--no-check")).code == 0


async def test_a_service_that_shows_its_models_to_everybody_is_asked_about_the_key(sylph: Sylph) -> None:
    async with OAuthServer() as server:
        configure(sylph, at(server, "openrouter"))
        server.trouble["v1/key"] = [error("bad", 401)]
        server.trouble["v1/models"] = [said(data=[{"id": "m"}])]
        done = await sylph.run("connect", "openrouter", "--stdin", stdin=b"wrong-key")
        assert (done.code, "The key was not kept" in done.err) == (1, True)


@pytest.mark.parametrize("key", ["", "x" * 20_000 + "\x07 ☃"])
async def test_what_is_no_key_is_refused(sylph: Sylph, key: str) -> None:
    done = await save(sylph, "--no-check", key=key)
    assert done.code == 2
    assert not (sylph.home / "sylph" / "credentials").exists()


async def test_a_key_is_typed_unseen(sylph: Sylph, model: Model) -> None:
    connected(sylph, await model([]))
    terminal = await sylph.open("connect", "groq")
    await terminal.see("The key of Groq")
    terminal.type(f"{KEY}\n")
    await terminal.see("is kept in")
    assert await terminal.end() == 0
    assert "canary" not in terminal.raw
    done = await sylph.run("connect", "groq")
    assert (done.code, "--stdin" in done.err) == (2, True)


async def test_the_environment_comes_first_and_is_told(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    connected(sylph, server)
    done = await save(sylph, GROQ_API_KEY="from-the-environment")
    assert "GROQ_API_KEY is set too, and comes before it" in done.err
    await sylph.run("-m", "groq/scripted", "hi", GROQ_API_KEY="from-the-environment")
    assert bearer(server.requests[0]) == "from-the-environment"


async def test_a_key_is_sent_only_to_the_address_it_was_given_for(sylph: Sylph, model: Model) -> None:
    first, other = await model([say("Hello.")]), await model([say("Hello.")])
    connected(sylph, first)
    await save(sylph)
    configure(sylph, at(other))
    done = await sylph.run("-m", "groq/scripted", "hi")
    assert done.out == "Hello.\n"
    assert "authorization" not in other.requests[0].headers


async def test_a_damaged_credential_hurts_nobody_else(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    configure(sylph, at(server), at(server, "mine"))
    await save(sylph)
    (sylph.home / "sylph" / "credentials" / "groq.key.json").write_text("{")
    assert (await sylph.run("-m", "mine/scripted", "hi")).out == "Hello.\n"
    done = await sylph.run("-m", "groq/scripted", "hi")
    assert done.code == 4
    assert "groq.key.json cannot be used: it is damaged" in done.err
    assert "damaged" in (await sylph.run("connect", "status")).out
    assert "fail  keys" in (await sylph.run("doctor")).out
    assert (await sylph.run("disconnect", "groq")).code == 0


async def test_no_tool_and_no_command_reads_the_credentials(sylph: Sylph, model: Model) -> None:
    path = sylph.home / "sylph" / "credentials" / "groq.key.json"
    link = sylph.workspace / "link"
    link.symlink_to(path.parent)
    tries = [
        ("read", {"path": str(path)}),
        ("read", {"path": "link/groq.key.json"}),
        ("grep", {"pattern": "canary", "path": str(path.parent)}),
        ("shell", {"command": f"cat {path} {path.parent}/*; grep -r canary {sylph.home}; cat link/*"}),
        ("shell", {"command": "tr '\\0' '\\n' < /proc/$PPID/environ; env"}),
        ("python", {"code": f"print(open({str(path)!r}).read())"}),
    ]
    server = await model([calls(*tries), say("I could not.")])
    connected(sylph, server)
    # Otherwise this would show only that what is read is hidden from the model.
    configure(sylph, at(server), "[redact]\nenabled = false\n")
    await save(sylph, SYLPH_PASSPHRASE="canary passphrase")
    (sylph.home / "sylph" / "credentials" / "plain.key.json").write_text(json.dumps({"secret": KEY}))
    done = await sylph.run("-m", "groq/scripted", "--mode", "trust", "steal it", SYLPH_PASSPHRASE="canary passphrase")
    told = results(server)
    assert len(told) == len(tries)
    assert not any("canary-" in one or "canary pass" in one for one in told), told
    assert "canary-" not in done.out + done.err


async def test_a_saved_key_that_a_tool_prints_does_not_reach_the_model(sylph: Sylph, model: Model) -> None:
    key = "plain-looking-saved-thing"
    server = await model([call("shell", command="cat notes"), say("Fine.")])
    connected(sylph, server)
    (sylph.workspace / "notes").write_text(f"it is {key}\n")
    await save(sylph, key=key)
    await sylph.run("-m", "groq/scripted", "--mode", "trust", "look")
    assert key not in server.requests[1].body.decode()
    assert "it is" in results(server)[0]


async def test_with_a_passphrase_keys_are_sealed(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello."), say("Again."), say("Once more.")])
    connected(sylph, server)
    run = ("-m", "groq/scripted", "hi")
    assert "sealed with your passphrase" in (await save(sylph, SYLPH_PASSPHRASE="correct horse")).out
    assert "canary" not in credentials(sylph)
    assert (await sylph.run(*run, SYLPH_PASSPHRASE="correct horse")).out == "Hello.\n"
    wrong = await sylph.run(*run, SYLPH_PASSPHRASE="wrong horse")
    assert (wrong.code, "That is not the passphrase" in wrong.err) == (1, True)
    assert "nobody gave the passphrase" in (await sylph.run(*run)).err
    short = await sylph.run("connect", "passphrase", "--stdin", stdin=b"short\n", SYLPH_PASSPHRASE="correct horse")
    assert (short.code, "8 characters" in short.err) == (2, True)
    changed = await sylph.run(
        "connect", "passphrase", "--stdin", stdin=b"battery staple\n", SYLPH_PASSPHRASE="correct horse"
    )
    assert "The passphrase is changed" in changed.out
    terminal = await sylph.open("chat", "-m", "groq/scripted")
    await terminal.see("The passphrase of your credentials")
    terminal.type("battery staple\n")
    await terminal.see("> ")
    terminal.type("hi\r")
    await terminal.see("Again.")
    await terminal.see("1 round")
    terminal.type("/quit\r")
    assert await terminal.end() == 0
    assert "battery" not in terminal.raw
    gone = await sylph.run("connect", "passphrase", "--remove", SYLPH_PASSPHRASE="battery staple")
    assert "1 credential opened" in gone.out
    assert (await sylph.run(*run)).out == "Once more.\n"


async def test_the_keyring_of_the_system_is_used_where_there_is_one(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    connected(sylph, server)
    ring = sylph.home / "ring"
    sylph.environ.update(
        PYTHONPATH=str(ROOT), PYTHON_KEYRING_BACKEND="tests.keyring_backend.FileKeyring", TEST_KEYRING=str(ring)
    )
    assert "kept in the system's keyring (a keyring for tests)" in (await save(sylph)).out
    assert "canary" not in credentials(sylph)
    assert KEY in ring.read_text()
    assert (await sylph.run("-m", "groq/scripted", "hi")).out == "Hello.\n"
    ring.with_suffix(".locked").touch()
    locked = await sylph.run("-m", "groq/scripted", "hi")
    assert (locked.code, "unlock the keyring" in locked.err) == (4, True)
    ring.with_suffix(".locked").unlink()
    await sylph.run("disconnect", "groq")
    assert "canary" not in ring.read_text()
    configure(sylph, at(server), '[credentials]\nkeep = "file"\n')
    assert "a file that only you can read" in (await save(sylph)).out


async def test_other_tools_logins_are_read_only_after_a_yes(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello."), say("Hello.")])
    configure(sylph, at(server, "openai"))
    sylph.environ.clear()
    theirs = sylph.home / ".codex" / "auth.json"
    theirs.parent.mkdir()
    theirs.write_text(json.dumps({"OPENAI_API_KEY": KEY, "tokens": None}))
    before = theirs.stat()
    overview = await sylph.run("connect")
    assert f"Codex CLI ({theirs}): sylph connect openai --from codex-key" in overview.out
    await sylph.run("-m", "openai/scripted", "hi")
    assert "authorization" not in server.requests[0].headers
    refused = await sylph.run("connect", "openai", "--from", "codex-key")
    assert (refused.code, "add --yes if you agree" in refused.err) == (3, True)
    terminal = await sylph.open("connect", "openai", "--from", "codex-key")
    await terminal.see("from now on?")
    terminal.type("y\n")
    assert await terminal.end() == 0
    await sylph.run("-m", "openai/scripted", "hi")
    assert bearer(server.requests[1]) == KEY
    assert (theirs.stat().st_mtime_ns, theirs.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert "canary" not in credentials(sylph)
    theirs.unlink()
    gone = await sylph.run("-m", "openai/scripted", "hi")
    assert (gone.code, "give `codex` a key" in gone.err) == (4, True)
    await sylph.run("disconnect", "openai")
    assert "the login of Codex" not in (await sylph.run("connect", "status")).out


async def test_a_forgotten_passphrase_is_no_dead_end(sylph: Sylph, model: Model) -> None:
    connected(sylph, await model([]))
    vault = sylph.home / "sylph" / "credentials" / "vault.json"
    short = await save(sylph, SYLPH_PASSPHRASE="abc")
    assert (short.code, "8 characters or more" in short.err, vault.exists()) == (2, True, False)
    await save(sylph, SYLPH_PASSPHRASE="correct horse")
    wrong = await save(sylph, SYLPH_PASSPHRASE="wrong horse")
    assert "sylph connect passphrase --forget" in wrong.err
    unasked = await sylph.run("connect", "passphrase", "--forget")
    assert (unasked.code, vault.exists()) == (3, True)
    gone = await sylph.run("connect", "passphrase", "--forget", "-y")
    assert (gone.code, gone.out) == (0, "The passphrase is forgotten. Connect these anew:\n  sylph connect groq\n")
    assert (await sylph.run("connect", "passphrase", "--forget", "-y")).code == 1
    await save(sylph, SYLPH_PASSPHRASE="correct horse")
    done = await sylph.run("disconnect", "groq", "--json")
    told = {"provider": "groq", "forgotten": ["key"], "passphrase_gone": True, "still_set": ""}
    assert (done.json, vault.exists()) == (told, False)
    assert (await save(sylph)).code == 0


async def test_a_key_for_another_address_is_told_as_that(sylph: Sylph) -> None:
    async with OAuthServer() as first, OAuthServer() as other:
        configure(sylph, at(first))
        first.trouble["v1/models"] = [said(data=[{"id": "m"}])]
        await save(sylph)
        configure(sylph, at(other))
        other.trouble["v1/chat/completions"] = [error("bad", 401)]
        done = await sylph.run("-m", "groq/m", "hi")
        assert f"No key was sent to {other.url}/v1, for a saved key (…cdef)" in done.err
        assert f"is for {first.url}/v1" in done.err
        assert f"sylph connect groq  saves a key for {other.url}/v1" in done.err
        assert "sylph config unset providers.groq.base_url" in done.err
        (row,) = (await sylph.run("connect", "status", "--json")).json["connected"]
        assert row["state"] == "for another address"
        other.trouble["v1/models"] = [said(data=[{"id": "m"}])]
        assert "no key is sent to" in (await sylph.run("models")).err


@pytest.mark.parametrize("words", [("anthropic", "sk-ant-canary"), ("sk-ant-canary",)])
async def test_a_key_as_an_argument_is_not_said_again(sylph: Sylph, words: tuple[str, ...]) -> None:
    done = await sylph.run("connect", *words)
    assert (done.code, "your shell's history" in done.err) == (2, True)
    assert "canary" not in done.out + done.err


async def test_vertex_is_not_sent_in_a_circle(sylph: Sylph) -> None:
    done = await sylph.run("connect", "vertex")
    assert "is not opened by a key" in done.err
    assert "gcloud auth print-access-token" in done.err
    assert "sylph connect vertex" not in done.err
