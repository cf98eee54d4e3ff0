"""Pages of ``kafka-log browse`` without a server: a site about some paths, and a look at its pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from kafka_log.inspect.browse.listing import Lister
from kafka_log.inspect.browse.records import RecordView
from kafka_log.inspect.browse.site import Site
from tests.support.seen_pages import Page


class Visitor:
    """Asks a site for pages, and reads them strictly."""

    def __init__(self, *paths: Path, view: RecordView | None = None) -> None:
        self.lister = Lister(list(map(str, paths)))
        self.site = Site(self.lister, view or RecordView())
        self.last = ""

    def ask(self, url: str) -> tuple[int, Page]:
        parts = urlsplit(url)
        status, data = self.site.answer(
            parts.path, dict(parse_qsl(parts.query, keep_blank_values=True))
        )
        assert len(data) < 3_000_000
        self.last = data.decode("utf-8")
        page = Page.read(data)
        assert "fault in kafka-log" not in page.text, (url, page.text)
        for tag, attributes in page.tags:
            assert tag not in {"script", "img", "iframe", "object", "embed", "link", "base"}, tag
            assert not any(name.startswith("on") or name == "style" for name in attributes), tag
            for name in ("href", "action"):
                assert attributes.get(name, "/")[:1] in "/#", (tag, attributes)
                assert attributes.get(name, "/")[:2] != "//"
        return status, page

    def see(self, url: str) -> Page:
        status, page = self.ask(url)
        assert status == 200, (url, page.text)
        return page

    def link(self, text: str) -> str | None:
        """The first link of the last page with a text."""
        found = re.search(f'<a href="([^"]*)">{text}</a>', self.last)
        return None if found is None else html.unescape(found[1])

    def partition(self, topic: str, number: int = 0) -> str:
        """The URL of a partition."""
        (found,) = (
            key
            for key, one in self.lister.list_paths().partitions.items()
            if one.key == (topic, number)
        )
        return f"/partitions/{found}"

    def crawl(self, most: int, begin: str = "/") -> Iterator[tuple[str, int, Page]]:
        """All pages that links lead to, from a page on, and their status."""
        seen: set[str] = set()
        todo = [begin]
        while todo and len(seen) < most:
            url = todo.pop(0)
            if url in seen:
                continue
            seen.add(url)
            status, page = self.ask(url)
            yield url, status, page
            todo += links(page)


def links(page: Page, pattern: str = "/") -> list[str]:
    """The links of a page to others that match a pattern, without fragments."""
    found = [a["href"].partition("#")[0] for tag, a in page.tags if tag == "a"]
    return [url for url in found if url.startswith("/") and re.search(pattern, url)]
