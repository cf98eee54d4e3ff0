"""Arguments of ``LogDirectory`` that mean nothing: an error that names the argument, never a traceback from within."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log import (
    LogDirectory,
    SegmentReader,
    discover,
    make_path,
    read_table,
    scan,
    scan_batches,
    write_log,
    write_segment,
)
from kafka_log.cli import main
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
WRONG = ["x", 3.5, b"y", object(), [object()], -5, {"a": 1}, 2**70, "", [None], (3, 1), ("a", "b")]

ASKED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("stat", "by", ()),
    ("stat", "top", ()),
    ("stat", "now", (-5,)),
    ("stat", "policy", ()),
    ("stat", "offsets", ()),
    ("stat", "producers", (-5, (3, 1), "")),
    ("stat", "engine", ()),
    ("largest", "count", ()),
    ("largest", "by", ()),
    ("txn", "states", ()),
    ("txn", "now", (-5,)),
    ("txn", "max_timeout_ms", (-5,)),
    ("producers", "producers", (-5, (3, 1), "")),
    ("groups", "names", ("x", "", ("a", "b"), {"a": 1})),
    ("groups", "at", (-5,)),
    ("groups", "timestamps", ()),
    ("metadata", "kind", ()),
    ("metadata", "as_of", ()),
    ("metadata_changes", "first", ()),
    ("metadata_changes", "last", ()),
    ("check", "offsets", ()),
    ("keys", "selection", ()),
    ("keys", "isolation", ()),
    ("coordinator", "names", ("x", "", ("a", "b"), {"a": 1})),
    ("coordinator", "partitions", ()),
    ("records_of_key", "keys", (b"y", [None], "")),
    ("reindex", "interval_bytes", ()),
    ("convert", "codec", ()),
    ("convert", "level", ()),
    ("cut", "timestamps", ()),
    ("export", "format", ()),
    ("export", "columns", ()),
    ("export", "view", ()),
    ("ls", "segments", ()),
    ("check", "deep", ()),
    ("groups", "states", ()),
    ("groups", "salvage", ()),
    ("metadata", "salvage", ()),
    ("metadata", "show_secrets", ()),
    ("metadata_changes", "show_secrets", ()),
    ("export", "show_secrets", ()),
    ("export", "overwrite", ()),
    ("salvage", "flatten", ()),
    ("salvage", "keep_damaged", ()),
]
"""Methods, their arguments, and which of what is wrong elsewhere is right there."""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "argument", "right"), ASKED)
def test_what_means_nothing(
    method: str, argument: str, right: tuple[Any, ...], tmp_path: Path
) -> None:
    topics = ["transactions", "__consumer_offsets"] if method not in ("coordinator",) else None
    log = LogDirectory(BROKER, topics=topics)
    for value in WRONG:
        given: dict[str, Any] = {argument: value}
        if method in ("reindex", "convert", "cut", "export", "salvage"):
            given["out"] = tmp_path / "out"
        if method == "coordinator":
            given.setdefault("names", "g")

        def ask(given: dict[str, Any] = given) -> Any:
            found = getattr(log, method)(**given)
            return list(found) if method == "export" else found

        if any(type(value) is type(r) and value == r for r in right):
            ask()
        else:
            with pytest.raises(ValueError) as caught:
                ask()
            assert type(caught.value).__module__.split(".")[0] in ("builtins", "kafka_log", "codecgen")  # fmt: skip
            assert str(caught.value)


@pytest.mark.parametrize("argument", ["path", "topics", "partitions", "include", "replicas"])
def test_what_is_no_directory(argument: str) -> None:
    for value in (3.5, object(), [object()], b"y", [b"y"]):
        arguments: dict[str, Any] = {"path": BROKER, argument: value}
        with pytest.raises(ValueError, match=argument):
            LogDirectory(**arguments)


@pytest.mark.parametrize(
    "command",
    ["metadata --as-of=-2", "metadata --changes=-7:-5", "coordinator g --partitions 0", "coordinator g --partitions 99999999999999", "stat --top 99999999999999999999", "stat --largest 1e3"],
)  # fmt: skip
def test_numbers_that_cannot_be(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb, *words = command.split()
    try:
        code = main([verb, *([] if verb == "coordinator" else [str(BROKER)]), *words])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_times_as_people_write_them() -> None:
    log = LogDirectory(BROKER)
    at = datetime(2026, 11, 21, 6, 45, 59, 700_000, tzinfo=UTC)
    ms = int(at.timestamp() * 1000)
    expected = log.groups(at=ms)
    assert 0 < expected.num_rows < log.groups().num_rows
    texts = ("2026-11-21T06:45:59.700", "2026-11-21T07:45:59.7+01:00", str(ms))
    for written in (at, at.replace(tzinfo=None), *texts):
        assert log.groups(at=written) == expected
    assert log.txn(now="2026-11-22") == log.txn(now=datetime(2026, 11, 22, tzinfo=UTC))
    assert log.stat(now="2026-11-22") == log.stat(now=1_795_305_600_000)
    for wrong in ("20261122", "2026", "yesterday", "1795305600"):
        with pytest.raises(ValueError, match=r"^at"):
            log.groups(at=wrong)
        with pytest.raises(ValueError, match=r"^now"):
            log.txn(now=wrong)


@pytest.mark.parametrize("wrong", [None, b"in", 5, [b"in"], [None], LogDirectory(BROKER)])
@pytest.mark.parametrize(
    "call",
    [
        LogDirectory,
        SegmentReader,
        discover,
        read_table,
        scan,
        scan_batches,
        make_path,
        lambda path: write_segment(path, pa.table({"offset": [0], "value": [b""]})),
        lambda path: write_log(path, pa.table({"value": [b""]}), topic="t"),
        lambda path: LogDirectory(BROKER).salvage(path),
    ],
)
def test_something_that_is_no_path(call: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"paths? is .*a path is expected"):
        call(wrong)
