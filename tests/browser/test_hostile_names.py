"""Names that would run, hide or turn the writing, of files, branches, models and sessions: they are only shown."""

import json
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload, Locator, Page, expect
from tests.browser import stage
from tests.browser.hostile import BRANCH, HTML, MARKDOWN, SHORT, Watch
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.model_server import Step, call, calls, say

RUN = "window.__xss=1"
# Names that a file can have, and how they are shown: nothing in them is hidden, and none is more than one line.
SHOWN = {
    f"<img src=x onerror={RUN}>.md": f"<img src=x onerror={RUN}>.md",
    f"\"'><svg onload={RUN}>.txt": f"\"'><svg onload={RUN}>.txt",
    f"javascript:{RUN}": f"javascript:{RUN}",
    f"`${{{RUN}}}`{{{{{RUN}}}}}{{@html 1}}.py": f"`${{{RUN}}}`{{{{{RUN}}}}}{{@html 1}}.py",
    "data:text,<script>x<": "data:text,<script>x<",
    "bill\u202egpj.exe": "bill\\u202egpj.exe",
    "two\nlines\tand\x1b[31m.txt": "two\\nlines\\tand\\x1b[31m.txt",
    "no\u200bwidth\u2066\u2069.txt": "no\\u200bwidth\\u2066\\u2069.txt",
    "&lt;b&gt;%3Cb%3E?q=1#x&y.txt": "&lt;b&gt;%3Cb%3E?q=1#x&y.txt",
    "--help": "--help",
    "__proto__": "__proto__",
    "l" * 246 + ".txt": "l" * 246 + ".txt",
}
FOLDERS = (f'"><svg onload={RUN}>', f"<img src=x onerror={RUN}>\u202e", "new\nfolder", "d" * 250)
README = "\n\n".join(
    (*HTML, *MARKDOWN, "# A heading that is read", "![far](//evil.example/x.png) [near](//evil.example)")
)
TURNED = "turned\u202eledom"
TITLES = (HTML[1], HTML[7], "turned\u202eeltit\nand two lines", "x" * 500)
PICTURE = f"{SHORT}\u202e.png"


@pytest_asyncio.fixture(loop_scope="session")
async def watch(person: Person) -> AsyncGenerator[Watch, None]:
    watching = Watch(person.page)
    await watching.begin()
    yield watching
    # Some things run only a little later.
    await person.settle()
    await watching.nothing("at the end")
    assert person.strayed == []


@pytest_asyncio.fixture(loop_scope="session")
async def root(person: Person, watch: Watch) -> Path:
    """Folders within folders and files in them, all with such names."""
    root = person.served.sylph.workspace
    deep = root.joinpath(*FOLDERS)
    deep.mkdir(parents=True)
    for folder in (root, deep):
        for name in SHOWN:
            (folder / name).write_text(f"{README}\nneedle {name!r}\n")
    (deep / "README.md").write_text(README)
    return root


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("table").get_by_role("link", name=name, exact=True)


async def fits(page: Page, where: str) -> None:
    """However long a name is, the page is not wider than the window."""
    wide: int = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{where}: {wide} px too wide"


@pytest.mark.lengthy
async def test_every_name_of_a_file_is_shown_and_can_be_used(root: Path, watch: Watch, person: Person) -> None:
    page = person.page
    await page.goto("/files")
    await page.get_by_role("list", name="Folders").get_by_role("link", name="work").first.click()
    for name, shown in SHOWN.items():
        await expect(row(page, shown)).to_be_visible()
        await page.get_by_role("button", name=f"Actions for {shown}", exact=True).click()
        await page.get_by_role("menuitem", name="Rename", exact=True).click()
        await expect(page.get_by_role("dialog").get_by_role("textbox")).to_have_value(name.replace("\n", ""))
        await watch.nothing(f"the menu of {name!r}")
        await page.keyboard.press("Escape")
        await row(page, shown).click()
        await expect(page.get_by_role("textbox", name=f"Text of {shown}")).to_contain_text("onerror")
        await expect(page.get_by_role("heading", level=1)).to_have_text(shown)
        await watch.nothing(f"the text of {name!r}")
        await fits(page, name)
        await page.go_back()

    for shown in SHOWN.values():
        await row(page, shown).focus()
        await page.keyboard.press("Delete")
        await expect(row(page, shown)).to_have_count(0)
        await expect(page.get_by_role("region", name="Notices")).to_contain_text(f"{shown} is in the trash.")
    await watch.nothing("deleting")
    notices = page.get_by_role("region", name="Notices").get_by_role("button", name="Close")
    while await notices.count():
        await notices.first.click()
    await page.get_by_role("link", name="Trash").click()
    for name, shown in SHOWN.items():
        await expect(page.get_by_role("listitem").get_by_text(shown, exact=True)).to_be_visible()
        await page.get_by_role("button", name=f"Bring back {shown}", exact=True).click()
        await expect(page.get_by_role("button", name=f"Bring back {shown}", exact=True)).to_have_count(0)
        assert (root / name).is_file()
    await watch.nothing("the trash")


@pytest.mark.lengthy
async def test_folders_uploads_hits_and_previews_show_names_only(root: Path, watch: Watch, person: Person) -> None:
    page = person.page
    await page.goto("/files")
    await page.get_by_role("list", name="Folders").get_by_role("link", name="work").first.click()
    for folder in FOLDERS:
        await row(page, folder.replace("\u202e", "\\u202e").replace("\n", "\\n")).click()
        await watch.nothing(f"the folder {folder!r}")
        await fits(page, folder)
    crumbs = page.get_by_role("navigation", name="Where you are").get_by_role("listitem")
    await expect(crumbs).to_have_count(2 + len(FOLDERS))

    await row(page, "README.md").click()
    await page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="Preview")
    await expect(preview.get_by_role("heading", name="A heading that is read")).to_be_visible()
    await expect(preview.locator("img, form, input, svg")).to_have_count(0)
    await watch.nothing("a preview")
    for link in await preview.locator("a").all():
        assert (await link.get_attribute("href") or "").startswith(("https://", "http://", "mailto:"))
        assert await link.get_attribute("rel") == "noopener noreferrer nofollow"
    await page.go_back()

    given = [name for name in SHOWN if "/" not in name and not name.startswith("l")]
    for _ in range(2):
        payload: list[FilePayload] = [
            {"name": name, "mimeType": "text/html", "buffer": b"<script>1</script>"} for name in (*given, "new")
        ]
        await page.locator("input[type=file]").set_input_files(payload)
        taken = page.get_by_role("dialog")
        await expect(taken).to_be_visible()
        await watch.nothing("a name that is taken")
        await taken.get_by_role("checkbox").check()
        await taken.get_by_role("button", name="Keep both").click()
        await expect(page.get_by_role("region", name="Uploads").get_by_role("button", name="Close")).to_be_visible()
        await watch.nothing("uploads")
        await fits(page, "uploads")
        await page.get_by_role("region", name="Uploads").get_by_role("button", name="Close").click()

    for button in ("Search names", "Search contents"):
        await page.get_by_role("searchbox", name="Filter").fill("onerror" if "names" in button else "needle")
        await page.get_by_role("button", name=button).click()
        await expect(page.get_by_role("listitem").get_by_text(f"onerror={RUN}").first).to_be_visible()
        await watch.nothing(button)
        await fits(page, button)
        await page.go_back()


DOUBLE = {"questions": [{"question": SHORT, "choices": [f"{SHORT}\u202e", HTML[7], "a", "b"], "free_text": False}]}


def working() -> list[Step]:
    paths = [f"{FOLDERS[1]}/{name}" for name in list(SHOWN)[:8]]
    return [
        *(call("write", path=path, content=f"{HTML[1]}\n{path}\n") for path in paths[:2]),
        calls(*(("write", {"path": path, "content": f"{HTML[1]}\n{path}\n"}) for path in paths[2:])),
        calls(("ask_user", DOUBLE)),
        say("All are written."),
    ]


@pytest.mark.lengthy
@pytest.mark.script(*working())
async def test_names_in_cards_changes_and_attachments_do_nothing(watch: Watch, person: Person) -> None:
    page = person.page
    made = await person.served.session(title=TITLES[2])
    await page.goto(f"/chat/{made['id']}")
    given = [(PICTURE, "image/png", stage.picture()), *((name, "text/plain", b"x") for name in SHOWN)]
    await page.locator("input[type=file]").set_input_files(
        [{"name": name, "mimeType": kind, "buffer": data} for name, kind, data in given]
    )
    attached = page.get_by_role("list", name="Attached files").get_by_role("listitem")
    await expect(attached).to_have_count(len(given))
    await expect(attached.nth(0)).to_contain_text(PICTURE.replace("\u202e", "\\u202e"))
    await watch.nothing("attachments")
    await fits(page, "attachments")
    await person.say(SHORT)

    allow, choice = page.get_by_role("button", name="Allow once"), page.get_by_role("button", name="a", exact=True)
    await expect(allow).to_be_visible()
    await watch.nothing("an approval")
    assert await stage.approve_until(page, choice)
    await expect(page.get_by_role("button", name=SHORT + "\\u202e", exact=True)).to_be_visible()
    await watch.nothing("a question")
    await choice.click()
    await person.see("All are written.")
    for _ in range(2):
        await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        await person.settle()
    await expect(page.get_by_text("bill\\u202egpj.exe").first).to_be_attached()
    assert "\u202e" not in await page.locator("main").inner_text()
    await watch.nothing("what was written")
    await fits(page, "cards")
    await page.goto(f"/timeline/{made['id']}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("turned\\u202eeltit\\nand two lines")
    await person.settle()
    await watch.nothing("the timeline")


async def test_titles_are_shown_wherever_sessions_are(watch: Watch, person: Person) -> None:
    page = person.page
    ids = [(await person.served.session(title=title))["id"] for title in TITLES]
    lines = page.get_by_role("navigation").get_by_role("listitem")
    for place in ("/dashboard", *(f"/chat/{id}" for id in ids), *(f"/timeline/{id}" for id in ids)):
        await page.goto(place)
        await expect(lines.filter(has_text="turned\\u202eeltit\\nand").first).to_be_visible()
        await expect(page.get_by_role("heading", level=1).first).to_be_visible()
        await watch.nothing(place)
        await fits(page, place)
    for title in (HTML[1], HTML[7]):
        await expect(lines.get_by_role("link", name=title).first).to_be_visible()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Find or do anything").fill("onerror")
    await expect(page.get_by_role("option", name=HTML[7])).to_be_visible()
    await watch.nothing("the palette")
    await fits(page, "the palette")
    await page.keyboard.press("Escape")
    await page.goto(f"/chat/{ids[0]}")
    line = lines.filter(has_text=HTML[1]).first
    await line.hover()
    await line.get_by_role("button").click()
    await watch.nothing("the menu of a session")
    await page.get_by_role("menuitem", name="Delete").click()
    await expect(page.get_by_role("status").get_by_text("is in the trash.")).to_contain_text(HTML[1])
    await page.get_by_label("Search", exact=False).first.fill("onerror")
    await person.settle()
    await watch.nothing("a search")


CONFIG = f"""probe = false
[roles]
judge = {json.dumps(f"wicked/{SHORT}")}
fallback = [{json.dumps(f"wicked/{HTML[7]}")}]
[providers.wicked]
base_url = "http://127.0.0.1:9/{BRANCH}"
[providers.wicked.models.{json.dumps(SHORT)}]
window = 5000
price_in = 1
price_out = 2
[providers.wicked.models.{json.dumps(HTML[7])}]
window = 5000
[providers.wicked.models.{json.dumps(TURNED)}]
window = 5000
"""


@pytest.fixture
def settings(sylph: Sylph) -> Sylph:
    """A config and a repository in which whatever can be named is an attempt."""
    (sylph.home / "sylph" / "config.toml").write_text(CONFIG)
    for words in (
        ["init", "-q", "-b", BRANCH],
        ["config", f"branch.{BRANCH}.remote", BRANCH],
        ["config", f"remote.{BRANCH}.url", f"https://git.example/{SHORT}.git"],
    ):
        subprocess.run(["git", *words], cwd=sylph.workspace, check=True, env=sylph.env({}))
    return sylph


@pytest.mark.alone
async def test_what_is_configured_is_shown_and_no_more(settings: Sylph, watch: Watch, person: Person) -> None:
    page = person.page
    for section in ("config", "raw", "services", "models", "tools", "rules", "identity", "access", "git", "about"):
        await page.goto(f"/settings/{section}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await person.settle()
        await watch.nothing(section)
        await fits(page, section)
    await page.goto("/settings/models")
    await expect(page.get_by_role("cell", name=f"wicked/{SHORT}").first).to_be_visible()
    await expect(page.get_by_text("turned\\u202eledom").first).to_be_visible()
    await page.goto("/settings/git")
    await expect(page.get_by_label("Branch")).to_have_value(BRANCH)
    await expect(page.get_by_label("Address")).to_have_value(f"https://git.example/{SHORT}.git")
    made = await person.served.session(model=f"wicked/{SHORT}", title="plain")
    await page.goto(f"/chat/{made['id']}")
    await page.get_by_role("button", name=f"wicked/{SHORT}").click()
    await expect(page.get_by_role("dialog").get_by_text(HTML[7])).to_be_visible()
    await watch.nothing("the models")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Models by role", exact=True).click()
    await expect(page.get_by_role("dialog").get_by_label("judge")).to_be_visible()
    await watch.nothing("the roles")
