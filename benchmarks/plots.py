"""Charts of the pages in benchmarks/results, beside these pages.

    python -m benchmarks.plots

A benchmark that writes a page draws its charts again. The figures are those of the tables, letter for letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bar_chart import Bars, Chart, Group, draw_chart
from benchmarks.result_page import RESULTS, ResultPage, Table, read_result_page

SHAPES = {
    "100-byte values": "16-byte key, 100-byte value, 16 KiB",
    "and 3 headers": "A with 3 headers, 16 KiB",
    "1 KiB values": "16-byte key, 1 KiB value, 16 KiB",
    "10-byte values": "10-byte value, 16 KiB",
    "lengths that vary": "lengths that vary, nulls, 0 to 4 headers, 16 KiB",
    "JSON, 270 bytes": "events as JSON, some 270 bytes, 16 KiB",
    "format version 1": "16-byte key, 100-byte value, version 1",
}
"""Rows of records without compression: what a chart calls them, and what the pages do."""
CODECS = {
    name: f"16-byte key, 100-byte value, {name}, 16 KiB"
    for name in ("gzip", "snappy", "lz4", "zstd")
}
"""Rows of compressed records."""
SPARK_QUERIES = {
    "all columns": "all columns, noop",
    "count()": "count()",
    "sum(offset)": "sum(offset)",
    "one partition": "partition = 1, noop",
    "0.1% of offsets": "0.1% of offsets, noop",
    "take(5)": "take(5)",
}
SPARK_ROWS = (
    "16-byte key, 100-byte value, none",
    "events as JSON, some 270 bytes, zstd",
    "16-byte key, 1 KiB value, none",
)
"""Sections of the page of Spark: each shape of records once."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart in a file of its own.

    Attributes:
        name: Name of the file without ``.svg``.
        pages: Names of the pages that it shows, without ``.md``.
        make: Makes the chart from these pages, by name, and the lines that name machines and pages.
    """

    name: str
    pages: Sequence[str]
    make: Callable[[Mapping[str, ResultPage], str], Chart]

    def draw(self, results: Path) -> str:
        """Return the chart of the pages in ``results`` as SVG.

        Raises:
            ValueError: if a page has not the tables, rows and columns that the chart shows.
        """
        pages = {name: read_result_page(results / f"{name}.md") for name in self.pages}
        names: dict[str, list[str]] = {}
        for name, page in pages.items():
            names.setdefault(page.machine, []).append(f"{name}.md")
        source = [f"{machine}: {', '.join(files)}" for machine, files in names.items()]
        try:
            return draw_chart(self.make(pages, "\n".join(source)))
        except (ValueError, IndexError, KeyError) as error:
            raise ValueError(f"{self.name}.svg of {', '.join(self.pages)}: {error}") from error


def redraw_plots(page: Path) -> None:
    """Write the charts that show ``page``, beside it."""
    for plot in PLOTS:
        if page.stem in plot.pages:
            write_plot(plot, page.parent)


def write_plot(plot: Plot, results: Path) -> None:
    """Write a chart beside its pages in ``results``."""
    path = results / f"{plot.name}.svg"
    path.write_text(plot.draw(results), encoding="utf-8", newline="\n")


def _read_bars(table: Table, rows: Mapping[str, str], *columns: str) -> list[Bars]:
    """Return the cells below ``columns`` of some rows: ``rows`` has their labels in the chart, and
    their first cells. Raise KeyError if a row is missing.
    """
    names = (row[0] for row in table.rows)
    cells = dict(zip(names, table.read_columns(*columns), strict=True))
    return [Bars(label, cells[name]) for label, name in rows.items()]


def _split_pairs(bars: Sequence[Bars]) -> list[Bars]:
    """Return bars for both figures of cells such as `3.5 / 6.7`, the second one first."""
    return [Bars(row.label, row.figures[0].split(" / ")[::-1]) for row in bars]


def _make_decode(pages: Mapping[str, ResultPage], source: str) -> Chart:
    table = pages["decode"].tables[0]
    usual = "100-byte values"
    return Chart(
        "Decoding into Arrow, beside Kafka clients",
        "Times as fast as the peer, on one core, checksums verified, in batches of 16 KiB. "
        "Peers iterate, and build no table.",
        ("a stream of batches", "all batches kept in memory"),
        [
            Group(heading, _split_pairs(_read_bars(table, rows, column)))
            for heading, column, rows in (
                ("x aiokafka (Cython)", "x aiokafka", SHAPES),
                ("x Apache Kafka's reader (Java)", "x Java", SHAPES),
                ("x kafka-python", "x kafka-python", {usual: SHAPES[usual]}),
            )
        ],
        source,
    )


def _make_encode(pages: Mapping[str, ResultPage], source: str) -> Chart:
    table = pages["encode"].tables[0]
    columns = ("x aiokafka", "table →")
    return Chart(
        "Encoding from Arrow, beside aiokafka",
        "Times as fast as aiokafka's builder (Cython), on one core, in batches of 16 KiB.",
        ("aiokafka from Python tuples", "aiokafka from the same table"),
        [
            Group("Without compression", _read_bars(table, SHAPES, *columns)),
            Group("100-byte values, compressed", _read_bars(table, CODECS, *columns)),
        ],
        source,
    )


def _make_dump(pages: Mapping[str, ResultPage], source: str) -> Chart:
    [table] = pages["dump_tool"].tables
    names = ("codec", "file", "shown", "theirs / ours", "by the clock")
    groups: dict[str, list[Bars]] = {}
    for codec, size, shown, *figures in table.read_columns(*names):
        groups.setdefault(f"{codec}, {size}", []).append(
            Bars(shown.removeprefix("records as "), figures)
        )
    return Chart(
        "kafka-log dump, beside Kafka's dump tool",
        "Times as fast as kafka-dump-log.sh, whole commands with their start. "
        "Its text stands beside each of our formats.",
        ("by seconds of the processors", "by the clock"),
        [
            Group(heading.replace("none,", "not compressed,"), rows)
            for heading, rows in groups.items()
        ],
        source,
    )


def _make_spark_kafka(pages: Mapping[str, ResultPage], source: str) -> Chart:
    [table] = pages["spark_kafka"].tables
    groups: dict[str, list[Bars]] = {}
    for rows, query, *figures in table.read_columns("rows", "query", "x", "x"):
        heading = rows.replace(", ", " rows, ")
        groups.setdefault(heading, []).append(Bars(query.removesuffix(", noop"), figures))
    return Chart(
        "Spark, beside Spark's own Kafka source",
        "Times as fast as Spark's Kafka source, which reads from a broker on the same two cores.",
        ("with the connector", "with the Python source"),
        [Group(heading, rows) for heading, rows in groups.items()],
        source,
    )


def _make_spark(pages: Mapping[str, ResultPage], source: str) -> Chart:
    groups = []
    for name in SPARK_ROWS:
        [table] = [t for t in pages["spark"].tables if t.section.startswith(f"{name}:")]
        groups.append(Group(name, _read_bars(table, SPARK_QUERIES, "x Parquet")))
    return Chart(
        "Spark, beside Spark on Parquet files",
        "Times as fast with the connector as the same query on the same rows in Parquet files (zstd), "
        "on two cores.",
        ("",),
        groups,
        source,
    )


@dataclass(frozen=True, slots=True)
class Figure:
    """Where a figure stands.

    Attributes:
        page: Name of the page.
        column: Heading of the column.
        words: Cells of the row; one of them may be the heading above the table, up to a colon.
        part: Which of several figures in the cell: 0 is the first one, -1 the last one.
    """

    page: str
    column: str
    words: Sequence[str]
    part: int = -1

    def read(self, pages: Mapping[str, ResultPage]) -> str:
        """Return the figure. Raise ValueError if there is no such row, or there are several."""
        found = [
            cell
            for table in pages[self.page].tables
            if self.column in table.columns
            for row, [cell] in zip(table.rows, table.read_columns(self.column), strict=True)
            if {*self.words} <= {table.section.partition(":")[0], *row}
        ]
        if len(found) != 1:
            raise ValueError(f"{len(found)} rows of {', '.join(self.words)} below {self.column}")
        return found[0].split(" / ")[self.part]


_USUAL, _LARGE = [SHAPES["100-byte values"]], [SHAPES["1 KiB values"]]
_ALL_COLUMNS = SPARK_QUERIES["all columns"]
SUMMARY = {
    "Decode a stream": {
        "aiokafka": Figure("decode", "x aiokafka", _USUAL),
        "Kafka's reader": Figure("decode", "x Java", _USUAL),
        "kafka-python": Figure("decode", "x kafka-python", _USUAL),
    },
    "Decode, all batches kept in memory": {
        "aiokafka": Figure("decode", "x aiokafka", _USUAL, part=0),
        "Kafka's reader": Figure("decode", "x Java", _USUAL, part=0),
    },
    "Decode a stream, values of 1 KiB": {
        "aiokafka": Figure("decode", "x aiokafka", _LARGE),
        "Kafka's reader": Figure("decode", "x Java", _LARGE),
    },
    "Read batch headers only, batches of 1024 KiB": {
        "Kafka's reader": Figure(
            "batch_headers", "Java / headers", ["16-byte key, 100-byte value, 1024 KiB"]
        ),
    },
    "Encode": {"aiokafka": Figure("encode", "x aiokafka", _USUAL)},
    "Dump records as text, batches of 64 KiB": {
        "Kafka's dump tool": Figure("dump_tool", "theirs / ours", ["none", "records as text"]),
    },
    "Spark with the connector, all columns, two cores": {
        "Spark's source": Figure("spark_kafka", "x", ["6,401,184, 100 B values", _ALL_COLUMNS]),
        "Parquet files": Figure("spark", "x Parquet", [SPARK_ROWS[0], _ALL_COLUMNS]),
    },
}
"""Groups of the summary, with the figure of each bar."""


def _make_summary(pages: Mapping[str, ResultPage], source: str) -> Chart:
    return Chart(
        "kafka-codecs beside other tools",
        "Times as fast as the tool at the left. Kafka's reader is the one in Java, warmed up. 16-byte "
        "keys, 100-byte values and batches of 16 KiB, unless a heading says otherwise.",
        ("",),
        [
            Group(heading, [Bars(peer, [figure.read(pages)]) for peer, figure in rows.items()])
            for heading, rows in SUMMARY.items()
        ],
        source,
    )


PLOTS = (
    Plot("decode", ("decode",), _make_decode),
    Plot("encode", ("encode",), _make_encode),
    Plot("dump_tool", ("dump_tool",), _make_dump),
    Plot("spark_kafka", ("spark_kafka",), _make_spark_kafka),
    Plot("spark", ("spark",), _make_spark),
    Plot(
        "summary",
        ("decode", "encode", "dump_tool", "batch_headers", "spark_kafka", "spark"),
        _make_summary,
    ),
)


def main() -> None:
    for plot in PLOTS:
        write_plot(plot, RESULTS)


if __name__ == "__main__":
    main()
