"""Many tabs at once: browsers allow a site only six connections, and no tab may take one for good."""

from playwright.async_api import expect
from tests.browser.person import Person

MANY = 9


async def test_any_number_of_tabs_work_and_see_the_same(person: Person) -> None:
    session = await person.begin()
    others = [await person.page.context.new_page() for _ in range(MANY)]
    for page in others:
        await page.goto(f"/chat/{session}")
        await expect(page.get_by_label("Message", exact=True)).to_be_visible()
    box = others[-1].get_by_label("Message", exact=True)
    await box.fill("Who hears me?")
    await box.press("Enter")
    for page in (person.page, *others):
        await expect(page.get_by_role("log").get_by_text("Who hears me?")).to_be_visible()
        await expect(page.get_by_role("log").get_by_text("Hello from the model.")).to_be_visible()
    for page in others:
        await page.close()


async def test_where_websockets_are_blocked_it_goes_without(person: Person) -> None:
    page = await person.page.context.new_page()
    await page.route_web_socket("**/ws", lambda socket: socket.close())
    session = await person.begin()
    await page.goto(f"/chat/{session}")
    await person.say("By another way?")
    await expect(page.get_by_role("log").get_by_text("Hello from the model.")).to_be_visible()
    await page.close()
