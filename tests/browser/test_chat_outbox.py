"""Messages on their way to the server: none is lost, and none comes twice."""

import asyncio
from typing import Any

from playwright.async_api import Route, expect
from tests.browser.person import Person
from tests.patience import eventually

SENT = "**/messages"


async def received(person: Person, session: str) -> list[str]:
    found = await person.served.client.get(f"/api/v1/sessions/{session}/facts?limit=1000")
    facts: list[dict[str, Any]] = found.json()["items"]
    return [fact["data"]["text"] for fact in facts if fact["type"] == "input.received"]


async def test_what_is_written_while_another_is_sent_comes_after_it(person: Person) -> None:
    session, gate = await person.begin(), asyncio.Event()

    async def slow(route: Route) -> None:
        await gate.wait()
        await route.continue_()

    await person.page.route(SENT, slow)
    await person.say("the first")
    await person.say("the second")
    await expect(person.page.get_by_label("Message", exact=True)).to_have_value("")
    under_way = person.page.get_by_role("list", name="Messages on their way")
    await expect(under_way.get_by_text("the second")).to_be_visible()
    gate.set()
    await expect(under_way).to_have_count(0)
    assert await received(person, session) == ["the first", "the second"]


async def test_what_does_not_get_through_is_tried_again(person: Person) -> None:
    session, tries = await person.begin(), list[str]()

    async def broken(route: Route) -> None:
        # The server gets the second, but its answer is lost: it must not make two of it.
        if len(tries) == 1:
            await route.fetch()
        await route.abort()
        tries.append(route.request.headers["idempotency-key"])

    await person.page.route(SENT, broken)
    await person.say("over a bad line")
    await person.see("not sent yet: The server does not answer.")
    await eventually(lambda: len(tries) >= 2, "a second try of the page")
    await person.page.unroute(SENT)
    assert len(set(tries)) == 1
    await person.page.get_by_role("button", name="Try again").click()
    await expect(person.page.get_by_role("list", name="Messages on their way")).to_have_count(0)
    await expect(person.page.get_by_role("log").get_by_text("over a bad line")).to_have_count(1)
    assert await received(person, session) == ["over a bad line"]


async def test_a_page_loaded_anew_sends_what_was_on_its_way(person: Person) -> None:
    session = await person.begin()
    await person.page.route(SENT, lambda _: asyncio.sleep(0))
    await person.say("before the reload")
    await person.page.get_by_label("Message", exact=True).fill("half a thought")
    await person.see("being sent …")
    await person.page.unroute(SENT)
    await person.page.reload()
    await expect(person.page.get_by_role("log").get_by_text("before the reload")).to_be_visible()
    await expect(person.page.get_by_label("Message", exact=True)).to_have_value("half a thought")
    assert await received(person, session) == ["before the reload"]


async def test_what_is_refused_can_be_taken_back(person: Person) -> None:
    session = await person.begin()
    problem = {"title": "Too large", "status": 413, "detail": "That is too long.", "kind": "too_large"}
    await person.page.route(SENT, lambda route: route.fulfill(status=413, json=problem))
    await person.say("a long story")
    await person.see("not sent: That is too long.")
    await person.page.get_by_role("button", name="Take back").click()
    await expect(person.page.get_by_label("Message", exact=True)).to_have_value("a long story")
    assert await received(person, session) == []
