"""The documentation site: every link leads somewhere, and a browser shows each kind of page, narrow and wide, without the network."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from demo import run
from tests.support.browser import Browser

pytestmark = pytest.mark.slow

PAGES = (
    "README.html",
    "docs/README.html",
    "docs/architecture.html",
    "docs/performance.html",
    "docs/how-to/a-corrupt-segment.html",
    "docs/how-to/decode-values.html",
    "docs/tool/check.html",
    "docs/api/kafka_log.html",
    "docs/spark/options.html",
    "benchmarks/results/decode.html",
    "formats/records/record_batch.html",
)
"""One page of each kind."""


class Links(HTMLParser):
    """The ids of a page, and the addresses that it leads to or loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        self.targets += [values[name] for name in ("href", "src") if name in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "venv", lambda *extras: None)
        patch.setattr(run, "PYTHON", Path(sys.executable))
        run.site(out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.mark.soak
def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    missing = []
    followed = 0
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            if not there.is_file() or (
                anchor and there in pages and anchor not in pages[there].ids
            ):
                missing.append(f"{page.relative_to(site)}: {target}")
    assert not missing
    assert followed > 10_000


def test_guides_lead_to_the_interactive_formats(site: Path) -> None:
    page = Links((site / "docs" / "README.html").read_text(encoding="utf-8"))
    assert "../formats/index.html" in page.targets
    assert (site / "formats" / "as-of-2.1.0" / "records" / "record_batch.html").is_file()


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_their_window_and_ask_for_no_network(
    site: Path, browser: Browser, width: int
) -> None:
    browser.console.clear()
    browser.requested.clear()
    browser.size(width, 900)
    for page in PAGES:
        browser.open(site / page)
        assert browser.get("document.documentElement.scrollWidth") <= width, page
    assert browser.console == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in browser.requested), (
        browser.requested
    )


def test_search_finds_a_guide(site: Path, browser: Browser) -> None:
    browser.open(site / "search.html")
    browser.get("void setTimeout(() => { location.search = '?q=hanging+transaction' }, 0)")
    titles = "[...document.querySelectorAll('ul.search a')].map(link => link.textContent)"
    assert browser.until(
        f"{titles}.some(title => title.includes('hanging transaction')) && {titles}"
    )


def test_a_new_site_replaces_the_old_one_only_when_it_is_complete(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "old.html").touch()
    monkeypatch.setattr(run, "venv", lambda *extras: None)
    monkeypatch.setattr(run, "PYTHON", Path(shutil.which("false") or "false"))
    with pytest.raises(run.ChoreError):
        run.site(out)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert [path.name for path in out.iterdir()] == ["old.html"]
