"""The frame of the app: coming in, the sidebar, the palette, keys, themes, small screens."""

import json
import re

from playwright.async_api import BrowserContext, Locator, Page, Route, expect
from tests.browser.person import Person
from tests.http.served import Served


def sidebar(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Sessions")


async def named(person: Person, *titles: str) -> list[str]:
    """Sessions with these titles, seen in the sidebar; their ids."""
    made = [(await person.served.session(title=title))["id"] for title in titles]
    for title in titles:
        await expect(sidebar(person.page).get_by_role("link", name=title)).to_be_visible()
    return made


async def chosen(person: Person, title: str, act: str) -> None:
    """Opens the menu of a session and takes one of its choices."""
    line = sidebar(person.page).get_by_role("listitem").filter(has_text=title)
    await line.hover()
    await line.get_by_role("button", name="What can be done").click()
    await person.page.get_by_role("menuitem", name=act, exact=True).click()


async def test_the_first_start_leads_in_by_a_link_that_works_once(context: BrowserContext, served: Served) -> None:
    page = await context.new_page()
    await page.goto("/chat")
    await expect(page.get_by_role("heading", name="Log in to Sylph")).to_be_visible()
    link = json.loads((await served.sylph.run("token", "link", "--json")).out)["url"]
    await page.goto(link)
    await expect(page.get_by_role("button", name="New session")).to_be_visible()
    assert "sylph_" not in page.url
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("heading", name="Log in to Sylph")).to_be_visible()
    await page.goto(link)
    await expect(page.get_by_text("not good any more")).to_be_visible()


async def test_a_session_is_pinned_renamed_archived_and_deleted_in_place(person: Person) -> None:
    ids = await named(person, "First one", "Second one", "Third one")
    nav = sidebar(person.page)
    await chosen(person, "First one", "Pin")
    await expect(nav.get_by_role("listitem").nth(0)).to_contain_text("Pinned")
    await expect(nav.get_by_role("listitem").nth(1)).to_contain_text("First one")
    await chosen(person, "Second one", "Rename")
    await nav.get_by_label("Title").fill("Another name")
    await person.page.keyboard.press("Enter")
    await expect(nav.get_by_role("link", name="Another name")).to_be_focused()
    await chosen(person, "Another name", "Archive")
    await expect(nav.get_by_role("link", name="Another name")).to_have_count(0)
    await nav.get_by_role("button", name="Archived").click()
    await chosen(person, "Another name", "Take out of the archive")
    await nav.get_by_role("button", name="In use").click()
    await expect(nav.get_by_role("link", name="Another name")).to_be_visible()
    await chosen(person, "Third one", "Delete")
    await expect(nav.get_by_role("link", name="Third one")).to_have_count(0)
    await person.see("“Third one” is in the trash.")
    await person.page.get_by_role("region", name="Notices").get_by_role("button", name="Undo").last.click()
    await expect(nav.get_by_role("link", name="Third one")).to_be_visible()
    told = [(await person.served.client.get(f"/api/v1/sessions/{id}")).json() for id in ids]
    assert [(one["title"], one["pinned"], one["archived"], one["deleted"]) for one in told] == [
        ("First one", True, False, False),
        ("Another name", False, False, False),
        ("Third one", False, False, False),
    ]


async def test_what_is_in_the_trash_goes_for_good_after_a_second_question(person: Person) -> None:
    kept, gone = await named(person, "To be kept", "To be gone")
    nav = sidebar(person.page)
    for title in ("To be kept", "To be gone"):
        await chosen(person, title, "Delete")
    await nav.get_by_role("button", name="Trash").click()
    dialog = person.page.get_by_role("dialog", name="Remove for good")
    await chosen(person, "To be kept", "Remove for good …")
    await dialog.get_by_role("button", name="Cancel").click()
    await chosen(person, "To be gone", "Remove for good …")
    await expect(dialog).to_contain_text("“To be gone” goes with all")
    await dialog.get_by_role("button", name="Remove for good").click()
    await expect(nav.get_by_role("link", name="To be gone")).to_have_count(0)
    await expect(nav.get_by_role("link", name="To be kept")).to_be_visible()
    codes = [(await person.served.client.get(f"/api/v1/sessions/{id}")).status_code for id in (kept, gone)]
    assert codes == [200, 404]


async def test_titles_are_found_at_once_and_words_in_conversations(person: Person) -> None:
    await named(person, "Mend the parser", "Write a story")
    await person.begin("Tell me about hedgehogs")
    await person.see("Hello from the model.")
    nav, box = sidebar(person.page), person.page.get_by_role("searchbox", name="Search sessions")
    await box.fill("PARSER mend")
    await expect(nav.get_by_role("link", name="Mend the parser")).to_be_visible()
    await expect(nav.get_by_role("link", name="Write a story")).to_have_count(0)
    await box.fill("Hello from")
    await expect(nav.get_by_text("In the conversations")).to_be_visible()
    place = nav.get_by_role("link").filter(has_text="Hello from the model.")
    await place.click()
    await expect(person.page).to_have_url(re.compile("/chat/"))
    await box.fill("nowhere to be found")
    await expect(nav.get_by_text("Nothing was found in the conversations.")).to_be_visible()
    await box.press("Escape")
    await expect(box).to_have_value("")


async def test_the_sidebar_is_used_by_keys_alone(person: Person) -> None:
    await named(person, "One", "Two", "Three")
    page, nav = person.page, sidebar(person.page)
    await page.get_by_role("searchbox").focus()
    await page.keyboard.press("ArrowDown")
    await expect(nav.get_by_role("link", name="Three")).to_be_focused()
    await page.keyboard.press("End")
    await expect(nav.get_by_role("link", name="One")).to_be_focused()
    await page.keyboard.press("F2")
    await page.keyboard.type("Uno")
    await page.keyboard.press("Enter")
    await expect(nav.get_by_role("link", name="Uno")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("menuitem", name="Pin")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(nav.get_by_role("link", name="Uno")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/chat/."))
    await expect(page).to_have_title("Uno · Sylph")
    await nav.get_by_role("link", name="Two").focus()
    await page.keyboard.press("Delete")
    await expect(nav.get_by_role("link", name="Two")).to_have_count(0)


async def test_thousands_of_sessions_stay_few_in_the_page(person: Person) -> None:
    row = (await person.served.session(title="x")) | {"asked": 0, "queued": 0}

    async def many(route: Route) -> None:
        at = int(route.request.url.partition("cursor=")[2].partition("&")[0] or 0)
        items = [row | {"id": f"s{n}", "title": f"Number {n}", "updated": 10**12 - n} for n in range(at, at + 200)]
        await route.fulfill(json={"items": items, "next": str(at + 200) if at < 4800 else None})

    await person.page.route("**/api/v1/sessions?*", many)
    await person.page.reload()
    nav = sidebar(person.page)
    await expect(nav.get_by_text("5000")).to_be_visible()
    assert await nav.get_by_role("listitem").count() < 60
    await nav.get_by_role("link", name="Number 0").focus()
    await person.page.keyboard.press("End")
    await expect(nav.get_by_role("link", name="Number 4999")).to_be_focused()
    await person.page.get_by_role("searchbox").fill("4321")
    await expect(nav.get_by_role("link", name="Number 4321")).to_be_visible()


async def test_the_palette_finds_sessions_pages_and_acts(person: Person) -> None:
    [id, _] = await named(person, "Mend the parser", "Else")
    page = person.page
    await page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Find or do anything")
    await expect(box).to_be_focused()
    await box.fill("pars")
    await expect(page.get_by_role("dialog").get_by_role("option").first).to_have_text(re.compile("^Mend the parser"))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(id))
    await page.keyboard.press("Control+k")
    await box.fill("pin")
    await page.keyboard.press("Enter")
    await expect(sidebar(page).get_by_role("listitem").nth(0)).to_contain_text("Pinned")
    await page.keyboard.press("Control+k")
    await box.fill("dashb")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await page.keyboard.press("Control+k")
    await box.fill("Dark")
    await page.keyboard.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.keyboard.press("Control+k")
    await page.keyboard.press("Escape")
    await expect(box).to_have_count(0)


async def test_keys_lead_about_and_can_be_switched_off(person: Person) -> None:
    page = person.page
    await page.goto("/dashboard")
    await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("s")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type("gdn?")
    await expect(page.get_by_role("searchbox")).to_have_value("gdn?")
    await page.get_by_role("heading", name="Dashboard").click()
    await page.keyboard.press("n")
    await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
    await page.goto("/dashboard")
    await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await page.keyboard.press("?")
    await page.get_by_label("Single letters").uncheck()
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await page.keyboard.press("Control+b")
    await expect(sidebar(page)).to_have_count(0)
    await page.reload()
    await page.get_by_role("button", name="Show the sessions").click()
    await expect(sidebar(page)).to_be_visible()


async def test_the_theme_is_kept_and_shared_by_tabs(person: Person, context: BrowserContext) -> None:
    other = await context.new_page()
    await other.goto("/dashboard")
    await person.page.get_by_label("Appearance").select_option("Dark")
    dark = "() => getComputedStyle(document.body).backgroundColor"
    assert await person.page.evaluate(dark) == "rgb(22, 24, 28)"
    await expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    await person.page.reload()
    await expect(person.page.locator("html")).to_have_attribute("data-theme", "dark")
    await person.page.get_by_label("Appearance").select_option("As the system")
    await expect(person.page.locator("html")).not_to_have_attribute("data-theme", "dark")


async def test_on_a_phone_the_sidebar_is_a_drawer_that_keeps_the_focus(person: Person) -> None:
    page = person.page
    await named(person, "One")
    await page.set_viewport_size({"width": 390, "height": 800})
    await expect(sidebar(page)).to_have_count(0)
    opener = page.get_by_role("button", name="Show the sessions")
    await opener.click()
    drawer = page.get_by_role("dialog", name="Sessions")
    for _ in range(12):
        await page.keyboard.press("Tab")
        assert (
            await page.evaluate("!document.activeElement.closest('dialog') && document.activeElement !== document.body")
            is False
        )
    await page.keyboard.press("Escape")
    await expect(drawer).to_have_count(0)
    await expect(opener).to_be_focused()
    await opener.click()
    await drawer.get_by_role("link", name="One").click()
    await expect(drawer).to_have_count(0)
    await expect(page).to_have_url(re.compile("/chat/."))
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_one_can_skip_to_the_content(person: Person) -> None:
    await person.page.goto("/dashboard")
    await expect(person.page.get_by_role("heading", name="Dashboard")).to_be_visible()
    await person.page.keyboard.press("Tab")
    await expect(person.page.get_by_role("button", name="Skip to the content")).to_be_focused()
    await person.page.keyboard.press("Enter")
    assert await person.page.evaluate("document.activeElement.classList.contains('page')")


async def test_an_address_without_a_page_says_so_in_the_app(person: Person) -> None:
    answer = await person.page.goto("/nonsense/page")
    assert answer
    assert answer.status == 404
    await expect(person.page.get_by_role("heading", name="There is no such page.")).to_be_visible()
    await person.page.get_by_role("link", name="Begin a new one").click()
    await expect(person.page.get_by_role("button", name="Begin")).to_be_visible()
