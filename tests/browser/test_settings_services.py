"""Services, models, roles and the state of the installation."""

import pytest
from playwright.async_api import expect
from tests.browser.person import Person
from tests.model_server import ModelServer

KEY = "sk-a-key-to-be-kept-4711"


@pytest.mark.alone
async def test_a_key_is_saved_tested_and_taken_away(person: Person, scripted: ModelServer) -> None:
    page, client = person.page, person.served.client
    await client.patch("/api/v1/config", json={"set": {"providers.mine.base_url": scripted.url}})
    await page.goto("/settings/services")
    await page.get_by_label("Service", exact=True).select_option("mine")
    await page.get_by_label("Key", exact=True).fill("two words")
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("That is not a key")
    await page.get_by_label("Key", exact=True).fill(KEY)
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("The key of mine is saved. It opens")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("button", name="Test mine"))
    await expect(row).to_contain_text("4711")
    assert KEY not in await page.content()
    await row.get_by_role("button", name="Test mine").click()
    await person.see("mine answers:")
    await row.get_by_role("button", name="Disconnect mine").click()
    # To the letter: the button before is called "Disconnect mine", and may still stand there.
    await row.get_by_role("button", name="Disconnect", exact=True).click()
    await person.see("The key of mine is forgotten here.")
    await expect(row).to_be_hidden()
    connected = (await client.get("/api/v1/credentials")).json()["connected"]
    assert "mine" not in [each["provider"] for each in connected]


@pytest.mark.alone
async def test_models_are_tried_and_given_roles(person: Person) -> None:
    page, client = person.page, person.served.client
    await page.goto("/settings/models")
    await page.get_by_role("button", name="Test openai/scripted").click()
    await person.see("Hello from the model.")
    await page.get_by_label("judge", exact=True).fill("nobody/nothing")
    await page.get_by_role("button", name="Save judge").click()
    await expect(page.get_by_role("alert").first).to_be_visible()
    await page.get_by_label("judge", exact=True).fill("openai/scripted")
    await page.get_by_role("button", name="Save judge").click()
    await person.see("judge is saved.")
    roles = (await client.get("/api/v1/roles")).json()["items"]
    assert next(each for each in roles if each["role"] == "judge")["from"] == "config"
    await page.get_by_label("Search models").fill("no such model")
    await person.see("No model has this name.")


async def test_the_installation_tells_of_itself(person: Person) -> None:
    page = person.page
    await page.goto("/settings/about")
    version = (await person.served.client.get("/api/v1/health")).json()["version"]
    await expect(page.get_by_role("definition").filter(has_text=version).first).to_be_visible()
    await page.get_by_role("button", name="Examine everything").click()
    await expect(page.get_by_text("Nothing is broken.").or_(page.get_by_text("Something is broken."))).to_be_visible()
    await page.get_by_text("The browser app contains these packages").click()
    await page.get_by_text("dompurify").click()
    await person.see("Apache")
