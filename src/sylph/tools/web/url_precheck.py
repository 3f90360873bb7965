"""Addresses that are sure to be refused, told before anybody is asked about them."""

from urllib.parse import urlsplit

from sylph.core.errors import ProviderError, ToolError
from sylph.net.address_guard import AddressGuard
from sylph.net.page_fetch import normalize_url


def precheck_url(url: str, reach: AddressGuard) -> ToolError | None:
    """The error that opening `url` ends with, as far as its text tells; None where it may work."""
    try:
        place = urlsplit(normalize_url(url))
    except ProviderError as error:
        return ToolError(str(error), kind="bad_url", next=["Give a whole address: https://host/path."])
    forbidden = reach.refusal_for(place.hostname or "", place.port or (443 if place.scheme == "https" else 80))
    return ToolError(str(forbidden), kind="private_address", next=forbidden.trouble.next) if forbidden else None
