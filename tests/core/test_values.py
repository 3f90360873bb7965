"""The small values everything else is made of."""

import time
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from sylph.core import ids
from sylph.core.clock import SystemClock
from sylph.core.errors import CallRefused, ProviderError, StoreError, SylphError, ToolError, UserError
from sylph.core.messages import Usage
from sylph.core.plugin import Plugin, merge_plugins
from sylph.core.text import formatting, suggestion
from sylph.core.tool import ToolArgs, args_schema


@given(st.text(), st.integers(len(formatting.ELLIPSIS), 50))
def test_a_trimmed_text_keeps_its_ends_and_its_limit(whole: str, limit: int) -> None:
    cut = formatting.truncate_middle(whole, limit)
    assert len(cut) <= limit
    assert cut == whole or (formatting.ELLIPSIS in cut and whole.startswith(cut.partition(formatting.ELLIPSIS)[0]))


@given(st.text(), st.integers(2, 50))
def test_a_first_line_is_one_short_line(whole: str, limit: int) -> None:
    line = formatting.first_line(whole, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_things_are_counted_in_words() -> None:
    assert [formatting.count_noun(number, "fact") for number in (0, 1, 1234)] == ["0 facts", "1 fact", "1,234 facts"]


def test_ids_are_readable_and_unique() -> None:
    made = {ids.new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert set("".join(made)) <= set(ids.ALPHABET)
    assert (ids.turn_id(3), ids.call_id("t3", 1), ids.question_id("t3", 2), ids.input_id(4)) == (
        "t3",
        "t3_c1",
        "t3_q2",
        "i4",
    )


def test_what_somebody_probably_meant() -> None:
    assert suggestion.suggest_word("modle", ["model", "trust"]) == " Did you mean 'model'?"
    assert suggestion.suggest_word("xyz", ["model"]) == ""


def test_the_clock_tells_the_time_and_only_grows() -> None:
    clock = SystemClock()
    assert abs(clock.now() - time.time() * 1000) < 1000
    assert clock.ticks() <= clock.ticks()


@pytest.mark.parametrize(
    ("error", "audience", "kind"),
    [
        (CallRefused("no"), ToolError, "refused"),
        (StoreError("full", kind="store_full"), UserError, "store_full"),
        (ProviderError("auth", "who are you?", status=401), SylphError, "auth"),
    ],
)
def test_an_error_is_data_for_whom_it_concerns(error: SylphError, audience: type[SylphError], kind: str) -> None:
    assert isinstance(error, audience)
    assert (error.trouble.kind, error.trouble.message) == (kind, str(error))


def test_details_are_text_and_a_status_is_one_of_them() -> None:
    assert ProviderError("auth", "?", status=401).trouble.details == {"status": "401"}
    assert ProviderError("network", "?").trouble.details == {}


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


def test_many_plugins_are_one() -> None:
    one, two = Plugin(name="a", sections=(lambda: "1",)), Plugin(name="b", sections=(lambda: "2",))
    assert [section() for section in merge_plugins([one, two]).sections] == ["1", "2"]


class Edit(Struct):
    old: str


class Many(ToolArgs, frozen=True):
    """Not for the model."""

    path: Annotated[str, Meta(description="where")]
    edits: tuple[Edit, ...] = ()


class Plain(ToolArgs, frozen=True):
    path: str


def test_the_schema_of_arguments_is_plain_and_complete() -> None:
    assert args_schema(Plain) == {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    schema = args_schema(Many)
    assert (schema["properties"]["path"]["description"], list(schema["$defs"])) == ("where", ["Edit"])
    assert "title" not in schema
