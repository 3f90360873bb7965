"""Keys over the API: tokens, logins and links, made, listed and revoked by who administers."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from sylph.interfaces.http.kit.principal import Scope
from sylph.interfaces.http.kit.route import ListPage, RouteGroup
from sylph.interfaces.http.security.token_store import DAY, LINK_SECONDS, MAX_NAME_LENGTH, ServerToken
from sylph.interfaces.http.state.server_state import ServerState

routes = RouteGroup("keys")
TokenName = Annotated[
    str, Meta(min_length=1, max_length=MAX_NAME_LENGTH, description="What you will know it by: one line.")
]
TokenScopes = Annotated[
    tuple[Scope, ...], Meta(min_length=1, max_length=5, description="What it may; `hook` only by itself.")
]


class TokenBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: TokenName
    scopes: TokenScopes = ("read",)
    expires_in: (
        Annotated[float, Meta(ge=1, le=3650 * DAY, description="Seconds until it ends; none if it shall not.")] | None
    ) = None


class LoginLinkBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: TokenName = "link"
    scopes: TokenScopes = ("admin",)


class CreatedToken(Struct, frozen=True, kw_only=True):
    """A new key and its token, which is told this once."""

    key: ServerToken
    token: str


class LoginLink(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An address that logs in once. What is secret in it stands after `#`: no browser sends that anywhere."""

    url: str
    expires: int
    fingerprint: str = ""
    qr: list[str] = []
    """The address as a QR code, row by row: 1 is dark. A margin of 4 belongs around it."""


TOKEN_EXAMPLE = ServerToken(
    id="7kq2mzxw4tbd", kind="token", name="laptop", scopes=("read", "chat"), created=1_790_000_000_000
)


@routes.get("/keys", scope="admin", gives=ListPage[ServerToken], answer=ListPage(items=[TOKEN_EXAMPLE]))
async def list_tokens(server: ServerState) -> ListPage[ServerToken]:
    """All credentials that are good, without what is secret of them."""
    return ListPage(items=server.token_store.list_tokens())


@routes.post(
    "/keys",
    scope="admin",
    gives=CreatedToken,
    status=201,
    errors=(409,),
    example=TokenBody(name="laptop", scopes=("read", "chat")),
    answer=CreatedToken(key=TOKEN_EXAMPLE, token="sylph_…"),
)
async def create_token(server: ServerState, body: TokenBody) -> CreatedToken:
    """Make a token. It is told this once."""
    key, token = server.token_store.create_token("token", body.name, body.scopes, body.expires_in)
    return CreatedToken(key=key, token=token)


@routes.get("/keys/{id}", scope="admin", gives=ServerToken, errors=(404,), answer=TOKEN_EXAMPLE)
async def get_token(server: ServerState, id: str) -> ServerToken:
    """One credential: what it may, and when it was last used."""
    return server.token_store.get_token(id)


@routes.delete("/keys/{id}", scope="admin", status=204, errors=(404,))
async def revoke_token(server: ServerState, id: str) -> None:
    """Revoke a credential: it is refused from now on, with the logins made with it and the streams it opened."""
    server.token_store.revoke(id)


@routes.post(
    "/links",
    scope="admin",
    gives=LoginLink,
    status=201,
    errors=(409,),
    example=LoginLinkBody(name="phone", scopes=("read", "chat", "approve")),
    answer=LoginLink(url="http://127.0.0.1:8090/login#sylph_…", expires=1_790_000_600_000),
)
async def create_login_link(server: ServerState, body: LoginLinkBody) -> LoginLink:
    """Make a link that logs a browser in: once, within ten minutes."""
    made = make_login_link(server, body.name, body.scopes)
    return replace(made, qr=qr_rows(made.url))


def qr_rows(text: str) -> list[str]:
    """A text as a QR code."""
    import segno

    return ["".join("1" if dark else "0" for dark in row) for row in segno.make(text, micro=False).matrix]


def make_login_link(server: ServerState, name: str, scopes: tuple[Scope, ...]) -> LoginLink:
    key, code = server.token_store.create_token("link", name, scopes, LINK_SECONDS)
    assert key.expires
    return LoginLink(
        url=f"{server.address.public_url}/login#{code}", expires=key.expires, fingerprint=server.address.fingerprint
    )
