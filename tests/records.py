"""What a run of the tests leaves besides its result: seconds of each test, and skips that nobody expects.

The variable TEST_RECORDS names a directory for both. With TEST_SKIPS=fail such a skip fails the run.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

EXPECTED_SKIPS: Mapping[str, Collection[str]] = {
    "tests/kafka_log/write/test_full_disks.py": ("who runs the tests may not mount a file system",),
    "tests/kafka_log/inspect/report/test_interrupted.py": (
        "who runs the tests may not mount a file system",
    ),
    "tests/kafka_log/segment/test_vectors.py": ("holds a batch that no writer writes",),
    "tests/kafka_log/read/test_samples.py": ("consumers do not read this topic",),
    "tests/pyspark_kafka_log/export/test_stores.py": ("its catalog says where files lie",),
}
"""Reasons by file. All other tests run on a machine that has what `.ci/run` installs; a run that skips one proves less than it says."""

SECONDS, SKIPS = "seconds.tsv", "skips.txt"


class Records:
    """A plugin of pytest for the process that shows the results."""

    def __init__(self, folder: Path | None, fails: bool) -> None:
        self.folder = folder
        self.fails = fails
        self.seconds: dict[str, float] = {}
        self.skips: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        self.take(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.take(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take files that were skipped as a whole from a process of pytest-xdist."""
        self.skips |= getattr(node, "workeroutput", {}).get(SKIPS, {})

    def take(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = reason_of(report)
            if reason not in EXPECTED_SKIPS.get(report.nodeid.partition("::")[0], ()):
                self.skips[report.nodeid] = reason

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            files = {name: reason for name, reason in self.skips.items() if "::" not in name}
            session.config.workeroutput[SKIPS] = files
            return
        if self.fails and self.skips and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            longest = sorted(self.seconds.items(), key=lambda one: -one[1])
            lines = [f"{seconds:.2f}\t{name}\n" for name, seconds in longest]
            (self.folder / SECONDS).write_text("".join(lines), encoding="utf-8")
            (self.folder / SKIPS).write_text("".join(self.lines()), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skips:
            terminalreporter.section("skips that nobody expects (tests/records.py)")
            terminalreporter.write("".join(self.lines()))

    def lines(self) -> list[str]:
        return [f"{name}: {reason}\n" for name, reason in sorted(self.skips.items())]


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test or a file was skipped."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def records() -> Records:
    """Return the plugin as the variables of this process ask for it. Processes that it starts do not inherit them."""
    folder, skips = os.environ.pop("TEST_RECORDS", None), os.environ.pop("TEST_SKIPS", "")
    return Records(Path(folder) if folder else None, skips == "fail")
