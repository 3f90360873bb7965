"""What all tests share: how hard properties are tried, how long a test may take, and what is said of those left out.

`--hypothesis-profile=long` tries properties harder.
"""

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "short", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("long", settings.get_profile("short"), max_examples=3_000)
settings.load_profile("short")

# Seconds for what is marked `lengthy`; like `timeout` in pyproject.toml, only to end what hangs.
LENGTHY = 900
# The one reason for which a test may be left out where everything has to be tried.
ELSEWHERE = "`./check app` runs it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("lengthy"):
            item.add_marker(pytest.mark.timeout(LENGTHY))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where `CI` is set, what should have been tried and was not has failed."""
    report = yield
    # What is expected to fail is told as skipped, too.
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        reason = told(report)
        if reason != ELSEWHERE:
            report.outcome = "failed"
            report.longrepr = f"Skipped, although CI is set: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was left out and why, by file; also with `--quiet`."""
    skipped = terminalreporter.stats.get("skipped", ())
    if skipped:
        terminalreporter.section(f"{len(skipped)} skipped", sep="=", yellow=True)
    reasons = Counter((told(report), report.nodeid.partition("::")[0]) for report in skipped)
    for (reason, file), count in sorted(reasons.items()):
        terminalreporter.line(f"{count:4}  {file}: {reason}", yellow=True)


def told(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why it was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
