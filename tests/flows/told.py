"""What the model was told by the tools it called."""

from tests.model_server import ModelServer


def results(server: ModelServer) -> list[str]:
    """The results of all calls, as the last request carried them."""
    return [message["content"] for message in server.requests[-1].json["messages"] if message["role"] == "tool"]
