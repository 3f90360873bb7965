"""Every other command of `sylph`, started for real."""

import sqlite3

import pytest
from tests.flows.program import Model, Sylph
from tests.model_server import call, say


@pytest.fixture
async def talked(sylph: Sylph, model: Model) -> Sylph:
    """Somebody has done one task."""
    (sylph.workspace / "a.txt").write_text("\n".join(f"line {number}" for number in range(20)))
    await model([call("read", path="a.txt"), say("Twenty lines.")])
    await sylph.run("how long is a.txt?")
    return sylph


async def test_version_and_help(sylph: Sylph) -> None:
    assert (await sylph.run("--version")).out.startswith("sylph 0.")
    shown = await sylph.run("--help")
    assert shown.code == 0
    assert "completion" in shown.out
    assert all(option in shown.out for option in ("-m,", "--mode", "--json", "--dry-run", "-s,", "-C,", "-q,"))


async def test_a_group_alone_explains_itself(sylph: Sylph) -> None:
    shown = await sylph.run("session")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("Usage: sylph session")


@pytest.mark.parametrize(
    "command",
    [
        "run",
        "chat",
        "resume",
        "retry",
        "session",
        "task",
        "status",
        "models",
        "config",
        "doctor",
        "verify",
        "completion",
    ],
)
async def test_every_command_explains_itself(sylph: Sylph, command: str) -> None:
    shown = await sylph.run(command, "--help")
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: sylph {command}")


async def test_sessions_are_listed_and_shown(talked: Sylph) -> None:
    (listed,) = (await talked.run("session", "list", "--json")).json
    assert listed["title"] == "how long is a.txt?"
    assert listed["turns"] == 1
    assert listed["id"] in (await talked.run("session", "list")).out
    shown = (await talked.run("session", "show", listed["id"][:5])).out
    assert "> how long is a.txt?" in shown
    assert "▸ read  a.txt  ✓" in shown
    assert "more (--full)" in shown
    assert "Twenty lines." in shown
    assert "line 19" not in shown
    assert "line 19" in (await talked.run("session", "show", "last", "--full")).out


async def test_the_events_of_a_session(talked: Sylph) -> None:
    rows = (await talked.run("session", "show", "last", "--events")).out
    assert "tool.finished" in rows
    events = (await talked.run("session", "show", "last", "--events", "--json")).events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


async def test_a_session_is_renamed_deleted_and_brought_back(talked: Sylph) -> None:
    assert (await talked.run("session", "rename", "last", "a", "new", "title")).code == 0
    (session,) = (await talked.run("session", "list", "--json")).json
    assert session["title"] == "a new title"
    assert (await talked.run("session", "delete", "last")).code == 0
    assert (await talked.run("session", "list", "--json")).json == []
    assert (await talked.run("session", "restore", session["id"])).code == 0
    assert len((await talked.run("session", "list", "--json")).json) == 1


async def test_what_is_done_to_a_session_is_told_as_json(talked: Sylph) -> None:
    (session,) = (await talked.run("session", "list", "--json")).json
    fork = (await talked.run("session", "fork", session["id"], "--json")).json["session"]
    for words, more in [
        (("rename", fork, "a", "title"), {"title": "a title"}),
        (("delete", fork), {"forever": False}),
        (("restore", fork), {}),
        (("delete", fork, "--forever", "--yes"), {"forever": True}),
    ]:
        assert (await talked.run("session", *words, "--json")).json == {"session": fork, **more}


async def test_the_last_deleted_is_restored(talked: Sylph, model: Model) -> None:
    (session,) = (await talked.run("session", "list", "--json")).json
    assert (await talked.run("session", "restore", "last")).code == 1
    refused = await talked.run("session", "restore", session["id"])
    assert refused.code == 1
    assert "is not in the trash" in refused.err
    await talked.run("session", "delete", "last")
    await model([say("Hello.")])
    await talked.run("hello")
    assert (await talked.run("session", "restore", "last")).out == f"{session['id']} is back.\n"


async def test_a_session_in_which_nothing_was_said_is_not_the_last(talked: Sylph) -> None:
    (session,) = (await talked.run("session", "list", "--json")).json
    empty = (await talked.run("session", "fork", "last", "--at", "1")).out.strip()
    assert (await talked.run("session", "show", "last", "--json")).json["id"] == session["id"]
    assert [one["id"] for one in (await talked.run("session", "list", "--json")).json] == [session["id"]]
    assert (await talked.run("session", "show", empty)).code == 0


async def test_a_wrong_config_hides_no_session(talked: Sylph) -> None:
    (talked.home / "sylph" / "config.toml").write_text("prob = true\n[limits]\nround = 3\n")
    for words in (("list",), ("show", "last"), ("export", "last")):
        done = await talked.run("session", *words)
        assert (done.code, bool(done.out)) == (0, True)
        assert "prob: there is no such key" in done.err
    first = await talked.run("config", "unset", "limits.round")
    assert first.code == 0
    assert "still wrong: prob: there is no such key" in first.err
    assert (await talked.run("config", "unset", "prob")).err == ""
    assert (await talked.run("config", "get", "limits.rounds")).code == 0


async def test_a_store_that_is_none_is_moved_away(talked: Sylph) -> None:
    (talked.home / "sylph" / "data" / "events.db").write_bytes(b"junk" * 1000)
    for suffix in ("-wal", "-shm"):
        (talked.home / "sylph" / "data" / f"events.db{suffix}").unlink(missing_ok=True)
    done = await talked.run("session", "list")
    assert done.code == 7
    doctor = await talked.run("doctor")
    for said in (done.err, doctor.out):
        assert "damaged && mv" in said
        assert "session import" in said
        assert "Run `sylph doctor`" not in said


async def test_removing_for_good_needs_a_yes(talked: Sylph) -> None:
    assert (await talked.run("session", "delete", "last", "--forever")).code == 3
    assert (await talked.run("session", "delete", "last", "--forever", "--yes")).code == 0
    assert (await talked.run("session", "list", "--json")).json == []


async def test_a_fork_stands_below_its_parent(talked: Sylph) -> None:
    (parent,) = (await talked.run("session", "list", "--json")).json
    child = (await talked.run("session", "fork", "last", "--at", "3")).out.strip()
    rows = (await talked.run("session", "tree")).out.splitlines()
    assert rows[0].startswith(parent["id"])
    assert rows[1].startswith(f"└─ {child}  at 3")


async def test_a_session_goes_out_and_comes_in_again(talked: Sylph) -> None:
    (session,) = (await talked.run("session", "list", "--json")).json
    exported = (await talked.run("session", "export", "last")).out
    await talked.run("session", "delete", "last", "--forever", "--yes")
    done = await talked.run("session", "import", "-", stdin=exported.encode())
    assert done.out.strip() == session["id"]
    assert (await talked.run("session", "export", "last")).out == exported
    assert (await talked.run("verify")).code == 0


async def test_an_export_does_not_overwrite(talked: Sylph) -> None:
    assert (await talked.run("session", "export", "last", "-o", "x.ndjson")).code == 0
    assert (await talked.run("session", "export", "last", "-o", "x.ndjson")).code == 2


async def test_tasks(talked: Sylph) -> None:
    (task,) = (await talked.run("task", "list", "--json")).json
    assert (task["outcome"], task["answer"], task["rounds"]) == ("finished", "Twenty lines.", 2)
    assert "Twenty lines." in (await talked.run("task", "show", task["id"])).out
    assert "▸ read  a.txt" in (await talked.run("task", "replay", task["session"])).out
    assert (await talked.run("task", "show", f"{task['session']}.9")).code == 1


async def test_status(talked: Sylph) -> None:
    told = (await talked.run("status", "--json")).json
    assert told["model"] == "openai/scripted"
    assert told["providers"][0]["reachable"] is True
    assert (told["sessions"], told["turns"], told["interrupted"]) == (1, 1, [])
    assert "20 tokens in" in (await talked.run("status")).out


async def test_models(sylph: Sylph, model: Model) -> None:
    await model([])
    (only,) = (await sylph.run("models", "--json")).json
    assert (only["id"], only["default"]) == ("openai/scripted", True)
    assert "* openai/scripted" in (await sylph.run("models")).out


async def test_no_models(sylph: Sylph) -> None:
    assert (await sylph.run("models")).code == 4


async def test_the_doctor_is_content(talked: Sylph) -> None:
    told = await talked.run("doctor", "--json")
    assert told.code == 0
    assert {one["what"] for one in told.json["findings"]} >= {"home", "disk", "config", "store", "models"}
    assert "ok    store" in (await talked.run("doctor")).out


async def test_the_doctor_works_though_the_config_is_wrong(sylph: Sylph) -> None:
    (sylph.home / "sylph" / "config.toml").write_text("mode = 'fast'\n")
    told = await sylph.run("doctor")
    assert told.code == 1
    assert "fail  config" in told.out
    assert "must be one of trust" in told.out


async def test_the_doctor_reads_the_rules(talked: Sylph) -> None:
    for file in (talked.home / "sylph" / "rules.toml", talked.workspace / ".sylph" / "rules.toml"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("rules = 5")
        told = await talked.run("doctor")
        assert (told.code, "fail  rules" in told.out, str(file) in told.out) == (1, True, True)
        file.unlink()


async def test_the_doctor_names_a_service_that_does_not_answer(sylph: Sylph) -> None:
    told = await sylph.run("doctor", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert told.code == 1
    assert "fail  models" in told.out


async def test_a_changed_log_is_found(talked: Sylph) -> None:
    assert "every chain holds" in (await talked.run("verify")).out
    with sqlite3.connect(talked.home / "sylph" / "data" / "events.db") as store:
        store.execute("update event set data = replace(data, 'Twenty', 'Thirty') where type = 'model.responded'")
    store.close()
    told = await talked.run("verify")
    assert told.code == 7
    assert "is not what was written" in told.err
    assert (await talked.run("verify", "--json")).json[0]["ok"] is False


async def test_config_is_shown_with_where_it_comes_from(sylph: Sylph) -> None:
    told = (await sylph.run("config", "--json", OPENAI_API_KEY="sk-very-secret-indeed", SYLPH_MODEL="a/b")).json
    assert told["model"] == {"value": "a/b", "from": "SYLPH_MODEL"}
    assert told["mode"] == {"value": "ask", "from": "default"}
    assert told["probe"]["from"].endswith("config.toml")
    assert told["providers.openai.api_key"]["value"] == "…deed"


async def test_config_is_changed_and_keeps_its_comments(sylph: Sylph) -> None:
    file = sylph.home / "sylph" / "config.toml"
    file.write_text("# mine\nprobe = false  # no\n")
    assert (await sylph.run("config", "set", "limits.rounds", "7")).code == 0
    assert (await sylph.run("config", "get", "limits.rounds")).out == "7\n"
    assert file.read_text().startswith("# mine\nprobe = false  # no\n")
    assert file.stat().st_mode & 0o777 == 0o600
    told = (await sylph.run("config", "set", "limits.rounds", "7", "--json")).json
    assert told == {"key": "limits.rounds", "file": str(file)}
    assert (await sylph.run("config", "unset", "limits.rounds")).code == 0
    assert (await sylph.run("config", "get", "limits.rounds")).out != "7\n"


async def test_a_wrong_value_is_not_written(sylph: Sylph) -> None:
    file = sylph.home / "sylph" / "config.toml"
    before = file.read_text()
    assert (await sylph.run("config", "set", "limits.rounds", "0")).code == 2
    assert "Did you mean 'limits.rounds'?" in (await sylph.run("config", "set", "limts.rounds", "1")).err
    assert file.read_text() == before


async def test_config_is_edited_and_checked(sylph: Sylph) -> None:
    assert (await sylph.run("config", "edit", EDITOR="sed -i 's/probe.*/probe = true/'")).code == 0
    assert (await sylph.run("config", "get", "probe")).out == "true\n"
    wrong = await sylph.run("config", "edit", EDITOR="sed -i 's/probe.*/prob = true/'")
    assert wrong.code == 2
    assert "Did you mean 'probe'?" in wrong.err
    assert (await sylph.run("config", "get", "probe")).out == "true\n"


async def test_a_wrong_file_is_named(sylph: Sylph) -> None:
    (sylph.home / "sylph" / "config.toml").write_text("[limits]\nround = 3\n")
    done = await sylph.run("a task")
    assert done.code == 2
    assert "config.toml: limits.round: there is no such key. Did you mean 'rounds'?" in done.err
    assert (await sylph.run("config", "path")).code == 0


async def test_completion(talked: Sylph) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_SYLPH_COMPLETE" in (await talked.run("completion", shell)).out
    done = await talked.run(_SYLPH_COMPLETE="bash_complete", COMP_WORDS="sylph session sh", COMP_CWORD="2")
    assert done.out == "plain,show\n"
    (session,) = (await talked.run("session", "list", "--json")).json
    done = await talked.run(_SYLPH_COMPLETE="bash_complete", COMP_WORDS="sylph session show ", COMP_CWORD="3")
    assert f"plain,{session['id']}" in done.out


async def test_a_missing_id_without_a_terminal_is_a_usage_error(talked: Sylph) -> None:
    for words in (("session", "show"), ("task", "show"), ("session", "export")):
        done = await talked.run(*words)
        assert done.code == 2
        assert "last" in done.err


async def test_an_unknown_id(talked: Sylph) -> None:
    assert (await talked.run("session", "show", "zzz")).code == 1
    assert (await talked.run("session", "sho")).code == 2


async def test_light_commands_import_no_heavy_library(sylph: Sylph, model: Model) -> None:
    await model([say("Hello.")])
    done = await sylph.run("-m", "openai/scripted", "hello", PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip() for line in done.err.splitlines() if "|" in line}
    assert "sylph.engine.runtime.runtime" in imported
    assert not imported & {"rich", "prompt_toolkit", "tomlkit", "httpx"}


async def test_the_version_imports_next_to_nothing(sylph: Sylph) -> None:
    done = await sylph.run("--version", PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip() for line in done.err.splitlines() if "|" in line}
    assert {name for name in imported if name.startswith("sylph")} == {"sylph", "sylph.__main__"}
    assert not imported & {"click", "asyncio", "msgspec"}
