"""Rules, approvals and explanations, through the installed program."""

import pytest
from tests.flows.program import Model, Sylph
from tests.model_server import call, calls, say


async def test_tools_are_listed_with_what_would_be_decided(sylph: Sylph) -> None:
    listed = {tool["name"]: tool for tool in (await sylph.run("tools", "--json", "--mode", "plan")).json}
    assert (listed["read"]["effect"], listed["read"]["decision"]) == ("read", "allow")
    assert (listed["write"]["effect"], listed["write"]["decision"]) == ("write", "deny")
    assert listed["write"]["schema"]["required"] == ["path", "content"]
    told = await sylph.run("tools", "--mode", "ask")
    rows = {row.split()[0]: row.split()[3] for row in told.out.splitlines()[:-1]}
    assert (rows["write"], rows["read"]) == ("ask", "allow")
    assert "the files" in (await sylph.run("tools", "write")).out
    assert (await sylph.run("tools", "writ")).err.count("write") == 1


async def test_a_decision_is_explained_step_by_step(sylph: Sylph) -> None:
    await sylph.run("policy", "add", "deny", "--tool", "write", "--path", "secrets/**", "--why", "not yours")
    found = (await sylph.run("policy", "explain", "--json", "--mode", "trust", "write", "path=secrets/a")).json
    assert (found["decision"], found["by"], found["effect"]) == ("deny", "rule", "write")
    assert [step["by"] for step in found["path"]] == ["mode", "rule"]
    told = await sylph.run("policy", "explain", "--mode", "trust", "write secrets/a")
    assert "→ deny: your rule `deny write: path secrets/**` (not yours)" in told.out
    assert "There is no tool" in (await sylph.run("policy", "explain", "wirte x")).err


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://169.254.169.254/", "file:///etc/passwd"])
async def test_an_address_that_will_be_refused_is_explained_and_nobody_is_asked(
    sylph: Sylph, model: Model, url: str
) -> None:
    assert "will be refused: " in (await sylph.run("policy", "explain", "fetch", url)).out
    await model([call("fetch", url=url), say("No.")])
    done = await sylph.run("--mode", "ask", "--json", "fetch it")
    assert not [event for event in done.events if event.get("type") == "asked"]
    (finished,) = [event["data"] for event in done.events if event.get("type") == "tool.finished"]
    assert finished["trouble"]["kind"] in ("private_address", "bad_url")


async def test_rules_hold_in_a_turn_and_can_be_taken_back(sylph: Sylph, model: Model) -> None:
    added = await sylph.run("policy", "add", "allow", "--tool", "write", "--path", "out/**")
    assert added.code == 0, added.err
    server = await model(
        [
            call("write", path="out/a.txt", content="a"),
            call("write", path="b.txt", content="b"),
            say("One of two."),
        ]
    )
    done = await sylph.run("--mode", "ask", "write both")
    assert done.out == "One of two.\n"
    assert (sylph.workspace / "out/a.txt").read_text() == "a"
    assert not (sylph.workspace / "b.txt").exists()
    assert "nobody was there" in str(server.requests[2].json["messages"][-1])
    assert 'Forgotten: allow write: everything in "out/".' in (await sylph.run("policy", "remove", "1")).out
    assert (await sylph.run("policy", "--json")).json["rules"] == []


async def test_a_project_can_only_make_it_stricter(sylph: Sylph, model: Model) -> None:
    rules = sylph.workspace / ".sylph" / "rules.toml"
    rules.parent.mkdir()
    rules.write_text(
        '[[rules]]\ndecision = "allow"\ntool = "write"\n[[rules]]\ndecision = "deny"\npath = "gen/**"\nwhy = "made"\n'
    )
    await model([call("write", path="gen/a", content="a"), call("write", path="b", content="b"), say("No.")])
    done = await sylph.run("--mode", "ask", "--json", "write both")
    decided = [event["data"] for event in done.events if event.get("type") == "tool.decided"]
    assert [(one["decision"], one["by"]) for one in decided] == [("deny", "project"), ("deny", "nobody")]
    assert "not heeded" in (await sylph.run("policy")).out
    rules.write_text("rules = 5")
    found = (await sylph.run("policy", "explain", "--json", "--mode", "trust", "write b")).json
    assert (found["decision"], found["by"]) == ("ask", "project")
    assert "cannot be read" in found["reason"]


@pytest.mark.parametrize(
    ("path", "decision"),
    [(".env", "ask"), ("~/.ssh/config", "ask"), (".git/hooks/pre-commit", "deny"), (".sylph/rules.toml", "deny")],
)
async def test_protected_places_are_protected_in_trust_too(sylph: Sylph, path: str, decision: str) -> None:
    where = path.replace("~", str(sylph.home))
    found = (await sylph.run("policy", "explain", "--json", "--mode", "trust", f"write path={where}")).json
    assert (found["decision"], found["by"]) == (decision, "guard")


async def test_yes_from_now_on_is_shown_kept_and_not_asked_again(sylph: Sylph, model: Model) -> None:
    await model([call("write", path="a.txt", content="a"), say("Done.")])
    terminal = await sylph.open("write it")
    await terminal.see("[r] from now on: allow write: the path")
    await terminal.see("[n] no: ")
    terminal.type("r")
    await terminal.see("Done.")
    assert await terminal.end() == 0
    await model([call("write", path="a.txt", content="b"), say("Again.")])
    assert (await sylph.run("--mode", "ask", "write it again")).out == "Again.\n"
    assert (sylph.workspace / "a.txt").read_text() == "b"


async def test_a_person_changes_the_command_before_it_runs(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command="touch wrong"), say("All right.")])
    terminal = await sylph.open("touch it")
    await terminal.see("[n] no: ")
    terminal.type("e")
    await terminal.see("the command to run instead:")
    terminal.type("touch right\n")
    await terminal.see("All right.")
    assert await terminal.end() == 0
    assert [path.name for path in sylph.workspace.iterdir()] == ["right"]
    assert "the user changed the arguments" in str(server.requests[1].json["messages"][-1])
    assert "▸ shell  touch right" in terminal.text
    assert "▸ shell  touch right" in (await sylph.run("session", "show", "last")).out


async def test_in_the_chat_a_change_is_asked_for(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch wrong"), say("All right.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("touch it\r")
    await chat.see("[y] yes")
    chat.type("e\r")
    await chat.see("the command to run instead (just Enter goes back)")
    chat.type("/bin/touch right\r")
    await chat.see("▸ shell  /bin/touch right")
    await chat.see("2 rounds")
    chat.type("\x04")
    assert await chat.end() == 0
    assert [path.name for path in sylph.workspace.iterdir()] == ["right"]


async def test_closing_the_input_is_a_no_of_the_person(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="touch wrong"), say("Not done.")])
    terminal = await sylph.open("touch it")
    await terminal.see("[n] no: ")
    terminal.type("e")
    await terminal.see("the command to run instead:")
    terminal.type("\x04")
    await terminal.see("Not done.")
    assert await terminal.end() == 0
    assert "the user said no" in terminal.text
    assert "no terminal" not in terminal.text


async def test_all_of_a_long_file_can_be_viewed_before_the_answer(sylph: Sylph, model: Model) -> None:
    rows = "".join(f"row {number}\n" for number in range(300))
    await model([call("write", path="a.txt", content=rows), say("Written.")])
    terminal = await sylph.open("write it")
    await terminal.see("[n] no: ")
    assert "row 299" not in terminal.text
    terminal.type("v")
    await terminal.see("row 299")
    await terminal.see("[n] no: ", times=2)
    terminal.type("y")
    await terminal.see("Written.")
    assert await terminal.end() == 0
    assert (sylph.workspace / "a.txt").read_text() == rows


async def test_a_mode_is_not_advised_where_none_would_help(sylph: Sylph, model: Model) -> None:
    await model([call("write", path=".env", content="x"), say("No.")])
    done = await sylph.run("--mode", "trust", "write it")
    assert "1 approval answered with no: no terminal to ask on." in done.err
    assert "`--mode`" not in done.err


async def test_a_command_in_braces_is_no_json(sylph: Sylph) -> None:
    found = (await sylph.run("policy", "explain", "--json", "shell", "{ cat; } < .env")).json
    assert found["arguments"]["command"] == "{ cat; } < .env"
    bare = await sylph.run("policy", "explain", "shell")
    assert (bare.code, 'sylph policy explain shell "rm -rf build"' in bare.err) == (2, True)


async def test_rules_are_added_and_removed_as_json(sylph: Sylph) -> None:
    added = (await sylph.run("policy", "add", "deny", "--tool", "write", "--json")).json
    assert (added["rule"]["decision"], added["rule"]["tool"]) == ("deny", "write")
    assert (await sylph.run("policy", "remove", "1", "--json")).json == added


async def test_a_long_task_asks_a_handful_of_times(sylph: Sylph, model: Model) -> None:
    rounds = [calls(*(("write", {"path": f"{n}/{m}", "content": "x"}) for m in range(5))) for n in range(4)]
    await model([*rounds, say("Twenty files.")])
    terminal = await sylph.open("write twenty files")
    await terminal.see("May write run 5 times?")
    await terminal.see("[n] no: ")
    terminal.type("a")
    await terminal.see("Twenty files.")
    assert await terminal.end() == 0
    assert sum(len(list((sylph.workspace / str(n)).iterdir())) for n in range(4)) == 20
    assert terminal.text.count("May write run") == 1


async def test_in_the_chat_questions_come_one_after_the_other(sylph: Sylph, model: Model) -> None:
    await model([calls(("write", {"path": "a", "content": "x"}), ("shell", {"command": "touch b"})), say("Both.")])
    chat = await sylph.open("chat")
    await chat.see("> ")
    chat.type("do both\r")
    await chat.see("May write run?")
    await chat.see("[y] yes")
    chat.type("y\r")
    await chat.see("May shell run?")
    await chat.see("[r] yes, from now on")
    chat.type("n not that\r")
    await chat.see("Both.")
    await chat.see("2 rounds")
    chat.type("\x04")
    assert await chat.end() == 0
    assert [path.name for path in sylph.workspace.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["allow", "--command", ""], "--command is empty"),
        (["allow"], "would allow every call"),
        (["deny", "--tool", "*"], "would deny every call"),
        (["deny", "--tool", "shell", "--until", "2020-01-01"], "over already"),
    ],
)
async def test_a_rule_that_nobody_can_mean_is_refused(sylph: Sylph, words: list[str], said: str) -> None:
    done = await sylph.run("policy", "add", *words)
    assert done.code == 2
    assert said in done.err
    assert not (sylph.home / "sylph" / "rules.toml").exists()


async def test_a_forbidden_command_does_not_run_by_another_name(sylph: Sylph, model: Model) -> None:
    await sylph.run("policy", "add", "deny", "--command", "touch *")
    lines = ["touch a", "/usr/bin/touch b", "env touch c", "sh -c 'touch d'", "$(echo touch) e", "echo touch f | sh"]
    await model([*(call("shell", command=each) for each in lines), say("I could not.")])
    await sylph.run("--mode", "trust", "touch it")
    assert list(sylph.workspace.iterdir()) == []
