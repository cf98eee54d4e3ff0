"""Settings for all tests, and how they are shared out to processes."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.groups import group, ordered
from tests.shares import mark_shares

EXAMPLES = {"quick": 20, "full": 60, "thorough": 1000}
"""Examples of a law by the profile that HYPOTHESIS_PROFILE names; CI runs everything under ``full``."""

for profile, examples in EXAMPLES.items():
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure() -> None:
    """What runs in the background of a shell begins with Ctrl-C ignored, and so does all that it starts: tests are interrupted on purpose."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is as wide as it likes, whatever screen the tests are started from."""
    monkeypatch.delenv("COLUMNS", raising=False)


QUICK = "not broker and not slow"
WHOLLY_LEFT_OUT = re.compile(r"^pytestmark = .*\bmark\.(slow|broker)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files with no test for the quick run are not imported in it, which takes each process some seconds."""
    if config.option.markexpr != QUICK or not collection_path.match("test_*.py"):
        return None
    return bool(WHOLLY_LEFT_OUT.search(collection_path.read_text("utf-8"))) or None


TWICE = "large/"
"""Reference files of many records: tests that go through all files read these in the slow run."""


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    name = item.nodeid.partition("[")[2]
    if TWICE in name.replace("large-", TWICE):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Take shares before pytest leaves out what is slow; then, in a process of pytest-xdist, bring the groups into the order in which they
    should begin."""
    mark_shares(items)
    yield
    if hasattr(config, "workerinput"):
        places = {name: i for i, name in enumerate(ordered([item.nodeid for item in items]))}
        items.sort(key=lambda item: places[item.nodeid])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """``--dist loadfile`` gives out our groups instead of files."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Groups(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # they are in order
    return Groups(config, log)
