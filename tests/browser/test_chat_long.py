"""A long session: its newest part at once, the rest when one scrolls to it, and nothing jumps."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.model_server import say

from sylph.core import facts
from sylph.core.events import Fact
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog

ID = "longsession1"
FACTS = 4000
# Where the first row that is on the screen stands, and what it says.
FIRST = """
() => {
  const frame = document.querySelector("[role=log]");
  const edge = frame.getBoundingClientRect().top;
  const row = [...frame.querySelectorAll(".row")].find((one) => one.getBoundingClientRect().bottom > edge + 1);
  return [row.innerText.slice(0, 60), Math.round(row.getBoundingClientRect().top - edge), frame.scrollTop];
}
"""
# Comes back when what was scrolled to is painted.
BACK = """
(one) => new Promise((done) => {
  one.scrollBy(0, -900);
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
})
"""

# So long that what came late would have moved it.
PAINTED = "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => done()), 60))"


def turn(number: int) -> list[PendingFact]:
    name = f"t{number}"
    new: list[Fact] = [
        facts.InputReceived(id=f"i{number}", text=f"Question {number}"),
        facts.TurnStarted(input=f"i{number}"),
    ]
    for step in range(3):
        call = f"{name}_c{step}"
        new += [
            facts.ModelResponded(
                model="openai/scripted", text=f"Thought {number}.{step}. " * (1 + number % 30), finish="calls", calls=1
            ),
            facts.ToolCalled(call=call, name="read", arguments='{"path":"a.txt"}'),
            facts.ToolDecided(call=call, decision="allow", reason="r", by="mode", effect="read", risk="safe"),
            facts.ToolStarted(call=call, effect="read", recourse="pure"),
            facts.ToolFinished(call=call, ok=True, output="line\n" * 50),
        ]
    new.append(facts.TurnEnded(outcome="finished"))
    return [PendingFact(fact, 1_762_000_000_000 + number, name, "user", 0) for fact in new]


@pytest_asyncio.fixture(loop_scope="session")
async def long(sylph: Sylph) -> None:
    """A session of many facts, written before the server begins."""
    data = sylph.home / "sylph" / "data"
    data.mkdir(parents=True, exist_ok=True)
    log = EventLog.open(data / "events.db")
    made = facts.SessionCreated(workspace=str(sylph.workspace), model="openai/scripted", mode="ask", title="A long one")
    drafts = [PendingFact(made, 1_762_000_000_000, "", "user", 0)]
    number = 0
    while len(drafts) < FACTS:
        number += 1
        drafts += turn(number)
    for at in range(0, len(drafts), 1000):
        await log.append(ID, drafts[at : at + 1000], expected=at, durable=False).done
    log.close()


async def settled(page: Page) -> list[object]:
    """What is first on the screen, once it stands still."""
    was: list[object] = []
    for _ in range(100):
        now = await page.evaluate(FIRST)
        if now == was:
            return now
        was = now
        await page.evaluate(PAINTED)
    raise AssertionError("It does not stand still.")


@pytest.mark.alone
@pytest.mark.usefixtures("long")
@pytest.mark.script(say("And this is new."), say("And this too."))
async def test_a_long_session_opens_at_its_end_and_goes_back_without_a_jump(sylph: Sylph, person: Person) -> None:
    page = person.page
    link = page.get_by_role("link", name="A long one")
    await expect(link).to_be_visible()
    await link.click()
    last = f"Question {-((1 - FACTS) // 18)}"
    await expect(page.get_by_text(last, exact=True)).to_be_attached()
    frame = page.get_by_role("log")
    await settled(page)
    assert await frame.evaluate("(one) => one.scrollHeight - one.scrollTop - one.clientHeight") < 40
    # Back by hand, a screen at a time, until older pages have come twice.
    for _ in range(20):
        before = await settled(page)
        await frame.evaluate(BACK)
        after = await page.evaluate(FIRST)
        later = await settled(page)
        assert after[0] == later[0], (before, after, later)
        assert abs(after[1] - later[1]) <= 2, (before, after, later)
        if await page.locator("details.card").count() > 200:
            raise AssertionError("Far more is drawn than can be seen.")
    # What comes while one reads does not move it, and is counted.
    held = await settled(page)
    await person.say("Something new")
    await expect(page.get_by_text("And this is new.")).to_be_visible()
    await frame.evaluate("(one) => one.scrollBy(0, -3000)")
    held = await settled(page)
    await person.served.say(ID, "One more")
    await expect(page.get_by_role("button", name="To the end")).to_contain_text("new")
    await person.until(lambda: counted(person))
    assert (await settled(page))[:2] == held[:2]
    await page.get_by_role("button", name="To the end").click()
    await expect(page.get_by_text("And this too.")).to_be_in_viewport()


async def counted(person: Person) -> bool:
    seen = (await person.served.client.get(f"/api/v1/sessions/{ID}")).json()
    return seen["state"] == "idle"


@pytest.mark.alone
@pytest.mark.usefixtures("long")
async def test_what_was_found_is_shown_where_it_stands(person: Person) -> None:
    page = person.page
    await page.get_by_role("searchbox", name="Search sessions").fill("Question 17")
    hit = page.get_by_role("navigation").get_by_role("link").filter(has_text="Question 17").first
    await hit.click()
    found = page.locator("[role=log] .marked")
    await expect(found).to_contain_text("Question 17")
    await expect(found).to_be_focused()
    await expect(found).to_be_in_viewport()
    place = await found.bounding_box()
    await person.settle()
    assert await found.bounding_box() == place, "it stays where it is"
    await page.get_by_role("button", name="To the end").click()
    await expect(
        page.get_by_role("log").get_by_text(f"Question {-((1 - FACTS) // 18)}", exact=True)
    ).to_be_in_viewport()
    await hit.click()
    await expect(found).to_be_in_viewport()
