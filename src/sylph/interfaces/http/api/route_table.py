"""Every route of the API, by subject."""

from sylph.interfaces.http.files import archive, listing, moving, reading, searching, trash_routes, workspaces, writing
from sylph.interfaces.http.kit.route import RouteGroup
from sylph.interfaces.http.login import login_routes, token_routes
from sylph.interfaces.http.monitoring import health, logs, metrics, status
from sylph.interfaces.http.openai.route_table import OPENAI_ROUTES
from sylph.interfaces.http.pages import api_docs, browser_app, login_page
from sylph.interfaces.http.sessions.route_table import SESSION_ROUTES
from sylph.interfaces.http.settings import config, credentials, git_remote, identity, models, policy, roles, tools
from sylph.interfaces.http.stream import sse

FILE_ROUTES = tuple(
    each.routes for each in (workspaces, listing, reading, writing, moving, trash_routes, archive, searching)
)
ALL_ROUTES: tuple[RouteGroup, ...] = (
    health.routes,
    login_routes.routes,
    token_routes.routes,
    login_page.routes,
    browser_app.routes,
    *SESSION_ROUTES,
    sse.routes,
    config.routes,
    models.routes,
    roles.routes,
    tools.routes,
    policy.routes,
    credentials.routes,
    identity.routes,
    logs.routes,
    metrics.routes,
    status.routes,
    *FILE_ROUTES,
    *OPENAI_ROUTES,
    git_remote.routes,
    api_docs.routes,
)
