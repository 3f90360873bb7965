"""What Sylph asks, answered in every way there is."""

import httpx2
import pytest
from playwright.async_api import Locator, Route, expect
from tests.browser.person import Person
from tests.model_server import call, calls, say

WRITE = call("write", path="a.txt", content="one\n")
OTHER = {"path": "b.txt", "content": "two\n"}


def ask(person: Person) -> Locator:
    return person.page.get_by_role("region", name="Sylph asks")


@pytest.mark.script(WRITE, say("Written."))
async def test_yes_runs_it_and_the_change_was_shown(person: Person) -> None:
    await person.begin("Write it")
    await expect(ask(person).locator("tr.added")).to_contain_text("one")
    await person.page.get_by_role("button", name="Allow once").click()
    await person.see("Written.")
    await expect(ask(person)).to_have_count(0)
    assert (person.served.sylph.workspace / "a.txt").read_text() == "one\n"


@pytest.mark.script(WRITE, say("Then not."))
async def test_no_is_told_to_the_model_with_its_reason(person: Person) -> None:
    await person.begin("Write it")
    await person.page.get_by_role("button", name="Deny …").click()
    await person.page.get_by_label("Why not?").fill("another file, please")
    await person.page.get_by_role("button", name="Deny with this reason").click()
    await person.see("Then not.")
    card = person.page.locator("details.card.refused")
    await card.locator("> summary").click()
    await expect(card).to_contain_text("denied (another file, please)")
    assert not (person.served.sylph.workspace / "a.txt").exists()


@pytest.mark.script(WRITE, say("Written."))
async def test_edited_arguments_run_instead(person: Person) -> None:
    page = person.page
    await person.begin("Write it")
    await page.get_by_role("button", name="Edit and run …").click()
    box = page.get_by_label("Arguments")
    await expect(box).to_be_focused()
    await box.fill('{"path": "a.txt", ')
    await expect(page.get_by_role("button", name="Run with these arguments")).to_be_disabled()
    await person.see("This is no JSON")
    await box.fill('{"path": "a.txt", "content": "mine\\n"}')
    await page.get_by_role("button", name="Run with these arguments").click()
    await person.see("Written.")
    assert (person.served.sylph.workspace / "a.txt").read_text() == "mine\n"


@pytest.mark.script(WRITE, calls(("write", OTHER)), say("Both."))
async def test_for_the_session_asks_once(person: Person) -> None:
    await person.begin("Write both")
    await expect(ask(person)).to_contain_text("For this session this allows: Allow write")
    await person.page.get_by_role("button", name="Allow for this session").click()
    await person.see("Both.")
    assert (person.served.sylph.workspace / "b.txt").exists()


@pytest.mark.alone
@pytest.mark.script(WRITE, say("Written."))
async def test_a_rule_is_shown_before_it_is_kept(person: Person) -> None:
    page = person.page
    await person.begin("Write it")
    await page.get_by_role("button", name="Always allow this …").click()
    await person.see("This rule would be kept for good")
    assert (await person.served.client.get("/api/v1/policy")).status_code == 200
    await expect(ask(person).get_by_role("listitem")).to_contain_text("Allow write")
    await page.get_by_role("button", name="Keep the rule and run").click()
    await person.see("Written.")
    events = (await person.served.client.get(f"/api/v1/sessions/{page.url.rpartition('/')[2]}/facts")).json()["items"]
    assert any(event["data"].get("remembered") for event in events if event["type"] == "tool.decided")


@pytest.mark.script(calls(("write", {"path": "a.txt", "content": "one\n"}), ("write", OTHER)), say("Both."))
async def test_calls_of_one_kind_are_asked_about_together(person: Person) -> None:
    await person.begin("Write both")
    await expect(ask(person)).to_contain_text("2 calls")
    await expect(ask(person).locator("figure")).to_have_count(2)
    await person.page.get_by_role("button", name="Allow once").click()
    await person.see("Both.")
    assert (person.served.sylph.workspace / "b.txt").exists()


@pytest.mark.script(
    call("ask_user", questions=[{"question": "Which colour?", "choices": ["red", "blue"]}]), say("So be it.")
)
async def test_a_question_is_answered_by_a_click(person: Person) -> None:
    await person.begin("Paint it")
    await person.page.get_by_role("button", name="blue").click()
    await person.see("So be it.")
    await person.page.locator("details.card summary").click()
    await expect(person.page.locator("details.card")).to_contain_text("→ blue")


@pytest.mark.script(
    call("ask_user", questions=[{"question": "Which colour?", "choices": ["red", "blue"]}, {"question": "How many?"}]),
    say("So be it."),
)
async def test_several_questions_are_answered_together(person: Person) -> None:
    page = person.page
    await person.begin("Paint them")
    await page.get_by_label("red").check()
    await expect(page.get_by_role("button", name="Send answers")).to_be_disabled()
    await page.get_by_label("Your own answer: How many?").fill("three")
    await page.get_by_label("Your own answer: How many?").press("Enter")
    await person.see("So be it.")
    await page.locator("details.card summary").click()
    await expect(page.locator("details.card")).to_contain_text("→ three")


@pytest.mark.script(WRITE, say("Then not."))
async def test_what_was_begun_to_be_written_outlives_the_question(person: Person) -> None:
    page, client = person.page, person.served.client
    id = await person.begin("Write it")
    await page.get_by_role("button", name="Deny").click()
    await page.get_by_label("Why not?").fill("Because the pl")
    question = (await client.get(f"/api/v1/sessions/{id}/questions")).json()["items"][0]["id"]
    said = {"question": question, "answer": "no", "reason": "not now"}
    await client.post(f"/api/v1/sessions/{id}/answers", json={"answers": [said]})
    await person.see("May write run? You (with “tests”): denied (not now)")
    await expect(page.get_by_label("Message", exact=True)).to_have_value("Because the pl")


@pytest.mark.script(WRITE, say("Then not."))
async def test_who_was_faster_is_told(person: Person) -> None:
    """The page is kept from hearing of it, so that it answers too late."""
    page, client = person.page, person.served.client
    id = await person.begin("Write it")
    await expect(ask(person)).to_be_visible()
    await page.route("**/answers", lambda route: _late(route, client, id))
    await page.get_by_role("button", name="Allow once").click()
    await person.see("This was answered elsewhere: denied.")
    await person.see("Then not.")


async def _late(route: Route, client: httpx2.AsyncClient, id: str) -> None:
    question = (await client.get(f"/api/v1/sessions/{id}/questions")).json()["items"][0]["id"]
    await client.post(f"/api/v1/sessions/{id}/answers", json={"answers": [{"question": question, "answer": "no"}]})
    await route.continue_()
