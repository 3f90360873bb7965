"""Examples of problems, one for each status: what a client is really told."""

import re

from sylph.core.errors import ErrorReport
from sylph.interfaces.http.kit.problem_details import Problem, make_problem
from sylph.interfaces.http.kit.route import RouteDeclaration

PATH_PART = re.compile(r"/([a-z_]+)/\{[a-z]+\}")
EXAMPLES_BY_STATUS: dict[int, ErrorReport] = {
    400: ErrorReport("bad_body", "The body cannot be read: JSON is malformed.", {}, ("/docs tells its form",)),
    401: ErrorReport("unauthorized", "This needs a credential.", {}, ("sylph token create NAME", "log in")),
    402: ErrorReport("budget_spent", "The budget of the day is spent.", {}, ("wait", "raise the budget")),
    403: ErrorReport("forbidden", "'laptop' has no scope `admin`.", {"scope": "admin"}, ("use a token with `admin`",)),
    404: ErrorReport("not_found", "There is no such thing.", {}, ("list them, and take an id from the list",)),
    408: ErrorReport("too_slow", "The body did not come in time.", {}, ("send it again",)),
    409: ErrorReport("ambiguous", "'h7' is the beginning of several sessions.", {}, ("give more of the id",)),
    412: ErrorReport("changed", "Somebody changed it meanwhile.", {"etag": "43-5d0e3a91c7f2"}, ("read it again",)),
    413: ErrorReport("too_large", "The body is larger than 1 MB.", {}, ("send less",)),
    416: ErrorReport("bad_range", "The file is not as long as that.", {}, ("ask for a range within it",)),
    421: ErrorReport("bad_host", "This server has no name 'other.example'.", {}, ("add it to `server.names`",)),
    422: ErrorReport("bad_parameter", "query.limit: Input should be a number.", {}, ("/docs tells the parameters",)),
    429: ErrorReport("too_many", "Too many requests.", {"retry_after": "1"}, ("wait a second",)),
    502: ErrorReport("no_service", "The model's service does not answer.", {}, ("try again", "choose another model")),
    503: ErrorReport("store_full", "The disk is full: nothing can be written.", {}, ("make room, and try again",)),
    507: ErrorReport("no_space", "There is no room on the disk for this file.", {}, ("make room, and try again",)),
}
NAME_TAKEN = ErrorReport(
    "exists", "There is something of that name already.", {}, ("choose another name", "overwrite it")
)


def example_problem(status: int, route: RouteDeclaration) -> Problem:
    """A problem of that status, as that route could tell it."""
    trouble = EXAMPLES_BY_STATUS[status]
    if status == 404 and (named := PATH_PART.findall(route.openapi_path)):
        noun = named[-1].removesuffix("s").replace("_", " ")
        trouble = ErrorReport(trouble.kind, f"There is no {noun} 'h7k2'.", {}, trouble.next)
    if status == 409 and "/workspaces" in route.path:
        trouble = NAME_TAKEN
    return make_problem(trouble, status)
