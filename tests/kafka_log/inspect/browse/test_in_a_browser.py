"""Pages of ``kafka-log browse`` in a browser: on a phone and a desk, light and dark, with no request elsewhere and no message.

Chromium is looked for (see :mod:`tests.support.browser`); without it these tests are skipped.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_log.inspect.browse.document import make_policy_of_pages, write_document
from kafka_log.inspect.browse.server import PageServer
from kafka_log.inspect.browse.site import make_error_page
from tests.paths import SAMPLES
from tests.support.browse_sites import Visitor, links
from tests.support.browser import Browser
from tests.support.check_plants import flip

pytestmark = pytest.mark.slow

COLORS = "[document.body, document.querySelector('.verdict h2')].map(e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor])"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A broker with a batch that fails its checksum, a hanging transaction and a hostile name."""
    root = tmp_path_factory.mktemp("browse") / ("x" * 60)
    shutil.copytree(SAMPLES / "kafka-4.x", root)
    flip(root / "segments.small-0" / f"{42:020d}.log", 500)
    state = root / "__transaction_state-0" / f"{0:020d}.log"
    state.write_bytes(state.read_bytes()[:13571])
    shutil.copytree(root / "codecs-2", root / f"{'long.' * 40}<b onclick=x>-0")
    return Visitor(root)


@pytest.fixture(scope="module")
def server(visitor: Visitor) -> Iterator[PageServer]:
    found = PageServer(
        "127.0.0.1",
        0,
        visitor.site.answer,
        lambda status, message: write_document(make_error_page(status, message)),
        make_policy_of_pages(),
    )
    threading.Thread(target=found.serve_forever, daemon=True).start()
    with found:
        yield found
        found.shutdown()


@pytest.fixture(scope="module")
def browser(server: PageServer) -> Iterator[Browser]:
    with Browser() as found:
        found.load(server.url)
        yield found


@pytest.fixture(scope="module")
def pages(visitor: Visitor) -> dict[str, str]:
    """A page of each kind, about the damage."""
    (batches,) = links(visitor.see("/"), "byte=383")
    (batch,) = links(visitor.see(batches), "/batch[?].*byte=383")
    shown = visitor.see(batch)
    partition = visitor.partition("segments.small")
    return {
        "overview": "/",
        "problems": "/problems",
        "topic": links(visitor.see("/"), "^/topics/")[0],
        "partition": partition,
        "batches": batches,
        "batch": batch,
        "record": links(shown, "/record[?]")[0],
        "bytes": links(shown, "/bytes[?]")[0],
        "search": f"{partition}/search?text=alph",
    }


@pytest.mark.share(ci=2)
@pytest.mark.parametrize("width, scheme", [(390, "dark"), (1280, "light")])
def test_pages_fit_and_load_nothing(
    browser: Browser,
    server: PageServer,
    pages: dict[str, str],
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    browser.size(width, 844)
    browser.scheme(scheme)
    for name, url in pages.items():
        browser.requested.clear()
        browser.console.clear()
        browser.load(f"http://{server.origin}{url}")
        assert browser.get("document.documentElement.scrollWidth") <= width, name
        browser.screenshot(tmp_path / f"{name}.png")
        assert browser.console == [], name
        assert browser.requested == [f"http://{server.origin}{url}"], name
        assert (
            browser.get("getComputedStyle(document.querySelector('header')).maxWidth") == "1120px"
        )


def test_the_token_is_in_no_address_and_no_script_sees_it(
    browser: Browser, server: PageServer
) -> None:
    browser.load(server.url)
    assert browser.get("location.href") == f"http://{server.origin}/"
    assert browser.get("document.cookie") == ""


def test_damage_and_the_hanging_transaction_are_on_the_first_screen(
    browser: Browser, server: PageServer
) -> None:
    for width in (390, 1280):
        browser.size(width, 844)
        browser.load(f"http://{server.origin}/")
        for title in ("Batch with a wrong checksum", "Hanging transaction"):
            top = browser.get(
                f"[...document.querySelectorAll('.short a')].find(a => a.textContent.startsWith('{title}')).getBoundingClientRect().bottom"
            )
            assert top < 600


def test_links_and_forms_work_without_scripts(browser: Browser, server: PageServer) -> None:
    browser.size(1280, 844)
    browser.load(f"http://{server.origin}/")
    browser.follow("document.querySelector('.short a')")
    browser.until("document.querySelector('h1').textContent.startsWith('Batches of')")
    assert browser.get("document.querySelector('td .badge').textContent") == "damaged"
    browser.follow("document.querySelector('td a')")
    browser.until(
        "document.querySelector('h1').textContent == 'Damaged batch, offsets 48 to 53 by its header'"
    )
    browser.follow("[...document.querySelectorAll('a')].find(a => a.textContent == 'base_offset')")
    browser.until("location.hash == '#bytes-base_offset'")
    browser.load(f"http://{server.origin}/")
    browser.get("document.querySelector('input').value = 'trimm'")
    browser.follow("document.querySelector('button')")
    browser.until("location.search == '?name=trimm'")
    assert browser.get("document.querySelectorAll('table')[0].rows.length") == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(browser: Browser, server: PageServer, scheme: str) -> None:
    browser.scheme(scheme)
    browser.load(f"http://{server.origin}/")
    for text, ground in browser.get(COLORS):
        light, dark = sorted((sum(_rgb(text)), sum(_rgb(ground))), reverse=True)
        assert light - dark > 300


def _rgb(color: str) -> list[int]:
    return [int(part) for part in color.partition("(")[2].rstrip(")").split(",")[:3]]


def test_a_phone_shows_all_columns(
    browser: Browser, server: PageServer, pages: dict[str, str]
) -> None:
    """Rows are cards there, with headings and without what is empty, and no box has a shadow."""
    browser.size(390, 844)
    for name in ("batches", "batch", "bytes", "search"):
        browser.load(f"http://{server.origin}{pages[name]}")
        assert browser.get("document.querySelectorAll('.cards td').length") > 5, name
        hidden = "[...document.querySelectorAll('.cards')].filter(e => e.scrollWidth > e.clientWidth).length"
        assert browser.get(hidden) == 0, name
    browser.load(f"http://{server.origin}{pages['batches']}")
    label = "getComputedStyle(document.querySelector('.cards td:nth-child(3)'), '::before').content"
    assert browser.get(label) == '"bytes"'
    browser.size(1280, 844)
    assert browser.get(label) in ("none", "normal")
