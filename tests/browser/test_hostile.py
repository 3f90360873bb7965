"""What models, tools, files and people say is shown, and never run."""

import subprocess
from collections.abc import AsyncGenerator
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser import stage
from tests.browser.hostile import BRANCH, FOLDER, HTML, MARKDOWN, NAME, SHORT, Watch
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.model_server import Step, call, calls, fail, say

TALK = "\n\n".join((*HTML, *MARKDOWN))
PLAN = {"steps": [{"text": text[:200], "status": "pending"} for text in HTML[:5]]}
ASK = {"questions": [{"question": HTML[1], "choices": [HTML[2], HTML[7]], "free_text": True}]}


@pytest_asyncio.fixture(loop_scope="session")
async def watch(person: Person) -> AsyncGenerator[Watch, None]:
    watching = Watch(person.page)
    await watching.begin()
    yield watching
    # Some things run only a little later.
    await person.settle()
    await watching.nothing("at the end")
    assert person.strayed == []


@pytest.fixture
def hostile(sylph: Sylph) -> Sylph:
    """A workspace in which every name and every content is an attempt."""
    work = sylph.workspace
    (work / NAME).write_text(TALK)
    (work / FOLDER).mkdir()
    (work / FOLDER / "inside.html").write_text("\n".join(HTML))
    (work / "attack.txt").write_text(TALK)
    (work / "picture.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{HTML[0]}</svg>')
    for words in (["init", "-q", "-b", BRANCH], ["add", "."], ["commit", "-qm", SHORT]):
        named = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run(["git", *named, *words], cwd=work, check=True, env=sylph.env({}))
    return sylph


def talking() -> list[Step]:
    return [
        say(TALK, reasoning=TALK),
        calls(("read", {"path": "attack.txt"}), ("list", {"path": "."}), ("plan", PLAN)),
        call(f"{SHORT}", path=HTML[0]),
        call("write", path=f"{FOLDER}/new.md", content=TALK),
        call("shell", command=f"cat attack.txt; echo '{HTML[3]}'; git branch; touch new; exit 3"),
        calls(("ask_user", ASK)),
        say("The end of it."),
        fail(400, TALK, type=HTML[1], code=HTML[2]),
    ]


@pytest.mark.lengthy
@pytest.mark.script(*talking())
async def test_nothing_that_is_said_or_shown_runs(hostile: Sylph, watch: Watch, person: Person) -> None:
    page = person.page
    made = await person.served.session(title=HTML[1])
    await page.goto(f"/chat/{made['id']}")
    await person.say(TALK)
    await person.see("Done")
    await watch.nothing("what a model says")
    for link in await page.locator("[role=log] a").all():
        href = await link.get_attribute("href") or ""
        ours = href.startswith("/")
        assert ours or (href.startswith(("https://", "http://", "mailto:"))), href
        assert ours or await link.get_attribute("rel") == "noopener noreferrer nofollow"

    await person.say(HTML[1])
    allow, choice = page.get_by_role("button", name="Allow once"), page.get_by_role("button", name=HTML[2])
    await expect(allow).to_be_visible()
    await watch.nothing("an approval")
    assert await stage.approve_until(page, choice)
    await watch.nothing("a question")
    await choice.click()
    await person.see("The end of it.")
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    await person.settle()
    await watch.nothing("calls and their output")
    await person.say("again")
    await expect(page.get_by_text("Failed").first).to_be_visible()
    await watch.nothing("an error of the provider")

    for place in (f"/timeline/{made['id']}", "/dashboard", "/files", "/settings", "/"):
        await page.goto(place)
        await person.settle()
        await watch.nothing(place)


async def test_nothing_in_an_address_runs(watch: Watch, person: Person) -> None:
    for page in ("chat", "timeline", "files", "settings"):
        for text in (HTML[1], HTML[7], "javascript:alert(1)", "//evil.example", "%00%ff/../.."):
            await person.page.goto(f"/{page}/{quote(text, safe='%')}?q={quote(text)}&path={quote(text)}#{quote(text)}")
            await watch.nothing(f"{page} {text}")
    person.complaints = [said for said in person.complaints if "URI malformed" not in said]


async def test_the_policy_lets_nothing_else_become_markup(person: Person) -> None:
    """Even a script of the page could not: what is not trusted is refused by the browser."""
    tried = "() => { try { document.body.innerHTML = '<p>x</p>'; return 'done' } catch (error) { return error.name } }"
    assert await person.page.evaluate(tried) == "TypeError"
    worker = "() => navigator.serviceWorker.register('/evil.js').then(() => 'done', (error) => error.name)"
    assert await person.page.evaluate(worker) == "TypeError"
    person.complaints = [
        said for said in person.complaints if "TrustedHTML" not in said and "TrustedScript" not in said
    ]
