"""What ``kafka-log export --spark`` prints, and its exit codes, for each end of an export. No Spark is started."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafka_log import discover
from kafka_log.cli import parser
from kafka_log.cli.common import COULD_NOT_RUN, GOOD, PROBLEMS
from kafka_log.cli.interruption import Interrupted
from kafka_log.read.selection import Selection
from pyspark_kafka_log.export import DataLossError, Exported, ExportError, TaskError, command
from pyspark_kafka_log.java import JavaNotFound
from pyspark_kafka_log.options import OptionError
from tests.support.spark_logs import numbered, write

EVERYTHING = Selection()
WHOLE = Exported("table", 1234, 1, 99, {}, {})


@pytest.fixture
def run(
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Any:
    """Run the command with an export that ends as given; return the exit code, the lines on stderr, and what the export was asked."""
    write(directory, "t", 0, 0, numbered(2, 1))
    monkeypatch.setattr(command, "_session", lambda master, scratch: object())

    def run_command(end: Exported | BaseException, *words: str, selection: Selection = EVERYTHING) -> Any:  # fmt: skip
        asked: dict[str, Any] = {}

        def run_export(runner: Any, options: Any, target: Any, by: Any, **others: Any) -> Exported:
            asked.update(others, options=options, by=by, target=target)
            if isinstance(end, BaseException):
                raise end
            return end

        monkeypatch.setattr(command, "run_export", run_export)
        line = ["export", str(directory), "--spark", "--out", str(tmp_path / "table"), *words]
        options = parser("export").parse_args(line)
        code = command.export_by_spark(options, selection, discover(directory))
        shown = capsys.readouterr()
        assert shown.out == ""
        return code, shown.err.splitlines(), asked

    return run_command


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (
            DataLossError("table", ["a"]),
            PROBLEMS,
            [
                "kafka-log: table: data is lost: a",
                "kafka-log: nothing was added; add --ignore-data-loss to export the records that remain",
            ],
        ),
        (
            TaskError("bad", True),
            PROBLEMS,
            ["kafka-log: bad", "kafka-log: nothing was added; add --policy salvage to continue after damage"],
        ),
        (TaskError("bad", False), PROBLEMS, ["kafka-log: bad", "kafka-log: nothing was added"]),
        (ExportError("table", "no"), COULD_NOT_RUN, ["kafka-log: table: no"]),
        (OptionError("deep", "no"), COULD_NOT_RUN, [str(OptionError("deep", "no"))]),
        (JavaNotFound(("a", "b")), COULD_NOT_RUN, [f"kafka-log: {JavaNotFound(('a', 'b'))}"]),
        (KeyboardInterrupt(), COULD_NOT_RUN, ["kafka-log: interrupted: nothing was added"]),
        (Interrupted("it may be"), COULD_NOT_RUN, ["kafka-log: interrupted: it may be"]),
    ],
)  # fmt: skip
def test_errors(run: Any, error: BaseException, code: int, lines: list[str]) -> None:
    assert run(error)[:2] == (code, lines)


@pytest.mark.parametrize(
    ("done", "code", "lines"),
    [
        (WHOLE, GOOD, ["table: added 1,234 rows in 1 file"]),
        (
            Exported("table", 0, 0, 0, {("t", 0): 4}, {}, missed=("m 1", "m 2")),
            PROBLEMS,
            ["kafka-log: m 1", "kafka-log: m 2", "table: added 0 rows in 0 files; 1 partition continued from the last export"],
        ),
        (
            Exported("table", 1, 1, 9, {}, {}, damaged=1),
            PROBLEMS,
            ["kafka-log: 1 row from damaged batches: add problem to --columns to see which", "table: added 1 row in 1 file"],
        ),
        (
            Exported("table", 1, 1, 9, {}, {}, lost_bytes=2000, lost_places=2, lost=("here",)),
            PROBLEMS,
            ["kafka-log: here", "kafka-log: 2,000 bytes in 2 places could not be read", "table: added 1 row in 1 file"],
        ),
    ],
)  # fmt: skip
def test_results(run: Any, done: Exported, code: int, lines: list[str]) -> None:
    assert run(done)[:2] == (code, lines)


def test_options_reach_the_export(run: Any) -> None:
    _, _, asked = run(WHOLE)
    options = asked["options"]
    assert (asked["fail_on_data_loss"], asked["query"].offsets) == (True, (None, None))
    assert (options.columns, options.include_headers) == (None, True)
    assert options.assign == {("t", 0)} and options.selection.topics is None
    chosen = Selection(offsets=(3, 9), timestamps=(None, 5), topics=frozenset(["t"]))
    words = ["--columns", "offset,value", "--partition-by", "topic,", "--ignore-data-loss", "--compression", "lz4"]  # fmt: skip
    _, _, asked = run(WHOLE, *words, selection=chosen)
    options = asked["options"]
    assert (asked["query"].offsets, asked["query"].timestamps) == ((3, 9), (None, 5))
    assert (options.selection.offsets, options.selection.topics) == ((None, None), None)
    assert (options.columns, asked["by"]) == (("offset", "value"), ["topic"])
    assert (asked["fail_on_data_loss"], asked["compression"]) == (False, "lz4")


def test_offsets_from_the_end_are_refused(run: Any) -> None:
    code, (line,), asked = run(WHOLE, selection=Selection(offsets=(-5, None)))
    assert (code, asked) == (COULD_NOT_RUN, {}) and "counts from the end" in line


def test_stacks_of_py4j_are_not_logged() -> None:
    def record(path: str) -> logging.LogRecord:
        return logging.LogRecord("x", logging.ERROR, path, 1, "x", None, None)

    assert not command._is_not_from_py4j(record("/x/py4j/clientserver.py"))
    assert command._is_not_from_py4j(record("/x/kafka_log/py4j.py"))
