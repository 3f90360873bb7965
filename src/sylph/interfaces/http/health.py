"""Whether the server lives, and whether it can work."""

from msgspec import Struct

from sylph import __version__
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Routes

routes = Routes("health")


class Health(Struct, frozen=True, kw_only=True):
    status: str
    version: str


@routes.get("/health/live", scope=None, gives=Health, answer=Health(status="ok", version="0.1.0"))
async def live() -> Health:
    """Whether the process answers."""
    return Health(status="ok", version=__version__)


@routes.get("/health/ready", scope=None, gives=Health, errors=(503,))
async def ready(house: House) -> Health:
    """Whether work can be taken: the store answers, and the server is not about to end."""
    await house.app.runtime.read("none", limit=1)
    return Health(status="ending" if house.closing.is_set() else "ok", version=__version__)
