"""What all pages share: the frame with its path of links, links with parameters, forms, and the parameters of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

from kafka_log.inspect.report.html import (
    Child,
    append_child,
    element,
    make_policy,
    shorten,
    write_page,
)
from kafka_log.segment.times import parse_time

GENERATOR = "kafka-log browse"
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}\Z", re.ASCII)


class ParameterError(ValueError):
    """A parameter of a URL has an impossible value."""


@dataclass(frozen=True, slots=True)
class Query:
    """Parameters of a request. An empty one counts as missing."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a text; "" if it is missing."""
        return self.values.get(name, "")

    def number(self, name: str, minimum: int = 0) -> int | None:
        """Return an integer, None if it is missing; commas in it are ignored. Raise ParameterError
        if the text is no integer of at most 19 digits, or below ``minimum``.
        """
        text = self.text(name).strip().replace(",", "")
        if not text:
            return None
        if not _NUMBER.match(text) or int(text) < minimum:
            raise ParameterError(f"{name} has to be a number from {minimum} on, not {text!r}")
        return int(text)

    def count(self, name: str) -> int:
        """Return an integer, 0 if it is missing. Raise ParameterError if it is no integer, or
        negative.
        """
        return self.number(name) or 0

    def time(self, name: str) -> int | None:
        """Return a time in milliseconds since 1970, None if it is missing. Raise ParameterError if
        the text is no time.
        """
        text = self.text(name).strip()
        try:
            return parse_time(name, text) if text else None
        except ValueError as error:
            raise ParameterError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Page:
    """A page without its frame. ``path`` has the links above it: a text and a URL each, from the first page on."""

    title: str
    body: Sequence[Child]
    path: Sequence[tuple[str, str]] = ()
    status: int = 200


@cache
def read_style() -> str:
    """Return the style sheet of all pages: that of reports, with additions."""
    report, own = (
        files(f"kafka_log.inspect.{name}").joinpath("style.css").read_text(encoding="utf-8")
        for name in ("report", "browse")
    )
    return report + own


def make_policy_of_pages() -> str:
    """Return the content security policy of all pages."""
    return make_policy(read_style(), has_forms=True)


def write_document(page: Page) -> bytes:
    """Return a page with its frame as UTF-8 bytes."""
    steps: list[Child] = [element("a", "kafka-log browse", href="/")]
    for text, href in page.path:
        steps += [" › ", element("a", shorten(text, 120), href=href)]
    frame = (
        element(
            "header",
            element("nav", *steps, class_="path", aria_label="Path"),
            element("h1", shorten(page.title, 200)),
        ),
        element("main", *page.body),
    )
    title = shorten(page.title, 80)
    return write_page(
        f"{title} - kafka-log browse", read_style(), *frame, generator=GENERATOR, has_forms=True
    )


def make_url(*steps: str, **parameters: str | int | None) -> str:
    """Return the URL of a page: its path, and the parameters that are not None."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return "/" + "/".join(steps) + (f"?{urlencode(given)}" if given else "")


def make_link(text: str, href: str, class_: str | None = None) -> Element:
    """Return a link."""
    return element("a", text, href=href, class_=class_)


def make_links(*links: tuple[str, str | None]) -> Element | None:
    """Return a line of links, each a text and a URL. Those without a URL are left out; None if none is left."""
    shown = [make_link(text, href) for text, href in links if href is not None]
    return element("p", *shown, class_="links") if shown else None


def make_form(
    action: str, name: str, label: str, button: str, value: str = "", hint: str | None = None
) -> Element:
    """Return a form with one field, which leads to the page ``action``."""
    field = element(
        "input", type="text", name=name, value=value, placeholder=hint, maxlength=400, size=22
    )
    submit = element("button", button, type="submit")
    return element(
        "form", element("label", f"{label} ", field), " ", submit, action=action, method="get"
    )


def make_go_to(partition_id: str, query: Query) -> Element:
    """Return the forms that lead to an offset, a time or a text of a partition, filled with those of
    ``query``.
    """
    batches = make_url("partitions", partition_id, "batches")
    search = make_url("partitions", partition_id, "search")
    offset, time, text = (query.text(name) for name in ("offset", "time", "text"))
    return element(
        "div",
        make_form(batches, "offset", "Offset", "Go", offset),
        make_form(batches, "time", "Time", "Go", time, hint="2026-11-22T10:15 or -2h"),
        make_form(search, "text", "Text in keys and values (case-sensitive)", "Search", text),
        class_="forms",
    )


def make_code(text: str, class_: str | None = None) -> Element:
    """Return a ``code`` element with a text of several lines, and a ``br`` element for each end of
    a line, which ``element`` would escape.
    """
    code = element("code", class_=class_)
    for i, line in enumerate(text.split("\n")):
        append_child(code, element("br") if i else None)
        append_child(code, line)
    return code


def make_facts(facts: Sequence[tuple[str, Child]]) -> Element:
    """Return a list of names and values; those whose value is None or "" are left out."""
    rows = [
        element("div", element("dt", name), element("dd", value))
        for name, value in facts
        if value not in (None, "")
    ]
    return element("dl", *rows, class_="facts")


def make_notice(level: str, headline: str, *body: Child) -> Element:
    """Return a box with a colored headline. ``level`` is ``error``, ``warning`` or ``good``."""
    return element("section", element("h2", headline), *body, class_=f"verdict {level}")
