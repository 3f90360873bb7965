"""The page to log in on."""

from pathlib import Path

from starlette.responses import Response

from sylph.interfaces.http.route import Routes

routes = Routes("pages", prefix="")
HERE = Path(__file__).parent
FILES = {
    "login.html": "text/html; charset=utf-8",
    "login.js": "text/javascript; charset=utf-8",
    "login.css": "text/css; charset=utf-8",
}


@routes.get("/login", scope=None, media="text/html")
async def login() -> Response:
    """The page to log in on."""
    return page("login.html")


@routes.get("/login.js", scope=None, media="text/javascript")
async def script() -> Response:
    """What that page does."""
    return page("login.js")


@routes.get("/login.css", scope=None, media="text/css")
async def style() -> Response:
    """What that page looks like."""
    return page("login.css")


def page(name: str) -> Response:
    return Response((HERE / name).read_bytes(), media_type=FILES[name], headers={"Cache-Control": "no-cache"})
