"""Notices of what went wrong: in nobody's way, and gone when it is over."""

import pytest
from playwright.async_api import Locator, Page, Route, expect
from tests.browser.person import Person
from tests.browser.test_cuts import House, house

__all__ = ["house"]

OVERLAPS = """
(notice) => [...document.querySelectorAll("button, a, textarea, input, select")].filter((one) => {
  if (notice.contains(one)) return false;
  const [a, b] = [notice.getBoundingClientRect(), one.getBoundingClientRect()];
  return b.width && b.height && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}).map((one) => one.outerHTML.slice(0, 80))
"""


def notices(page: Page) -> Locator:
    return page.get_by_role("region", name="Notices")


async def refuse(route: Route) -> None:
    told = {"title": "No", "status": 409, "detail": "It cannot be done now.", "kind": "wrong_state", "next": ["Wait."]}
    if route.request.method == "PATCH":
        await route.fulfill(status=409, json=told)
    else:
        await route.continue_()


async def fail(page: Page) -> None:
    await page.get_by_label("Mode", exact=True).select_option("plan")
    await expect(notices(page)).to_contain_text("It cannot be done now.")


async def test_a_notice_covers_nothing_and_goes_by_escape_and_with_its_page(person: Person) -> None:
    page = person.page
    id = await person.begin()
    await page.route(f"**/api/v1/sessions/{id}", refuse)
    for width in (390, 1280):
        await page.set_viewport_size({"width": width, "height": 800})
        await fail(page)
        assert await notices(page).evaluate(OVERLAPS) == []
        await page.keyboard.press("Escape")
        await expect(notices(page)).not_to_contain_text("It cannot be done now.")
    await fail(page)
    await page.get_by_role("link", name="Dashboard").click()
    await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await expect(notices(page)).not_to_contain_text("It cannot be done now.")


@pytest.mark.alone
async def test_that_the_server_did_not_answer_is_over_when_it_does(person: Person, house: House) -> None:
    page = person.page
    await person.begin()
    await page.route("**/api/v1/sessions/*/retry", lambda route: route.abort())
    await person.say("/retry")
    await expect(notices(page)).to_contain_text("The server does not answer.")
    await house.kill()
    await expect(notices(page)).to_contain_text("The server was restarted.")
    await expect(notices(page)).not_to_contain_text("The server does not answer.")
