"""The dashboard: what runs, what needs you, what it costs."""

import time

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.model_server import call, say

from sylph.core import facts
from sylph.core.messages import Usage
from sylph.engine.log.hash_chain import PendingFact
from sylph.engine.log.store import EventLog

WRITE = call("write", path="note.txt", content="hello")


@pytest.mark.script(WRITE, say("It is written."))
async def test_a_waiting_question_is_answered_from_the_dashboard(person: Person) -> None:
    await person.begin("write a note")
    await expect(person.page.get_by_role("button", name="Allow once")).to_be_visible()
    await person.page.get_by_role("link", name="Dashboard").click()
    needs = person.page.get_by_role("region", name="Needs you")
    await expect(needs.get_by_role("link", name="write a note")).to_be_visible()
    await needs.get_by_role("button", name="Allow once").click()
    await expect(needs.get_by_text("Nothing waits for you.")).to_be_visible()
    await expect(needs.get_by_text("Done since you looked")).to_be_visible()
    await needs.get_by_role("link", name="write a note").click()
    await person.see("It is written.")


@pytest.mark.script(say("One."), say("Two."))
async def test_what_was_spent_is_a_chart_and_a_table(person: Person) -> None:
    await person.begin("hello")
    await person.see("One.")
    await person.page.goto("/dashboard")
    cost = person.page.get_by_role("region", name="Cost per day")
    await expect(cost.get_by_role("img")).to_be_visible()
    await expect(cost.locator("canvas")).to_be_visible()
    await cost.get_by_text("As a table").click()
    await expect(cost.get_by_role("columnheader", name="openai/scripted")).to_be_visible()
    health = person.page.get_by_role("region", name="Health")
    await expect(health.get_by_text("All is well")).to_be_visible()
    recent = person.page.get_by_role("region", name="Recent sessions")
    await expect(recent.get_by_role("link", name="hello")).to_be_visible()
    made = await person.served.session(title="Made elsewhere")
    await expect(recent.get_by_role("link", name=made["title"])).to_be_visible()


PRICES = """probe = false
[providers.openai.models.scripted]
window = 100000
price_in = 2
price_out = 10
"""
USAGE = {"prompt_tokens": 21_000, "completion_tokens": 800, "total_tokens": 21_800}
A_DAY = 86_400_000


@pytest.fixture
def priced(sylph: Sylph) -> None:
    (sylph.home / "sylph" / "config.toml").write_text(PRICES)


@pytest.mark.alone
@pytest.mark.script(say("One.", usage=USAGE), say("Two.", usage=USAGE))
async def test_what_a_model_costs_is_counted_by_its_prices(priced: None, person: Person) -> None:
    page = person.page
    await page.goto("/dashboard")
    cost = page.get_by_role("region", name="Cost per day")
    await expect(cost.get_by_text("Nothing was spent")).to_be_visible()
    await person.begin("hello")
    await person.see("One.")
    await expect(page.get_by_title("$0.05, 21k tokens").first).to_be_visible()
    await page.goto("/dashboard")
    await expect(cost.locator("canvas")).to_be_visible()
    # 21,000 at $2 and 800 at $10 per million.
    await expect(cost).to_contain_text("$0.05 in 30 days")
    await expect(cost.get_by_role("listitem")).to_contain_text("1 call · 22k · $0.05")
    await cost.get_by_text("As a table").click()
    await expect(cost.get_by_role("row").last).to_contain_text("$0.05")


@pytest_asyncio.fixture(loop_scope="session")
async def month(sylph: Sylph) -> None:
    """Nine models, used for thirty days."""
    data = sylph.home / "sylph" / "data"
    data.mkdir(parents=True, exist_ok=True)
    log, now = EventLog.open(data / "events.db"), round(time.time() * 1000)
    made = facts.SessionCreated(workspace=str(sylph.workspace), model="openai/scripted", mode="ask", title="A month")
    drafts = [PendingFact(made, now - 30 * A_DAY, "", "user", 0)]
    for day in range(29, -1, -1):
        for number in range(9):
            used = Usage(input=1000 * (number + 1), output=100)
            told = facts.ModelResponded(
                model=f"service/model-{number}", text="x", finish="stop", usage=used, cost=10_000 * (number + 1)
            )
            drafts.append(PendingFact(told, now - day * A_DAY, "t1", "model", 0))
    await log.append("monthsession", drafts, expected=0, durable=False).done
    log.close()


@pytest.mark.alone
@pytest.mark.usefixtures("month")
async def test_a_month_of_many_models_can_be_read(person: Person) -> None:
    page = person.page
    await page.goto("/dashboard")
    cost = page.get_by_role("region", name="Cost per day")
    await expect(cost).to_contain_text("$13.50 in 30 days")
    await expect(cost.get_by_role("listitem")).to_have_count(9)
    await expect(cost.get_by_role("listitem").first).to_contain_text("service/model-8")
    await expect(cost.get_by_role("listitem").first).to_contain_text("30 calls · 273k · $2.70")
    await expect(cost.locator("figcaption span")).to_have_count(7)
    await cost.get_by_text("As a table").click()
    await expect(cost.get_by_role("row")).to_have_count(31)
    await expect(cost.get_by_role("row").last).to_contain_text("$0.45")
    await cost.get_by_role("button", name="Tokens").click()
    await expect(cost.get_by_role("row").last).to_contain_text("46k")
