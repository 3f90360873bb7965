"""Whether commands are confined, in words that nobody can overlook."""

from sylph.app import App
from sylph.engine.folds.session_state import SessionState
from sylph.engine.sandbox import SandboxLayer

SANDBOX_OFF = "sandbox off"


def sandbox_off_notice(summary: SessionState) -> str:
    """Said wherever the session is shown; empty while its commands are confined. Mode `sandbox` always confines."""
    return "" if summary.sandbox or summary.mode == "sandbox" else SANDBOX_OFF


def sandbox_layer(app: App) -> SandboxLayer | None:
    return app.runtime.sandbox.layer if app.runtime.sandbox else None


def sandbox_warning(app: App, *, off: bool) -> str:
    """What a person has to know before they begin; empty if commands are confined as well as can be."""
    if off:
        return f"{SANDBOX_OFF}: commands run with all your rights"
    layer = sandbox_layer(app)
    return "" if layer is None or layer.name == "bwrap" else f"sandbox: {layer.said}"
