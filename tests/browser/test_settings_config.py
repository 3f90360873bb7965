"""The configuration as a form: changed, refused, searched, and saved though somebody else saved, too."""

from typing import Any

import pytest
from playwright.async_api import expect
from tests.browser.person import Person

CONFIG = "/api/v1/config"
pytestmark = pytest.mark.alone


async def value(person: Person, key: str) -> dict[str, Any]:
    view = (await person.served.client.get(CONFIG)).json()
    return next(each for each in view["values"] if each["key"] == key)


async def elsewhere(person: Person, **values: object) -> None:
    """Somebody else sets something."""
    dotted = {key.replace("__", "."): each for key, each in values.items()}
    assert (await person.served.client.patch(CONFIG, json={"set": dotted})).status_code == 200


async def test_a_value_is_set_used_and_unset(person: Person) -> None:
    page = person.page
    await page.get_by_role("link", name="Settings").click()
    mode = page.get_by_label("Mode", exact=True)
    await mode.select_option("plan")
    await person.see("1 change is not saved.")
    await page.get_by_role("button", name="Save mode", exact=True).click()
    await person.see("Saved. It counts now.")
    assert (await person.served.session())["mode"] == "plan"
    assert 'mode = "plan"' in (person.served.sylph.home / "sylph" / "config.toml").read_text()
    await page.get_by_role("button", name="Unset mode", exact=True).click()
    await person.see("Will be taken out of the file; then ask counts.")
    await page.get_by_role("button", name="Save 1 change").click()
    await person.see("Saved. It counts now.")
    assert await value(person, "mode") | {"value": "ask", "from": "default"} == await value(person, "mode")


async def test_what_is_wrong_is_told_while_it_is_typed_and_several_are_saved_together(person: Person) -> None:
    page = person.page
    await page.goto("/settings/config/limits")
    rounds = page.get_by_label("Rounds", exact=True)
    for bad, said in (("0", "At least 1."), ("many", "This is not a number."), ("1.5", "A whole number.")):
        await rounds.fill(bad)
        await person.see(said)
        await expect(page.get_by_role("button", name="Save limits.rounds")).to_be_disabled()
    await rounds.fill("7")
    await page.get_by_label("Turn seconds").fill("90")
    # What is not saved stays while one looks elsewhere.
    await page.get_by_role("link", name="About").click()
    await expect(page.get_by_role("heading", name="About")).to_be_visible()
    await page.get_by_role("link", name="Configuration").click()
    await page.get_by_role("link", name="Server", exact=False).click()
    await page.get_by_label("Port").fill("8091")
    await page.get_by_role("button", name="Save 3 changes").click()
    await expect(
        page.get_by_role("status").filter(has_text="Saved. A restart is needed for: server.port")
    ).to_be_visible()
    for key, set_ in (("limits.rounds", 7), ("limits.turn_seconds", 90), ("server.port", 8091)):
        assert (await value(person, key))["value"] == set_
    await page.reload()
    await person.see("A restart is needed for: server.port")


async def test_two_who_change_the_same_decide(person: Person) -> None:
    page = person.page
    await page.goto("/settings/config/limits")
    await page.get_by_label("Rounds", exact=True).fill("7")
    await elsewhere(person, limits__rounds=9)
    await person.see("was 250; they set 9; you want 7")
    assert (await value(person, "limits.rounds"))["value"] == 9
    await page.get_by_role("button", name="Keep mine").click()
    await page.get_by_role("button", name="Save 1 change").click()
    await person.see("Saved. It counts now.")
    assert (await value(person, "limits.rounds"))["value"] == 7
    await page.get_by_label("Retries").fill("2")
    await elsewhere(person, limits__concurrency=3)
    await person.see("but nothing that you did")
    await expect(page.get_by_label("Concurrency", exact=True)).to_have_value("3")
    await page.get_by_role("button", name="Save 1 change").click()
    await person.see("Saved. It counts now.")
    assert [(await value(person, f"limits.{key}"))["value"] for key in ("retries", "concurrency")] == [2, 3]


async def test_what_is_changed_elsewhere_is_shown_at_once(person: Person) -> None:
    page = person.page
    await page.goto("/settings/config/limits")
    await expect(page.get_by_label("Rounds", exact=True)).to_have_value("250")
    assert (await person.served.sylph.run("config", "set", "limits.rounds", "17")).code == 0
    await expect(page.get_by_label("Rounds", exact=True)).to_have_value("17")
    file = person.served.sylph.home / "sylph" / "config.toml"
    await page.goto("/settings/raw")
    box = page.get_by_role("textbox", name="Text editor")
    await expect(box).to_contain_text("rounds = 17")
    file.write_text(file.read_text().replace("17", "18"))
    await expect(box).to_contain_text("rounds = 18")
    await box.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.insert_text("# mine\n")
    file.write_text(file.read_text().replace("18", "19"))
    await expect(page.get_by_text("Somebody else changed it while you did")).to_be_visible()
    await expect(box.first).to_contain_text("# mine")
    await page.goto("/settings/models")
    assert (await person.served.sylph.run("config", "set", "roles.judge", "openai/scripted")).code == 0
    await expect(page.get_by_label("judge", exact=True)).to_have_value("openai/scripted")


async def test_tables_with_names_lists_and_rows(person: Person) -> None:
    page = person.page
    await page.goto("/settings/config/providers")
    await page.get_by_label("Add to Providers").fill("openai")
    await person.see("There is one of that name already.")
    await page.get_by_label("Add to Providers").fill("my.own")
    await page.get_by_label("Add to Providers").press("Enter")
    group = page.get_by_role("region", name='providers."my.own"', exact=True)
    await group.get_by_label("Base url").fill("http://127.0.0.1:9/v1")
    await group.get_by_label("Api key", exact=True).fill("sk-a-secret-of-mine-0042")
    await page.get_by_role("button", name="Save 2 changes").click()
    await person.see("Saved. It counts now.")
    shown = await value(person, 'providers."my.own".api_key')
    assert shown["value"].endswith("0042")
    assert "secret-of-mine" not in await page.content()
    await expect(group.get_by_label("Api key", exact=True)).to_have_attribute("placeholder", "kept: …0042")
    await page.get_by_role("button", name="Remove my.own").click()
    await page.get_by_role("button", name="Save 1 change").click()
    await expect(group).to_be_hidden()
    await page.get_by_label("Search settings").fill("allow command host")
    await page.get_by_role("button", name="Add an entry").click()
    await page.get_by_label("Decision").select_option("deny")
    await page.get_by_label("Command").fill("git push *")
    await page.get_by_label("Search settings").fill("hosts commands may reach")
    await page.get_by_label("Hosts", exact=True).fill("a.example\n*.b.example")
    await page.get_by_role("button", name="Save 2 changes").click()
    await person.see("A restart is needed for: sandbox.hosts")
    assert (await value(person, "rules"))["value"] == [{"decision": "deny", "command": "git push *"}]
    assert (await value(person, "sandbox.hosts"))["value"] == ["a.example", "*.b.example"]
