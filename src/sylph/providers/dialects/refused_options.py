"""What a service minds, learnt from its complaints: options it need not have, and images for models that see none."""

import re
from collections.abc import Iterable, Mapping

from sylph.core.provider import ModelRequest
from sylph.providers.dialects.openai_chat.messages import has_images

IMAGES = "images"


class RefusedOptions(set[str]):
    """Names of what is not sent again. `optional` tells each by words of a complaint, and by what of it was sent."""

    def __init__(self, known: Iterable[str], optional: Mapping[str, tuple[bytes, bytes]], blind: bytes) -> None:
        super().__init__(known)
        self._optional, self._blind = optional, blind

    def learn_refusal(self, said: bytes, request: ModelRequest, body: bytes) -> bool:
        """Whether the complaint is about something that was sent and can be left out."""
        for option, (words, sent) in self._optional.items():
            if option not in self and sent in body and re.search(words, said):
                self.add(option)
                return True
        if re.search(self._blind, said) and self.accepts_images(request.model) and has_images(request.messages):
            self.add(f"{IMAGES} {request.model}")
            return True
        return False

    def accepts_images(self, model: str) -> bool:
        """Whether it is shown images: unless it is known to mind."""
        return not self & {IMAGES, f"{IMAGES} {model}"}
