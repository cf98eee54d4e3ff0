"""How fast the Construct codecs parse and build: with their generated fast paths, field by field, and beside peers.

    python -m benchmarks.fast_paths [--rounds 9] [--output benchmarks/results/fast_paths.md]

The candidates of a row take turns; the table has medians. The ApiVersions response of version 3 has 70 keys; its schema is
imported from the definitions that kafka-python brings. Peers: kio, if it is installed (messages), and the readers and
builders of kafka-python and aiokafka (batches and messages; they read objects, and build from arguments).
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.legacy_records import LegacyRecordBatch as AioMessage
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AioMessageBuilder
from kafka.record.default_records import DefaultRecordBatch as PythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder
from kafka.record.legacy_records import LegacyRecordBatch as PythonMessage
from kafka.record.legacy_records import LegacyRecordBatchBuilder as PythonMessageBuilder

from benchmarks import measure
from codecgen.runtime.fast_path import without_fast_paths
from kafka_codecs import MESSAGE, RECORD, RECORD_BATCH

RECORDS = 500
SMALL = 100
"""How often something small is parsed or built in a round."""
KEYS = 70
CODECGEN = Path(sys.executable).parent / "codecgen"


def records(number: int) -> dict[str, Any]:
    """Return the values of a batch: keys of 16 bytes, values of 100, one header."""
    return {
        "records": [
            {
                "offset_delta": i,
                "timestamp_delta": i,
                "key": b"k" * 16,
                "value": b"v" * 100,
                "headers": [{"key": "trace", "value": b"0123456789abcdef"}],
            }
            for i in range(number)
        ]
    }


def message(offset: int) -> dict[str, Any]:
    """Return the values of one message of version 1."""
    return {
        "magic": 1,
        "offset": offset,
        "attributes": {"compression": "none"},
        "timestamp": 1_700_000_000_000 + offset,
        "key": b"k" * 16,
        "value": b"v" * 100,
    }


def imported_response(folder: Path) -> Any:
    """Return the codec of ApiVersionsResponse, version 3, imported from the definition in JSON."""
    spec = importlib.util.find_spec("kafka")
    assert spec is not None and spec.origin is not None
    definition = Path(spec.origin).parent / "protocol/schemas/resources/ApiVersionsResponse.json"
    (folder / "json").mkdir()
    (folder / "json" / definition.name).write_bytes(definition.read_bytes())
    schemas, out = folder / "schemas", folder / "out"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text(
        "package: benchmark_messages\ntitle: Messages\nlanguage: 1\n"
    )
    for arguments in (
        ["import", "kafka-json", str(folder / "json"), "--out", str(schemas)],
        ["generate", str(schemas), "--out", str(out), "--target", "construct"],
    ):
        subprocess.run([str(CODECGEN), *arguments], check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(out))
    return importlib.import_module("benchmark_messages").API_VERSIONS_RESPONSE[3]


Peers = dict[str, Callable[[], object]]


def kio_peers(data: bytes) -> tuple[Peers, Peers]:
    """Return what parses and what builds an ApiVersions response with kio, each empty if kio is not installed."""
    try:
        from kio.schema.api_versions.v3.response import ApiVersionsResponse
        from kio.serial import entity_reader, entity_writer
    except ImportError:
        return {}, {}
    read, write = entity_reader(ApiVersionsResponse), entity_writer(ApiVersionsResponse)
    value = read(data, 0)[0]
    return (
        {"kio": times(SMALL, lambda: read(data, 0))},
        {"kio": times(SMALL, lambda: write(io.BytesIO(), value))},
    )


def by_field(call: Callable[[], object]) -> Callable[[], object]:
    """Return the same without fast paths."""

    def run() -> object:
        with without_fast_paths():
            return call()

    return run


def times(number: int, call: Callable[[], object]) -> Callable[[], object]:
    """Return a function that calls another one several times."""

    def run() -> None:
        for _ in range(number):
            call()

    return run


def iterate(reader: type, data: bytes) -> None:
    """Read the records of a batch of version 2 with a client's reader."""
    one = reader(bytearray(data))
    assert one.validate_crc()
    for record in one:
        record.key, record.value, record.headers  # noqa: B018 - made when asked


def iterate_messages(reader: type, parts: list[bytes]) -> None:
    """Read messages with a client's reader."""
    for data in parts:
        one = reader(bytearray(data), 1)
        assert one.validate_crc()
        for record in one:
            record.key, record.value  # noqa: B018 - made when asked


def build_batch(builder: type, number: int) -> object:
    """Build a batch of version 2 with a client's builder."""
    one = builder(2, 0, False, -1, -1, -1, 1 << 20)
    headers = [("trace", b"0123456789abcdef")]
    for i in range(number):
        one.append(i, 1_700_000_000_000 + i, b"k" * 16, b"v" * 100, headers)
    return one.build()


def build_message(builder: type) -> object:
    """Build one message of version 1 with a client's builder."""
    one = builder(1, 0, 1 << 20)
    one.append(0, 1_700_000_000_000, b"k" * 16, b"v" * 100)
    return one.build()


Row = tuple[str, int, Callable[[], object], Peers]
"""What is measured, how many of it a call does, the call, and those of peers."""


def table(report: measure.Report, rows: list[Row], rounds: int) -> None:
    """Measure rows, and write them as a table."""
    report.table(
        "what", "ours, us", "field by field, us", "times faster", "peers, us (ours / theirs)"
    )
    for name, number, call, peers in rows:
        found = measure.rounds({"fast": call, "by field": by_field(call), **peers}, rounds)
        each = {one: taken.median / number * 1e6 for one, taken in found.items()}
        fast, slow = each["fast"], each["by field"]
        others = ", ".join(
            f"{peer} {each[peer]:.2f} ({measure.ratio(fast, each[peer])})" for peer in peers
        )
        report.row(name, f"{fast:.2f}", f"{slow:.2f}", measure.ratio(slow, fast), others)


def main() -> None:
    parser = measure.parser(__doc__, rounds=9, mib=0)
    options = parser.parse_args()
    del options.mib  # nothing here is read from a segment
    report = measure.Report("Fast paths", measure.command("benchmarks.fast_paths", options))
    with tempfile.TemporaryDirectory() as folder:
        response = imported_response(Path(folder))
        keys = [{"api_key": i, "min_version": 0, "max_version": 9} for i in range(KEYS)]
        given = {"error_code": 0, "api_keys": keys, "throttle_time_ms": 0}
        many, one, old = records(RECORDS), records(1), [message(i) for i in range(SMALL)]
        answer, batch, small = (
            response.build(given),
            RECORD_BATCH.build(many),
            RECORD_BATCH.build(one),
        )
        messages, parsed = [MESSAGE.build(value) for value in old], RECORD_BATCH.parse(batch)
        read, write = kio_peers(answer)
        names = f"ApiVersions response, {KEYS} keys", f"a record of a batch of {RECORDS}"
        rows: list[Row] = [
            (names[0], SMALL, times(SMALL, lambda: response.parse(answer)), read),
            (
                names[1],
                RECORDS,
                lambda: RECORD_BATCH.parse(batch),
                {
                    "kafka-python": lambda: iterate(PythonBatch, batch),
                    "aiokafka": lambda: iterate(AioBatch, batch),
                },
            ),
            (
                "a batch of one record",
                SMALL,
                times(SMALL, lambda: RECORD_BATCH.parse(small)),
                {
                    "kafka-python": times(SMALL, lambda: iterate(PythonBatch, small)),
                    "aiokafka": times(SMALL, lambda: iterate(AioBatch, small)),
                },
            ),
            (
                "a message of version 1",
                SMALL,
                lambda: [MESSAGE.parse(data) for data in messages],
                {
                    "kafka-python": lambda: iterate_messages(PythonMessage, messages),
                    "aiokafka": lambda: iterate_messages(AioMessage, messages),
                },
            ),
        ]
        report.add("", "Parsing:")
        table(report, rows, options.rounds)
        rows = [
            (names[0], SMALL, times(SMALL, lambda: response.build(given)), write),
            (
                names[1],
                RECORDS,
                lambda: RECORD_BATCH.build(many),
                {
                    "kafka-python": lambda: build_batch(PythonBuilder, RECORDS),
                    "aiokafka": lambda: build_batch(AioBuilder, RECORDS),
                },
            ),
            (f"{names[1]}, as parsed", RECORDS, lambda: RECORD_BATCH.build(parsed), {}),
            (
                "a batch of one record",
                SMALL,
                times(SMALL, lambda: RECORD_BATCH.build(one)),
                {
                    "kafka-python": times(SMALL, lambda: build_batch(PythonBuilder, 1)),
                    "aiokafka": times(SMALL, lambda: build_batch(AioBuilder, 1)),
                },
            ),
            ("a record", SMALL, times(SMALL, lambda: RECORD.build(one["records"][0])), {}),
            (
                "a message of version 1",
                SMALL,
                lambda: [MESSAGE.build(value) for value in old],
                {
                    "kafka-python": times(SMALL, lambda: build_message(PythonMessageBuilder)),
                    "aiokafka": times(SMALL, lambda: build_message(AioMessageBuilder)),
                },
            ),
        ]
        report.add("", "Building:")
        table(report, rows, options.rounds)
    report.write(options.output)


if __name__ == "__main__":
    main()
