"""kafka-log hexdump for programs: rows with all bytes of the file, and what the text says of each."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_log.cli import main
from kafka_log.inspect.hexdump.table import FIELDS
from tests.paths import SAMPLES
from tests.support.batches import batch, message

BROKER = SAMPLES / "kafka-4.x"
NAMES = FIELDS.names
ALL = ["--batches", "100000", "--records", "100000"]
FILES = sorted(
    [
        *(p for p in (SAMPLES / "kafka-2.8").glob("*-0/*.log") if 0 < p.stat().st_size < 20_000),
        *BROKER.glob("transactions-0/*.[its]*"),
        BROKER / "transactions-0" / "leader-epoch-checkpoint",
        BROKER / "transactions-0" / "partition.metadata",
        BROKER / "meta.properties",
    ]
)


def rows(capsys: pytest.CaptureFixture[str], path: Path, *more: str) -> list[dict[str, Any]]:
    main(["hexdump", str(path), "--format", "jsonl", *more])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_rows_have_every_byte_of_the_file(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows(capsys, path, *ALL)
    data = path.read_bytes()
    at = 0
    for row in found:
        if row["section"] is None:
            assert (row["position"], row["length"]) == (at, len(row["bytes"]) // 2)
            at += row["length"]
    assert at == len(data)
    assert bytes.fromhex("".join(r["bytes"] for r in found if r["section"] is None)) == data
    numbers = [r for r in found if re.fullmatch(r"u?int\d+", r["type"] or "")]
    for row in numbers:
        said = re.match(r"-?\d+(?=$|,| \(none\))", row["value"])
        if said is not None:
            signed = not row["type"].startswith("u")
            assert int(said[0]) == int.from_bytes(bytes.fromhex(row["bytes"]), "big", signed=signed)
            assert int(row["type"].lstrip("uint")) == 8 * row["length"]


@pytest.mark.parametrize("path", FILES[:6], ids=lambda p: f"{p.parent.name}/{p.name}")
def test_the_text_says_the_same(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line of the text that begins a field is the row in its turn: place, first bytes, path, value."""
    found = [row for row in rows(capsys, path) if row["field"] is not None]
    main(["hexdump", str(path)])
    lines = [
        parts
        for line in capsys.readouterr().out.splitlines()
        if (
            parts := re.fullmatch(r" *(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f.]{2}) +(\S+)  +(\S.*)", line)
        )
    ]
    assert len(lines) == len(found) > 0
    for (place, data, field, value), row in zip((m.groups() for m in lines), found, strict=True):
        assert (int(place), field) == (row["position"], row["field"])
        assert value.startswith(row["value"])
        assert row["bytes"] is None or row["bytes"].startswith(data.replace(" ", "").strip("."))


def test_what_is_not_shown_has_no_bytes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch(0, records=9))
    found = rows(capsys, path, "--records", "2")
    assert [(r["field"], r["value"]) for r in found if r["bytes"] is None] == [
        ("records", "7 more")
    ]
    assert found[-1]["position"] + found[-1]["length"] == path.stat().st_size


def test_damage_is_on_the_error_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    data = batch(0) + message(5)
    for hurt in (data[:-3], data[:30] + b"\xff" + data[31:], b"\0" * 99):
        path.write_bytes(hurt)
        assert main(["hexdump", str(path), *ALL, "--format", "jsonl"]) == 1
        captured = capsys.readouterr()
        assert captured.err.startswith("kafka-log: ")
        found = [json.loads(line) for line in captured.out.splitlines()]
        assert bytes.fromhex("".join(r["bytes"] for r in found)) == hurt


def test_every_output_has_the_same_rows(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = BROKER / "codecs-3" / f"{0:020d}.log"

    def out(output: str) -> bytes:
        assert main(["hexdump", str(path), "--format", output]) == 0
        return capfdbinary.readouterr().out

    expected = [json.loads(line) for line in out("jsonl").splitlines()]
    assert pq.read_table(io.BytesIO(out("parquet"))).to_pylist() == expected
    with pa.ipc.open_stream(out("arrow")) as stream:
        assert stream.read_all().to_pylist() == expected
    plain = list(csv.DictReader(io.StringIO(out("csv").decode(), newline="")))
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in expected] == plain
    assert list(plain[0]) == NAMES


def test_an_empty_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.touch()
    assert rows(capsys, path) == []
