"""Every file and search tool, used by a scripted model in the real program."""

import base64
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.flows.program import Done, Model, Sylph
from tests.model_server import Asked, Step, call, calls, fail, say
from tests.tools.pictures import pdf, png

CALLS: list[tuple[str, Mapping[str, Any], str]] = [
    ("read", {"path": "a.txt", "offset": 2, "limit": 1}, "two"),
    ("read", {"path": "a.pdf"}, "[page 1]\nhello pdf"),
    ("write", {"path": "new/b.txt", "content": "b\n"}, "Created new/b.txt"),
    ("edit", {"path": "a.txt", "old": "two", "new": "2"}, "1 replacement"),
    (
        "multi_edit",
        {"path": "a.txt", "edits": [{"old": "one", "new": "1"}, {"old": "2", "new": "II"}]},
        "2 replacements",
    ),
    ("patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-II\n+two\n"}, "1 file changed"),
    ("move", {"path": "new/b.txt", "to": "c.txt"}, "Moved new/b.txt to c.txt"),
    ("copy", {"path": "c.txt", "to": "d.txt"}, "Copied c.txt to d.txt"),
    ("delete", {"path": "d.txt"}, 'to bring it back: move path="trash:t1_c'),
    ("create_directory", {"path": "made/here"}, "Made made/here/."),
    ("list", {"path": "made"}, "here/"),
    ("tree", {"depth": 1}, "a.txt"),
    ("exists", {"paths": ["c.txt", "d.txt"]}, "d.txt: no"),
    ("verify_file", {"path": "a.json"}, "a.json:1:2: "),
    ("verify_file", {"path": "a.sh"}, "a.sh: ok (bash)"),
    ("find", {"pattern": "*.txt"}, "c.txt"),
    ("grep", {"pattern": "tw.", "type": "txt"}, "2:two"),
]


def results(asked: Asked) -> list[str]:
    return [said["content"] for said in asked.json["messages"] if said["role"] == "tool"]


async def test_every_tool_does_its_work(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("one\ntwo\n")
    (sylph.workspace / "a.json").write_text("{]")
    (sylph.workspace / "a.sh").write_text("echo\n")
    (sylph.workspace / "a.pdf").write_bytes(pdf("hello pdf"))
    server = await model([*(call(name, **arguments) for name, arguments, _ in CALLS), say("All done.")])
    done = await sylph.run("--mode", "trust", "use them all")
    assert (done.code, done.out) == (0, "All done.\n"), done.err
    told = results(server.requests[-1])
    assert [(name, text) for (name, _, wanted), text in zip(CALLS, told, strict=True) if wanted not in text] == []
    assert (sylph.workspace / "a.txt").read_text() == "1\ntwo\n"
    assert (await sylph.run("replay", "last")).code == 0


async def test_what_was_deleted_is_brought_back_in_a_later_turn(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("dear\n")
    await model(
        [call("delete", path="a.txt"), say("Gone."), call("move", path="trash:t1_c1", to="a.txt"), say("Back.")]
    )
    await sylph.run("--mode", "trust", "delete it")
    assert not (sylph.workspace / "a.txt").exists()
    done = await sylph.run("--mode", "trust", "-s", "last", "bring it back")
    assert done.out == "Back.\n", done.err
    assert (sylph.workspace / "a.txt").read_text() == "dear\n"


async def test_a_dry_run_changes_nothing(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.txt").write_text("a\n")
    changing: list[tuple[str, dict[str, Any]]] = [
        ("patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n"}),
        ("multi_edit", {"path": "a.txt", "edits": [{"old": "a", "new": "b"}]}),
        ("move", {"path": "a.txt", "to": "b.txt"}),
        ("copy", {"path": "a.txt", "to": "b.txt"}),
        ("delete", {"path": "a.txt"}),
        ("create_directory", {"path": "d"}),
    ]
    server = await model([calls(*changing), say("That is what I would do.")])
    done = await sylph.run("--mode", "trust", "--dry-run", "change it")
    assert done.code == 0, done.err
    assert all(text.startswith("[dry run: nothing was changed]") for text in results(server.requests[-1]))
    assert [path.name for path in sylph.workspace.iterdir()] == ["a.txt"]


def images(asked: Asked) -> list[bytes]:
    """The images of a request, as the service gets them."""
    parts = [part for said in asked.json["messages"] if isinstance(said["content"], list) for part in said["content"]]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]


@pytest.fixture
async def seen(sylph: Sylph, model: Model) -> Sylph:
    """A session in which the model has looked at a picture."""
    (sylph.workspace / "a.png").write_bytes(png())
    server = await model(
        [calls(("read", {"path": "a.png"}), ("read", {"path": "a.png"})), say("Red."), say("Still red.")]
    )
    done = await sylph.run("what colour is it?")
    assert done.out == "Red.\n", done.err
    assert images(server.requests[-1]) == [png(), png()]
    roles = [said["role"] for said in server.requests[-1].json["messages"]]
    assert roles[-4:] == ["assistant", "tool", "tool", "user"]
    first = server.requests[-1].body.rpartition(b"]")[0]
    (sylph.workspace / "a.png").unlink()
    done = await sylph.run("-s", "last", "and now?")
    assert done.out == "Still red.\n", done.err
    assert server.requests[-1].body.startswith(first), "what was sent once is sent the same again"
    return sylph


def checked(file: Path) -> int:
    """What the independent checker thinks of it."""
    checker = Path(__file__).parents[2] / "scripts" / "verify_log.py"
    return subprocess.run([sys.executable, str(checker), str(file)], check=False, capture_output=True).returncode


async def test_an_image_reaches_the_model_and_stays_with_the_session(seen: Sylph, tmp_path: Path) -> None:
    events = (await seen.run("session", "show", "last", "--events", "--json")).events
    (named, _) = [event["data"]["images"] for event in events if event["type"] == "tool.finished"]
    assert [(image["media"], image["bytes"], image["name"]) for image in named] == [("image/png", len(png()), "a.png")]
    assert (await seen.run("replay", "last")).code == 0
    assert (await seen.run("verify")).code == 0
    file = tmp_path / "s.ndjson"
    await seen.run("session", "export", "last", "-o", str(file))
    assert base64.b64encode(png()) in file.read_bytes()
    elsewhere = Sylph(tmp_path / "elsewhere", tmp_path)
    elsewhere.home.mkdir()
    assert (await elsewhere.run("session", "import", str(file))).code == 0
    assert (await elsewhere.run("replay", "last")).code == 0
    assert checked(file) == 0
    file.write_bytes(file.read_bytes().replace(base64.b64encode(png()), base64.b64encode(png(4))))
    assert checked(file) == 1


async def test_a_fork_takes_its_images_along(seen: Sylph) -> None:
    id = (await seen.run("session", "fork", "last")).out.strip()
    assert (await seen.run("verify", id)).code == 0
    store = seen.home / "sylph" / "data" / "events.db"
    with sqlite3.connect(store) as db:
        assert db.execute("select count(*) from blob where session = ?", (id,)).fetchone() == (1,)
        db.execute("delete from blob where session = ?", (id,))
    db.close()
    done = await seen.run("verify", id)
    assert done.code == 7
    assert "image" in done.out + done.err


async def test_a_model_that_takes_no_images_is_told_in_words(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "a.png").write_bytes(png())
    refusals = 0

    def answer(asked: Asked) -> Step:
        nonlocal refusals
        if images(asked):
            refusals += 1
            return fail(400, "This model does not support image input.")
        if not results(asked):
            return call("read", path="a.png")
        return say("I cannot see it.") if b"takes no images" in asked.body else say("?")

    await model(answer)
    done = await sylph.run("what colour is it?")
    assert (done.code, done.out, refusals) == (0, "I cannot see it.\n", 1), done.err
    assert (await sylph.run("replay", "last")).code == 0


async def test_erasing_takes_a_secret_out_of_an_image_too(seen: Sylph, model: Model) -> None:
    store = seen.home / "sylph" / "data" / "events.db"
    (seen.workspace / "b.png").write_bytes(png(padding=10).replace(b"x" * 10, b"hunter2222"))
    server = await model([call("read", path="b.png"), say("I see."), say("Gone.")])
    await seen.run("look at b.png")
    done = await seen.run("erase", "last", stdin=b"hunter2222\n")
    assert done.code == 0, done.err
    assert (await seen.run("verify")).code == 0
    assert b"hunter2222" not in store.read_bytes()
    await seen.run("-s", "last", "what was in it?")
    assert images(server.requests[-1]) == []
    assert "the image is gone" in server.requests[-1].body.decode()


async def search(sylph: Sylph, *words: str) -> Done:
    return await sylph.run("session", "search", *words)


async def test_sessions_are_searched_from_the_command_line(sylph: Sylph, model: Model) -> None:
    await model([say("The answer is quagga."), say("Nothing.")])
    await sylph.run("name an animal")
    await sylph.run("name nothing")
    done = await search(sylph, "QUAGGA")
    assert done.code == 0
    assert "The answer is quagga." in done.out
    found = (await search(sylph, "quagga", "--json")).json
    assert [(one["role"], one["text"]) for one in found] == [("assistant", "The answer is quagga.")]
    assert (await search(sylph, "name", "--role", "user", "--json", "-n", "1")).json[0]["text"] == "name nothing"
    assert (await search(sylph, "quagga", "--session", "last", "--json")).json == []
    assert (await search(sylph, "quagga", "--since", "2999-01-01", "--json")).json == []
    assert (await search(sylph, "quagga", "--since", "3d", "--json")).json == found
    assert (await search(sylph, "quagga", "--since", "someday")).code == 2
    assert (await search(sylph, "zebra")).out == "Nothing found.\n"
    await sylph.run("session", "delete", found[0]["session"])
    assert (await search(sylph, "quagga")).out == "Nothing found.\n"


async def test_the_model_searches_other_sessions(sylph: Sylph, model: Model) -> None:
    server = await model([say("The answer is quagga."), call("history", words="quagga"), say("It was the quagga.")])
    first = (await sylph.run("--json", "name an animal")).events[0]["session"]
    await sylph.run("which animal was it?")
    (told,) = results(server.requests[-1])
    assert told.startswith(f"session {first} fact ")
    assert told.endswith("assistant: The answer is quagga.")


async def test_sessions_of_another_workspace_are_searched_only_with_a_persons_leave(
    sylph: Sylph, model: Model, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    server = await model(
        [
            say("The answer is quagga."),
            call("history", words="quagga"),
            call("history", words="quagga", everywhere=True),
            say("I do not know."),
        ]
    )
    first = (await sylph.run("--json", "name an animal", "-C", str(elsewhere))).events[0]["session"]
    await sylph.run("which animal was it?", "--mode", "ask")
    here, everywhere = results(server.requests[-1])
    assert here == "[nothing found]"
    assert "nobody was there to say yes" in everywhere
    (place,) = (await search(sylph, "quagga", "--role", "assistant", "--json")).json
    server = await model([call("history", session=first, fact=place["seq"]), say("No.")])
    await sylph.run("read it")
    assert "in this workspace" in results(server.requests[-1])[0]


async def test_a_whole_fact_of_another_session_can_be_read(sylph: Sylph, model: Model) -> None:
    server = await model([say("long " * 200), say("")])
    first = (await sylph.run("--json", "say much")).events[0]["session"]
    (place,) = (await search(sylph, "long", "--role", "assistant", "--json")).json
    server = await model([call("history", session=first, fact=place["seq"]), call("history"), say("Read.")])
    await sylph.run("read it")
    whole, empty = results(server.requests[-1])
    assert whole.count("long") == 200
    assert "nothing to look for" in empty
