"""Rules, approvals and explanations, through the installed program."""

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


async def test_a_person_changes_the_command_before_it_runs(sylph: Sylph, model: Model) -> None:
    server = await model([call("shell", command="touch wrong"), say("All right.")])
    terminal = await sylph.open("touch it")
    await terminal.see("[e] change it")
    terminal.type("e")
    await terminal.see("the command to run instead:")
    terminal.type("touch right\n")
    await terminal.see("All right.")
    assert await terminal.end() == 0
    assert [path.name for path in sylph.workspace.iterdir()] == ["right"]
    assert "the user changed the arguments" in str(server.requests[1].json["messages"][-1])


async def test_a_long_task_asks_a_handful_of_times(sylph: Sylph, model: Model) -> None:
    rounds = [calls(*(("write", {"path": f"{n}/{m}", "content": "x"}) for m in range(5))) for n in range(4)]
    await model([*rounds, say("Twenty files.")])
    terminal = await sylph.open("write twenty files")
    await terminal.see("May write run 5 times?")
    await terminal.see("[a] yes, for this session")
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
    chat.type("y\r")
    await chat.see("May shell run?")
    chat.type("n not that\r")
    await chat.see("Both.")
    chat.type("\x04")
    assert await chat.end() == 0
    assert [path.name for path in sylph.workspace.iterdir()] == ["a"]
