"""Every way in which a service may have been asked, for the replay of what was asked of it."""

from collections.abc import Sequence

from sylph.core.provider import Provider
from sylph.net.http import Client
from sylph.providers import tour
from sylph.providers.endpoint import Endpoint
from sylph.providers.openai_chat import IMAGES, OPTIONAL, OpenAIChat


def dialects(name: str) -> Sequence[Provider]:
    """Providers of that name which only put requests into words; they reach nobody."""
    if name == tour.NAME:
        return (tour.Tour(),)
    endpoint, client = Endpoint(name=name, base_url="http://replay.invalid"), Client()
    minded = ((), OPTIONAL, (IMAGES,), (*OPTIONAL, IMAGES))
    return [OpenAIChat(endpoint, client, refused=refused) for refused in minded]
