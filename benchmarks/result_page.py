"""Tables and the machine of a page in benchmarks/results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
MACHINE = re.compile(r"` on (.+?)(?:, load .+?)?;|(\w+, \d+ cores), Python")
"""The machine, as benchmarks write it below the title."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page.

    Attributes:
        section: The heading above it, without the marks of headings.
        columns: Headings of its columns. Some tables have a heading twice.
        rows: The cells of its rows, as text.
    """

    section: str
    columns: list[str]
    rows: list[list[str]]

    def read_columns(self, *names: str) -> list[list[str]]:
        """Return, for each row, its cells below ``names``. A name that stands twice in ``names``
        means the first and the second column with this heading.

        Raises:
            ValueError: if there is no such column.
        """
        places = []
        for i, name in enumerate(names):
            same = [place for place, heading in enumerate(self.columns) if heading == name]
            occurrence = names[:i].count(name)
            if len(same) <= occurrence:
                raise ValueError(f"{self.section}: no column {name}, only {self.columns}")
            places.append(same[occurrence])
        return [[row[place] for place in places] for row in self.rows]


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A page of results: the line that names the machine, and its tables in order."""

    machine: str
    tables: list[Table]


def read_result_page(path: Path) -> ResultPage:
    """Return the page at ``path``.

    Raises:
        ValueError: if the page does not name its machine.
    """
    text = path.read_text(encoding="utf-8")
    machine = MACHINE.search(text)
    if machine is None:
        raise ValueError(f"{path}: the machine is not named")
    tables: list[Table] = []
    section, is_table = "", False
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        was_table, is_table = is_table, line.startswith("|")
        if not is_table:
            continue
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not was_table:
            tables.append(Table(section, cells, []))
        elif not set("".join(cells)) <= set("-:"):
            tables[-1].rows.append(cells)
    return ResultPage(machine[1] or machine[2], tables)
