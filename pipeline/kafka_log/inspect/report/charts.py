"""Charts as SVG. Shapes stretch with the page; labels are HTML beside them, so that they stay readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from kafka_log.inspect.report.html import element

WIDTH = 1000
"""Width of a drawing in its own units."""
_BAR_HEIGHT = 100


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a strip.

    Attributes:
        start: Begin, in the units of the strip.
        end: End, at or after ``start``.
        kind: Class in the style sheet, which has its color.
        label: Text that a pointer shows.
    """

    start: int
    end: int
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart: its name, and a value for each series, drawn on top of each other."""

    label: str
    values: Sequence[int]


def draw_strip(
    spans: Sequence[Span], low: int, high: int, description: str, *, min_width: int = 4
) -> Element:
    """Return a horizontal strip from ``low`` to ``high`` with spans on it, later ones on top, and
    ``description`` as its label for screen readers. A span is at least ``min_width`` thousandths
    wide, so that none is invisible; the part outside of the strip is cut off.
    """
    scale = WIDTH / max(high - low, 1)
    drawing = _make_drawing(10, description, "strip")
    drawing.append(element("rect", x=0, y=0, width=WIDTH, height=10, class_="ground"))
    for span in spans:
        begin = min(max((span.start - low) * scale, 0.0), WIDTH)
        end = min(max((span.end - low) * scale, begin), WIDTH)
        width = max(end - begin, min_width)
        begin = min(begin, WIDTH - width)
        drawing.append(
            element(
                "rect",
                element("title", span.label),
                x=_format_length(begin),
                y=0,
                width=_format_length(width),
                height=10,
                class_=span.kind,
            )
        )
    return drawing


def draw_bars(bars: Sequence[Bar], description: str) -> Element:
    """Return a chart of bars beside each other, each with its series on top of each other, in the
    colors ``s0``, ``s1`` ... of the style sheet. The highest bar fills the height. A value of 0 or
    less is not drawn; every other one is drawn at least 0.6 percent high.
    """
    highest = max((sum(bar.values) for bar in bars), default=0) or 1
    drawing = _make_drawing(_BAR_HEIGHT, description, "bars")
    step = WIDTH / max(len(bars), 1)
    for i, bar in enumerate(bars):
        below = 0.0
        for series, value in enumerate(bar.values):
            if value <= 0:
                continue
            height = max(value / highest * _BAR_HEIGHT, 0.6)
            below += height
            drawing.append(
                element(
                    "rect",
                    element("title", bar.label),
                    x=_format_length(i * step + step * 0.06),
                    y=_format_length(max(_BAR_HEIGHT - below, 0.0)),
                    width=_format_length(step * 0.88),
                    height=_format_length(height),
                    class_=f"s{series}",
                )
            )
    return drawing


def draw_share(part: int, whole: int) -> Element:
    """Return a small bar for a table cell, filled by ``part`` of ``whole``. It is filled at least 1
    percent if ``part`` is above 0, and at most completely; it is empty if ``whole`` is 0 or less.
    """
    filled = 0 if whole <= 0 else max(min(part / whole, 1) * 100, 1 if part > 0 else 0)
    drawing = element(
        "svg",
        element("rect", x=0, y=0, width=100, height=6, class_="ground"),
        element("rect", x=0, y=0, width=_format_length(filled), height=6, class_="s0"),
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        class_="share",
        aria_hidden="true",
    )
    return drawing


def add_axis(drawing: Element, labels: Sequence[str]) -> Element:
    """Return a drawing with labels below it, spread from its left edge to its right edge."""
    axis = element("div", *(element("span", label) for label in labels), class_="axis")
    return element("div", drawing, axis, class_="chart")


def make_legend(entries: Sequence[tuple[str, str]]) -> Element:
    """Return a legend of pairs: class of a color in the style sheet, and its meaning."""
    items = [
        element("li", element("span", class_=f"key {kind}"), f" {meaning}")
        for kind, meaning in entries
    ]
    return element("ul", *items, class_="legend")


def _make_drawing(height: int, description: str, kind: str) -> Element:
    """Return an SVG element without shapes, of WIDTH and ``height`` units, that is stretched to the
    width of its place. ``description`` is its label for screen readers, ``kind`` its class in the
    style sheet.
    """
    return element(
        "svg",
        viewBox=f"0 0 {WIDTH} {height}",
        preserveAspectRatio="none",
        role="img",
        aria_label=description,
        class_=kind,
    )


def _format_length(value: float) -> str:
    """Return a length with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
