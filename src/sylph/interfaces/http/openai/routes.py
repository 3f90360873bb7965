"""The routes of both dialects."""

from sylph.interfaces.http.openai import chat, models, responses

OPENAI = (chat.routes, responses.routes, models.routes)
