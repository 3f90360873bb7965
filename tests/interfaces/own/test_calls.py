"""What is asked of a server's runtime comes through as it was."""

from pathlib import Path

import msgspec
import pytest

from sylph.app import App
from sylph.core import errors, facts
from sylph.core.commands import Answer, Send
from sylph.core.errors import NoModel, ProviderError, SylphError, UserError
from sylph.core.events import Carried, Event
from sylph.core.signals import TextDelta
from sylph.core.tool import Picture
from sylph.engine.runtime import NewSession, Runtime
from sylph.interfaces.own import calls
from sylph.interfaces.own.distant import Distant, DistantApp


def test_every_method_of_the_runtime_is_forwarded_or_local_by_decision() -> None:
    public = {name for name in vars(Runtime) if not name.startswith("_")}
    forwarded = {name.removeprefix("runtime.") for name in calls.CALLS | calls.STREAMS if name.startswith("runtime.")}
    assert public == forwarded | calls.LOCAL
    assert forwarded <= set(vars(Distant))
    asked = {name.removeprefix("app.") for name in calls.CALLS if name.startswith("app.")}
    assert asked <= set(vars(DistantApp)) & set(vars(App))


@pytest.mark.parametrize("name", sorted(calls.CALLS | calls.STREAMS))
def test_each_call_has_types_that_can_be_written(name: str) -> None:
    shape = calls.shape(name)
    assert "self" not in shape.takes
    calls.result(None if shape.gives is type(None) else [])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("runtime.create", {"new": NewSession(workspace=Path("/a b"), model="m/x", budget=3)}),
        ("runtime.send", {"session": "s", "command": Answer(id="q", answer="yes", reason="so")}),
        (
            "runtime.send",
            {"session": "s", "command": Send(text="ü", files=(Picture(media="image/png", data=b"\xff\0"),))},
        ),
        ("runtime.import_", {"lines": [b"\xff", b"{}"], "new_id": True}),
        ("runtime.tried", {"seconds": None, "session": ""}),
    ],
)
def test_arguments_arrive_as_they_were(name: str, given: dict[str, object]) -> None:
    assert calls.read_arguments(name, calls.arguments(name, given)) == given


def test_half_characters_do_not_stop_a_message() -> None:
    sent = calls.arguments("runtime.send", {"session": "s", "command": Send(text="a\udcffb")})
    assert calls.read_arguments("runtime.send", sent)["command"].text == "a?b"


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x80", msgspec.msgpack.encode({"session": 3, "command": ["Send", {}]})]
)
def test_what_is_no_call_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        calls.read_arguments("runtime.send", body)


def test_events_arrive_as_they_were_also_those_that_nobody_can_read() -> None:
    bodies = [
        facts.InputReceived(id="i1", text="hello"),
        TextDelta(text="a piece"),
        Carried(type="of.tomorrow", raw=b'{"x":1}', why="unknown type"),
        Carried(type="input.received", raw=b"\xff", why="damaged: no"),
    ]
    events = [Event(session="s", seq=1, ts=2, body=body, turn="t1", hash="ab") for body in bodies]
    assert calls.read_result("runtime.read", calls.result(events)) == events
    assert [calls.read_result("runtime.watch", calls.result(each)) for each in events] == events


def test_errors_are_raised_as_what_they_were() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, SylphError)]
    for kind in kinds:
        made = kind("auth", "no") if kind is ProviderError else kind("no", details={"a": 1}, next=["do"])
        told = calls.read_failure(calls.failure(made))
        assert (type(told), told.trouble) == (kind, made.trouble)
    own = type("Odd", (UserError,), {})("odd", kind="odd_kind")
    told = calls.read_failure(calls.failure(own))
    assert (type(told), told.trouble.kind) == (UserError, "odd_kind")
    assert isinstance(calls.read_failure(calls.failure(NoModel("none"))), NoModel)
