"""What goes on when Sylph has ended: the background jobs of a session."""

from sylph.engine.runtime import Runtime
from sylph.interfaces.render import Line, Span, flat


def ongoing(runtime: Runtime, session: str) -> list[Line]:
    """One line for each job that still runs, with what ends it."""
    running = [job for job in runtime.jobs(session).all() if job.state == "running"]
    return [
        (Span("still running: ", "warn"), Span(f"{flat(job.command, 60)} → sylph job stop {session}.{job.id}"))
        for job in running
    ]
