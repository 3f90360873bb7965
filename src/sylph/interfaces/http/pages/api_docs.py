"""`/docs` and `/redoc`: the schema, shown by Swagger UI and ReDoc, whose files come with a package."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
from fastapi import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from sylph.core.errors import NotFound
from sylph.interfaces.http.kit.principal import Principal
from sylph.interfaces.http.kit.route import JSON, RouteGroup

routes = RouteGroup("schema", prefix="")
HERE = Path(__file__).parent
PACKAGE = "fastapi_standalone_docs"
SCRIPT, STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
OURS = {"docs.js": SCRIPT, "redoc.js": SCRIPT, "manual.css": STYLE}
THEIRS = {
    "swagger-ui-bundle.js": ("swagger/swagger-ui-bundle.js", SCRIPT),
    "swagger-ui.css": ("swagger/swagger-ui.css", STYLE),
    "redoc.standalone.js": ("redoc/redoc.standalone.js", SCRIPT),
    "logo-mini.svg": ("redoc/logo-mini.svg", "image/svg+xml"),
}
# Both write styles into the page as they go, and ReDoc searches in a worker that it makes itself. Scripts stay ours.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self' blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@routes.get("/openapi.json", scope="read", gives=dict[str, object])
async def get_openapi_document(request: Request) -> Response:
    """The OpenAPI document of this server."""
    return Response(msgspec.json.encode(request.app.openapi()), media_type=JSON, headers={"Cache-Control": "no-cache"})


@routes.get("/docs", scope=None, media="text/html")
async def show_swagger(principal: Principal | None) -> Response:
    """The API, to try out: Swagger UI."""
    return _docs_page("docs.html", principal)


@routes.get("/redoc", scope=None, media="text/html")
async def show_redoc(principal: Principal | None) -> Response:
    """The API, to read: ReDoc."""
    return _docs_page("redoc.html", principal)


@routes.get("/assets/docs/{name}", scope=None, media="text/javascript", errors=(404,))
async def get_docs_asset(name: str) -> Response:
    """What these pages are made of."""
    if name in OURS:
        return FileResponse(HERE / name, media_type=OURS[name], headers={"Cache-Control": "no-cache"})
    place = package_assets()
    if name not in THEIRS or place is None:
        raise NotFound("There is no such file.", next=["/docs"])
    path, media = THEIRS[name]
    return FileResponse(place / path, media_type=media, headers={"Cache-Control": "max-age=86400"})


@routes.get("/redoc/logo-mini.svg", scope=None, media="image/svg+xml", errors=(404,))
async def get_redoc_logo() -> Response:
    """ReDoc's own mark, which it looks for beside its page."""
    return await get_docs_asset("logo-mini.svg")


def _docs_page(name: str, principal: Principal | None) -> Response:
    if principal is None:
        return RedirectResponse(f"/login?next=/{name.removesuffix('.html')}", status_code=303)
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    return FileResponse(HERE / name, media_type="text/html; charset=utf-8", headers=headers)


@cache
def package_assets() -> Path | None:
    """Where the package has its files; it is not imported for that."""
    found = find_spec(PACKAGE)
    places = found.submodule_search_locations if found else None
    return Path(places[0]) / "static" if places else None
