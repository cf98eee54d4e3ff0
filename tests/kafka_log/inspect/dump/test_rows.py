"""The rows of ``kafka-log dump``: those of a scan, in every output, with keys and values as somebody wrote them."""

from __future__ import annotations

import base64
import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_codecs import RECORD_BATCH
from kafka_log import read_table
from kafka_log.cli import main
from kafka_log.inspect.dump.decoding import FORMATS, SCHEMA_FORMATS
from tests.paths import ROOT, SAMPLES, VECTORS
from tests.support.peak_memory import PEAK_KIB, needs_peak

BROKER = SAMPLES / "kafka-4.x"
COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]

HARD: list[tuple[bytes | None, bytes | None]] = [
    (b"key", b"value"),
    (None, b""),
    (b"", None),
    (b"\xed\xa0\x80", b"lone surrogate"),
    (b"\x1b[31mred", "\u2028\u202e\x85".encode()),
    (b'"\\', b"a\r\n\tb"),
    (b"\0\0\0\x2a", b'{"a": [1, null, "\\u00e9"]}'),
    (b"\0\0\0\0\0\0\0\x01", b"\0\0\0\0\x07payload"),
    (b"long", b"x" * 1_000_000),
]
HEADERS = [("a", b"1"), ("a", None), ("", b""), ("nöt", b"\xff"), ("\x07", b"bell")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A partition with what is hard to show."""
    records: list[dict[str, Any]] = [
        {"offset_delta": i, "timestamp_delta": i, "key": key, "value": value, "headers": []}
        for i, (key, value) in enumerate(HARD)
    ]
    records[0]["headers"] = [{"key": name, "value": value} for name, value in HEADERS]
    path = tmp_path / "hard-3" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(built(0, records))
    return path


def built(base: int, records: list[dict[str, Any]], first: int = 1_000) -> bytes:
    last = max(record["offset_delta"] for record in records)
    return RECORD_BATCH.build(
        {
            "base_offset": base,
            "last_offset_delta": last,
            "base_timestamp": first,
            "max_timestamp": first + last,
            "records": records,
        }
    )


def dumped(capfdbinary: pytest.CaptureFixture[bytes], *arguments: object, code: int = 0) -> bytes:
    assert main(["dump", *map(str, arguments)]) == code
    return capfdbinary.readouterr().out


def objects(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def content(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else str(value).encode("utf-8")


@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_json_gives_the_bytes_back(
    engine: str, log: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = objects(dumped(capfdbinary, log, "--format", "jsonl", "--engine", engine))
    assert [list(row) for row in rows] == [COLUMNS] * len(HARD)
    assert [(content(row["key"]), content(row["value"])) for row in rows] == HARD
    assert [(h["key"], content(h["value"])) for h in rows[0]["headers"]] == HEADERS
    assert rows[0]["timestamp"] == "1970-01-01T00:00:01.000Z"
    assert {(row["topic"], row["partition"]) for row in rows} == {("hard", 3)}


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["codecs", "features", "transactions", "compacted"])
def test_every_output_has_the_rows_of_a_scan(
    topic: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    table = read_table(BROKER, [*COLUMNS, "crc_ok", "damage"], topics=topic)
    options = (BROKER, "--topic", topic, "--format")
    parquet = pq.read_table(io.BytesIO(dumped(capfdbinary, *options, "parquet")))
    with pa.ipc.open_stream(dumped(capfdbinary, *options, "arrow")) as stream:
        arrow = stream.read_all()
    for found in (parquet, arrow):
        assert found.schema.equals(table.schema)
        assert found.to_pylist() == table.to_pylist()
    rows = objects(dumped(capfdbinary, *options, "jsonl"))
    expected = table.to_pylist()
    assert [row["offset"] for row in rows] == table["offset"].to_pylist()
    assert [content(row["value"]) for row in rows] == table["value"].to_pylist()
    text = dumped(capfdbinary, *options, "csv").decode("utf-8")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [int(line["offset"]) for line in lines] == [row["offset"] for row in expected]
    shown = dumped(capfdbinary, BROKER, "--topic", topic).decode("utf-8").splitlines()
    assert len(shown) == len(expected) + 1


def test_timestamps(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    times = [-1, -2, -62_135_596_800_000, 253_402_300_799_999, 253_402_300_800_000, (1 << 63) - 1]
    said = [
        "1969-12-31T23:59:59.999Z",
        "1969-12-31T23:59:59.998Z",
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
        "253402300800000",
        "9223372036854775807",
    ]
    path = tmp_path / "times-0" / f"{0:020d}.log"
    path.parent.mkdir()
    record = {"offset_delta": 0, "value": b""}
    path.write_bytes(b"".join(built(i, [record], time) for i, time in enumerate(times)))
    for engine in ("construct", "arrow"):
        rows = objects(dumped(capfdbinary, path, "--format", "jsonl", "--engine", engine))
        assert [row["timestamp"] for row in rows] == said
        text = dumped(capfdbinary, path, "--engine", engine).decode().splitlines()
        assert [line.split()[1] for line in text[1:]] == ["-", *said[1:]]


def test_version_0_has_no_time(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = dumped(capfdbinary, VECTORS / "matrix" / "v0-gzip.log").decode().splitlines()
    assert len(text) > 5 and all(line.split()[1] == "-" for line in text[1:])


def test_text(log: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = dumped(capfdbinary, log, "--width", 12).decode("utf-8").splitlines()
    assert [line.split("Z  ", 1)[-1] for line in text[1:]] == [
        '"key"  "value"  ["a"="1", "a"=null, ""="", "nöt"=0xff, "\\u0007"="bell"]',
        'null  ""',
        '""  null',
        '0xeda080  "lone surroga"...(2 bytes more)',
        '0x1b5b33316d726564  "\\u2028\\u202e\\u0085"',
        '"\\"\\\\"  "a\\r\\n\\tb"',
        '0x0000002a  "{\\"a\\": [1, nu"...(14 bytes more)',
        "0x0000000000000001  0x00000000077061796c6f6164",
        '"long"  "xxxxxxxxxxxx"...(999988 bytes more)',
    ]


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_on_a_screen(
    width: int,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    from rich.cells import cell_len

    options = BROKER, "--columns", "offset,timestamp,key,value,headers"
    whole = dumped(capfdbinary, *options, "--width", 10**6).decode("utf-8").splitlines()
    monkeypatch.setenv("COLUMNS", str(width))
    headed = dumped(capfdbinary, BROKER).decode("utf-8").splitlines()
    cut = dumped(capfdbinary, *options).decode("utf-8").splitlines()
    names = {f"{path.name}:" for path in BROKER.glob("*-*") if path.is_dir()}
    assert [line for line in headed if line not in names] == cut
    assert len(cut) == len(whole)
    for short, long in zip(cut, whole, strict=True):
        assert cell_len(short) <= width
        assert short == long or short.endswith("…")
        assert short.split()[:2] == long.split()[:2], "numbers and times are whole"


def test_decoding(log: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def values(how: str) -> list[Any]:
        options = ("--format", "jsonl", "--columns", "key,value", "--decode", how)
        return [list(row.values()) for row in objects(dumped(capfdbinary, log, *options))]

    plain = values("none")
    assert values("key=int") == [
        [{4: 0x1B5B33316D726564, 5: 0x225C, 6: 42, 7: 1, 8: 0x6C6F6E67}.get(i, key), value]
        for i, (key, value) in enumerate(plain)
    ]
    assert values("value=json")[6][1] == {"a": [1, None, "é"]}
    assert values("value=json")[:6] == plain[:6]
    assert values("value=confluent")[7][1] == {"schema_id": 7, "payload": "payload"}
    assert values("hex")[7] == ["0000000000000001", HARD[7][1].hex()]
    assert values("base64")[0] == ["a2V5", "dmFsdWU="]
    assert values("utf8")[7][1] == "\0\0\0\0\x07payload"
    for how in ("key=int", "hex", "json", "confluent", "utf8"):
        assert [row == [None, row[1]] for row in values(how)][1], "null stays null"


def test_what_cannot_be_decoded_is_counted(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(log), "--decode", "value=json", "--columns", "value"]) == 0
    assert (
        "kafka-log: 7 values cannot be decoded as json (shown as bytes)" in capfd.readouterr().err
    )
    for data in (b"NaN", b"1e999", b'{"a":1,"a":2}', b"[" * 100_000, b"", b"\xff"):
        log.write_bytes(built(0, [{"offset_delta": 0, "value": data}]))
        arguments = [str(log), "--decode", "value=json", "--columns", "value", "--format", "jsonl"]
        assert main(["dump", *arguments]) == 0
        said = capfd.readouterr()
        assert content(json.loads(said.out)["value"]) == data
        assert "1 value cannot be decoded as json" in said.err


@pytest.mark.parametrize(
    "how", ["nothing", "key=", "key=nothing", "other=utf8", "key=__consumer_offsets"]
)
def test_formats_that_there_are_not(how: str, log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(log), "--decode", how]) == 2
    assert capfd.readouterr().err.startswith("kafka-log: ")


def test_kafkas_own_topics(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = BROKER / "__consumer_offsets-0"
    rows = objects(dumped(capfdbinary, path, "--format", "jsonl"))
    assert rows[0]["key"]["data"]["group"] == "tx-group"
    assert rows[0]["value"]["data"]["offset"] == 4
    table = pq.read_table(io.BytesIO(dumped(capfdbinary, path, "--format", "parquet")))
    assert table.schema.field("key").type == pa.string()
    assert [json.loads(key) for key in table["key"].to_pylist()] == [row["key"] for row in rows]
    raw = objects(dumped(capfdbinary, path, "--format", "jsonl", "--decode", "none"))
    keys = read_table(path, ["key"])["key"].to_pylist()
    assert [content(row["key"]) for row in raw] == keys


def test_markers(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    options = (
        BROKER / "transactions-2",
        "--format",
        "jsonl",
        "--columns",
        "offset,is_control,key,value",
    )
    rows = objects(dumped(capfdbinary, *options, "--control-records"))
    markers = [row for row in rows if row["is_control"]]
    assert [row["key"] for row in markers] == [{"control": "COMMIT"}]
    assert markers[0]["value"]["coordinatorEpoch"] == 0
    assert objects(dumped(capfdbinary, *options)) == [row for row in rows if not row["is_control"]]


@pytest.mark.share(6)
@pytest.mark.parametrize("what", [*FORMATS, *SCHEMA_FORMATS])
@pytest.mark.parametrize("how", ["{}", "key={}", "value={}", "key=none,value={}"])
def test_markers_are_the_same_in_every_format(
    how: str, what: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    options = (BROKER / "transactions-2", "--format", "jsonl", "--control-records")
    selected = ("--where", "is_control")
    plain = dumped(capfdbinary, *options, *selected)
    rows = objects(dumped(capfdbinary, *options, *selected, "--decode", how.format(what)))
    problems = [row.pop(f"{part}_problem", None) for row in rows for part in ("key", "value")]
    assert rows == objects(plain) and set(problems) == {None}
    assert objects(plain)[0]["key"] == {"control": "COMMIT"}


def test_markers_without_decoding(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = BROKER / "transactions-2"
    options = (path, "--format", "jsonl", "--control-records", "--decode", "none")
    rows = objects(dumped(capfdbinary, *options, "--columns", "key,value"))
    there = read_table(path, ["key", "value"], control_records=True).to_pylist()
    assert [{name: content(row[name]) for name in row} for row in rows] == there


def test_several_brokers(
    log: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The same partition of two brokers comes twice, under the name of its file."""
    copy = tmp_path / "other" / "hard-3" / log.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(log.read_bytes())
    options = ("--format", "jsonl", "--columns", "segment,offset")
    keep = ("--replicas", "keep")
    rows = objects(dumped(capfdbinary, log.parent, copy.parent, *options, *keep))
    assert {row["segment"] for row in rows} == {str(log), str(copy)}
    assert len(rows) == 2 * len(HARD)


def test_nothing_to_show(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "empty-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert dumped(capfdbinary, path) == b"no records\n"
    assert dumped(capfdbinary, path, "--format", "jsonl") == b""
    assert dumped(capfdbinary, path, "--format", "csv") == (",".join([*COLUMNS, "crc_ok", "damage"]) + "\r\n").encode()  # fmt: skip
    assert pq.read_table(io.BytesIO(dumped(capfdbinary, path, "--format", "parquet"))).num_rows == 0


def peak_of(path: Path) -> tuple[int, int]:
    """Lines of a dump, of which the first is read at once, and the most memory that it took, in KiB."""
    code = (
        "import sys; from kafka_log.cli import main; code = main(sys.argv[1:]);"
        f" print({PEAK_KIB}, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "dump", str(path), "--format", "jsonl"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())["offset"] == 0
        lines = 1 + sum(1 for _ in process.stdout)
        return lines, int(process.stderr.read())


@pytest.mark.soak
@needs_peak
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    records = [{"offset_delta": i, "timestamp_delta": i, "value": b"v" * 1000} for i in range(1000)]
    paths = []
    for batches in (10, 70):
        path = tmp_path / f"long{batches}-0" / f"{0:020d}.log"
        path.parent.mkdir()
        paths.append(path)
        with path.open("wb") as file:
            for i in range(batches):
                file.write(built(1000 * i, records))
    peak_of(paths[0])  # may compile, which takes memory of its own
    (some, less), (all_lines, more) = map(peak_of, paths)
    assert (some, all_lines) == (10_000, 70_000)
    assert more - less < 40_000, (less, more)
