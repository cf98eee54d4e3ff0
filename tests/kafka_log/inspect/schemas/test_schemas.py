"""``kafka-log schemas`` and ``LogDirectory.schemas``, on the sample whose values Confluent's serializers wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log import LogDirectory, write_log
from kafka_log.cli import main
from tests.support.make_schema_registry_sample import SAMPLE

USED = {
    1: (["orders value"], 3),
    2: (["orders value"], 4),
    4: (["customers value"], 3),
    5: (["clicks value"], 3),
    6: (["payments value"], 3),
    7: (["events value"], 2),
}


def used(table: pa.Table) -> dict[int, Any]:
    rows = table.to_pylist()
    return {row["id"]: (row["used_by"], row["records"]) for row in rows if row["used_by"]}


def test_which_topic_uses_which() -> None:
    table = LogDirectory(SAMPLE).schemas()
    assert used(table) == USED | {999: (["orders value"], 1)}
    (unknown,) = [row for row in table.to_pylist() if row["state"] == "unregistered"]
    assert (unknown["id"], unknown["subject"], unknown["schema"]) == (999, None, None)
    (customer,) = [row for row in table.to_pylist() if row["id"] == 4]
    assert customer["references"] == ["address 1"]
    assert json.loads(customer["schema"])["name"] == "Customer"


def test_selected_topics_and_counts() -> None:
    """The registry's topic is read though it is not selected."""
    log = LogDirectory(SAMPLE, topics="events")
    assert log.schemas().column("id").to_pylist() == [7]
    assert used(LogDirectory(SAMPLE).schemas(records=2)) == {i: (t, min(n, 2)) for i, (t, n) in USED.items() if i != 2}  # fmt: skip
    assert used(LogDirectory(SAMPLE).schemas(records=None))[999]
    assert used(LogDirectory(SAMPLE).schemas(records=0)) == {}
    with pytest.raises(ValueError, match="records"):
        log.schemas(records=-1)


def written(path: Path, values: list[bytes | None]) -> Path:
    write_log(path, pa.table({"value": pa.array(values, pa.binary())}), topic="t", partitions=1)
    return path


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ([(5).to_bytes(8, "big")], []),  # numbers
        ([b"\0\0\0\0\7a", b"text"], []),  # by chance
        ([b"\0\0\0\0\7a", None, b"\0\0\0\0\x08a"], [7, 8]),
        ([b"\1" + bytes(16)], [None]),
        ([], []),
    ],
)
def test_ids_without_a_registry(tmp_path: Path, values: list[bytes | None], ids: list[Any]) -> None:
    log = LogDirectory(written(tmp_path, values or [None]))
    assert log.schemas().column("id").to_pylist() == ids


def test_problems(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "_schemas-0", tmp_path / "_schemas-0")
    rows = {"key": pa.array([b"{", b"["]), "value": pa.array([b"1", b"2"])}
    write_log(tmp_path, pa.table(rows), topic="_schemas")
    lines: list[str] = []
    assert LogDirectory(tmp_path).schemas(on_problem=lines.append).num_rows == 10
    assert len(lines) == 2 and lines[0].startswith("_schemas-0, offset 14: the text is not JSON")
    with pytest.raises(ValueError, match="problem 1 of 2"):
        LogDirectory(tmp_path).schemas()


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["schemas", str(SAMPLE), "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["id"]: (row["used_by"], row["records"]) for row in rows if row["used_by"]} == USED | {999: (["orders value"], 1)}  # fmt: skip
    assert main(["schemas", str(SAMPLE), "--topic", "events"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["events-value", "1", "7", "AVRO", "registered", "events", "value", "2"]  # fmt: skip
    assert main(["schemas", str(SAMPLE / "orders-0"), "--topic", "orders"]) == 0
    assert "orders-value" in capsys.readouterr().out  # from the log directory of the partition
    other = SAMPLE.parent / "kafka-4.x" / "empty-0"
    assert main(["schemas", str(other)]) == 0
    assert capsys.readouterr().out == "no schemas\n"
    assert main(["schemas", str(other), "--schemas", str(SAMPLE)]) == 0
    assert "orders-value" in capsys.readouterr().out
    (tmp_path / "x.avsc").write_text('"int"')
    assert main(["schemas", str(SAMPLE), "--schemas", str(tmp_path)]) == 2
    assert "has no schema id" in capsys.readouterr().err
    assert main(["schemas", str(SAMPLE), "--schemas", str(tmp_path / "gone")]) == 2
