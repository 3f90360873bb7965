"""A turn through the server, from the first request to the last event."""

from tests.http.served import Served

MODEL = "openai/scripted"


async def test_a_turn_is_asked_for_and_followed(served: Served) -> None:
    session = await served.session(model=MODEL, title="A first one")
    await served.say(session["id"], "hello")
    seen = await served.until(session["id"])
    assert [event.type for event in seen if event.id][:2] == ["session.created", "input.received"]
    assert any(event.type == "model.responded" and "Hello" in str(event.data["data"]) for event in seen)
    assert [int(event.id) for event in seen if event.id] == list(range(1, len([e for e in seen if e.id]) + 1))
    listed = (await served.client.get("/api/v1/sessions")).json()["items"]
    assert [one["title"] for one in listed] == ["A first one"]


async def test_without_a_credential_nothing_is_told(served: Served) -> None:
    refused = await served.bare.get("/api/v1/sessions")
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["kind"] == "unauthorized"
    assert (await served.bare.get("/api/v1/health/ready")).status_code == 200
