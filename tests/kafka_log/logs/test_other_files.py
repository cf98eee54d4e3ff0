"""The binary files beside segments, whole: as brokers and Kafka's own classes wrote them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from construct import Container
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.construct import Choice, Layout
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    LengthError,
    ParseError,
    TrailingError,
    TruncatedError,
    ValueRefused,
)
from kafka_codecs import (
    CLEAN_SHUTDOWN,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    PRODUCER_SNAPSHOT_ENTRY,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from kafka_log import SegmentReader
from tests.paths import SAMPLES, VECTORS

FILES = VECTORS / "files"
LAYOUTS: dict[str, Layout | Choice] = {
    ".index": OFFSET_INDEX,
    ".timeindex": TIME_INDEX,
    ".txnindex": TRANSACTION_INDEX,
    ".snapshot": PRODUCER_SNAPSHOT,
}


def found(folder: Path, suffix: str) -> list[Path]:
    return sorted(path for path in folder.rglob(f"*{suffix}") if path.is_file())


@pytest.mark.parametrize("suffix", LAYOUTS)
def test_files_are_built_as_they_were(suffix: str) -> None:
    paths = [*found(SAMPLES, suffix), *found(FILES, suffix)]
    for path in paths:
        data = path.read_bytes()
        parsed = LAYOUTS[suffix].parse(data, file=path.name)
        assert LAYOUTS[suffix].build(parsed) == data, path
    assert len(paths) >= {".txnindex": 12}.get(suffix, 87)


def test_what_kafka_wrote() -> None:
    """The values that the program gave to Kafka's classes."""

    def read(suffix: str) -> Container:
        path = FILES / f"00000000000000000100{suffix}"
        return LAYOUTS[suffix].parse(path.read_bytes(), file=path.name)

    assert [tuple(entry.values()) for entry in read(".index").entries] == [(6, 109), (14, 335)]
    assert [tuple(entry.values()) for entry in read(".timeindex").entries] == [
        (1700000000005, 3),
        (1800000000000, 20),
    ]
    assert [tuple(entry.values()) for entry in read(".txnindex").entries] == [
        (0, 4001, 104, 132, 133)
    ]
    producers = {entry.producer_id: entry for entry in read(".snapshot").entries}
    assert tuple(producers[4001].values()) == (4001, 3, 0, 106, 2, 1700000000005, 9, 104)
    assert tuple(producers[11].values()) == (11, 12, -1, -1, 0, 123456, 13, -1)


# ---------------------------------------------------------------- indexes


def used(entries: list[Container]) -> list[Container]:
    """The entries up to the last one that is not zero: a file that was made longer in advance has zeros after it."""
    end = max((i + 1 for i, entry in enumerate(entries) if any(entry.values())), default=0)
    return entries[:end]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_zeros_of_a_file_that_was_made_longer(suffix: str) -> None:
    """They are entries, and come back; who wants those that are used drops them."""
    layout = LAYOUTS[suffix]
    data = (FILES / f"00000000000000000100{suffix}").read_bytes()
    short = layout.parse(data)
    longer = data + bytes(len(data) // 2 * 3)
    parsed = layout.parse(longer)
    assert len(parsed.entries) == 5
    assert used(parsed.entries) == short.entries == used(short.entries)
    assert layout.build(parsed) == longer
    assert used(layout.parse(bytes(len(data))).entries) == []
    assert used(layout.parse(b"").entries) == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("strict", [True, False])
def test_a_piece_of_an_entry_is_refused(suffix: str, strict: bool) -> None:
    """Kafka finds a length that is no multiple of the entry's, and makes the index again."""
    data = (FILES / f"00000000000000000100{suffix}").read_bytes()
    with pytest.raises(TruncatedError) as caught:
        LAYOUTS[suffix].parse(data[:-1], strict=strict, file="0.index")
    assert caught.value.where.path.startswith("entries[1].")
    assert caught.value.where.file == "0.index"


def test_a_piece_of_a_transaction_is_passed_over() -> None:
    """As Kafka does; a strict reader refuses it."""
    data = (FILES / "00000000000000000100.txnindex").read_bytes()
    for extra in (1, 33):
        with pytest.raises(ParseError):
            TRANSACTION_INDEX.parse(data + data[:extra])
        noted: list[ParseError] = []
        parsed = TRANSACTION_INDEX.parse(data + data[:extra], strict=False, findings=noted)
        assert len(parsed.entries) == 1
        assert [error.where.position for error in noted] == [34]


def test_a_transaction_of_another_version_in_a_file() -> None:
    data = bytearray((FILES / "00000000000000000100.txnindex").read_bytes() * 2)
    data[35] = 1
    for strict in (True, False):
        with pytest.raises(ValueRefused) as caught:
            TRANSACTION_INDEX.parse(bytes(data), strict=strict)
        assert caught.value.where.path == "entries[1].version"
        assert caught.value.where.position == 34


# ---------------------------------------------------------------- producer snapshots

SNAPSHOT = (FILES / "00000000000000000100.snapshot").read_bytes()


def checked(rest: bytes) -> bytes:
    """A snapshot with a right checksum over what follows it."""
    return b"\0\1" + crc32c(rest).to_bytes(4, "big") + rest


REFUSED: list[tuple[str, bytes, type[ParseError], str | None]] = [
    ("an empty file", b"", TruncatedError, "version"),
    ("a short file", SNAPSHOT[:9], TruncatedError, "entry_count"),
    ("another version", b"\0\2" + SNAPSHOT[2:], ValueRefused, "version"),
    ("a flipped bit", SNAPSHOT[:-1] + b"\x69", ChecksumError, "crc"),
    ("an older, longer file under it", SNAPSHOT + SNAPSHOT[-46:], TrailingError, None),
    ("one entry fewer", checked(b"\0\0\0\2" + SNAPSHOT[10:56]), TruncatedError, "entries[1].producer_id"),
    ("a negative count", checked(b"\xff\xff\xff\xff"), LengthError, "entries"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "error", "path"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])  # fmt: skip
@pytest.mark.parametrize("strict", [True, False])
def test_snapshots_that_kafka_takes_for_corrupt(
    data: bytes, error: type[ParseError], path: str | None, strict: bool
) -> None:
    """A lenient reader notes a wrong checksum; the others are errors for it too."""
    noted: list[ParseError] = []
    if error is ChecksumError and not strict:
        PRODUCER_SNAPSHOT.parse(data, strict=False, findings=noted)
        assert [found.where.path for found in noted] == [path]
        return
    with pytest.raises(error) as caught:
        PRODUCER_SNAPSHOT.parse(data, strict=strict)
    assert caught.value.where.path == path


def test_a_snapshot_without_producers() -> None:
    assert PRODUCER_SNAPSHOT.build({"version": 1, "entries": []}) == checked(bytes(4))


INT16, INT32, INT64 = (st.integers(-(1 << n - 1), (1 << n - 1) - 1) for n in (16, 32, 64))
PRODUCERS = st.fixed_dictionaries(
    {
        "producer_id": INT64,
        "producer_epoch": INT16,
        "last_sequence": INT32,
        "last_offset": INT64,
        "offset_delta": INT32,
        "timestamp": INT64,
        "coordinator_epoch": INT32,
        "current_txn_first_offset": INT64,
    }
)


@given(st.lists(PRODUCERS, max_size=3))
def test_a_snapshot_by_hand(producers: list[dict[str, Any]]) -> None:
    names = PRODUCER_SNAPSHOT_ENTRY.related.names
    sizes = (8, 2, 4, 8, 4, 8, 4, 8)
    entries = b"".join(
        producer[name].to_bytes(size, "big", signed=True)
        for producer in producers
        for name, size in zip(names, sizes, strict=True)
    )
    data = checked(len(producers).to_bytes(4, "big") + entries)
    assert PRODUCER_SNAPSHOT.build({"version": 1, "entries": producers}) == data
    assert [dict(entry) for entry in PRODUCER_SNAPSHOT.parse(data).entries] == producers


def test_what_is_left_out_of_an_entry() -> None:
    """There is no batch, no marker and no open transaction yet: -1, as Kafka writes it."""
    given = {"producer_id": 7, "producer_epoch": 2, "timestamp": 5}
    data = PRODUCER_SNAPSHOT.build({"version": 1, "entries": [given]})
    entry = bytes.fromhex(
        "0000000000000007 0002 ffffffff ffffffffffffffff 00000000 0000000000000005 ffffffff ffffffffffffffff"
    )
    assert data == checked(b"\0\0\0\1" + entry)


@pytest.mark.parametrize("path", found(SAMPLES, "idempotent-*/*.snapshot"), ids=str)
def test_snapshots_beside_the_batches(path: Path) -> None:
    """The state of each producer is that of its last batch before the offset in the file's name."""
    offset = int(path.stem)
    last: dict[int, Any] = {}
    for segment in sorted(path.parent.glob("*.log")):
        for batch in SegmentReader(segment):
            if batch.producer_id >= 0 and batch.last_offset < offset:
                last[batch.producer_id] = batch
    entries = PRODUCER_SNAPSHOT.parse(path.read_bytes()).entries
    assert {entry.producer_id for entry in entries} == set(last)
    for entry in entries:
        batch = last[entry.producer_id]
        assert entry.producer_epoch == batch.producer_epoch
        assert entry.last_offset == batch.last_offset
        assert entry.timestamp == batch.max_timestamp
        assert entry.last_offset - entry.offset_delta == batch.base_offset


# ---------------------------------------------------------------- the mark of a clean shutdown


@pytest.mark.parametrize(("folder", "epoch"), [("kafka-4.x", True), ("kafka-2.8", False)])
def test_clean_shutdowns(folder: str, epoch: bool) -> None:
    data = (SAMPLES / folder / ".kafka_cleanshutdown").read_bytes()
    parsed = CLEAN_SHUTDOWN.parse(data)
    assert CLEAN_SHUTDOWN.build(parsed) == data
    if epoch:
        content = json.loads(parsed.json)
        assert content["version"] == 0 and isinstance(content["brokerEpoch"], int)
    else:
        assert parsed.json == ""


def test_a_mark_that_is_no_text_is_refused() -> None:
    """No broker writes one, and one that finds it takes it for nothing: whoever wants the text cannot have it."""
    with pytest.raises(ParseError):
        CLEAN_SHUTDOWN.parse(b'{"version":0,"brokerEpoch":\xff}', strict=False)


def test_an_entry_ends_where_it_ends() -> None:
    with pytest.raises(ParseError):
        PRODUCER_SNAPSHOT_ENTRY.parse(bytes(47), strict=False)


@pytest.mark.parametrize("version", [0, 2, -1])
def test_a_snapshot_has_one_version(version: int) -> None:
    data = PRODUCER_SNAPSHOT.build({"version": 1, "entries": []})
    other = version.to_bytes(2, "big", signed=True) + data[2:]
    with pytest.raises(ParseError):
        PRODUCER_SNAPSHOT.parse(other, strict=False)
    with pytest.raises(BuildError):
        PRODUCER_SNAPSHOT.build({"version": version, "entries": []})
