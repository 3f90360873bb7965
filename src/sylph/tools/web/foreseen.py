"""Addresses that are sure to be refused, told before anybody is asked about them."""

from urllib.parse import urlsplit

from sylph.core.errors import ProviderError, ToolError
from sylph.net.reach import Reach
from sylph.net.visit import tidy


def refusal(url: str, reach: Reach) -> ToolError | None:
    """The error that opening `url` ends with, as far as its text tells; None where it may work."""
    try:
        place = urlsplit(tidy(url))
    except ProviderError as error:
        return ToolError(str(error), kind="bad_url", next=["Give a whole address: https://host/path."])
    forbidden = reach.refusal(place.hostname or "", place.port or (443 if place.scheme == "https" else 80))
    return ToolError(str(forbidden), kind="private_address", next=forbidden.trouble.next) if forbidden else None
