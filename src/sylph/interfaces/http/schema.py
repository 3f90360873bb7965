"""The OpenAPI document: paths and parameters from FastAPI, bodies from the structs that are really read and written."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sylph.interfaces.http.problems import MEDIA, Problem
from sylph.interfaces.http.route import JSON, Declared

REF = "#/components/schemas/{name}"


def document(api: FastAPI, declared: Sequence[Declared]) -> dict[str, Any]:
    made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
    shapes = {id(each): each for route in declared for each in (route.takes, route.gives) if each is not None}
    refs, components = msgspec.json.schema_components([*shapes.values(), Problem], ref_template=REF, schema_hook=_text)
    known = dict(zip([*shapes, id(Problem)], refs, strict=True))
    made.setdefault("components", {})["schemas"] = components
    made["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sylph"},
    }
    for route in declared:
        operation = made["paths"][route.path.replace(":path", "")][route.method.lower()]
        _describe(operation, route, known)
    return made


def _describe(operation: dict[str, Any], route: Declared, known: dict[int, dict[str, Any]]) -> None:
    operation["security"] = [] if route.scope is None else [{"token": []}, {"cookie": []}]
    if route.scope:
        operation["x-scope"] = route.scope
    if route.takes is not None:
        content: dict[str, Any] = {"schema": known[id(route.takes)]}
        if route.example is not None:
            content["example"] = msgspec.to_builtins(route.example)
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    elif route.accepts:
        content = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": {route.accepts: content}}
    responses: dict[str, Any] = {str(route.status): _good(route, known)}
    problem = {MEDIA: {"schema": known[id(Problem)]}}
    always = (400, 401, 403, 422, 429) if route.scope else (400, 422, 429)
    for status in sorted({*always, *route.errors}):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    operation["responses"] = responses


def _good(route: Declared, known: dict[int, dict[str, Any]]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    if route.gives is not None:
        content: dict[str, Any] = {"schema": known[id(route.gives)]}
        if route.answer is not None:
            content["example"] = msgspec.to_builtins(route.answer)
        described["content"] = {route.media: content}
    elif route.media != JSON:
        described["content"] = {route.media: {"schema": {"type": "string"}}}
    return described


def _text(_: type) -> dict[str, Any]:
    return {"type": "string"}
