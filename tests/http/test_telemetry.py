"""Traces and metrics for OpenTelemetry: what a collector hears of a turn, and what happens where none is."""

import time

from tests.flows.program import Model, Sylph
from tests.http.collector import Collector, Span
from tests.http.served import serving
from tests.model_server import call, fail, say
from tests.patience import PATIENCE

CANARY = "canary-7d2f9b4e6a1c8053"
SECRET = "the words of the user"
INTERNAL, CLIENT = 1, 3


def switch_on(sylph: Sylph, *more: str) -> None:
    lines = ["probe = false", "[redact]", f'literals = ["{CANARY}"]', "[telemetry]", "enabled = true", *more]
    (sylph.home / "sylph" / "config.toml").write_text("\n".join(lines) + "\n")


def named(collector: Collector, name: str) -> Span:
    (found,) = [span for span in collector.spans if span.name == name]
    return found


async def test_a_one_shot_is_told_as_one_trace(sylph: Sylph, model: Model) -> None:
    await model([call("read", path="a.txt"), call("read", path="none.txt"), say(f"It says {CANARY}.")])
    (sylph.workspace / "a.txt").write_text("a\n")
    switch_on(sylph)
    async with Collector() as collector:
        sylph.environ.update(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="mine")
        done = await sylph.run("run", "-m", "openai/scripted", f"{SECRET} {CANARY}")
        assert done.code == 0, done.err
    assert collector.services == {"mine"}
    turn = named(collector, "invoke_agent sylph")
    assert (turn.kind, turn.parent) == (INTERNAL, b"")
    assert turn.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert turn.attributes["sylph.outcome"] == "finished"
    chats = [span for span in collector.spans if span.name == "chat scripted"]
    assert len(chats) == 3
    for span in chats:
        assert (span.kind, span.parent, span.trace) == (CLIENT, turn.id, turn.trace)
        assert span.attributes["gen_ai.provider.name"] == "openai"
        assert span.attributes["gen_ai.request.model"] == "scripted"
        assert turn.start <= span.start <= span.end <= turn.end
    assert [span.attributes["gen_ai.response.finish_reasons"] for span in chats][-1] == ["stop"]
    tokens = sum(span.attributes["gen_ai.usage.output_tokens"] for span in chats)
    assert tokens == turn.attributes["gen_ai.usage.output_tokens"] > 0
    reads = [span for span in collector.spans if span.name == "execute_tool read"]
    assert [span.attributes.get("error.type", "") != "" for span in reads] == [False, True]
    assert all(span.parent == turn.id and span.attributes["gen_ai.tool.name"] == "read" for span in reads)
    usage = {point["gen_ai.token.type"]: point for point in collector.metrics["gen_ai.client.token.usage"]}
    assert (usage["output"]["count"], usage["output"]["sum"]) == (3, tokens)
    (duration,) = collector.metrics["gen_ai.client.operation.duration"]
    assert (duration["count"], duration["gen_ai.operation.name"]) == (3, "chat")
    for said in (CANARY, SECRET, "a.txt", "a-key-for-tests"):
        assert said.encode() not in collector.raw


async def test_content_is_told_where_that_is_wanted_and_never_a_secret(sylph: Sylph, model: Model) -> None:
    await model([say(f"The answer is {CANARY}.")])
    async with Collector() as collector:
        switch_on(sylph, "content = true", f'endpoint = "{collector.url}"')
        async with serving(sylph) as served:
            session = (await served.session(model="openai/scripted"))["id"]
            await served.say(session, f"{SECRET} {CANARY}")
            await served.until(session)
    turn, chat = named(collector, "invoke_agent sylph"), named(collector, "chat scripted")
    assert turn.attributes["gen_ai.conversation.id"] == session
    assert SECRET in turn.attributes["gen_ai.input.messages"]
    assert "The answer is" in chat.attributes["gen_ai.output.messages"]
    assert CANARY.encode() not in collector.raw


async def test_a_failed_call_is_an_error_and_a_dead_collector_is_none(sylph: Sylph, model: Model) -> None:
    await model([fail(400, "no"), say("Never asked.")])
    async with Collector() as collector:
        switch_on(sylph, f'endpoint = "{collector.url}"')
        assert (await sylph.run("run", "-m", "openai/scripted", "hello")).code != 0
    assert named(collector, "chat scripted").attributes["error.type"] == "bad_request"
    assert named(collector, "invoke_agent sylph").attributes["sylph.outcome"] == "failed"
    switch_on(sylph, 'endpoint = "http://127.0.0.1:9"')
    began = time.monotonic()
    done = await sylph.run("run", "-m", "openai/scripted", "hello")
    assert (done.code, done.out.strip()) == (0, "Never asked.")
    assert time.monotonic() - began < PATIENCE / 2


async def test_nothing_is_told_unless_it_is_wanted(sylph: Sylph, model: Model) -> None:
    await model([say("Quiet.")])
    async with Collector() as collector:
        sylph.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        assert (await sylph.run("run", "-m", "openai/scripted", "hello")).code == 0
        assert collector.posts == 0
