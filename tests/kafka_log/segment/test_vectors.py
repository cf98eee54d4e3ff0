"""Every reference segment, read under the policy ``kafka``, against what Apache Kafka's own classes read from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_log import SegmentReader
from kafka_log.cli import main
from kafka_log.inspect.dump.json_objects import segment_objects
from kafka_log.segment.model import UNKNOWN_VERSION
from kafka_log.segment.reader import damage
from tests.paths import VECTORS
from tests.support.vector_segments import DIFFERENCES, MANIFEST, SEGMENTS, expected, well_formed

ERROR_TEXT = "error"
"""Stands for the class, text and cause of an error. The reference's are those of its Java code; ours name the field
and the byte. That there is an error, where (``at``), and what was read before it must agree."""


def comparable(item: dict[str, Any]) -> dict[str, Any]:
    """An object without the texts of its errors, and without that of an unknown version: Kafka's
    consumer looks at the magic byte, its reader of files does not.
    """
    out = dict(item)
    for name in ("ensureValid", "exception", "crcError"):
        if isinstance(out.get(name), dict):
            out[name] = ERROR_TEXT
    if "errors" in out:
        out["errors"] = [e["at"] for e in out["errors"] if e["at"] != UNKNOWN_VERSION]
        if not out["errors"]:
            del out["errors"]
    control = out.get("control")
    if isinstance(control, dict) and "error" in control:
        kept = {name: control[name] for name in ("typeId", "type") if name in control}
        out["control"] = kept | {"error": ERROR_TEXT}
    return out


def read(file: str, mode: str, policy: str = "kafka") -> list[dict[str, Any]]:
    reader = SegmentReader(VECTORS / file, policy=policy)
    return json.loads(json.dumps(list(segment_objects(reader, records=mode == "deep"))))


def test_every_vector_is_here() -> None:
    assert len(MANIFEST) == 228
    assert len(SEGMENTS) > 200
    assert all((VECTORS / file).is_file() for file in SEGMENTS)


@pytest.mark.parametrize("file", sorted(SEGMENTS.keys() - DIFFERENCES.keys()))
def test_reads_as_the_reference_does(file: str) -> None:
    ours = [comparable(item) for item in read(file, SEGMENTS[file])]
    theirs = [comparable(item) for item in expected(file)]
    assert ours == theirs


@pytest.mark.parametrize("file", sorted(DIFFERENCES))
def test_a_listed_difference_is_one(file: str) -> None:
    """The list has no entry that is not needed, and beside the one bad batch all agrees."""
    ours = [comparable(item) for item in read(file, SEGMENTS[file])]
    theirs = [comparable(item) for item in expected(file)]
    assert ours != theirs
    assert len(DIFFERENCES) <= 1
    first = next(i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1])
    assert ours[first]["position"] == theirs[first]["position"]
    good = [item["offset"] for item in theirs if item["type"] == "record"]
    assert set(good) <= {item["offset"] for item in ours if item["type"] == "record"}


def test_the_command_prints_the_same_objects(capsys: pytest.CaptureFixture[str]) -> None:
    file = "control/txn-flow.log"
    code = main(["dump", str(VECTORS / file), "--format", "vectors", "--policy", "kafka"])
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert printed == expected(file)


@pytest.mark.parametrize("file", well_formed())
def test_strict_reads_what_the_formats_allow(file: str) -> None:
    if file in DIFFERENCES:
        pytest.skip("holds a batch that no writer writes")
    strict = [comparable(item) for item in read(file, SEGMENTS[file], "strict")]
    assert strict == [comparable(item) for item in expected(file)]


@pytest.mark.parametrize(
    "file", sorted(f for f in SEGMENTS if f.startswith(("malformed/", "truncated/")))
)
def test_salvage_gives_the_good_batches_and_accounts_for_every_byte(
    file: str, tmp_path: Path
) -> None:
    path = VECTORS / file
    reader = SegmentReader(path, policy="salvage")
    batches = list(reader)
    assert reader.end is not None
    assert reader.end.stop == "eof"
    spans = [(b.position, b.position + b.size) for b in batches]
    whole = {b.position for b in batches if not b.problems}
    spans += [
        (x.start, x.end) for x in reader.end.lost if x.start not in {b.position for b in batches}
    ]
    at = 0
    for start, end in sorted(spans):
        assert start == at
        at = end
    assert at == path.stat().st_size
    assert all(b.is_valid or damage(b) for b in batches)
    if file.startswith("malformed/"):
        offsets = [r.offset for b in batches if b.position in whole for r in b.records]
        assert 500 in offsets
        assert 900 in offsets
