"""kafka-log prints the same, byte for byte, whether the kernels or the reference codecs read."""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log import Batch, Policy, SegmentReader
from kafka_log.cli import main
from kafka_log.inspect.dump import json_objects as json_dump
from kafka_log.inspect.statistics.columns import NEEDED
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.header_columns import TIMED, BatchColumns
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, use_kernels
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds
from tests.support.random_segments import entries, mutated, mutated_inside, sources

FILES = sorted([*VECTORS.rglob("*.log"), *SAMPLES.rglob("*.log")])
SMALL = [path for path in FILES if path.parent.name != "large"]
POLICIES = [policy.value for policy in Policy]
COMMANDS = (
    ("dump",),
    ("dump", "--format", "vectors"),
    ("dump", "--batches"),
    ("dump", "--format", "jsonl", "--control-records"),
    ("stat", "--format", "jsonl"),
    ("stat", "--deep", "--format", "csv"),
)
DIGESTS = (("dump", "--digest", "--format", "vectors"),)


Way = tuple[tuple[str, ...], str]
"""A command and a policy."""


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"[-60:]


def printed(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], *more: str
) -> tuple[int, str]:
    code = main([*command, *more])
    said = capsys.readouterr()
    return code, said.out + said.err


WAYS: list[Way] = [(command, policy) for command in COMMANDS for policy in POLICIES]
QUICK_WAYS = 5
"""The quick run prints a file in one of so many ways; with as many files one after the other, in all of them."""


def same(path: Path, ways: list[Way], capsys: pytest.CaptureFixture[str]) -> None:
    for command, policy in ways:
        more = (str(path), "--policy", policy, "--engine")
        ours = printed(capsys, command, *more, "arrow")
        assert ours == printed(capsys, command, *more, "construct")
        assert ours[1] or "jsonl" in command  # a file without data records


@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_rows_tell_what_is_wrong_with_them_alone(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not those that are decoded with them: which these are is the engine's own business."""
    path = VECTORS / "malformed" / "v0-minimal-14.log"
    options = ("--format", "jsonl", "--policy", "salvage", "--engine", engine)
    assert main(["dump", str(path), *options]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["offset"], "damage" in row) for row in rows] == [
        (500, True),
        (5, True),
        (900, False),
    ]


@pytest.mark.slow
@pytest.mark.share(18, ci=0)
@pytest.mark.parametrize("path", SMALL, ids=name)
def test_the_output_is_the_same(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same(path, WAYS[SMALL.index(path) % QUICK_WAYS :: QUICK_WAYS], capsys)


@pytest.mark.slow
@pytest.mark.share(ci=18)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_the_output_is_the_same_in_every_way(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = path.parent.name == "large"
    same(path, [(COMMANDS[1], "kafka"), (COMMANDS[4], "kafka")] if large else WAYS, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("broker", sorted(p.name for p in SAMPLES.glob("kafka-*")))
def test_directories_are_the_same(broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (*COMMANDS, *DIGESTS, ("stat",), ("dump", "--width", "3")):
        more = (str(SAMPLES / broker), "--engine")
        ours = printed(capsys, command, *more, "arrow")
        assert ours == printed(capsys, command, *more, "construct")


def told(reader: Any) -> list[str]:
    """All that there is to say about a file."""
    return list(json_dump.json_lines(reader))


def columns(reader: Any, deep: bool) -> dict[str, list[Any]]:
    """What is summed up of batches."""
    wanted = BatchColumns(NEEDED, deep, now=1_700_000_000_000)
    parts = []
    with suppress(CodecError):  # a strict reader's first error, which is in its end too
        for part in reader.items(TIMED, sizes=True) if isinstance(reader, BlockReader) else reader:
            if isinstance(part, Block):
                parts.append(wanted.from_block(part))
            else:
                parts.append(wanted.from_rows([wanted.row(part)]))
    found = wanted.concatenate(parts)
    of_sections = () if deep else ("stored", "plain")  # not known where nothing is decompressed
    return {name: array.tolist() for name, array in found.items() if name not in of_sections}


def compare(path: Path, policy: str, **options: Any) -> None:
    for records in (True, False):
        theirs = SegmentReader(path, policy=policy, records=records)
        ours = BlockReader(path, policy=policy, records=records, engine="arrow", **options)
        assert columns(ours, records) == columns(theirs, records)
        assert str(ours.end) == str(theirs.end)
    theirs = SegmentReader(path, policy=policy)
    ours = BlockReader(path, policy=policy, engine="arrow", **options)
    assert told(ours) == told(theirs)


@pytest.mark.share(9, ci=2)
@pytest.mark.parametrize("path", FILES[::7], ids=name)
def test_in_small_chunks(path: Path) -> None:
    for policy in POLICIES:
        compare(path, policy, chunk_bytes=300)


@pytest.mark.share(27, ci=3)
@pytest.mark.parametrize("seed", draw_seeds(60))
def test_damaged_files_are_the_same(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    good = sources(VECTORS / "matrix", 20_000) + sources(VECTORS / "control", 20_000)
    parts = [r.choice(good) for _ in range(3)]
    parts[1] = mutated(parts[1], r) if seed % 2 else mutated_inside(r, good)
    path = tmp_path / "damaged.log"
    path.write_bytes(b"".join(parts))
    for policy in POLICIES:
        compare(path, policy)


@pytest.mark.parametrize("path", FILES[::5], ids=name)
def test_lines_are_the_objects(path: Path) -> None:
    reader = SegmentReader(path)
    lines = [
        json.dumps(o, ensure_ascii=False, separators=(",", ":"))
        for o in json_dump.segment_objects(reader)
    ]
    assert list(json_dump.json_lines(reader)) == lines


def test_the_kernels_do_read() -> None:
    """What is compared above is not the reference codecs with themselves."""
    for file in ("matrix/v2-zstd-append", "matrix/v1-lz4-append", "matrix/v0-none"):
        reader = BlockReader(VECTORS / f"{file}.log", engine="arrow")
        assert {type(part) for part in reader.items()} == {Block}
        heads = BlockReader(VECTORS / f"{file}.log", engine="arrow", records=False)
        assert {type(part) for part in heads.items()} == {Block}


def test_heads_are_read_without_decompressing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was decompressed")

    monkeypatch.setattr("codecgen.runtime.arrow.decompressor.CODECS", {})
    for way in ("_by_codec", "_by_kernel"):
        monkeypatch.setattr(f"codecgen.runtime.arrow.decompressor.Decompressor.{way}", refused)
    path = VECTORS / "matrix" / "v2-gzip-create.log"
    found = columns(BlockReader(path, engine="arrow", records=False), deep=False)
    assert sum(found["records"]) == sum(len(batch.records) for batch in SegmentReader(path))


@pytest.mark.slow
def test_a_wrong_checksum_among_heads(tmp_path: Path) -> None:
    """Of compressed batches, whose headers are read alone: the first, one in the middle, the last, and two in a row."""
    good = (VECTORS / "matrix" / "v2-gzip-create.log").read_bytes() * 3
    starts = [start for start, _ in entries(good)]
    assert len(starts) > 6
    for wrong in ([0], [3], [len(starts) - 1], [2, 3], range(len(starts))):
        data = bytearray(good)
        for i in wrong:
            data[starts[i] + 17] ^= 1
        path = tmp_path / "wrong.log"
        path.write_bytes(bytes(data))
        for policy in POLICIES:
            compare(path, policy)


@pytest.mark.parametrize("limits", [Limits(elements=2), Limits(decompressed=50), Limits(depth=2)])
def test_limits_are_the_same(limits: Limits) -> None:
    for path in (VECTORS / "matrix" / f"{n}.log" for n in ("v2-gzip-create", "v1-gzip-create")):
        for policy in POLICIES:
            for records in (True, False):
                theirs = SegmentReader(path, policy=policy, limits=limits, records=records)
                ours = BlockReader(
                    path, policy=policy, limits=limits, records=records, engine="arrow"
                )
                assert columns(ours, records) == columns(theirs, records)


def test_batches_are_the_same_objects_of_the_model() -> None:
    path = VECTORS / "control" / "txn-flow.log"
    ours = list(BlockReader(path, engine="arrow"))
    assert all(isinstance(batch, Batch) for batch in ours)
    assert ours == list(SegmentReader(path))


def test_a_strict_reader_raises() -> None:
    reader = BlockReader(VECTORS / "malformed" / "v2-bad-crc.log", policy="strict", engine="arrow")
    with pytest.raises(CodecError, match="stored checksum"):
        list(reader)
    assert reader.end is not None and reader.end.stop == "error"


def test_small_files_stay_with_the_reference_codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    for name in ("records_kernels", "records_numpy"):
        monkeypatch.delitem(sys.modules, f"kafka_codecs.arrow.{name}", raising=False)
    assert not use_kernels(KERNEL_MIN_BYTES - 1)
    assert use_kernels(KERNEL_MIN_BYTES)
    assert not use_kernels(KERNEL_MIN_BYTES, min_bytes=KERNEL_MIN_BYTES + 1)
    assert use_kernels(0, "arrow")
    assert not use_kernels(1 << 40, "construct")
    monkeypatch.setattr("kafka_log.segment.kernels.find_spec", lambda name: None)
    assert not use_kernels(1 << 40), "there is nothing to load"


def test_an_engine_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kafka_log.segment.block_reader", None)
    assert main(["dump", str(FILES[0]), "--batches", "--engine", "arrow"]) == 2
    assert 'pip install "kafka-codecs[fast]"' in capsys.readouterr().err
