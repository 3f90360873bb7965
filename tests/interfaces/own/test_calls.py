"""What is asked of a server's runtime comes through as it was."""

from pathlib import Path

import msgspec
import pytest

from sylph.app import App
from sylph.core import errors, facts
from sylph.core.commands import Answer, Send
from sylph.core.errors import NoModel, ProviderError, SylphError, UserError
from sylph.core.events import Event, UnreadableRecord
from sylph.core.signals import TextDelta
from sylph.core.tool import ImageData
from sylph.engine.runtime.runtime import NewSession, Runtime
from sylph.interfaces.local_socket import protocol
from sylph.interfaces.local_socket.remote_runtime import RemoteApp, RemoteRuntime


def test_every_method_of_the_runtime_is_forwarded_or_local_by_decision() -> None:
    public = {name for name in vars(Runtime) if not name.startswith("_")}
    forwarded = {
        name.removeprefix("runtime.") for name in protocol.CALLS | protocol.STREAMS if name.startswith("runtime.")
    }
    assert public == forwarded | protocol.LOCAL_METHODS
    assert forwarded <= set(vars(RemoteRuntime))
    asked = {name.removeprefix("app.") for name in protocol.CALLS if name.startswith("app.")}
    assert asked <= set(vars(RemoteApp)) & set(vars(App))


@pytest.mark.parametrize("name", sorted(protocol.CALLS | protocol.STREAMS))
def test_each_call_has_types_that_can_be_written(name: str) -> None:
    shape = protocol.call_signature(name)
    assert "self" not in shape.parameters
    protocol.encode_result(None if shape.returns is type(None) else [])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("runtime.create_session", {"new": NewSession(workspace=Path("/a b"), model="m/x", budget=3)}),
        ("runtime.send", {"session": "s", "command": Answer(id="q", answer="yes", reason="so")}),
        (
            "runtime.send",
            {"session": "s", "command": Send(text="ü", files=(ImageData(media="image/png", data=b"\xff\0"),))},
        ),
        ("runtime.import_session", {"lines": [b"\xff", b"{}"], "new_id": True}),
        ("runtime.wait_for_deliveries", {"seconds": None, "session": ""}),
    ],
)
def test_arguments_arrive_as_they_were(name: str, given: dict[str, object]) -> None:
    assert protocol.decode_arguments(name, protocol.encode_arguments(name, given)) == given


def test_half_characters_do_not_stop_a_message() -> None:
    sent = protocol.encode_arguments("runtime.send", {"session": "s", "command": Send(text="a\udcffb")})
    assert protocol.decode_arguments("runtime.send", sent)["command"].text == "a?b"


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x80", msgspec.msgpack.encode({"session": 3, "command": ["Send", {}]})]
)
def test_what_is_no_call_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        protocol.decode_arguments("runtime.send", body)


def test_events_arrive_as_they_were_also_those_that_nobody_can_read() -> None:
    bodies = [
        facts.InputReceived(id="i1", text="hello"),
        TextDelta(text="a piece"),
        UnreadableRecord(type="of.tomorrow", raw=b'{"x":1}', why="unknown type"),
        UnreadableRecord(type="input.received", raw=b"\xff", why="damaged: no"),
    ]
    events = [Event(session="s", seq=1, ts=2, body=body, turn="t1", hash="ab") for body in bodies]
    assert protocol.decode_result("runtime.read_events", protocol.encode_result(events)) == events
    assert [protocol.decode_result("runtime.watch", protocol.encode_result(each)) for each in events] == events


def test_errors_are_raised_as_what_they_were() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, SylphError)]
    for kind in kinds:
        made = kind("auth", "no") if kind is ProviderError else kind("no", details={"a": 1}, next=["do"])
        told = protocol.decode_failure(protocol.encode_failure(made))
        assert (type(told), told.trouble) == (kind, made.trouble)
    own = type("Odd", (UserError,), {})("odd", kind="odd_kind")
    told = protocol.decode_failure(protocol.encode_failure(own))
    assert (type(told), told.trouble.kind) == (UserError, "odd_kind")
    assert isinstance(protocol.decode_failure(protocol.encode_failure(NoModel("none"))), NoModel)
