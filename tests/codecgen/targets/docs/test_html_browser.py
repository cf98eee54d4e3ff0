"""The static site in a real browser: what lights up, leads on, is found, and can be read.

Chromium is looked for (see :mod:`tests.support.browser`); without it these tests are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecgen.output import write_tree
from codecgen.plan import make_plan
from codecgen.schema.loader import load
from codecgen.targets import docs
from tests.paths import SCHEMAS
from tests.support.browser import Browser
from tests.support.hostile_texts import EVIL, hostile
from tests.support.html_pages import emitted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    write_tree(out, "kafka_codecs", {"html": emitted(SCHEMAS)})
    return out / "html"


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(opened: Browser) -> Iterator[Browser]:
    """A browser as a person has it: wide, light, with scripts. What it has to complain about fails the test."""
    opened.scripts(True)
    opened.size(1280, 900)
    opened.scheme("light")
    opened.console.clear()
    opened.requested.clear()
    yield opened
    assert opened.console == []
    assert all(url.startswith(("file:", "about:")) for url in opened.requested), opened.requested


BATCH = "records/record_batch.html"
LIT = "[...document.querySelectorAll('.dump .run.lit')].map(e => e.textContent).join(' ')"
FIELD = "document.querySelector('.dump li.lit a')?.textContent"


@pytest.mark.parametrize("every", [32, pytest.param(1, marks=pytest.mark.soak)])
def test_every_page_opens_without_complaints(site: Path, browser: Browser, every: int) -> None:
    """CI opens the pages of today, and each eighth of the others: these are made in the same way for each release."""
    found = sorted(site.rglob("*.html"))
    of_releases = [path for path in found if path.relative_to(site).parts[0].startswith("as-of-")]
    paths = [path for path in found if path not in of_releases] + of_releases[::every]
    assert len(paths) > 50
    for path in paths:
        browser.open(path)
        assert browser.get("document.querySelector('h1').textContent.length > 0"), path
        assert browser.get("document.documentElement.classList.contains('js')"), path
        assert browser.get("Array.isArray(window.names)"), path
    assert len([url for url in browser.requested if url.endswith("site.css")]) >= len(paths)


@pytest.mark.soak
def test_no_page_is_wider_than_a_phone(site: Path, browser: Browser) -> None:
    browser.size(360, 740)
    paths = sorted(site.rglob("*.html"))
    assert len(paths) > 50
    for path in paths:
        browser.open(path)
        assert browser.get("document.documentElement.scrollWidth") <= 360, path


def test_bytes_light_up_with_their_field(site: Path, browser: Browser) -> None:
    browser.open(site / BATCH)
    assert browser.get(LIT) == ""
    browser.point(".dump li[data-piece='4'] a")  # the pointer over a field
    assert (browser.get(FIELD), browser.get(LIT)) == ("crc", "9e 15 49 84")
    browser.point(".dump .run[data-piece='3']")  # and over bytes
    assert (browser.get(FIELD), browser.get(LIT)) == ("magic", "02")
    browser.point("h1")
    assert browser.until(f"{LIT} === ''")
    browser.get("document.querySelector('.dump li a').focus()")  # the keyboard
    assert (browser.get(FIELD), browser.get(LIT)) == ("base_offset", "00 00 00 00 00 00 00 64")
    browser.key("ArrowDown", 40)
    browser.key("ArrowDown", 40)
    assert (browser.get(FIELD), browser.get(LIT)) == ("partition_leader_epoch", "00 00 00 07")
    browser.key("Tab", 9)
    assert browser.get(FIELD) == "magic"
    # A field that goes on in the next row is lit in both.
    browser.point(".dump li[data-piece='7'] a")
    assert browser.get("document.querySelectorAll('.dump .run.lit').length") == 2
    assert browser.get(LIT) == "00 00 01 8b cf e5 68 00"
    colours = browser.get(
        "['.run.lit', '.run:not(.lit)'].map(s => getComputedStyle(document.querySelector('.dump ' + s)).backgroundColor)"
    )
    assert colours[0] != colours[1]


def test_a_field_of_a_dump_leads_to_its_description(site: Path, browser: Browser) -> None:
    browser.open(site / BATCH)
    browser.follow(
        "[...document.querySelectorAll('.dump a')].find(a => a.textContent === 'records[0].key')"
    )
    browser.until("location.href.endsWith('/records/record.html#record-key')")
    browser.until("document.querySelector('tr:target')?.textContent.includes('key')")


def test_the_picture_and_the_table_belong_together(site: Path, browser: Browser) -> None:
    browser.open(site / BATCH)
    browser.point("#record_batch-crc th")
    assert browser.get("document.querySelectorAll('svg .lit').length") > 0
    assert browser.get("document.querySelector('svg .lit').dataset.field") == "record_batch-crc"
    browser.point("svg a[data-field='record_batch-magic'] rect", click=True)
    assert browser.until("document.querySelector(':target')?.id") == "record_batch-magic"


def test_the_search(site: Path, browser: Browser) -> None:
    browser.open(site / "messages" / "kraft.html")
    browser.key("/", 191, "/")
    browser.type("delete hor")
    names = "[...document.querySelectorAll('#found .name')].map(e => e.textContent)"
    found = browser.until(f"{names}.length ? {names} : null")
    assert "record_batch.delete_horizon" in found
    assert "record_batch.attributes.has_delete_horizon" in found
    browser.key("Escape", 27)
    assert browser.get("document.getElementById('found').hidden")
    browser.type("record_count")
    assert browser.until(f"{names}[0]") == "record_batch.record_count"
    browser.key("ArrowDown", 40)
    browser.key("ArrowUp", 38)
    browser.key("Enter", 13)
    browser.until("location.href.endsWith('/records/record_batch.html#record_batch-record_count')")
    browser.until("document.readyState === 'complete'")
    browser.key("/", 191, "/")
    browser.type("no such thing at all")
    assert (
        browser.until("document.querySelector('#found .none')?.textContent") == "No name has that"
    )


PAGE_COLOUR = "getComputedStyle(document.body).backgroundColor"


def test_light_and_dark(site: Path, browser: Browser) -> None:
    browser.open(site / BATCH)
    light = browser.get(PAGE_COLOUR)
    browser.scheme("dark")
    dark = browser.get(PAGE_COLOUR)
    assert light != dark
    browser.get("document.getElementById('theme').click()")
    assert browser.get(PAGE_COLOUR) == light
    browser.open(site / "index.html")  # and the next page keeps it
    assert browser.get(PAGE_COLOUR) == light
    browser.get("document.getElementById('theme').click()")
    assert browser.get(PAGE_COLOUR) == dark
    browser.scheme("light")
    assert browser.get(PAGE_COLOUR) == dark
    browser.get("localStorage.clear()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(site: Path, browser: Browser, scheme: str) -> None:
    """At least 4.5 to 1, as WCAG has it, wherever text stands."""
    browser.scheme(scheme)
    script = """(() => {
      const parts = c => c.match(/[0-9.]+/g).map(Number);
      const light = c => { const [r, g, b] = parts(c).slice(0, 3).map(v => { v /= 255;
        return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }); return 0.2126*r + 0.7152*g + 0.0722*b };
      const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if ((parts(c)[3] ?? 1) > 0) return c } return 'rgb(255,255,255)' };
      const bad = [];
      for (const e of document.querySelectorAll('body *:not(svg, svg *)')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
        const style = getComputedStyle(e);
        if (style.visibility === 'hidden' || style.opacity === '0' || !e.getClientRects().length) continue;
        const [a, b] = [light(style.color), light(back(e))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) bad.push([e.tagName, e.className, style.color, back(e), e.textContent.slice(0, 30)]);
      }
      return bad.slice(0, 5);
    })()"""
    for name in (
        BATCH,
        "index.html",
        "names.html",
        "records/message.html",
        "as-of-0.11.0/index.html",
    ):
        browser.open(site / name)
        if ".dump" in browser.get("document.querySelector('.dump') ? '.dump' : ''"):
            browser.point(".dump li a")
        assert browser.get(script) == []


def test_pages_are_readable_without_scripts(site: Path, browser: Browser) -> None:
    browser.scripts(False)
    browser.open(site / BATCH)
    shown = "e => getComputedStyle(document.querySelector(e)).display !== 'none'"
    # Scripts of the page are off; the test's own expressions still run.
    assert browser.get(
        f"['.dump', '.contents', 'table', 'svg', '.editions', '.says'].every({shown})"
    )
    assert not browser.get(f"['.search', '.theme'].some({shown})")
    assert browser.get("document.querySelectorAll('.dump li').length") > 30
    assert "1700000000000 ms" in browser.get("document.querySelector('.dump').textContent")


def test_the_switch_between_releases(site: Path, browser: Browser) -> None:
    browser.open(site / BATCH)
    assert "has_delete_horizon" in browser.get("document.body.textContent")
    browser.follow(
        "[...document.querySelectorAll('.editions a')].find(a => a.textContent === '2.1.0')"
    )
    browser.until("location.href.endsWith('/as-of-2.1.0/records/record_batch.html')")
    browser.until("document.readyState === 'complete'")
    text = browser.get("document.body.textContent")
    assert "has_delete_horizon" not in text and "zstd" in text and "firstTimestamp" in text
    assert browser.get("document.querySelector('.editions [aria-current]').textContent") == "2.1.0"


def test_a_hostile_schema_runs_nothing(tmp_path: Path, browser: Browser) -> None:
    texts = [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(1)</script>",
        "'\"><svg onload=alert(1)>",
    ]
    for i, text in enumerate(texts):
        files = {
            n: t.replace(EVIL.replace("'", "''"), text.replace("'", "''"))
            for n, t in hostile().items()
        }
        model, _ = load(files)
        assert model is not None
        out = tmp_path / str(i)
        write_tree(out, "kafka_codecs", {"html": docs.emit_html(make_plan(model)).files})
        pages = sorted(out.rglob("*.html"))
        assert pages
        for path in pages:
            browser.open(path)
            assert (
                browser.get("document.querySelectorAll('img, main script, [onload]').length") == 0
            )
            browser.key("/", 191, "/")
            browser.type("thing")
            assert browser.until("document.querySelectorAll('#found li').length")
            assert (
                browser.get(
                    "document.querySelectorAll('#found img, #found script, #found svg').length"
                )
                == 0
            )


def test_screenshots_are_not_empty(site: Path, browser: Browser, tmp_path: Path) -> None:
    """What people see: files to look at, which differ from each other. BROWSER_SHOTS names a folder that keeps them."""
    folder = Path(os.environ.get("BROWSER_SHOTS", tmp_path))
    shots = {}
    for width, height in ((1280, 900), (390, 844)):
        for scheme in ("light", "dark"):
            browser.size(width, height)
            browser.scheme(scheme)
            for name in ("index.html", BATCH, "records/message.html"):
                browser.open(site / name)
                shot = f"{Path(name).stem}-{width}-{scheme}.png"
                shots[shot] = browser.screenshot(folder / shot)
    assert all(data.startswith(b"\x89PNG") and len(data) > 10_000 for data in shots.values())
    assert len(set(shots.values())) == len(shots) == 12
