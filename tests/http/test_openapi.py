"""The OpenAPI document: one registry of routes, every one of them described, with examples that are true."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from openapi_spec_validator import validate

from sylph.core.facts import FACTS
from sylph.core.signals import SIGNALS
from sylph.interfaces.http.api.create_api import create_api
from sylph.interfaces.http.api.openapi import API_PREFIXES
from sylph.interfaces.http.api.openapi_examples import example_of, to_json_value
from sylph.interfaces.http.api.openapi_tags import TAGS
from sylph.interfaces.http.api.problem_examples import example_problem
from sylph.interfaces.http.api.route_table import ALL_ROUTES
from sylph.interfaces.http.kit.problem_details import STATUS_BY_KIND
from sylph.interfaces.http.kit.route import RouteDeclaration, all_declarations
from sylph.interfaces.http.state.server_state import ServerState

DECLARED = [each for each in all_declarations(ALL_ROUTES) if each.path.startswith(API_PREFIXES)]

# Kinds whose status is not in the table: they are told where they come up.
OTHERWISE = {"bad_body": 400, "bad_parameter": 422}


def name(route: RouteDeclaration) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_api(cast(ServerState, SimpleNamespace())).openapi()


def test_it_is_valid(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    validate(cast(Any, document))


def test_every_operation_is_a_declared_route(document: dict[str, Any]) -> None:
    listed = {f"{method.upper()} {path}" for path, operations in document["paths"].items() for method in operations}
    assert listed == {f"{route.method} {route.openapi_path}" for route in DECLARED}


@pytest.mark.parametrize("route", DECLARED, ids=name)
def test_every_operation_tells_all(document: dict[str, Any], route: RouteDeclaration) -> None:
    told = document["paths"][route.openapi_path][route.method.lower()]
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
def test_examples_are_what_they_are_examples_of(route: RouteDeclaration) -> None:
    for shape, given in ((route.takes, route.example), (route.gives, route.answer)):
        if shape is not None:
            example = to_json_value(given) if given is not None else example_of(shape)
            msgspec.convert(example, shape, strict=False)


@pytest.mark.parametrize("route", DECLARED, ids=name)
def test_problems_fit_their_status(document: dict[str, Any], route: RouteDeclaration) -> None:
    told = document["paths"][route.openapi_path][route.method.lower()]["responses"]
    for status, answer in told.items():
        if int(status) < 400:
            continue
        example = next(each["example"] for each in answer["content"].values())
        if kind := example.get("kind"):
            assert (example["status"], STATUS_BY_KIND.get(kind, 0) or OTHERWISE[kind]) == (int(status), int(status))
        else:
            assert example["error"]["code"] == example_problem(int(status), route).kind


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
