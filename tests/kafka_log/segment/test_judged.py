"""What Kafka's own reader makes of odd entries, ours make of them too, under the policy ``kafka``."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError, CompressionError
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow import records_numpy
from kafka_log import SegmentReader
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.model import UNKNOWN_VERSION, Batch
from kafka_log.segment.reader import Batches
from tests.support.judged import CASES, GOOD, Case, Read
from tests.support.scanned_rows import reference, scanned

FINE = ("a wrapper", "offset 0", "the largest offset")
"""What strict readers take."""

SPELLINGS = ("a snappy literal", "a zstd window", "a zstd frame with a large window")
"""Forms of compressed data that the formats of the codecs allow."""


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def path(case: Case, tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(case.data)
    return path


def read(batch: Batch) -> Read:
    records = batch.records
    # Kafka's consumer looks at the magic byte, its reader of files does not.
    has_problems = any(problem.at != UNKNOWN_VERSION for problem in batch.problems)
    return [r.offset for r in records], [r.timestamp for r in records], has_problems


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_each_is_read_as_by_kafka(case: Case, path: Path, engine: str) -> None:
    reader: Batches = SegmentReader(path)
    if engine == "arrow":
        reader = BlockReader(path, engine="arrow")
    assert [read(batch) for batch in reader] == [GOOD, case.read, GOOD]
    assert reader.end is not None and reader.end.stop == "eof"


@pytest.mark.slow
def test_readers_without_a_compiler_refuse_the_same(path: Path) -> None:
    assert scanned(path, "kafka", kernels=records_numpy) == reference(path, "kafka")


def test_salvage_gives_no_less(case: Case, path: Path) -> None:
    offsets = [r.offset for batch in SegmentReader(path, policy="salvage") for r in batch.records]
    assert set(case.read[0]) <= set(offsets) or case.read[0] == [(1 << 63) - 1, -(1 << 63)]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_strict_refuses_what_no_writer_writes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "strict.log"
    path.write_bytes(CASES[name].data)
    is_spelling = name.startswith(SPELLINGS) and not CASES[name].read[2]
    if name in FINE or is_spelling:
        assert len(list(SegmentReader(path, policy="strict"))) == 3
        return
    with pytest.raises(CodecError):
        list(SegmentReader(path, policy="strict"))


def test_salvage_goes_on_after_a_block_that_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(CASES["nothing in a block within the first record"].data)
    offsets = [r.offset for batch in SegmentReader(path, policy="salvage") for r in batch.records]
    assert offsets == [900, 50, 51, 900]


def test_parsers_end_a_stream_where_kafka_does() -> None:
    """Where a message ends, and a block of LZ4 holds nothing."""
    found = LOG_ENTRY.parse(CASES["a message after nothing in a block"].entry, strict=False)
    assert [message.offset for message in found.messages] == [0, 1]
    found = LOG_ENTRY.parse(CASES["a record after nothing in a block"].entry, strict=False)
    assert len(found.records) == 1
    with pytest.raises(CompressionError, match="holds nothing"):
        LOG_ENTRY.parse(CASES["a message after nothing in a block"].entry)
