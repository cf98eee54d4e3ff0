"""What fields of a record batch have to meet together: every engine refuses the same batches, and lenient readers read them."""

from __future__ import annotations

from functools import cache
from gzip import compress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecgen.runtime.arrow import numpy_decoder
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rejected, load_kernels, load_numpy_reader
from codecgen.runtime.errors import BuildError, RuleBroken
from kafka_codecs import LOG_ENTRY, RECORD_BATCH, Compression, TimestampType
from kafka_codecs.arrow.records import RECORDS
from kafka_log import LogDirectory, SegmentReader, scan
from kafka_log.segment.block_reader import BlockReader
from tests.paths import SAMPLES, VECTORS

NONE = 1 << 63
small = st.integers(-3, 4)


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """Batches of which about a half meets all rules."""
    deltas = draw(st.lists(small, max_size=4))
    if draw(st.booleans()):
        deltas = sorted(set(map(abs, deltas)))
    times = draw(st.lists(small, min_size=len(deltas), max_size=len(deltas)))
    base = draw(st.sampled_from([-1, 0, 5, 1700000000000, (1 << 63) - 2]))
    largest = base + max(times, default=0)
    largest = (largest + (1 << 63)) % (1 << 64) - (1 << 63)
    producer = draw(st.sampled_from([-1, 7]))
    settled = {-1: st.just(-1), 7: st.integers(0, 3)}[producer]
    anything = draw(st.booleans())
    control = draw(st.booleans()) if anything else False
    return {
        "base_offset": draw(st.sampled_from([0, -1, 5, NONE - 1, NONE - 3])),
        "attributes": {
            "compression": draw(st.sampled_from([Compression.NONE, Compression.GZIP])),
            "timestamp_type": draw(st.sampled_from([*TimestampType])),
            "is_transactional": draw(st.booleans()) if anything else producer >= 0,
            "is_control": control,
        },
        "last_offset_delta": draw(small if anything else st.just(max(deltas, default=3))),
        "base_timestamp": base,
        "max_timestamp": draw(st.sampled_from([largest, largest, -1, base])),
        "producer_id": producer,
        "producer_epoch": draw(small if anything else settled),
        "base_sequence": draw(small if anything else settled),
        "records": [
            {"offset_delta": delta, "timestamp_delta": time, "key": None, "value": b""}
            for delta, time in zip(deltas, times, strict=True)
        ],
    }


def broken_rules(batch: dict[str, Any]) -> set[str]:
    """The rules of Kafka's LogValidator and MemoryRecordsBuilder, written down once more."""
    bits, records = batch["attributes"], batch["records"]
    deltas = [record["offset_delta"] for record in records]
    has_producer = batch["producer_id"] != -1
    out = set()
    if bits["is_transactional"] and not has_producer:
        out.add("producer_of_transaction")
    if has_producer and batch["producer_epoch"] < 0:
        out.add("epoch_of_producer")
    if has_producer and batch["base_sequence"] < 0 and not bits["is_control"]:
        out.add("sequence_of_producer")
    if batch["last_offset_delta"] < 0:
        out.add("last_offset_from_base")
    if batch["last_offset_delta"] < len(records) - 1:
        out.add("offsets_of_count")
    if batch["base_offset"] + max(batch["last_offset_delta"], 0) >= NONE:
        out.add("last_offset_in_range")
    if bits["is_control"] and has_producer and len(records) > 1:
        out.add("one_marker")
    if any(after <= before for before, after in pairwise(deltas)):
        out.add("offsets_ascend")
    if records and deltas[0] < 0:
        out.add("offsets_from_base")
    if records and deltas[-1] > batch["last_offset_delta"]:
        out.add("offsets_to_last")
    if records and bits["timestamp_type"] == TimestampType.CREATE_TIME:
        largest = batch["base_timestamp"] + max(record["timestamp_delta"] for record in records)
        largest = (largest + NONE) % (1 << 64) - NONE  # as Java's long
        if batch["max_timestamp"] == -1 and largest >= 0:
            out.add("no_timestamp")
        if batch["max_timestamp"] not in (-1, largest):
            out.add("largest_timestamp")
    return out


MOST = NONE - 1
T = 1700000000000
PRODUCER = {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0}
CONTROL = {"is_control": True}
LOG = {"timestamp_type": "log_append_time"}
AT_THEIR_EDGES: list[tuple[str | None, dict[str, Any], list[dict[str, int]]]] = [
    (None, {**PRODUCER, "attributes": {"is_transactional": True}}, [{}]),
    (None, PRODUCER, [{}, {}]),
    ("producer_of_transaction", {"attributes": {"is_transactional": True}}, [{}]),
    ("producer_of_transaction", {"producer_epoch": 0, "attributes": {"is_transactional": True}}, [{}]),
    ("epoch_of_producer", {**PRODUCER, "producer_epoch": -1}, [{}]),
    ("epoch_of_producer", {**PRODUCER, "producer_id": 1, "producer_epoch": -1}, [{}]),
    (None, {"producer_epoch": 3}, [{}]),
    ("sequence_of_producer", {**PRODUCER, "base_sequence": -1}, [{}]),
    (None, {"producer_epoch": 0, "base_sequence": -1}, [{}]),
    (None, {**PRODUCER, "base_sequence": -1, "attributes": CONTROL}, [{}]),
    ("last_offset_from_base", {"last_offset_delta": -1}, []),
    (None, {"last_offset_delta": 0}, []),
    ("offsets_of_count", {"last_offset_delta": 0}, [{}, {}]),
    (None, {"base_offset": 5}, [{}]),
    (None, {"base_offset": MOST}, [{}]),
    ("last_offset_in_range", {"base_offset": MOST, "last_offset_delta": 1}, [{}]),
    (None, {"base_offset": MOST - 1, "last_offset_delta": 1}, [{}]),
    ("one_marker", {**PRODUCER, "attributes": CONTROL}, [{}, {}]),
    (None, {**PRODUCER, "attributes": CONTROL}, [{}]),
    (None, {"producer_epoch": 0, "attributes": CONTROL}, [{}, {}]),
    ("offsets_ascend", {"last_offset_delta": 1}, [{"offset_delta": 0}, {"offset_delta": 0}]),
    ("offsets_ascend", {"last_offset_delta": 1}, [{"offset_delta": 1}, {"offset_delta": 0}]),
    ("offsets_from_base", {"last_offset_delta": 1}, [{"offset_delta": -1}, {"offset_delta": 0}]),
    ("offsets_to_last", {"last_offset_delta": 1}, [{"offset_delta": 0}, {"offset_delta": 2}]),
    (None, {"last_offset_delta": 7}, [{"offset_delta": 2}, {"offset_delta": 4}]),
    ("largest_timestamp", {"max_timestamp": T + 4}, [{"timestamp": T}, {"timestamp": T + 5}]),
    ("largest_timestamp", {"max_timestamp": T + 6}, [{"timestamp": T}, {"timestamp": T + 5}]),
    (None, {"max_timestamp": T + 5}, [{"timestamp": T}, {"timestamp": T + 5}, {"timestamp": T}]),
    (None, {"max_timestamp": 1, "attributes": LOG}, [{"timestamp": T}]),
    (None, {"max_timestamp": -1}, [{"timestamp": -10}]),
    ("no_timestamp", {"max_timestamp": -1}, [{"timestamp": 0}]),
    ("no_timestamp", {"max_timestamp": -1}, [{"timestamp": -1}, {"timestamp": 0}, {"timestamp": -1}]),
    (None, {"max_timestamp": -1, "attributes": LOG}, [{"timestamp": T}]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(AT_THEIR_EDGES)))
def test_rules_at_their_edges(case: int) -> None:
    rule, fields, records = AT_THEIR_EDGES[case]
    batch = {**fields, "records": records}
    if rule is None:
        RECORD_BATCH.parse(RECORD_BATCH.build(batch))
        return
    with pytest.raises(BuildError, match=f"it breaks the rule {rule} "):
        RECORD_BATCH.build(batch)
    with pytest.raises(RuleBroken, match=f"it breaks the rule {rule} "):
        RECORD_BATCH.parse(RECORD_BATCH.build(batch, strict=False))


def test_each_rule_has_a_case_at_its_edge() -> None:
    rules = {rule.name for rule in RECORD_BATCH.related.rules}
    assert {rule for rule, *_ in AT_THEIR_EDGES if rule} == rules


@cache
def decoder(numpy: bool) -> Decoder:
    load = load_numpy_reader if numpy else load_kernels
    columns = [column for column in RECORDS.columns if column.name in ("offset", "timestamp")]
    return Decoder(RECORDS, columns, rules=True, kernels=load(RECORDS))


def rejects(data: bytes, numpy: bool) -> bool:
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    found = list(decoder(numpy).decode(chunk, 0))
    return any(isinstance(item, Rejected) for item in found)


@given(batches())
@settings(deadline=None)
def test_all_engines_refuse_the_batches_that_brokers_refuse(batch: dict[str, Any]) -> None:
    expected = broken_rules(batch)
    data = RECORD_BATCH.build(batch, strict=False)
    assert rejects(data, numpy=False) is bool(expected)
    assert rejects(data, numpy=True) is bool(expected)
    assert rejects(data + data, numpy=True) is bool(expected)
    assert found_by_readers(data) == expected
    if not expected:
        assert RECORD_BATCH.build(batch) == data
        assert RECORD_BATCH.parse(data)
        return
    with pytest.raises(RuleBroken) as refused:
        RECORD_BATCH.parse(data)
    with pytest.raises(BuildError) as unbuilt:
        RECORD_BATCH.build(batch)
    for error in (refused.value, unbuilt.value):
        assert any(f"breaks the rule {name} (" in error.reason for name in expected)
        assert str(error.where.schema).startswith("records/record_batch.yaml:")
    findings: list[Any] = []
    lenient = RECORD_BATCH.parse(data, strict=False, findings=findings)
    assert findings == []
    assert [record.offset_delta for record in lenient.records] == [
        record["offset_delta"] for record in batch["records"]
    ]


def found_by_readers(data: bytes) -> set[str]:
    """The rules in the findings of lenient readers, which must agree and give all records."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "00000000000000000000.log")
        path.write_bytes(data)
        found = []
        for reader in (SegmentReader, BlockReader):
            [batch] = reader(path, check_rules=True)
            reasons = [str(e.reason) for e in batch.findings if isinstance(e, RuleBroken)]
            found.append({reason.split("breaks the rule ")[1].split()[0] for reason in reasons})
            [unchecked] = reader(path)
            assert [r.offset for r in batch.records] == [r.offset for r in unchecked.records]
            assert unchecked.findings == () == batch.problems
    assert found[0] == found[1]
    return found[0]


@given(
    version=st.integers(0, 1),
    offsets=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    above=st.sampled_from([0, 0, 1, 50]),
    codec=st.sampled_from([Compression.GZIP, Compression.SNAPPY]),
    later=st.sampled_from([0, 0, 0, 1, -1]),
    is_append_time=st.booleans(),
    data=st.data(),
)
@settings(deadline=None)
def test_all_engines_refuse_the_wrappers_that_brokers_do_not_write(
    version: int,
    offsets: list[int],
    above: int,
    codec: Compression,
    later: int,
    is_append_time: bool,
    data: st.DataObject,
) -> None:
    messages: list[dict[str, Any]] = [
        {"offset": offset, "magic": version, "key": None, "value": b""} for offset in offsets
    ]
    wrapper: dict[str, Any] = {
        "offset": offsets[-1] + above,
        "magic": version,
        "attributes": {"compression": codec},
        "messages": messages,
    }
    expected = {"offsets_ascend"} if any(a >= b for a, b in pairwise(offsets)) else set()
    if version == 0 and above:
        expected.add("offset_of_wrapper")
    if version == 1:
        for message in messages:
            message["timestamp"] = data.draw(st.integers(-1, 3))
        wrapper["timestamp"] = max(message["timestamp"] for message in messages) + later
        wrapper["attributes"]["timestamp_type"] = TimestampType(int(is_append_time))
        if later and not is_append_time:
            expected.add("largest_timestamp")
    built = LOG_ENTRY.build(wrapper, strict=False)
    assert rejects(built, numpy=False) is bool(expected)
    assert rejects(built, numpy=True) is bool(expected)
    assert LOG_ENTRY.parse(built, strict=False)
    assert found_by_readers(built) == expected
    if not expected:
        assert LOG_ENTRY.build(wrapper) == built
        assert LOG_ENTRY.parse(built)
        return
    with pytest.raises(RuleBroken) as refused:
        LOG_ENTRY.parse(built)
    with pytest.raises(BuildError) as unbuilt:
        LOG_ENTRY.build(wrapper)
    for error in (refused.value, unbuilt.value):
        assert any(f"breaks the rule {name} (" in error.reason for name in expected)


def test_a_batch_of_many_rows_is_looked_at_as_a_whole_by_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numpy_decoder, "PART_ROWS", 8)
    monkeypatch.setattr(numpy_decoder, "PART_BYTES", 64)
    records = [
        {"offset_delta": i, "timestamp_delta": 0, "key": None, "value": b""} for i in range(50)
    ]
    batch = {"base_timestamp": 1, "max_timestamp": 1, "records": records}
    assert not rejects(RECORD_BATCH.build(batch), numpy=True)
    records[24]["timestamp_delta"] = 1
    assert rejects(RECORD_BATCH.build(batch, strict=False), numpy=True)
    records[24] |= {"timestamp_delta": 0, "offset_delta": 23}
    assert rejects(RECORD_BATCH.build(batch, strict=False), numpy=True)


BROKEN = {
    "max-timestamp-unset": ({"max_timestamp": -1}, "max_timestamp is -1", 35),
    "last-offset-delta-zero": ({"last_offset_delta": 0}, "last_offset_delta is 0", 23),
    "offset-deltas-equal": ({}, "records[1].offset_delta is 0, but 0 in the element before", 66),
}


@pytest.mark.parametrize(
    ("wrapper", "inner", "timestamp"), [(1, [0, 0], -1), (1, [0, 1, 0], 7), (0, [1, 1], -1)]
)
def test_rules_are_about_messages_of_the_version_of_the_wrapper(
    tmp_path: Path, wrapper: int, inner: list[int], timestamp: int
) -> None:
    """The log cleaner of Kafka 0.10 wrote others (KAFKA-4298). Messages of version 0 have no timestamp."""
    messages = b"".join(
        LOG_ENTRY.build(
            {"magic": version, "offset": i, "value": b"v"} | ({"timestamp": 7} if version else {})
        )
        for i, version in enumerate(inner)
    )
    fields = {"magic": wrapper, "offset": len(inner) - 1, "value": compress(messages)}
    whole = LOG_ENTRY.build(fields | ({"timestamp": timestamp} if wrapper else {}))
    data = bytearray(whole)
    data[17] |= Compression.GZIP
    data[12:16] = crc32(data[16:]).to_bytes(4)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(data)
    [batch] = SegmentReader(path, check_rules=True)
    assert [record.offset for record in batch.records] == list(range(len(inner)))
    assert batch.findings
    assert not any(isinstance(finding, RuleBroken) for finding in batch.findings)
    codes = LogDirectory(path.parent).check(deep=True).column("code").to_pylist()
    assert "batch_rules" not in codes


def write_broken(path: Path, case: str) -> Path:
    fields = BROKEN[case][0]
    deltas = (0, 0, 0) if case == "offset-deltas-equal" else (0, 1, 2)
    records = [
        {"offset_delta": delta, "timestamp_delta": 2 * i, "key": b"k", "value": b"v"}
        for i, delta in enumerate(deltas)
    ]
    batch = {
        "base_offset": 0,
        "last_offset_delta": 2,
        "base_timestamp": 1700000000000,
        "max_timestamp": 1700000000004,
        "records": records,
    }
    log = path / "t-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(RECORD_BATCH.build(batch | fields, strict=False))
    return log


@pytest.mark.parametrize("case", BROKEN)
def test_strict_readers_and_deep_checks_say_which_rule_is_broken(tmp_path: Path, case: str) -> None:
    log = write_broken(tmp_path, case)
    _, reason, byte = BROKEN[case]
    for engine in ("construct", "arrow"):
        with pytest.raises(RuleBroken) as refused:
            scan(str(log), policy="strict", engine=engine).read_all()
        assert refused.value.reason.startswith(f"{reason}: it breaks the rule "), engine
        assert refused.value.where.file == str(log)
        if case != "offset-deltas-equal":
            assert refused.value.where.position == byte
        deep = LogDirectory(tmp_path).check(deep=True, engine=engine).to_pylist()
        assert [f["severity"] for f in deep if f["code"] == "batch_rules"] == ["warning"]
        assert [f["byte"] for f in deep if f["code"] == "batch_rules"] == [0]
        assert reason in str([f["meaning"] for f in deep])
        plain = LogDirectory(tmp_path).check(engine=engine).to_pylist()
        assert all(f["severity"] == "note" for f in plain)
        assert scan(str(log), engine=engine).read_all().num_rows == 3
    [batch] = SegmentReader(log)
    assert batch.findings == ()


def test_a_maximum_that_is_absent_is_refused_for_the_timestamp_of_any_record() -> None:
    """A record before it, or after it, may have none."""
    for deltas in ((0, 5), (5, 0), (0, 1)):
        records = [{"offset_delta": i, "timestamp_delta": delta} for i, delta in enumerate(deltas)]
        fields = {"base_timestamp": -1, "max_timestamp": -1, "records": records}
        with pytest.raises(BuildError, match="breaks the rule no_timestamp"):
            RECORD_BATCH.build(fields)
    records = [{"offset_delta": i, "timestamp_delta": 0} for i in range(2)]
    RECORD_BATCH.build({"base_timestamp": -1, "max_timestamp": -1, "records": records})


def test_no_batch_that_a_broker_wrote_breaks_a_rule() -> None:
    made_by_hand = {"features", "foreign", "malformed", "control"}
    logs = [path for path in SAMPLES.rglob("*.log") if path.is_file()]
    logs += [
        path
        for path in VECTORS.rglob("*.log")
        if not made_by_hand & set(path.relative_to(VECTORS).parts)
    ]
    assert len(logs) > 50
    broken = [
        f"{log} at {batch.position}: {finding}"
        for log in logs
        for batch in BlockReader(log, policy="salvage", check_rules=True)
        for finding in batch.findings
        if isinstance(finding, RuleBroken)
    ]
    assert broken == []
