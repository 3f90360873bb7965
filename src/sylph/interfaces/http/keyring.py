"""Keys over the API: tokens, logins and links, made, listed and revoked by who administers."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from sylph.interfaces.http.house import House
from sylph.interfaces.http.keys import DAY, LINK, NAME, Key
from sylph.interfaces.http.route import Page, Routes
from sylph.interfaces.http.who import Scope

routes = Routes("keys")
Name = Annotated[str, Meta(min_length=1, max_length=NAME, description="What you will know it by: one line.")]
Scopes = Annotated[
    tuple[Scope, ...], Meta(min_length=1, max_length=5, description="What it may; `hook` only by itself.")
]


class TokenBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    scopes: Scopes = ("read",)
    expires_in: (
        Annotated[float, Meta(ge=1, le=3650 * DAY, description="Seconds until it ends; none if it shall not.")] | None
    ) = None


class LinkBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name = "link"
    scopes: Scopes = ("admin",)


class MadeKey(Struct, frozen=True, kw_only=True):
    """A new key and its token, which is told this once."""

    key: Key
    token: str


class MadeLink(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An address that logs in once. What is secret in it stands after `#`: no browser sends that anywhere."""

    url: str
    expires: int
    fingerprint: str = ""
    qr: list[str] = []
    """The address as a QR code, row by row: 1 is dark. A margin of 4 belongs around it."""


KEY = Key(id="7kq2mzxw4tbd", kind="token", name="laptop", scopes=("read", "chat"), created=1_790_000_000_000)


@routes.get("/keys", scope="admin", gives=Page[Key], answer=Page(items=[KEY]))
async def index(house: House) -> Page[Key]:
    """All credentials that are good, without what is secret of them."""
    return Page(items=house.keys.all())


@routes.post(
    "/keys",
    scope="admin",
    gives=MadeKey,
    status=201,
    errors=(409,),
    example=TokenBody(name="laptop", scopes=("read", "chat")),
    answer=MadeKey(key=KEY, token="sylph_…"),
)
async def create(house: House, body: TokenBody) -> MadeKey:
    """Make a token. It is told this once."""
    key, token = house.keys.make("token", body.name, body.scopes, body.expires_in)
    return MadeKey(key=key, token=token)


@routes.get("/keys/{id}", scope="admin", gives=Key, errors=(404,), answer=KEY)
async def get(house: House, id: str) -> Key:
    """One credential: what it may, and when it was last used."""
    return house.keys.get(id)


@routes.delete("/keys/{id}", scope="admin", status=204, errors=(404,))
async def revoke(house: House, id: str) -> None:
    """Revoke a credential: it is refused from now on, with the logins made with it and the streams it opened."""
    house.keys.revoke(id)


@routes.post(
    "/links",
    scope="admin",
    gives=MadeLink,
    status=201,
    errors=(409,),
    example=LinkBody(name="phone", scopes=("read", "chat", "approve")),
    answer=MadeLink(url="http://127.0.0.1:8090/login#sylph_…", expires=1_790_000_600_000),
)
async def link(house: House, body: LinkBody) -> MadeLink:
    """Make a link that logs a browser in: once, within ten minutes."""
    made = new_link(house, body.name, body.scopes)
    return replace(made, qr=squares(made.url))


def squares(text: str) -> list[str]:
    """A text as a QR code."""
    import segno

    return ["".join("1" if dark else "0" for dark in row) for row in segno.make(text, micro=False).matrix]


def new_link(house: House, name: str, scopes: tuple[Scope, ...]) -> MadeLink:
    key, code = house.keys.make("link", name, scopes, LINK)
    assert key.expires
    return MadeLink(
        url=f"{house.address.entry}/login#{code}", expires=key.expires, fingerprint=house.address.fingerprint
    )
