"""What a model file says of itself, and files that are none."""

import struct
from pathlib import Path

import pytest
from tests.small_model import LOCAL, needs_model

from sylph.core.errors import UserError
from sylph.providers.local import gguf, packages

TEXT, NUMBER, LIST = 8, 4, 9


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, value: str | int | list[str]) -> bytes:
    match value:
        case str():
            return text(key) + struct.pack("<I", TEXT) + text(value)
        case int():
            return text(key) + struct.pack("<II", NUMBER, value)
        case list():
            return text(key) + struct.pack("<IIQ", LIST, TEXT, len(value)) + b"".join(map(text, value))


def model(*, architecture: str = "llama", values: int = 64, template: str = "{{ messages }}") -> bytes:
    """A model file with one tensor."""
    head = head_of(architecture, values, template)
    return head + b"\0" * (-len(head) % 32) + b"\0" * values * 4


def head_of(architecture: str, values: int, template: str = "") -> bytes:
    """What comes before the `values` numbers of the tensor."""
    known = {"general.architecture": architecture, "general.name": "A model", f"{architecture}.context_length": 4096}
    known |= {"tokenizer.ggml.tokens": ["a", "b"], "tokenizer.chat_template": template}
    tensor = text("weights") + struct.pack("<IQIQ", 1, values, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(known)) + b"".join(entry(*each) for each in known.items()) + tensor


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        gguf.read_info(path)
    assert caught.value.trouble.kind == "bad_model"
    return str(caught.value)


def test_a_file_tells_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model())
    card = gguf.read_info(path)
    assert card == gguf.GgufInfo(
        size=path.stat().st_size, architecture="llama", title="A model", window=4096, template=True
    )


@pytest.mark.parametrize("cut", [1, 100, 256])
def test_a_file_that_ends_too_early_is_not_taken(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model()[:-cut])
    assert "its end is missing" in refused(path)


def test_whether_it_can_be_given_tools_stands_in_its_template(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model(template="{% for tool in tools %}"))
    assert gguf.read_info(path).tools
    path.write_bytes(model(template=""))
    assert not gguf.read_info(path).template


def test_every_cut_through_the_head_is_noticed(tmp_path: Path) -> None:
    path, whole = tmp_path / "m.gguf", model()
    for length in range(4, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)


def test_what_is_no_model_file_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"PK\3\4 something else")
    assert "not a GGUF file" in refused(path)
    path.write_bytes(b"")
    assert "not a GGUF file" in refused(path)
    assert "there is no such file" in refused(tmp_path / "none.gguf")
    assert "it is a folder" in refused(tmp_path)


@pytest.mark.parametrize(
    "hostile",
    [
        struct.pack("<IQQ", 3, 2**63, 0),
        struct.pack("<IQQ", 3, 0, 2**63),
        struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63),
        struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", LIST, TEXT, 2**62),
        struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", LIST, LIST, 3),
        struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 77),
        struct.pack("<IQQ", 99, 0, 0),
        struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<I", 2**31),
    ],
)
def test_a_hostile_head_costs_nothing(tmp_path: Path, hostile: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + hostile)
    refused(path)


def test_models_that_cannot_talk_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model(architecture="nomic-bert"))
    assert "no model to talk with" in refused(path)


def test_a_model_in_several_files_must_be_whole(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    first.write_bytes(model())
    assert "a part of it is missing: m-00002-of-00002.gguf" in refused(first)
    second.write_bytes(model())
    assert gguf.read_info(first).size == 2 * len(model())
    assert "not the first of its parts" in refused(second)


@needs_model
def test_the_small_model_is_a_model() -> None:
    path = packages.small_model_path(LOCAL)
    assert path
    card = gguf.read_info(path)
    assert (card.architecture, card.window, card.template) == ("llama", 8192, True)
