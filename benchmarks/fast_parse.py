"""How fast the Construct codecs parse regular bytes: with their generated fast parsers, field by field, and beside peers.

    python -m benchmarks.fast_parse [--rounds 9] [--output benchmarks/results/fast_parse.md]

The candidates of a row take turns; the table has medians. The ApiVersions response of version 3 has 70 keys; its schema is
imported from the definitions that kafka-python brings. Peers: kio, if it is installed (messages), and the readers of
kafka-python and aiokafka (batches and message sets; they build no records, but objects).
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.legacy_records import LegacyRecordBatch as AioMessage
from kafka.record.default_records import DefaultRecordBatch as PythonBatch
from kafka.record.legacy_records import LegacyRecordBatch as PythonMessage

from benchmarks import measure
from codecgen.runtime.fast_path import without_fast_paths
from kafka_codecs import MESSAGE, RECORD_BATCH

RECORDS = 500
SMALL = 100
"""How often something small is parsed in a round."""
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


def message(offset: int) -> bytes:
    """Return one message of version 1."""
    return MESSAGE.build(
        {
            "magic": 1,
            "offset": offset,
            "attributes": {"compression": "none"},
            "timestamp": 1_700_000_000_000 + offset,
            "key": b"k" * 16,
            "value": b"v" * 100,
        }
    )


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


def kio_reader(data: bytes) -> Callable[[], object] | None:
    """Return what parses an ApiVersions response with kio, or None if kio is not installed."""
    try:
        from kio.schema.api_versions.v3.response import ApiVersionsResponse
        from kio.serial import entity_reader
    except ImportError:
        return None
    read = entity_reader(ApiVersionsResponse)
    return lambda: read(data, 0)


def by_field(parse: Callable[[], object]) -> Callable[[], object]:
    """Return the same without fast parsers."""

    def run() -> object:
        with without_fast_paths():
            return parse()

    return run


def times(number: int, parse: Callable[[], object]) -> Callable[[], object]:
    """Return a function that calls another one several times."""

    def run() -> None:
        for _ in range(number):
            parse()

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


def main() -> None:
    parser = measure.parser(__doc__, rounds=9, mib=0)
    options = parser.parse_args()
    del options.mib  # nothing here is read from a segment
    report = measure.Report("Fast parsers", measure.command("benchmarks.fast_parse", options))
    with tempfile.TemporaryDirectory() as folder:
        response = imported_response(Path(folder))
        answer = response.build(
            {
                "error_code": 0,
                "api_keys": [
                    {"api_key": i, "min_version": 0, "max_version": 9} for i in range(KEYS)
                ],
                "throttle_time_ms": 0,
            }
        )
        batch = RECORD_BATCH.build(records(RECORDS))
        small = RECORD_BATCH.build(records(1))
        messages = [message(i) for i in range(SMALL)]
        rows: dict[str, tuple[int, Callable[[], object], dict[str, Callable[[], object]]]] = {}
        kio = kio_reader(answer)
        rows[f"ApiVersions response, {KEYS} keys"] = (
            SMALL,
            times(SMALL, lambda: response.parse(answer)),
            {} if kio is None else {"kio": times(SMALL, kio)},
        )
        rows[f"a record of a batch of {RECORDS}"] = (
            RECORDS,
            lambda: RECORD_BATCH.parse(batch),
            {
                "kafka-python": lambda: iterate(PythonBatch, batch),
                "aiokafka": lambda: iterate(AioBatch, batch),
            },
        )
        rows["a batch of one record"] = (
            SMALL,
            times(SMALL, lambda: RECORD_BATCH.parse(small)),
            {
                "kafka-python": times(SMALL, lambda: iterate(PythonBatch, small)),
                "aiokafka": times(SMALL, lambda: iterate(AioBatch, small)),
            },
        )
        rows["a message of version 1"] = (
            SMALL,
            lambda: [MESSAGE.parse(data) for data in messages],
            {
                "kafka-python": lambda: iterate_messages(PythonMessage, messages),
                "aiokafka": lambda: iterate_messages(AioMessage, messages),
            },
        )
        report.table("what", "ours, us", "field by field, us", "times faster", "peers, us")
        for name, (number, parse, peers) in rows.items():
            candidates = {"fast": parse, "by field": by_field(parse), **peers}
            found = measure.rounds(candidates, options.rounds)
            each = {one: taken.median / number * 1e6 for one, taken in found.items()}
            others = ", ".join(f"{peer} {each[peer]:.2f}" for peer in peers)
            fast, slow = each["fast"], each["by field"]
            report.row(name, f"{fast:.2f}", f"{slow:.2f}", measure.ratio(slow, fast), others)
    report.write(options.output)


if __name__ == "__main__":
    main()
