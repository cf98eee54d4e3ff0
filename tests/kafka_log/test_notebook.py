"""Tables in a notebook, shown by IPython itself."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

from kafka_log import LogDirectory, read_table
from kafka_log.notebook import MAX_BYTES, ROWS
from tests.paths import SAMPLES

FOUR = SAMPLES / "kafka-4.x"


class Cells(HTMLParser):
    """The texts of the cells of a page, row by row. Any element but those of a table is an error."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self.titles: list[str | None] = []
        self.is_open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("table", "thead", "tbody", "tr", "th", "td", "p"), tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self.is_open = True
            if tag == "th":
                self.titles.append(dict(attrs).get("title"))

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def handle_data(self, data: str) -> None:
        if self.is_open:
            self.rows[-1][-1] += data


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    made: Any = InteractiveShell.instance()
    made.run_line_magic("load_ext", "kafka_log")
    yield made
    made.run_line_magic("unload_ext", "kafka_log")
    InteractiveShell.clear_instance()


def shown(shell: InteractiveShell, value: object) -> str:
    """Return the HTML that a notebook shows of a value."""
    formats, _ = shell.display_formatter.format(value)
    return str(formats["text/html"])


def test_an_answer_is_a_table_with_documented_columns(shell: InteractiveShell) -> None:
    answer = LogDirectory(FOUR).ls()
    cells = Cells(shown(shell, answer))
    assert cells.rows[0] == answer.column_names
    assert len(cells.rows) == answer.num_rows + 1
    at = answer.column_names.index("topic")
    assert [row[at] for row in cells.rows[1:]] == answer.column("topic").to_pylist()
    assert cells.titles == [field.metadata[b"doc"].decode() for field in answer.schema]
    assert f"<p>{answer.num_rows} rows</p>" in shown(shell, answer)


def test_records_are_shown_in_part(shell: InteractiveShell) -> None:
    records = read_table(FOUR, ["offset", "timestamp", "key", "value", "headers"])
    page = shown(shell, records)
    assert records.num_rows > ROWS
    assert page.count("<tr>") == ROWS + 1
    assert f"{records.num_rows} rows, of which the first {ROWS} are shown" in page
    assert len(shown(shell, records.to_batches()[0])) > 100


def test_no_value_and_no_name_is_markup(shell: InteractiveShell) -> None:
    hostile = '<script>alert("1")</script>&amp;'
    field = pa.field(f"a{hostile}", pa.binary(), metadata={"doc": f'"{hostile}'})
    other = pa.field("b", pa.string())
    values = [hostile.encode(), b"\x1b[31m", None, b"", b"x" * (MAX_BYTES + 5)]
    table = pa.Table.from_arrays(
        [pa.array(values, pa.binary()), pa.array([hostile, "\x1b[31m", None, "", "y"])],
        schema=pa.schema([field, other]),
    )
    page = shown(shell, table)
    cells = Cells(page)
    assert cells.rows[0] == [field.name, "b"]
    assert cells.titles == [f'"{hostile}', None]
    assert [hostile in row[0].replace("\\", "") for row in cells.rows[1:]] == [True, *[False] * 4]
    assert "\x1b" not in page
    assert cells.rows[3] == ["-", "-"]
    assert cells.rows[4] == ['""', '""']
    assert "(5 bytes more)" in cells.rows[5][0]
    assert "<script" not in page
    assert unescape(page).count("<script>") == 4


def test_tables_without_rows_or_columns(shell: InteractiveShell) -> None:
    empty = LogDirectory(FOUR).ls().slice(0, 0)
    assert Cells(shown(shell, empty)).rows == [empty.column_names]
    assert "<p>0 rows</p>" in shown(shell, empty)
    assert Cells(shown(shell, pa.table({}))).rows == [[]]


def test_views_and_durations(shell: InteractiveShell) -> None:
    """A scan with ``binary_view`` shows what one without it shows."""
    columns = ["offset", "key", "value", "headers"]
    views = read_table(FOUR, columns, binary_view=True)
    plain = read_table(FOUR, columns)
    assert views.schema != plain.schema
    assert shown(shell, views) == shown(shell, plain)
    times = pa.table({"a": pa.array([61, None], pa.duration("s"))})
    assert Cells(shown(shell, times)).rows[1:] == [["0:01:01"], ["-"]]
    broken = pa.field("a", pa.int8(), metadata={"doc": b"\xff"})
    assert Cells(shown(shell, pa.table([[1]], schema=pa.schema([broken])))).titles == ["\ufffd"]


def test_without_the_extension_tables_are_as_before() -> None:
    made: Any = InteractiveShell.instance()
    try:
        made.run_line_magic("load_ext", "kafka_log")
        made.run_line_magic("unload_ext", "kafka_log")
        formats, _ = made.display_formatter.format(pa.table({"a": [1]}))
    finally:
        InteractiveShell.clear_instance()
    assert "text/html" not in formats
