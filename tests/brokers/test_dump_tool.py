"""What Kafka's own dump tool says of a segment, ours says: each line of a batch, and of a record, of all samples."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_log.cli import main
from kafka_log.inspect.dump.batch_text import timestamp_type
from tests.paths import SAMPLES

from .maven import DUMP_TOOL, DUMP_TOOL_API, classpath

pytestmark = [pytest.mark.broker, pytest.mark.slow]

FILES = sorted(SAMPLES.glob("*/*/*.log"))
COLUMNS = "position,offset,timestamp_type,timestamp,key,value,headers,sequence,magic,is_control"
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_CRC = re.compile(r" crc: \d+")
_MARKER = re.compile(r" endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)$")
_RECORD = re.compile(r"\| offset: -?\d+ ")


@pytest.fixture(scope="module")
def theirs() -> dict[Path, list[str]]:
    """The lines for each file. A value may have ends of lines in it: what begins no other line goes on."""
    classes = os.pathsep.join(map(classpath, (DUMP_TOOL, DUMP_TOOL_API)))
    tool = ["-cp", classes, "org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--files"]
    done = subprocess.run(
        ["java", "-Xmx512m", "-Dstdout.encoding=UTF-8", *tool, ",".join(map(str, FILES))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    found: dict[Path, list[str]] = {}
    lines: list[str] = []
    for line in done.stdout.decode("utf-8").removesuffix("\n").split("\n"):
        if line.startswith("Dumping "):
            lines = found[Path(line.removeprefix("Dumping "))] = []
        elif line.startswith(("baseOffset: ", "offset: ")) or _RECORD.match(line):
            lines.append(line)
        elif lines:
            lines[-1] += "\n" + line
    return found


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["dump", *arguments]) == 0
    return capfd.readouterr().out.splitlines()


def horizon(line: str) -> str:
    """Their line of a batch with our word for no horizon."""
    return re.sub(r"OptionalLong\[(\d+)\]", r"\1", line).replace("OptionalLong.empty", "none")


def batches(lines: list[str]) -> list[str]:
    return [horizon(line) for line in lines if not line.startswith("|")]


def test_there_is_enough(theirs: dict[Path, list[str]]) -> None:
    assert set(theirs) == set(FILES)
    lines = [line for found in theirs.values() for line in found]
    assert len(batches(lines)) > 500
    assert sum(line.startswith("|") for line in lines) > 2000
    assert any(" magic: 0 " in line for line in lines) and any(_MARKER.search(x) for x in lines)


@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_batches(
    engine: str, theirs: dict[Path, list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    for path in FILES:
        first, *ours = printed(capfd, str(path), "--batches", "--engine", engine)
        assert first == f"Dumping {path}"
        assert ours == batches(theirs[path]), path


@pytest.mark.share(ci=2)
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_records(
    engine: str, theirs: dict[Path, list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--columns", COLUMNS, "--control-records", "--deleted-records", "--engine", engine]
    options += ["--format", "jsonl"]
    for path in FILES:
        rows = map(json.loads, printed(capfd, str(path), *options, "--decode", "none"))
        ours = list(map(record_line, rows))
        found = list(records(theirs[path]))
        assert list(map(alike, ours)) == [alike(line) for line, _ in found], path
        said = list(map(json.loads, printed(capfd, str(path), *options)))
        markers = [f" endTxnMarker: {r['key']['control']} coordinatorEpoch: {r['value']['coordinatorEpoch']}" for r in said if r["is_control"] and "coordinatorEpoch" in r["value"]]  # fmt: skip
        assert markers == [marker for _, marker in found if marker], path


def records(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Their lines of records without checksums of single messages, and what these say of a marker. What of a key or value is no
    UTF-8 is replaced in it."""
    for line in lines:
        if not line.startswith("|"):
            continue
        line = line.replace(" isValid: true", "")
        if "headerKeys" not in line:
            line = _CRC.sub("", line, count=1)
        marker = _MARKER.search(line)
        control = " headerKeys: [] " in line and re.search(
            r"keySize: 4 valueSize: \d+ .*\[\] (?!key:)", line
        )
        yield (line[: line.index(" headerKeys")] if control else line), marker[0] if marker else ""


def alike(line: str) -> str:
    """Text without how many characters stand for bytes that are no UTF-8: Java and Python do not count them alike."""
    return re.sub("\ufffd+", "\ufffd", line)


def record_line(row: dict[str, Any]) -> str:
    """Our row in their words, without what a marker says."""
    key, value = data(row["key"]), data(row["value"])
    sizes = (-1 if part is None else len(part) for part in (key, value))
    line = (
        f"| offset: {row['offset']} {timestamp_type(row['timestamp_type'])}: {ms(row['timestamp'])}"
    )
    line += " keySize: {} valueSize: {}".format(*sizes)
    if row["magic"] >= 2:
        line += f" sequence: {row['sequence']}"
        if row["is_control"]:
            return line
        line += f" headerKeys: [{','.join(header['key'] for header in row['headers'])}]"
    for name, part in (("key", key), ("payload", value)):
        line += "" if part is None else f" {name}: {part.decode('utf-8', 'replace')}"
    return line


def ms(time: str) -> int:
    if time.lstrip("-").isdecimal():
        return int(time)
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(milliseconds=1)


def data(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else str(value).encode("utf-8")
