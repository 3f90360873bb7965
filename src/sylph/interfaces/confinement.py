"""Whether commands are confined, in words that nobody can overlook."""

from sylph.app import App
from sylph.engine.sandbox import Layer
from sylph.engine.summary import Summary

OFF = "sandbox off"


def switched_off(summary: Summary) -> str:
    """Said wherever the session is shown; empty while its commands are confined. Mode `sandbox` always confines."""
    return "" if summary.sandbox or summary.mode == "sandbox" else OFF


def layer_of(app: App) -> Layer | None:
    return app.runtime.sandbox.layer if app.runtime.sandbox else None


def warning(app: App, *, off: bool) -> str:
    """What a person has to know before they begin; empty if commands are confined as well as can be."""
    if off:
        return f"{OFF}: commands run with all your rights"
    layer = layer_of(app)
    return "" if layer is None or layer.name == "bwrap" else f"sandbox: {layer.said}"
