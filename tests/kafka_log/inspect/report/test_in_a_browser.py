"""The page of ``kafka-log report`` in a browser: on a phone and a desk, light, dark and on paper, with no request and no message.

Chromium is looked for (see :mod:`tests.support.browser`); without it these tests are skipped.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.browser import Browser
from tests.support.check_plants import flip

pytestmark = pytest.mark.slow

COLORS = "[document.body, document.querySelector('.verdict h2')].map(e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor])"
TOP = "document.querySelector('#verdict h2').getBoundingClientRect().bottom"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    logs = root / ("x" * 60)
    shutil.copytree(SAMPLES / "kafka-4.x", logs)
    flip(logs / "segments.small-0" / f"{42:020d}.log", 500)
    state = logs / "__transaction_state-0" / f"{0:020d}.log"
    state.write_bytes(state.read_bytes()[:13571])
    shutil.copytree(logs / "codecs-1", root / "second" / "codecs-1")
    hostile = logs / f"{'long.' * 40}<b onclick=x>-0"
    shutil.copytree(logs / "codecs-2", hostile)
    out = root / "report.html"
    assert main(["report", str(logs), str(root / "second"), "--out", str(out)]) == 1
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_loads_nothing(browser: Browser, page: Path, width: int) -> None:
    browser.size(width, 844)
    browser.requested.clear()
    browser.console.clear()
    browser.open(page)
    assert browser.get("document.documentElement.scrollWidth") <= width
    assert browser.get(TOP) < 500  # the verdict is on the first screen
    assert browser.get("document.querySelectorAll('svg.strip rect').length") > 10
    assert (
        browser.get("getComputedStyle(document.querySelector('.verdict')).borderLeftWidth") == "6px"
    )
    assert browser.console == []
    assert set(browser.requested) <= {"about:blank", page.as_uri()}


def luminance(color: str) -> float:
    channels = [int(part) / 255 for part in color[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_contrast(browser: Browser, page: Path, scheme: str) -> None:
    browser.size(1280, 844)
    browser.scheme(scheme)
    browser.open(page)
    for text, ground in browser.get(COLORS):
        low, high = sorted((luminance(text), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) > 4.5
        assert (luminance(ground) < 0.5) == (scheme == "dark")


def test_it_prints(browser: Browser, page: Path) -> None:
    browser.scheme("dark")
    browser.open(page)
    data = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    assert data.startswith(b"%PDF-") and data.count(b"/Type /Page\n") < 60
