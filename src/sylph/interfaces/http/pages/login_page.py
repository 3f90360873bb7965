"""The page to log in on."""

from pathlib import Path

from starlette.responses import Response

from sylph.interfaces.http.kit.route import RouteGroup

routes = RouteGroup("pages", prefix="")
HERE = Path(__file__).parent
FILES = {
    "login.html": "text/html; charset=utf-8",
    "login.js": "text/javascript; charset=utf-8",
    "login.css": "text/css; charset=utf-8",
}


@routes.get("/login", scope=None, media="text/html")
async def show_login_page() -> Response:
    """The page to log in on."""
    return login_file("login.html")


@routes.get("/login.js", scope=None, media="text/javascript")
async def get_login_script() -> Response:
    """What that page does."""
    return login_file("login.js")


@routes.get("/login.css", scope=None, media="text/css")
async def get_login_style() -> Response:
    """What that page looks like."""
    return login_file("login.css")


def login_file(name: str) -> Response:
    return Response((HERE / name).read_bytes(), media_type=FILES[name], headers={"Cache-Control": "no-cache"})
