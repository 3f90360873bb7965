"""The browser app, as it was built into the package: one page for all its addresses, and the files that it needs."""

from functools import cache
from pathlib import Path
from typing import Annotated

from fastapi import Header
from fastapi import Path as Part
from starlette.responses import Response

from sylph.core.errors import NotFound
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.security.checks.security_headers import APP_POLICY, WORKER_POLICY

routes = RouteGroup("pages", prefix="")
APP_FOLDER = Path(__file__).parent.parent / "app"
# The same names as in web/src/features/registry.ts.
PAGES = ("chat", "timeline", "dashboard", "files", "settings")
HTML = "text/html; charset=utf-8"
MEDIA_TYPES = {
    ".html": HTML,
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
# All else is data, and may nothing.
POLICIES = {"index.html": APP_POLICY, "sw.js": WORKER_POLICY}
UNBUILT_PAGE = b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sylph</title></head><body><main>
<h1>Sylph serves, without its browser app</h1>
<p>The app is built when Sylph is set up, and that did not work here.
<code>python web/build.py</code> in the checkout says why.</p>
<p><a href="/docs">The API</a> works all the same.</p></main></body></html>"""
Accepted = Annotated[str, Header(alias="accept-encoding", include_in_schema=False)]


@routes.get("/", scope=None, media="text/html")
async def show_home(accepted: Accepted = "") -> Response:
    """The browser app."""
    return serve_app_page(accepted)


@routes.get("/assets/{name}", scope=None, media="*/*", errors=(404,))
async def get_app_asset(name: Annotated[str, Part(max_length=200)], accepted: Accepted = "") -> Response:
    """A part of the browser app, for ever the same under its name."""
    return serve_app_file(f"assets/{name}", accepted, "public, max-age=31536000, immutable")


@routes.get("/sw.js", scope=None, media="text/javascript", errors=(404,))
async def get_service_worker(accepted: Accepted = "") -> Response:
    """What keeps the app at hand while there is no network."""
    return serve_app_file("sw.js", accepted)


@routes.get("/manifest.webmanifest", scope=None, media="application/manifest+json", errors=(404,))
async def get_manifest(accepted: Accepted = "") -> Response:
    """What makes the app installable."""
    return serve_app_file("manifest.webmanifest", accepted)


@routes.get("/icons/{name}", scope=None, media="*/*", errors=(404,))
async def get_icon(name: Annotated[str, Part(max_length=200)], accepted: Accepted = "") -> Response:
    """An icon of the app."""
    return serve_app_file(f"icons/{name}", accepted, "public, max-age=86400")


def _add_page_routes(name: str) -> None:
    async def here(accepted: Accepted = "") -> Response:
        """A page of the browser app."""
        return serve_app_page(accepted)

    async def below(accepted: Accepted = "") -> Response:
        """A page of the browser app."""
        return serve_app_page(accepted)

    # Each operation has a name of its own.
    here.__name__, below.__name__ = name, f"{name}_below"
    routes.get(f"/{name}", scope=None, media="text/html")(here)
    routes.get(f"/{name}/{{rest:path}}", scope=None, media="text/html")(below)


def serve_app_page(accepted: str) -> Response:
    if "index.html" not in built_files():
        return Response(UNBUILT_PAGE, 503, media_type=HTML)
    return serve_app_file("index.html", accepted)


def serve_app_file(name: str, accepted: str, cache_control: str = "no-cache") -> Response:
    """A file of the app, as small as the client takes it. Names are looked up, and never made into paths."""
    known = built_files()
    if name not in known or name.endswith(".gz"):
        raise NotFound(f"The app has no file {name!r}.")
    small = f"{name}.gz" if f"{name}.gz" in known and "gzip" in accepted else name
    headers = {"Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if name in POLICIES:
        headers["Content-Security-Policy"] = POLICIES[name]
    if small != name:
        headers["Content-Encoding"] = "gzip"
    kind = MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")
    return Response(known[small].read_bytes(), media_type=kind, headers=headers)


@cache
def built_files() -> dict[str, Path]:
    return {path.relative_to(APP_FOLDER).as_posix(): path for path in APP_FOLDER.rglob("*") if path.is_file()}


for _name in PAGES:
    _add_page_routes(_name)
