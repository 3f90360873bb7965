"""The OpenAPI document: one registry of routes, every one of them described, with examples that are true."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from openapi_spec_validator import validate

from sylph.core.facts import FACTS
from sylph.core.signals import SIGNALS
from sylph.interfaces.http.api import SUBJECTS, make
from sylph.interfaces.http.examples import example_of, shown
from sylph.interfaces.http.house import House
from sylph.interfaces.http.problems import STATUS
from sylph.interfaces.http.route import Declared, declared_by
from sylph.interfaces.http.schema import API
from sylph.interfaces.http.tags import TAGS
from sylph.interfaces.http.troubles import trouble_of

DECLARED = [each for each in declared_by(SUBJECTS) if each.path.startswith(API)]

# Kinds whose status is not in the table: they are told where they come up.
OTHERWISE = {"bad_body": 400, "bad_parameter": 422}


def name(route: Declared) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return make(cast(House, SimpleNamespace())).openapi()


def test_it_is_valid(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    validate(cast(Any, document))


def test_every_operation_is_a_declared_route(document: dict[str, Any]) -> None:
    listed = {f"{method.upper()} {path}" for path, operations in document["paths"].items() for method in operations}
    assert listed == {f"{route.method} {route.address}" for route in DECLARED}


@pytest.mark.parametrize("route", DECLARED, ids=name)
def test_every_operation_tells_all(document: dict[str, Any], route: Declared) -> None:
    told = document["paths"][route.address][route.method.lower()]
    assert told["summary"] and told["description"], "It has no docstring."
    assert set(told["tags"]) <= set(TAGS), "Its subject has no description in tags.py."
    assert told["security"] == ([] if route.scope is None else [{"token": []}, {"cookie": []}, {"tls_cookie": []}])
    good = told["responses"][str(route.status)]
    if route.status not in (204, 304):
        for media, content in good["content"].items():
            assert content["schema"]
            assert "example" in content or media not in ("application/json", "text/event-stream")
    for status, answer in told["responses"].items():
        if int(status) >= 400:
            assert all(each["schema"] and each["example"] for each in answer["content"].values())
    assert all(each.get("schema") for each in told.get("parameters", ()))


@pytest.mark.parametrize("route", DECLARED, ids=name)
def test_examples_are_what_they_are_examples_of(route: Declared) -> None:
    for shape, given in ((route.takes, route.example), (route.gives, route.answer)):
        if shape is not None:
            example = shown(given) if given is not None else example_of(shape)
            msgspec.convert(example, shape, strict=False)


@pytest.mark.parametrize("route", DECLARED, ids=name)
def test_problems_fit_their_status(document: dict[str, Any], route: Declared) -> None:
    told = document["paths"][route.address][route.method.lower()]["responses"]
    for status, answer in told.items():
        if int(status) < 400:
            continue
        example = next(each["example"] for each in answer["content"].values())
        if kind := example.get("kind"):
            assert (example["status"], STATUS.get(kind, 0) or OTHERWISE[kind]) == (int(status), int(status))
        else:
            assert example["error"]["code"] == trouble_of(int(status), route).kind


def test_names_say_nothing_of_modules(document: dict[str, Any]) -> None:
    assert not [each for each in document["components"]["schemas"] if "." in each]


def test_both_names_of_the_cookie_are_told(document: dict[str, Any]) -> None:
    ways = document["components"]["securitySchemes"].values()
    assert {way["name"] for way in ways if way["type"] == "apiKey"} == {"sylph", "__Host-sylph"}


def test_scopes_that_depend_on_a_parameter_are_told(document: dict[str, Any]) -> None:
    assert "`admin` with `purge=true`" in document["paths"]["/api/v1/sessions/{id}"]["delete"]["description"]


def test_every_event_is_in_it(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert {each.__name__ for each in (*FACTS, *SIGNALS)} <= {key.rpartition(".")[2] for key in schemas}
    assert all(schemas[each.__name__].get("description") for each in SIGNALS)
    assert "input.received" in schemas["Event"]["properties"]["type"]["examples"]
