"""The routes of both dialects."""

from sylph.interfaces.http.openai import chat, models, responses

OPENAI_ROUTES = (chat.routes, responses.routes, models.routes)
