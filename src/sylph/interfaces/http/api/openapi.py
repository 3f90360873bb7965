"""The OpenAPI document: paths and parameters from FastAPI, bodies from the structs that are really read and written."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from sylph.core.facts import FACTS, reference
from sylph.core.signals import SIGNALS
from sylph.interfaces.http.api.openapi_examples import example_of, to_json_value
from sylph.interfaces.http.api.openapi_tags import TAGS
from sylph.interfaces.http.api.problem_examples import example_problem
from sylph.interfaces.http.kit.problem_details import PROBLEM_MEDIA_TYPE, Problem
from sylph.interfaces.http.kit.route import JSON, RouteDeclaration
from sylph.interfaces.http.openai.errors import PREFIX as V1
from sylph.interfaces.http.openai.errors import OpenAIErrorAnswer, openai_error
from sylph.interfaces.http.security.authentication import COOKIE, SECURE_COOKIE

REF_TEMPLATE = "#/components/schemas/{name}"
API_PREFIXES = ("/api/", "/v1/", "/metrics")
SECURITY_SCHEMES = ("token", "cookie", "tls_cookie")
EVENT = "Event"
EVENT_STREAM = "text/event-stream"
BYTES = "application/octet-stream"
FILE = {"type": "string", "format": "binary"}
# What any request can be told, before its route sees it or while it is read.
COMMON_ERRORS = (400, 408, 421, 422, 429, 503)
API_DESCRIPTION = """\
Everything that Sylph can do, over HTTP. A **session** is an append-only log of events; what is asked of it is answered
by further events, which the streams tell as they happen.

Errors are problem details (RFC 9457) with a `kind` and the `next` things to do; under `/v1` they have OpenAI's form.
Lists come in pages: `next` is the `cursor` of the page that follows. What has a version is told with it, as `ETag`;
given back as `If-Match` an edit fails where somebody was faster. Times are milliseconds since 1970."""
STREAM_ERROR_SCHEMA = {
    "type": "object",
    "properties": {"type": {"const": "error"}, "message": {"type": "string"}, "code": {"type": ["string", "null"]}},
    "required": ["type", "message"],
}

SchemaRefs = dict[int, dict[str, Any]]


def build_openapi(api: FastAPI, declared: Sequence[RouteDeclaration], routes: Sequence[BaseRoute]) -> dict[str, Any]:
    listed = [each for each in declared if each.path.startswith(API_PREFIXES)]
    made = get_openapi(title=api.title, version=api.version, description=API_DESCRIPTION, routes=routes)
    made["paths"] = {path: each for path, each in made["paths"].items() if path.startswith(API_PREFIXES)}
    known, schemas = _collect_schemas(listed)
    made["servers"] = [{"url": "/", "description": "This server"}]
    used = {tag for path in made["paths"].values() for operation in path.values() for tag in operation["tags"]}
    made["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    made["components"] = {
        "schemas": schemas,
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": "`sylph token create NAME --scope …`"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "A browser that logged in."},
            "tls_cookie": {
                "type": "apiKey",
                "in": "cookie",
                "name": SECURE_COOKIE,
                "description": "The same cookie where the server is reached over TLS.",
            },
        },
    }
    for route in listed:
        operation = made["paths"][route.openapi_path][route.method.lower()]
        _describe_operation(operation, route)
        _describe_bodies(operation, route, known)
    return to_json_value(made)


def _collect_schemas(declared: Sequence[RouteDeclaration]) -> tuple[SchemaRefs, dict[str, Any]]:
    """Every shape that is read or written, by the object that declares it, and what they are made of."""
    found = {id(each): each for route in declared for each in (route.takes, route.gives, route.streams) if each}
    bodies = (*FACTS, *SIGNALS)
    wanted = [*found.values(), Problem, OpenAIErrorAnswer, *bodies]
    refs, schemas = msgspec.json.schema_components(wanted, ref_template=REF_TEMPLATE, schema_hook=_string_schema)
    known = dict(zip([*found, id(Problem), id(OpenAIErrorAnswer)], refs, strict=False))
    event = {name: part for name, part in reference.event_schema().items() if name not in ("$schema", "$defs", "allOf")}
    event["properties"] = {
        **event["properties"],
        "type": {**event["properties"]["type"], "examples": [body.wire for body in bodies]},
        "data": {"anyOf": [*refs[-len(bodies) :], {"type": "object"}]},
    }
    return known, {**schemas, EVENT: event}


def _describe_operation(operation: dict[str, Any], route: RouteDeclaration) -> None:
    first, _, rest = route.doc.partition("\n")
    principal = f"Needs the scope {route.scope_text}." if route.scope else "Needs no credential."
    operation["summary"] = first.rstrip(".")
    operation["description"] = f"{rest.strip() or first}\n\n{principal}"
    operation["security"] = [] if route.scope is None else [{way: []} for way in SECURITY_SCHEMES]
    if route.scope:
        operation["x-scope"] = route.scope


def _describe_bodies(operation: dict[str, Any], route: RouteDeclaration, known: SchemaRefs) -> None:
    """What goes in and what comes out."""
    if route.takes is not None:
        example = to_json_value(route.example) if route.example is not None else example_of(route.takes)
        content = {JSON: {"schema": known[id(route.takes)], "example": example}}
        operation["requestBody"] = {"required": True, "content": content}
    elif route.accepts or route.upload:
        operation["requestBody"] = {"required": True, "content": {route.accepts or BYTES: {"schema": FILE}}}
    responses: dict[str, Any] = {str(route.status): _success_response(route, known)}
    for status in route.other:
        phrase = {"description": HTTPStatus(status).phrase}
        responses[str(status)] = phrase if status == 204 else {**_success_response(route, known), **phrase}
    names = {each["name"].lower() for each in operation.get("parameters", ())}
    errors = {*COMMON_ERRORS, *route.errors}
    errors |= {401, 403} if route.scope else set()
    errors |= {413} if "requestBody" in operation else set()
    errors |= {412} if "if-match" in names else set()
    # Sessions are found by the beginning of their id.
    errors |= {404, 409} if "session" in names else set()
    for status in sorted(errors):
        responses[str(status)] = _error_response(status, route, known)
    if route.versioned:
        responses[str(route.status)]["headers"] = {
            "ETag": {"description": "Its version.", "schema": {"type": "string"}, "example": '"42"'}
        }
        if route.method == "GET":
            responses["304"] = {"description": "It is still what `If-None-Match` says."}
    operation["responses"] = responses


def _success_response(route: RouteDeclaration, known: SchemaRefs) -> dict[str, Any]:
    described: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    content: dict[str, Any] = {}
    if route.gives is not None:
        example = to_json_value(route.answer) if route.answer is not None else example_of(route.gives)
        content[route.media] = {"schema": known[id(route.gives)], "example": example}
    elif route.media == EVENT_STREAM:
        content[EVENT_STREAM] = _event_content({"$ref": REF_TEMPLATE.format(name=EVENT)}, EVENT_EXAMPLE)
    elif route.media != JSON:
        content[route.media] = {"schema": {"type": "string"} if route.media.startswith("text/") else FILE}
    if route.streams is not None:
        # An error can be the last of them, and so can the end itself.
        shapes = [known[id(route.streams)], known[id(OpenAIErrorAnswer)], STREAM_ERROR_SCHEMA]
        content[EVENT_STREAM] = _event_content({"anyOf": shapes}, example_of(route.streams), last="[DONE]")
    return {**described, "content": content} if content else described


def _event_content(shape: dict[str, Any], example: Any, last: str = "") -> dict[str, Any]:
    """One event of a stream, as OpenAPI 3.2 describes it: what is in its `data` is JSON of that shape."""
    data: dict[str, Any] = {"type": "string", "contentMediaType": JSON, "contentSchema": shape}
    data = {"anyOf": [{"const": last}, data]} if last else data
    names = {"id": {"type": "string"}, "event": {"type": "string"}, "retry": {"type": "integer"}}
    schema = {"type": "object", "properties": {**names, "data": data}, "required": ["data"]}
    return {"schema": schema, "example": {"data": msgspec.json.encode(example).decode()}}


def _error_response(status: int, route: RouteDeclaration, known: SchemaRefs) -> dict[str, Any]:
    v1 = route.path.startswith(V1)
    media, shape = (JSON, OpenAIErrorAnswer) if v1 else (PROBLEM_MEDIA_TYPE, Problem)
    example = example_problem(status, route)
    told = to_json_value(openai_error(example) if v1 else example)
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if status in (429, 503):
        described["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return {**described, "content": {media: {"schema": known[id(shape)], "example": told}}}


EVENT_EXAMPLE = {
    "v": 1,
    "session": "h7k2m9qxwz4d",
    "seq": 2,
    "turn": "",
    "ts": 1_762_000_000_000,
    "type": "input.received",
    "actor": "user",
    "cause": 0,
    "hash": "5d0e3a91c7",
    "data": {"id": "i1", "text": "Why does the test fail?"},
}


def _string_schema(_: type) -> dict[str, Any]:
    return {"type": "string"}
