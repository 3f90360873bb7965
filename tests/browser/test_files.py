"""The files page, used as a person uses it."""

import asyncio
import base64
import io
import os
import zipfile
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Locator, Page, expect
from tests.browser.person import Person
from tests.model_server import call, say
from tests.patience import eventually

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DROPPED = """() => {
    const given = new DataTransfer();
    given.items.add(new File(["dropped"], "dropped.txt"));
    return given;
}"""
HOSTILE = ("<img src=x onerror=document.title='taken'>.md", "${7*7}{{7*7}}.txt", "a?b#c&d=%2e%2e.txt", "base64:eA==")


@pytest.fixture
def root(person: Person) -> Path:
    """The workspace, with something in it."""
    root = person.served.sylph.workspace
    (root / "notes").mkdir()
    (root / "notes" / "inner.txt").write_text("found in here\n")
    (root / "plan.md").write_text("# The plan\n\nThis is **bold**.\n\n<script>document.title='taken'</script>\n")
    (root / "main.py").write_text("def main():\n    return 1\n")
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "dot.png").write_bytes(PNG)
    (root / "data.bin").write_bytes(b"\0\1\2" * 100)
    (root / ".env").write_text("KEY=secret\n")
    return root


@pytest_asyncio.fixture(loop_scope="session")
async def page(person: Person, root: Path) -> Page:
    """The page with the workspace's files."""
    await person.page.get_by_role("link", name="Files", exact=True).click()
    await person.page.get_by_role("list", name="Folders").get_by_role("link", name="work").first.click()
    await expect(row(person.page, "main.py")).to_be_visible()
    return person.page


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("table").get_by_role("link", name=name, exact=True)


async def choose(page: Page, name: str, action: str) -> None:
    await page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    await page.get_by_role("menuitem", name=action, exact=True).click()


async def edit(page: Page, text: str) -> None:
    """Puts another text into the editor, by its keys."""
    box = page.get_by_role("textbox", name="Text of")
    await box.click()
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(text)


async def until(path: Path, content: bytes) -> None:
    await eventually(lambda: holds(path, content), f"{path.name} to hold {content!r}")


def holds(path: Path, content: bytes) -> bool:
    """It may be gone for a moment, between a look and another."""
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False


async def downloaded(page: Page, name: str, action: str) -> bytes:
    async with page.expect_download() as started:
        await choose(page, name, action)
    return await asyncio.to_thread((await (await started.value).path()).read_bytes)


async def test_files_are_browsed_edited_and_saved(page: Page, root: Path) -> None:
    await expect(page.get_by_text("protected", exact=True)).to_be_visible()
    await expect(row(page, ".env")).to_have_count(0)
    await row(page, "notes").click()
    await row(page, "inner.txt").click()
    await expect(page.get_by_text("found in here")).to_be_visible()
    await page.get_by_role("navigation", name="Where you are").get_by_role("link", name="work").click()

    await row(page, "dos.txt").click()
    await expect(page.get_by_text("CRLF")).to_be_visible()
    await edit(page, "one\nnew\n")
    await expect(page.get_by_text("not saved")).to_be_visible()
    await page.keyboard.press("Control+s")
    await until(root / "dos.txt", b"one\r\nnew\r\n")
    await expect(page.get_by_text("Saved.")).to_be_visible()

    await edit(page, "lost?")
    await row(page, "main.py").click()
    await expect(page.get_by_role("dialog")).to_contain_text("dos.txt was changed")
    await page.get_by_role("button", name="Stay").click()
    await page.go_back()
    await page.get_by_role("button", name="Save and leave").click()
    await until(root / "dos.txt", b"lost?")

    await row(page, "data.bin").click()
    await expect(page.get_by_text("This is no text.")).to_be_visible()
    (root / "huge.txt").write_text("x" * 5_000_001)
    await page.goto(page.url.replace("data.bin", "huge.txt"))
    await expect(page.get_by_text("up to 5 MB are shown")).to_be_visible()
    await page.goto(page.url.replace("huge.txt", "never.txt"))
    await expect(page.get_by_text("never.txt does not exist")).to_be_visible()


async def test_a_conflict_between_two_tabs_is_decided_by_the_person(
    page: Page, context: BrowserContext, root: Path
) -> None:
    await row(page, "main.py").click()
    await expect(page.get_by_role("textbox", name="Text of main.py")).to_be_visible()
    other = await context.new_page()
    await other.goto(page.url)
    await edit(other, "theirs\n")
    await other.keyboard.press("Control+s")
    await until(root / "main.py", b"theirs\n")

    await page.bring_to_front()
    await edit(page, "mine\n")
    await page.keyboard.press("Control+s")
    asked = page.get_by_role("dialog", name="Somebody was faster")
    await expect(asked.locator("tr.removed")).to_contain_text("theirs")
    await expect(asked.locator("tr.added")).to_contain_text("mine")
    await asked.get_by_role("button", name="Go on editing").click()
    await expect(page.get_by_text("Somebody changed the file while you were editing it.")).to_be_visible()
    assert (root / "main.py").read_text() == "theirs\n"
    await page.get_by_role("button", name="Compare").click()
    await asked.get_by_role("button", name="Overwrite with mine").click()
    await until(root / "main.py", b"mine\n")

    await edit(other, "theirs again\n")
    await other.keyboard.press("Control+s")
    await other.get_by_role("button", name="Take theirs").click()
    await expect(other.get_by_role("textbox", name="Text of main.py")).to_have_text("mine")
    assert (root / "main.py").read_text() == "mine\n"


@pytest.mark.script(call("write", path="plan.md", content="# By the agent\n"), say("Done."))
async def test_what_an_agent_does_to_an_open_file_is_seen(page: Page, person: Person, root: Path) -> None:
    await row(page, "plan.md").click()
    await expect(page.get_by_role("textbox", name="Text of plan.md")).to_contain_text("The plan")
    made = await person.served.session(mode="trust")
    await person.served.say(made["id"], "Rewrite it.")
    await until(root / "plan.md", b"# By the agent\n")
    await expect(page.get_by_text("Somebody changed the file. You see it as it is now.")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Text of plan.md")).to_have_text("# By the agent")
    await page.get_by_role("button", name="See what changed").click()
    await expect(page.get_by_role("dialog").locator("tr.added")).to_contain_text("By the agent")


async def test_files_come_and_go(page: Page, root: Path) -> None:
    await page.locator("input[type=file]").set_input_files(
        [
            {"name": "up.txt", "mimeType": "text/plain", "buffer": b"up"},
            {"name": "main.py", "mimeType": "", "buffer": b"2"},
        ]
    )
    asked = page.get_by_role("dialog", name="main.py is there already")
    await asked.get_by_role("button", name="Keep both").click()
    await until(root / "main (2).py", b"2")
    await expect(row(page, "up.txt")).to_be_visible()
    await page.get_by_role("region", name="Uploads").get_by_role("button", name="Close").click()

    await page.get_by_role("table").dispatch_event("drop", {"dataTransfer": await page.evaluate_handle(DROPPED)})
    await until(root / "dropped.txt", b"dropped")
    await expect(page.get_by_text("1 file is uploaded.")).to_be_visible()

    await choose(page, "up.txt", "Rename")
    await page.get_by_label("Name", exact=True).fill("main.py")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Something is there already.")).to_be_visible()
    await page.get_by_label("Name", exact=True).fill("sub/renamed.txt")
    await page.keyboard.press("Enter")
    await until(root / "sub" / "renamed.txt", b"up")
    await choose(page, "main.py", "Copy")
    await page.get_by_label("Where to?").fill("notes/copy.py")
    await page.keyboard.press("Enter")
    await until(root / "notes" / "copy.py", (root / "main.py").read_bytes())

    assert await downloaded(page, "main.py", "Download") == (root / "main.py").read_bytes()
    with zipfile.ZipFile(io.BytesIO(await downloaded(page, "notes", "Download as zip"))) as packed:
        assert sorted(packed.namelist()) == ["copy.py", "inner.txt"]

    await page.get_by_role("button", name="New folder").click()
    await page.get_by_label("Name", exact=True).fill("fresh")
    await page.keyboard.press("Enter")
    await row(page, "fresh").click()
    await page.get_by_role("button", name="New file").click()
    await page.get_by_label("Name", exact=True).fill("..")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("A name cannot be . or ..")).to_be_visible()
    await page.get_by_label("Name", exact=True).fill("new.txt")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Text of new.txt")).to_be_visible()
    await until(root / "fresh" / "new.txt", b"")


async def test_what_is_deleted_comes_back(page: Page, root: Path) -> None:
    await row(page, "main.py").focus()
    await page.keyboard.press("Delete")
    await expect(page.get_by_text("main.py is in the trash.")).to_be_visible()
    await expect(row(page, "plan.md")).to_be_focused()
    await expect(row(page, "main.py")).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(row(page, "main.py")).to_be_visible()
    await choose(page, "notes", "Delete")
    await expect(row(page, "notes")).to_have_count(0)
    await page.get_by_role("link", name="Trash").click()
    await page.get_by_role("button", name="Bring back notes").click()
    await expect(page.get_by_text("The trash of this folder is empty.")).to_be_visible()
    assert (root / "notes" / "inner.txt").is_file()


async def test_a_long_folder_is_walked_by_keys(page: Page, root: Path) -> None:
    for number in range(450):
        (root / "notes" / f"{number:03}.txt").touch()
    await row(page, "notes").focus()
    await page.keyboard.press("Enter")
    await expect(row(page, "000.txt")).to_be_focused()
    for last in ("399.txt", "inner.txt"):
        await page.keyboard.press("End")
        await expect(row(page, last)).to_be_attached()
    await page.keyboard.press("End")
    await expect(row(page, "inner.txt")).to_be_focused()
    await page.keyboard.press("Backspace")
    await expect(row(page, "notes")).to_be_focused()
    await page.keyboard.press("F2")
    await page.keyboard.insert_text("renamed")
    await page.keyboard.press("Enter")
    await expect(row(page, "renamed")).to_be_visible()
    await page.get_by_role("searchbox", name="Filter").fill("MAIN")
    await expect(row(page, "renamed")).to_have_count(0)
    await expect(row(page, "main.py")).to_be_visible()


async def test_pictures_and_markdown_are_shown(page: Page, root: Path) -> None:
    await row(page, "dot.png").click()
    picture = page.get_by_role("img", name="Picture: dot.png")
    await expect(picture).to_be_visible()
    assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    await row(page, "plan.md").click()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("heading", name="The plan")).to_be_visible()
    await expect(page.locator("strong", has_text="bold")).to_be_visible()
    assert "taken" not in await page.title()
    await choose(page, "plan.md", "Ask Sylph about it")
    await expect(page.get_by_label("Message", exact=True)).to_have_value("About `plan.md`: ")
    await expect(page.get_by_label("Workspace")).to_have_value(str(root))


async def test_names_are_searched_and_lines_found(page: Page) -> None:
    box = page.get_by_role("searchbox", name="Filter")
    await box.fill("main")
    await expect(row(page, "plan.md")).to_have_count(0)
    await box.fill("inner")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="notes/inner.txt").click()
    await expect(page.get_by_text("found in here")).to_be_visible()
    await page.go_back()
    await box.fill("return \\d")
    await page.get_by_role("button", name="Search contents").click()
    await page.get_by_role("link", name="main.py line 2").click()
    await expect(page.get_by_role("textbox", name="Text of main.py")).to_be_focused()


async def test_hostile_names_are_names(page: Page, root: Path) -> None:
    """Also names that are no text, in 390 pixels."""
    await page.set_viewport_size({"width": 390, "height": 800})
    odd = root / os.fsdecode(b"odd\xff.txt")
    odd.write_text("odd one\n")
    for name in HOSTILE:
        (root / name).write_text(f"in {name}\n")
    await page.reload()
    for name in HOSTILE:
        await row(page, name).click()
        await expect(page.get_by_role("textbox", name="Text of")).to_have_text(f"in {name}")
        await page.reload()
        await expect(page.get_by_role("textbox", name="Text of")).to_have_text(f"in {name}")
        await page.get_by_role("button", name="Close the file").click()
    await row(page, "odd\ufffd.txt").click()
    await edit(page, "changed\n")
    await page.keyboard.press("Control+s")
    await until(odd, b"changed\n")
    await page.get_by_role("button", name="Close the file").click()
    await choose(page, HOSTILE[0], "Delete")
    await expect(page.get_by_text(f"{HOSTILE[0]} is in the trash.")).to_be_visible()
    assert "taken" not in await page.title()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_what_another_program_writes_is_seen_while_one_looks(person: Person) -> None:
    path = person.served.sylph.workspace / "notes.md"
    path.write_text("before\n")
    await person.page.goto("/files")
    await person.page.get_by_role("link", name="the server's own").click()
    await person.page.get_by_text("notes.md", exact=True).first.click()
    editor = person.page.get_by_role("textbox", name="Text of notes.md")
    await expect(editor).to_contain_text("before")
    path.write_text("written elsewhere\n")
    await expect(editor).to_contain_text("written elsewhere")
