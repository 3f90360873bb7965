"""What goes on when Sylph has ended: the background jobs of a session."""

from sylph.engine.runtime.runtime import Runtime
from sylph.interfaces.text.render import StyledLine, TextSpan, one_line


def running_job_lines(runtime: Runtime, session: str) -> list[StyledLine]:
    """One line for each job that still runs, with what ends it."""
    running = [job for job in runtime.session_jobs(session).all() if job.state == "running"]
    return [
        (
            TextSpan("still running: ", "warn"),
            TextSpan(f"{one_line(job.command, 60)} → sylph job stop {session}.{job.id}"),
        )
        for job in running
    ]
