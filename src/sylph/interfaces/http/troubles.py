"""Examples of problems, one for each status: what a client is really told."""

import re

from sylph.core.errors import Trouble
from sylph.interfaces.http.problems import Problem, problem_of
from sylph.interfaces.http.route import Declared

PART = re.compile(r"/([a-z_]+)/\{[a-z]+\}")
TROUBLES: dict[int, Trouble] = {
    400: Trouble("bad_body", "The body cannot be read: JSON is malformed.", {}, ("/docs tells its form",)),
    401: Trouble("unauthorized", "This needs a credential.", {}, ("sylph token create NAME", "log in")),
    402: Trouble("budget_spent", "The budget of the day is spent.", {}, ("wait", "raise the budget")),
    403: Trouble("forbidden", "'laptop' has no scope `admin`.", {"scope": "admin"}, ("use a token with `admin`",)),
    404: Trouble("not_found", "There is no such thing.", {}, ("list them, and take an id from the list",)),
    408: Trouble("too_slow", "The body did not come in time.", {}, ("send it again",)),
    409: Trouble("ambiguous", "'h7' is the beginning of several sessions.", {}, ("give more of the id",)),
    412: Trouble("changed", "Somebody changed it meanwhile.", {"etag": "43-5d0e3a91c7f2"}, ("read it again",)),
    413: Trouble("too_large", "The body is larger than 1 MB.", {}, ("send less",)),
    416: Trouble("bad_range", "The file is not as long as that.", {}, ("ask for a range within it",)),
    421: Trouble("bad_host", "This server has no name 'other.example'.", {}, ("add it to `server.names`",)),
    422: Trouble("bad_parameter", "query.limit: Input should be a number.", {}, ("/docs tells the parameters",)),
    429: Trouble("too_many", "Too many requests.", {"retry_after": "1"}, ("wait a second",)),
    502: Trouble("no_service", "The model's service does not answer.", {}, ("try again", "choose another model")),
    503: Trouble("store_full", "The disk is full: nothing can be written.", {}, ("make room, and try again",)),
    507: Trouble("no_space", "There is no room on the disk for this file.", {}, ("make room, and try again",)),
}
TAKEN = Trouble("exists", "There is something of that name already.", {}, ("choose another name", "overwrite it"))


def trouble_of(status: int, route: Declared) -> Problem:
    """A problem of that status, as that route could tell it."""
    trouble = TROUBLES[status]
    if status == 404 and (named := PART.findall(route.address)):
        noun = named[-1].removesuffix("s").replace("_", " ")
        trouble = Trouble(trouble.kind, f"There is no {noun} 'h7k2'.", {}, trouble.next)
    if status == 409 and "/workspaces" in route.path:
        trouble = TAKEN
    return problem_of(trouble, status)
