"""Whatever batch headers say, each command that selects by offset or time has all of a log in two halves: rows and records once, batches and findings at least once."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_log import read_table
from kafka_log.cli import COMMANDS, main, parser
from tests.shares import examples
from tests.support.header_files import VECTORS, file_of
from tests.support.lying_headers import Row, assert_halves, cuts, lying_segments, rows_and_lies
from tests.support.scanned_rows import unpacked

SELECTIONS = ("--offsets", "--time")
SELECT_OTHER_THINGS = {("groups", "--offsets"), ("groups", "--time")}
"""Committed offsets and the times of commits, not the offsets and timestamps of records."""


def run(*argv: str) -> tuple[int, str]:
    """Return the exit code of a command and what it prints."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(said), redirect_stderr(io.StringIO()):
        code = main([*argv])
    said.seek(0)
    return code, said.read()


def rows_printed(*argv: str, codes: tuple[int, ...] = (0,)) -> list[dict[str, Any]]:
    code, text = run(*argv, "--format", "jsonl")
    assert code in codes, argv
    return [json.loads(line) for line in text.splitlines()]


def rows_of(path: Path, **options: Any) -> list[Row]:
    table = read_table(path, ("offset", "timestamp"), **options)
    return [(r["offset"], r["timestamp"]) for batch in table.to_batches() for r in unpacked(batch)]


class Halves:
    """Both halves of a segment at a cut by one option, as commands answer for them."""

    def __init__(self, path: Path, option: str, cut: int) -> None:
        self.path, self.option, self.cut = path, option, cut
        self.column = SELECTIONS.index(option)
        name = ("offsets", "timestamps")[self.column]
        self.ranges: list[dict[str, Any]] = [{name: (None, cut)}, {name: (cut, None)}]
        self.arguments = [[option, f":{cut}"], [option, f"{cut}:"]]

    def expected(self) -> list[list[Row]]:
        return [rows_of(self.path, engine="construct", **half) for half in self.ranges]

    def assert_rows(self, found: list[list[Row]]) -> None:
        """Assert that a command has the rows of ``scan``, and in both halves all rows, each once."""
        assert found == self.expected()
        assert_halves(found, self.path, self.column, self.cut)

    def assert_units(self, *argv: str, by: tuple[str, ...], codes: tuple[int, ...] = (0,)) -> None:
        """Assert that both halves together have each row of the answer for the whole log, by some of its columns."""
        whole, below, above = (
            {tuple(row[name] for name in by) for row in rows_printed(*argv, *half, codes=codes)}
            for half in ([], *self.arguments)
        )
        assert below | above == whole


def check_dump(halves: Halves) -> None:
    for engine in ("construct", "arrow"):
        argv = ("dump", str(halves.path), "--engine", engine)
        offsets = [[r["offset"] for r in rows_printed(*argv, *half)] for half in halves.arguments]
        assert offsets == [[offset for offset, _ in half] for half in halves.expected()]
    halves.assert_units("dump", str(halves.path), "--batches", by=("position",))


def check_sql(halves: Halves) -> None:
    query = "select offset, epoch_ms(timestamp) as time from records"
    found = [
        [(r["offset"], r["time"]) for r in rows_printed("sql", str(halves.path), query, *half)]
        for half in halves.arguments
    ]
    halves.assert_rows([[(o, -1 if t is None else t) for o, t in half] for half in found])


def check_export(halves: Halves) -> None:
    found = []
    for half in halves.arguments:
        with tempfile.TemporaryDirectory() as out:
            columns = ("--columns", "offset,timestamp")
            assert run("export", str(halves.path), "--out", out, *columns, *half)[0] == 0
            tables = [pq.read_table(path) for path in sorted(Path(out).rglob("*.parquet"))]
            batches = [batch for table in tables for batch in table.to_batches()]
            found.append([(r["offset"], r["timestamp"]) for b in batches for r in unpacked(b)])
    halves.assert_rows(found)


def check_keys(halves: Halves) -> None:
    found = [rows_printed("keys", str(halves.path), *half) for half in halves.arguments]
    counts = [sum(row["records"] for row in half) for half in found]
    assert counts == [len(half) for half in halves.expected()]


def check_cut(halves: Halves) -> None:
    """Batches are copied whole. One that has offsets of another one is left out, and reported as lost."""
    for half, wanted in zip(halves.arguments, halves.expected(), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            code, _ = run("cut", str(halves.path), "--out", str(out), *half)
            found = set(rows_of(out)) if any(out.rglob("*.log")) else set()
            shutil.rmtree(out, ignore_errors=True)
        missing = set(wanted) - found
        assert not missing if code == 0 else code == 1


def check_stat(halves: Halves) -> None:
    """Batches are counted by their headers, those on both sides of the cut in both halves."""
    for more in ([], ["--deep"]):
        whole, below, above = (
            sum(row["batches"] for row in rows_printed("stat", str(halves.path), *more, *half))
            for half in ([], *halves.arguments)
        )
        assert max(below, above) <= whole <= below + above


def check_check(halves: Halves) -> None:
    for more in ([], ["--deep"]):
        by = ("code", "file", "byte")
        halves.assert_units("check", str(halves.path), *more, by=by, codes=(0, 1))


def check_producers(halves: Halves) -> None:
    halves.assert_units("producers", str(halves.path), by=("producer_id", "producer_epoch"))


def check_transactions(halves: Halves) -> None:
    halves.assert_units("txn", str(halves.path), by=("producer_id", "first_offset"), codes=(0, 1))


CHECKS: Mapping[str, Callable[[Halves], None]] = {
    "dump": check_dump,
    "sql": check_sql,
    "export": check_export,
    "keys": check_keys,
    "cut": check_cut,
    "stat": check_stat,
    "check": check_check,
    "producers": check_producers,
    "txn": check_transactions,
}
"""What both halves of a log are for each command that selects by offset or time."""


def selecting_commands() -> set[tuple[str, str]]:
    """Return all commands with an option that selects by offset or time, by the parser."""
    (commands,) = (a for a in parser()._actions if a.dest == "command")
    assert isinstance(commands.choices, dict)
    return {
        (name, option)
        for name, command in commands.choices.items()
        for action in command._actions
        for option in action.option_strings
        if option in SELECTIONS and name in COMMANDS
    }


def test_all_commands_that_select_are_asked() -> None:
    asked = {(name, option) for name in CHECKS for option in SELECTIONS}
    assert asked | SELECT_OTHER_THINGS == selecting_commands()


def check_command(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        rows, lies = rows_and_lies(path)
        column = data.draw(st.integers(0, 1))
        if lies or (column == 1 and not all(0 <= time < 1 << 53 for _, time in rows)):
            return  # test_lying_headers asks scan; other times are no numbers of the option
        halves = Halves(path, SELECTIONS[column], data.draw(cuts(rows, column)))
        CHECKS[name](halves)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@settings(max_examples=1)
@given(data=st.data())
def test_two_halves_of_a_command(name: str, data: st.DataObject) -> None:
    check_command(name, data)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@examples(60)
@given(data=st.data())
def test_two_halves_of_a_command_at_length(name: str, data: st.DataObject) -> None:
    check_command(name, data)
