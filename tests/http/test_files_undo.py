"""What a person changes over HTTP is not the agent's: undo leaves it alone."""

from tests.flows.program import Model, Sylph
from tests.http.served import Served, serving
from tests.http.workspace import Workspace
from tests.model_server import call, say
from tests.patience import eventually, waiting

MODEL = "openai/scripted"


async def test_undo_leaves_what_a_person_wrote_over_http(sylph: Sylph, model: Model) -> None:
    wait = f"echo agent > made.txt; {waiting('go')}"
    await model([call("write", path="both.txt", content="agent\n"), call("shell", command=wait), say("Done.")])
    async with serving(sylph) as served:
        workspace = await Workspace.of(served)
        session = (await served.session(model=MODEL, mode="trust"))["id"]
        await served.say(session, "go")
        await eventually((workspace.root / "made.txt").exists, "the command")
        # While the agent's command runs, the person writes, and deletes.

        await workspace.put("/content", path="upload.bin", content=b"mine")
        await workspace.put("/text", path="both.txt", json={"text": "mine\n"}, overwrite="true")
        await workspace.post("/files/folder", path="go")
        await served.until(session)
        await _undone(served, session)
    assert not (workspace.root / "made.txt").exists()
    assert (workspace.root / "upload.bin").read_bytes() == b"mine"
    assert (workspace.root / "both.txt").read_text() == "mine\n"
    assert (workspace.root / "go").is_dir()


async def _undone(served: Served, session: str) -> None:
    done = await served.sylph.run("undo", session, "--yes")
    # It says what it left.
    assert done.code == 1, done.err
    assert "both.txt" in done.out + done.err


async def test_what_an_agent_deleted_is_in_the_trash_too(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "old.txt").write_text("old\n")
    await model([call("delete", path="old.txt"), say("Gone.")])
    async with serving(sylph) as served:
        workspace = await Workspace.of(served)
        session = (await served.session(model=MODEL, mode="trust"))["id"]
        await served.say(session, "go")
        await served.until(session)
        (kept,) = (await served.client.get(f"{workspace.url}/trash")).json()["items"]
        assert (kept["path"], kept["session"]) == ("old.txt", session)
        assert (await served.client.delete(f"{workspace.url}/trash/{kept['id']}")).status_code == 409
        assert (await workspace.post(f"/trash/{kept['id']}/restore")).status_code == 200
    assert (workspace.root / "old.txt").read_text() == "old\n"
