"""The charts of benchmarks/results: they say what the pages say, follow a new page, and load nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import measure, plots
from benchmarks.bar_chart import LEFT, RIGHT, WIDTH, Bars, Chart, Group, draw_chart
from benchmarks.plots import PLOTS, Plot
from benchmarks.result_page import RESULTS, read_result_page
from tests.paths import ROOT

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a copy of the pages of results, without charts."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS, folder, ignore=shutil.ignore_patterns("*.svg"))
    return folder


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_charts_are_those_of_the_pages(plot: Plot) -> None:
    path = RESULTS / f"{plot.name}.svg"
    assert path.read_text(encoding="utf-8") == plot.draw(RESULTS), (
        "run python -m benchmarks.plots, and look at the charts that change"
    )


def test_there_is_no_other_chart() -> None:
    assert {path.stem for path in RESULTS.glob("*.svg")} == {plot.name for plot in PLOTS}


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_a_page_shows_the_chart_with_a_text_instead(plot: Plot) -> None:
    shown = [
        text
        for page in (ROOT / "README.md", ROOT / "docs" / "performance.md")
        for text in re.findall(
            rf"!\[([^]]*)\]\([^)]*results/{plot.name}\.svg\)"
            rf'|<img src="[^"]*results/{plot.name}\.svg"[^>]* alt="([^"]*)"',
            page.read_text(encoding="utf-8"),
        )
    ]
    assert len(shown) == 1
    assert len("".join(shown[0])) > 40


def read_figures(chart: Path) -> list[str]:
    """Return the figures at the ends of bars, in order."""
    texts = ElementTree.parse(chart).iter(f"{SVG}text")
    return [text.text or "" for text in texts if text.get("class") == "figure"]


def test_figures_are_the_cells_of_the_table() -> None:
    [table] = read_result_page(RESULTS / "spark_kafka.md").tables
    cells = [cell for row in table.rows for cell in row[-2:]]
    assert len(cells) == 8
    assert read_figures(RESULTS / "spark_kafka.svg") == cells


def test_a_new_page_draws_its_charts_again(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESULTS", results)
    page = results / "spark_kafka.md"
    text = page.read_text(encoding="utf-8")
    first_row = r"(all columns, noop .*\| )[\d.]+ \| [\d.]+ \|$"
    new = re.sub(first_row, r"\1 77 | 0.033 |", text, count=1, flags=re.M)
    measure.write_result_page(page, new)
    assert {path.stem for path in results.glob("*.svg")} == {"spark_kafka", "summary"}
    assert read_figures(results / "spark_kafka.svg")[:2] == ["77", "0.033"]
    assert "77" in read_figures(results / "summary.svg")


def test_a_page_elsewhere_draws_nothing(results: Path) -> None:
    measure.write_result_page(results / "spark_kafka.md", "no table")
    assert list(results.glob("*.svg")) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("16-byte key, 1 KiB value, 16 KiB", "large values", "16-byte key, 1 KiB value, 16 KiB"),
        (r"\| x Java \|", "| x |", "no column x Java"),
        (r"\| [\d.]+ / ", "| 0.00 / ", "not positive"),
        ("` on ", "` at ", "machine"),
    ],
)
def test_a_page_without_what_a_chart_shows(results: Path, old: str, new: str, said: str) -> None:
    page = results / "decode.md"
    text = page.read_text(encoding="utf-8")
    changed, count = re.subn(old, new, text)
    assert count
    page.write_text(changed, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        plots.redraw_plots(page)


def bars(figures: list[str]) -> list[tuple[float, float]]:
    """Return the left and right ends of the bars of a chart with these figures."""
    rows = [Bars("peer", [figure]) for figure in figures]
    drawn = draw_chart(Chart("title", "subtitle", ("",), [Group("group", rows)], "machine"))
    rects = ElementTree.fromstring(drawn).iter(f"{SVG}rect")
    return [
        (float(rect.attrib["x"]), float(rect.attrib["x"]) + float(rect.attrib["width"]))
        for rect in rects
        if rect.get("class") == "s0"
    ]


def test_a_bar_begins_at_1_and_has_the_length_of_the_logarithm() -> None:
    faster, slower, half = bars(["100", "0.1", "10"])
    one = faster[0]
    assert faster[1] == pytest.approx(RIGHT)
    assert slower[0] == pytest.approx(LEFT)
    assert half[1] - one == pytest.approx((faster[1] - one) / 2, abs=0.2)
    assert slower[1] == pytest.approx(one)
    assert one - slower[0] == pytest.approx((faster[1] - one) / 2, abs=0.2)


@pytest.mark.parametrize("figures", [["1.00"], ["1,234.5", ""], ["0.001", "5000"]])
def test_bars_stay_in_the_picture(figures: list[str]) -> None:
    drawn = bars(figures)
    assert len(drawn) == len([figure for figure in figures if figure])
    assert all(0 < low < high < WIDTH for low, high in drawn)


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_charts_load_nothing_and_can_be_read_aloud(plot: Plot) -> None:
    path = RESULTS / f"{plot.name}.svg"
    text = path.read_text(encoding="utf-8")
    drawing = ElementTree.fromstring(text)
    assert not re.search(r"https?:|url\(|@import|href|<script", text.replace(SVG[1:-1], ""))
    names = drawing.attrib["aria-labelledby"].split()
    title, description = (drawing.find(f"{SVG}*[@id='{name}']") for name in names)
    assert title is not None and title.text
    assert description is not None and description.text
    missing = [figure for figure in read_figures(path) if figure not in description.text]
    assert missing == []
