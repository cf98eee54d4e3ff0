"""A chart of horizontal bars as SVG: how many times as fast as something else, on a logarithmic scale from 1 x."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element, indent, tostring

from kafka_log.inspect.report.html import element

WIDTH = 480
"""Units of a drawing from left to right; a phone shows 0.7 pixels for each."""
SHOWN_WIDTH = 600
"""Width in pixels where there is room."""
_MARGIN = 16
_LABELS = 130
"""Units for the labels of rows."""
_FIGURE = 38
"""Units for the figure at the end of the longest bar."""
LEFT, RIGHT = _MARGIN + _LABELS, WIDTH - _MARGIN - _FIGURE
_BAR, _GAP = 13, 6
_LINE = 17
_CHARACTERS, _TITLE_CHARACTERS = 68, 44
"""Characters of a line of small text, and of the title."""
_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px } .group { font-weight: 600 }
.small { font-size: 12px; fill: #57606a } .figure { font-size: 12px }
.paper { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #d8dee4 } .one { stroke: #1f2328; stroke-width: 1.5 }
.s0 { fill: #0969da } .s1 { fill: #d4820f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 }
  .paper { fill: #0d1117; stroke: #3d444d } .grid { stroke: #2a313c } .one { stroke: #e6edf3 }
  .s0 { fill: #4493f8 } .s1 { fill: #db8f2b }
}
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """A row of a chart: its label, and a figure as text for each series, ``""`` for none."""

    label: str
    figures: Sequence[str]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows with a heading."""

    heading: str
    rows: Sequence[Bars]


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows.

    Attributes:
        title: What was measured.
        subtitle: What the figures are.
        series: Names of the series; a legend shows them if there are several.
        groups: The rows. A bar to the right of 1 x is faster than what the row names.
        source: The machine and the pages of results.
    """

    title: str
    subtitle: str
    series: Sequence[str]
    groups: Sequence[Group]
    source: str


def draw_chart(chart: Chart) -> str:
    """Return a chart as SVG.

    Raises:
        ValueError: if it has no figure, or one that is no positive number.
    """
    values = [value for group in chart.groups for row in group.rows for value in _values(row)]
    if not values or min(values) <= 0:
        raise ValueError(f"{chart.title}: no figures, or one that is not positive: {values}")
    drawing = _Drawing(min(values), max(values))
    drawing.add_header(chart)
    for group in chart.groups:
        drawing.add_group(group)
    drawing.add_axis()
    drawing.add_lines(chart.source, "small")
    return drawing.write(chart)


def _values(row: Bars) -> list[float]:
    return [float(figure.replace(",", "")) for figure in row.figures if figure]


class _Drawing:
    """A drawing that grows downwards; ``y`` is its end. Its axis reaches from ``low`` to ``high``,
    and contains 1.
    """

    def __init__(self, low: float, high: float) -> None:
        self.y = float(_MARGIN)
        self._shapes: list[Element] = []
        self._low, self._high = math.log(min(low, 0.95)), math.log(max(high, 1.05))
        self._bands: list[tuple[float, float]] = []

    def add_header(self, chart: Chart) -> None:
        for line in textwrap.wrap(chart.title, _TITLE_CHARACTERS):
            self._add_text(line, _MARGIN, "title")
        self.y += 4
        self.add_lines(chart.subtitle, "small")
        if len(chart.series) > 1:
            self.y += 5
            x = float(_MARGIN)
            for i, name in enumerate(chart.series):
                self._add_rect(x, self.y + 2, 12, 12, f"s{i}")
                self._shapes.append(_text(name, x + 18, self.y + 12, "small"))
                x += 18 + 6.4 * len(name) + 20
            self.y += _LINE
        self.y += 6

    def add_group(self, group: Group) -> None:
        self.y += 5
        self._add_text(group.heading, _MARGIN, "group")
        self.y += 3
        top = self.y
        for row in group.rows:
            height = _BAR * len(row.figures) + 1
            label = _text(row.label, LEFT - 10, self.y + height / 2 + 4, None, anchor="end")
            self._shapes.append(label)
            for i, figure in enumerate(row.figures):
                if figure:
                    self._add_bar(figure, self.y + i * _BAR, f"s{i}")
            self.y += height + _GAP
        self._bands.append((top - 2, self.y - _GAP + 2))

    def _add_bar(self, figure: str, y: float, kind: str) -> None:
        one, end = self._place(1), self._place(float(figure.replace(",", "")))
        self._add_rect(min(one, end), y, max(abs(end - one), 1), _BAR - 1, kind)
        self._shapes.append(_text(figure, max(one, end) + 5, y + _BAR - 3, "figure"))

    def add_axis(self) -> None:
        """Add the lines of the axis, behind the bars, and their labels below."""
        ticks = self._choose_ticks()
        for tick in ticks:
            place = _format(self._place(tick))
            bands = [f"M{place} {_format(top)}V{_format(end)}" for top, end in self._bands]
            line = element("path", d="".join(bands), class_="one" if tick == 1 else "grid")
            self._shapes.insert(len(self._shapes) if tick == 1 else 0, line)
        self.y += 12
        for tick in ticks:
            label = _text(f"{tick:g} x", self._place(tick), self.y, "small", anchor="middle")
            self._shapes.append(label)
        self.y += _LINE
        one = self._place(1)
        if self._low < math.log(0.9):
            self._shapes.append(_text("← slower", one - 8, self.y, "small", anchor="end"))
        self._shapes.append(_text("faster →", one + 8, self.y, "small"))
        self.y += 10

    def _choose_ticks(self) -> list[float]:
        """Return the marks of the axis: 1 and, where labels have room, 2 and 5 or powers of ten."""
        for steps in ((1, 2, 5), (1,)):
            marks = [step * 10.0**power for power in range(-6, 6) for step in steps]
            found = [m for m in marks if LEFT - 1 <= self._place(m) <= RIGHT + 1]
            places = [self._place(mark) for mark in found]
            if all(after - before > 36 for before, after in pairwise(places)):
                break
        return found

    def add_lines(self, text: str, kind: str) -> None:
        for paragraph in text.splitlines():
            for line in textwrap.wrap(paragraph, _CHARACTERS):
                self._add_text(line, _MARGIN, kind)

    def write(self, chart: Chart) -> str:
        height = _format(self.y + _MARGIN / 2)
        style = element("style")
        style.text = _STYLE
        drawing = element(
            "svg",
            element("title", chart.title, id="title"),
            element("desc", " ".join(_describe(chart)), id="desc"),
            style,
            element("rect", x=0.5, y=0.5, width=WIDTH - 1, height=float(height) - 1, rx=6, class_="paper"),
            *self._shapes,
            xmlns="http://www.w3.org/2000/svg",
            width=SHOWN_WIDTH,
            viewBox=f"0 0 {WIDTH} {height}",
            role="img",
            aria_labelledby="title desc",
        )  # fmt: skip
        indent(drawing)
        return f"{tostring(drawing, encoding='unicode')}\n"

    def _place(self, value: float) -> float:
        part = (math.log(value) - self._low) / (self._high - self._low)
        return LEFT + part * (RIGHT - LEFT)

    def _add_text(self, text: str, x: float, kind: str) -> None:
        self._shapes.append(_text(text, x, self.y + 12, kind))
        self.y += _LINE

    def _add_rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self._shapes.append(
            element(
                "rect",
                x=_format(x),
                y=_format(y),
                width=_format(width),
                height=_format(height),
                class_=kind,
            )
        )


def _text(text: str, x: float, y: float, kind: str | None, anchor: str | None = None) -> Element:
    return element("text", text, x=_format(x), y=_format(y), class_=kind, text_anchor=anchor)


def _describe(chart: Chart) -> Iterator[str]:
    """Yield the sentences for people who do not see the chart: all that it shows."""
    yield chart.subtitle.replace("\n", " ")
    for group in chart.groups:
        for row in group.rows:
            pairs = zip(chart.series, row.figures, strict=True)
            said = [f"{name} {figure}".strip() for name, figure in pairs if figure]
            yield f"{group.heading}, {row.label}: {', '.join(said) or 'not measured'}."


def _format(value: float) -> str:
    """Return a length with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")
