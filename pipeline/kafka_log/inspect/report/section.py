"""Sections of a report: what they share. Lists are limited; each says how many rows it leaves out, and which command shows all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.catalog import SEVERITIES
from kafka_log.inspect.report.html import MAX_CHARACTERS, Child, element, shorten
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.statistics.columns import PERIODS
from kafka_log.text.values import format_time

MAX_TOPICS = 100
MAX_ROWS = 100
"""Maximum number of rows of most lists."""
MAX_STRIPS = 40
"""Maximum number of strips of a chart."""
MAX_LINES = 50
"""Maximum number of lines about what was not read."""
DAMAGED = "wrong checksum"
"""Heading of a column with numbers of damaged batches."""
COUNTED_DAMAGE = (
    "Batches with a wrong checksum are counted by what their headers say, which may be wrong."
)
"""Sentence beside counts with damaged batches."""
SERIES = 6
"""Number of colors of series in the style sheet."""

CHECKSUMS = re.compile(r"stored checksum (\d+), computed (\d+)")
"""The numbers in the text of an error about a checksum."""
_SCHEMA_PLACE = re.compile(r", [\w/.-]+\.yaml:\d+(?=\))")

_MINUTE, _HOUR, _DAY = 60_000, PERIODS["hour"], PERIODS["day"]


PlaceUrl = Callable[[Mapping[str, Any], int | None], str | None]
"""Returns the URL of the partition of a row (``topic``, ``partition``, perhaps ``directory``), or of the batch with an offset in it; None if it has no page."""


def no_url(row: Mapping[str, Any], offset: int | None) -> None:
    """Return None: a report has no pages to link to."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: fragment, heading, and what stands below it."""

    anchor: str
    heading: str
    body: Sequence[Child]


def make_badge(level: str, text: str | None = None) -> Element:
    """Return the severity as a colored word; with ``text``, that text in its color."""
    return element("span", level if text is None else text, class_=f"badge {level}")


def link_text(text: str, url: str | None) -> Child:
    """Return a link to ``url``; ``text`` alone if it is None."""
    return text if url is None else element("a", text, href=url)


def list_lines(
    heading: str, lines: Sequence[str], origin: Origin, max_lines: int = MAX_LINES
) -> Element:
    """Return the first ``max_lines`` of ``lines``, each shortened, as a list below a heading. If
    there are more, it says how many, with the ``kafka-log check`` command line of ``origin``.
    """
    items = [element("li", format_reason(line, 400)) for line in lines[:max_lines]]
    more = make_more_paragraph(len(lines), len(items), "line", origin.write_command("check"))
    return element("div", element("h3", heading), element("ul", *items), more, class_="lines")


def format_reason(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """Return the text of an error for a page: checksums in hexadecimal, as in the bytes, no place in
    a schema, and at most ``max_characters``.
    """
    text = CHECKSUMS.sub(
        lambda m: f"stored checksum {int(m[1]):#010x}, computed {int(m[2]):#010x}", text
    )
    return shorten(_SCHEMA_PLACE.sub("", text), max_characters)


def make_more_paragraph(total: int, shown: int, noun: str, command: str) -> Element | None:
    """Return a paragraph that says how many of ``total`` rows are left out, and that ``command``
    prints all. ``noun`` is the singular of a row. Return None if all are ``shown``.
    """
    if total <= shown:
        return None
    return element(
        "p",
        f"And {count_noun(total - shown, noun + ' more', noun + 's more', spec=',')} of {total:,}. All of them: ",
        element("code", shorten(command, 1000)),
        class_="more",
    )


def make_command_hint(what: str, command: str) -> Element:
    """Return a line that names the command for more detail."""
    return element("p", f"{what}: ", element("code", shorten(command, 1000)), class_="more")


def sum_column(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    """Return the sum of a column."""
    return sum(row[name] for row in rows)


def format_number(value: int | None) -> str:
    """Return a number with commas; "" for None."""
    return "" if value is None else f"{value:,}"


def format_counts(counts: Mapping[str, int]) -> Child:
    """Return the numbers of errors, warnings and notes, by severity, as badges that name them; "" if
    all are 0.
    """
    badges: list[Child] = []
    for level in SEVERITIES:
        if counts.get(level):
            badges += [
                " " if badges else None,
                make_badge(level, count_noun(counts[level], level, spec=",")),
            ]
    return element("span", *badges) if badges else ""


def format_sum(values: Iterable[int | None]) -> str:
    """Return the sum of the known numbers; "" without one."""
    known = [value for value in values if value is not None]
    return f"{sum(known):,}" if known else ""


def format_text(value: str | None) -> str:
    """Return a text, shortened; "" for None."""
    return "" if value is None else shorten(value, 200)


def format_short_time(value: int | None) -> str:
    """Return a time in milliseconds since 1970 as ``2026-11-22 10:15:00`` in UTC; "" for None, the number as text if it has no date."""
    if value is None:
        return ""
    text = format_time(value)
    return text[:19].replace("T", " ") if "T" in text else text


def format_minute(value: int) -> str:
    """Return a time without seconds, in UTC; as a number if it has no date."""
    text = format_time(value)
    return text[:16].replace("T", " ") if "T" in text else text


def format_range(first: int | None, last: int | None) -> str:
    """Return the first and last number of a range; "" if it is unknown."""
    if first is None or last is None:
        return ""
    return f"{first}" if first == last else f"{first} to {last}"


def format_length(milliseconds: int | None) -> str:
    """Return a length of time in milliseconds as text in its two largest units that are not 0, such
    as ``1 d 3 h``; "" for None, in ``ms`` if it is below a second.
    """
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:,} ms"
    seconds = milliseconds // 1000
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        if seconds >= size:
            parts.append(f"{seconds // size:,} {name}")
            seconds %= size
    return " ".join(parts[:2])


def format_step(milliseconds: int) -> str:
    """Return a length of time in days, hours or minutes, the largest of these that divides it, such
    as ``6 hours``; else in milliseconds.
    """
    for name, size in (("day", _DAY), ("hour", _HOUR), ("minute", _MINUTE)):
        if milliseconds % size == 0:
            return count_noun(milliseconds // size, name, spec=",")
    return f"{milliseconds:,} ms"
