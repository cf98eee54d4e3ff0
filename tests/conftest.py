"""Settings for all tests, and how they are shared out to processes."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes import changed_files, find_landed, find_turn
from tests.groups import group, ordered
from tests.records import records
from tests.shares import register_profiles
from tests.tiers import EVERY_PARAMETER, has_no_test, mark_tiers

register_profiles()


def pytest_configure(config: pytest.Config) -> None:
    """What runs in the background of a shell begins with Ctrl-C ignored, and so does all that it starts: tests are interrupted on purpose."""
    config.pluginmanager.register(records(), "records")
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    landed = find_landed(landed=os.environ.get("LANDED"))
    turn = find_turn()
    half = "" if turn is None else f"; of slow tests, CI runs turn {turn}"
    if landed is None:
        return f"tiers: git knows no landed commit{half}"
    return f"tiers: {len(changed_files())} files differ from the landed commit {landed[:12]}{half}"


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is as wide as it likes, whatever screen the tests are started from."""
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files with no test for this run, which takes each process some seconds."""
    if not collection_path.match("test_*.py"):
        return None
    return has_no_test(collection_path.read_text("utf-8"), config.option.markexpr) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without looks for garbage, and keep later looks from the tests: there are half a million objects of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


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
    """Mark tiers before pytest selects by marks; then, in a process of pytest-xdist, sort the groups into the order in which they
    should begin."""
    if not os.environ.get(EVERY_PARAMETER):
        mark_tiers(items, changed_files(), find_turn())
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

    class Groups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False  # they are in order
    return Groups(config, log)
