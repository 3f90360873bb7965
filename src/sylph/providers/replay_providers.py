"""Every way in which a service may have been asked, for the replay of what was asked of it."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import combinations

from sylph.core.provider import Provider
from sylph.net.http_client import HttpClient
from sylph.providers import scripted_tour
from sylph.providers.endpoint import Endpoint
from sylph.providers.registry import DIALECTS
from sylph.providers.vendors.table import find_vendor


def create_replay_providers(name: str) -> Sequence[Provider]:
    """Providers of that name which only put requests into words; they reach nobody. The likeliest come first."""
    if name == scripted_tour.NAME:
        return (scripted_tour.TourProvider(),)
    known, client = find_vendor(name), HttpClient()
    # Models on this machine are asked in chat.
    spoken = (each for each in dict.fromkeys((known.dialect, "chat", *DIALECTS)) if each in DIALECTS.keys() - {"local"})
    made: list[Provider] = []
    for dialect in spoken:
        endpoint = Endpoint(
            name=name, base_url="http://replay.invalid", dialect=dialect, quirks=frozenset(known.quirks)
        )
        module, speaker = DIALECTS[dialect]
        found = import_module(module)
        # Who has no options of its own speaks in the words of one that has.
        optional: Sequence[str] | None = getattr(found, "OPTIONAL", None)
        minded = _refusal_sets(tuple(optional)) if optional is not None else ()
        made += [getattr(found, speaker)(endpoint, client, refused=each) for each in minded]
    return made


def _refusal_sets(optional: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What a service may have minded: nothing, one thing or two, or everything there is."""
    options = (*optional, "images")
    yield from ((), *combinations(options, 1), *combinations(options, 2), tuple(optional), options)
