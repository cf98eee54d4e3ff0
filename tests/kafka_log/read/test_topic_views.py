"""Kafka's own topics as tables: by views, from logs that brokers wrote and from some that are made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kafka_log
from codecgen.plan import make_plan
from codecgen.runtime.errors import CodecError
from kafka_codecs import (
    CONTROL_RECORD_KEY,
    END_TXN_MARKER,
    LOG_ENTRY,
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
)
from kafka_log import Record, SegmentReader
from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.read import topic_views
from kafka_log.read.internal_topics import VIEWS, has_secrets, internal_topic
from kafka_log.read.topic_views import topic_view
from tests.codecgen.schemas import codecs_of, model_of
from tests.paths import SAMPLES
from tests.support.empty_views import EMPTY

NEW = SAMPLES / "kafka-4.x"
TIME = 1_700_000_000_000


def rows(
    view: str, path: Path = NEW, columns: list[str] | None = None, **options: Any
) -> list[Any]:
    found: list[Any] = kafka_log.read_table(path, columns, view=view, **options).to_pylist()
    return found


def records(topic: str, broker: Path = NEW) -> Iterator[Record]:
    for path in sorted((broker / f"{topic}-0").glob("*.log")):
        for batch in SegmentReader(path):
            yield from (record for record in batch.records if record.control is None)


def said(
    topic: str, broker: Path = NEW
) -> Iterator[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """What records say as JSON, which another reader makes, with their offsets."""
    decoder = internal_topic(topic)
    assert decoder is not None
    for record in records(topic, broker):
        found = decoder.decode(record.key, record.value, strict=True, show_secrets=True)
        assert found.error is None
        assert found.key is not None
        yield record.offset, found.key, found.value


@pytest.mark.parametrize("broker", [NEW, SAMPLES / "kafka-2.8"], ids=lambda p: p.name)
def test_offsets_are_what_records_say(broker: Path) -> None:
    columns = ["group", "topic", "partition", "committed_offset", "metadata", "record_offset"]
    expected = [
        (*key["data"].values(), value and value["data"]["offset"], value and value["data"]["metadata"], offset)
        for offset, key, value in said("__consumer_offsets", broker)
        if key["type"] in "01"
    ]  # fmt: skip
    assert [tuple(row.values()) for row in rows("offsets", broker, columns)] == expected
    assert expected


def test_transactions_are_what_records_say() -> None:
    found = rows("transactions", columns=["transactional_id", "producer_id", "producer_epoch"])
    expected = [
        {
            "transactional_id": key["data"]["transactionalId"],
            "producer_id": value["data"]["producerId"],
            "producer_epoch": value["data"]["producerEpoch"],
        }
        for _, key, value in said("__transaction_state")
        if value is not None
    ]
    assert found == expected
    assert expected


def test_every_view_has_rows_or_a_topic_that_the_samples_lack() -> None:
    topics = {path.name.rpartition("-")[0] for path in NEW.iterdir() if path.is_dir()}
    for view, topic in VIEWS.items():
        if topic in topics:
            assert bool(rows(view)) == (view not in EMPTY), view
        else:
            with pytest.raises(ValueError, match=topic):
                rows(view)


def test_columns_that_say_which_record_it_is() -> None:
    names = ["record_segment", "record_partition", "record_timestamp", "record_offset"]
    found = kafka_log.read_table(NEW, names, view="offsets")
    assert found.schema.names == names
    assert found.schema.types[1:] == [pa.int32(), pa.timestamp("ms", "UTC"), pa.int64()]
    times = {record.offset: record.timestamp for record in records("__consumer_offsets")}
    for row in found.to_pylist():
        assert row["record_segment"].endswith("__consumer_offsets-0/00000000000000000000.log")
        assert row["record_timestamp"].timestamp() * 1000 == times[row["record_offset"]]


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="did you mean 'offsets'"):
        rows("ofsets")
    with pytest.raises(ValueError, match="did you mean 'group'"):
        rows("offsets", columns=["grup"])
    with pytest.raises(
        ValueError,
        match=r"the view transactions reads the topic __transaction_state, which is not there; there are: codecs",
    ):
        rows("transactions", NEW / "codecs-0")


def test_topics_are_read_by_the_names_that_they_have() -> None:
    assert set(VIEWS.values()) <= set(INTERNAL_TOPICS)


# ---------------------------------------------------------------- logs that are made


def commit(offset: int, group: str, committed: int, **batch: Any) -> bytes:
    """A batch with one commit."""
    key = OFFSET_COMMIT_KEY.build({"group": group, "topic": "t", "partition": 0})
    value = OFFSET_COMMIT_VALUE.build(
        {"version": 3, "offset": committed, "metadata": "", "commit_timestamp": TIME}
    )
    return entry(offset, key, value, **batch)


def entry(offset: int, key: bytes | None, value: bytes | None, **batch: Any) -> bytes:
    record = {"timestamp_delta": 0, "offset_delta": 0, "key": key, "value": value, "headers": []}
    head = {"base_offset": offset, "base_timestamp": TIME, "max_timestamp": TIME}
    data: bytes = LOG_ENTRY.build(
        {"magic": 2, "attributes": {}, **head, "records": [record], **batch}
    )
    return data


def marker(offset: int, producer: int, kind: str) -> bytes:
    key = CONTROL_RECORD_KEY.build({"type": kind})
    value = END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 0})
    attributes = {"is_transactional": True, "is_control": True}
    return entry(offset, key, value, attributes=attributes, producer_id=producer, producer_epoch=0)


def within(producer: int) -> dict[str, Any]:
    return {
        "attributes": {"is_transactional": True},
        "producer_id": producer,
        "producer_epoch": 0,
        "base_sequence": 0,
    }


def log(directory: Path, *batches: bytes) -> Path:
    path = directory / "__consumer_offsets-7" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(batches))
    return path


def test_transactions_that_were_aborted_or_are_open_say_nothing(tmp_path: Path) -> None:
    """What comes after an open one counts, as for the coordinator that loads the topic."""
    path = log(
        tmp_path,
        commit(0, "plain", 1),
        commit(1, "committed", 2, **within(7)),
        commit(2, "aborted", 3, **within(8)),
        marker(3, 7, "commit"),
        marker(4, 8, "abort"),
        commit(5, "open", 4, **within(9)),
        commit(6, "after", 5),
    )
    assert [row["group"] for row in rows("offsets", path)] == ["plain", "committed", "after"]
    found = rows("offsets", path, isolation="read_committed")
    assert [row["group"] for row in found] == ["plain", "committed"]
    found = rows("offsets", path, isolation="read_uncommitted")
    assert len(found) == 5


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_a_value_that_cannot_be_read(tmp_path: Path, engine: str) -> None:
    key = OFFSET_COMMIT_KEY.build({"group": "g", "topic": "t", "partition": 0})
    path = log(tmp_path, commit(0, "a", 1), entry(1, key, b"\0\3\0"), commit(2, "b", 2))
    with pytest.raises(CodecError, match="the record at offset 1: ") as raised:
        rows("offsets", path, engine=engine)
    assert raised.value.where.file == str(path)
    assert (raised.value.where.path or "").startswith("value")
    found = rows("offsets", path, engine=engine, on_damage="keep")
    assert [row["group"] for row in found] == ["a", "b"]


def test_records_of_other_types_are_passed_over(tmp_path: Path) -> None:
    path = log(tmp_path, entry(0, b"\x7f\0", b"\0\0"), commit(1, "a", 1))
    assert [row["group"] for row in rows("offsets", path)] == ["a"]


def test_tombstones(tmp_path: Path) -> None:
    key = OFFSET_COMMIT_KEY.build({"group": "g", "topic": "t", "partition": 0})
    [row] = rows("offsets", log(tmp_path, entry(0, key, None)))
    assert row["is_deleted"]
    assert (row["group"], row["committed_offset"], row["metadata"]) == ("g", None, None)


def test_offsets_of_records_are_a_range(tmp_path: Path) -> None:
    path = log(tmp_path, *(commit(i, f"g{i}", i) for i in range(5)))
    assert [row["group"] for row in rows("offsets", path, offsets=(1, 3))] == ["g1", "g2"]


def test_kernels_are_loaded_or_compiled_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {
        "key": pa.array([b"k" * 40] * 100, pa.binary()),
        "value": pa.array([None] * 100, pa.binary()),
    }
    each = sum(array.nbytes for array in parts.values()) // 100
    loads, compiles = 10_000 * each, 150_000 * each
    offsets = topic_view("offsets", None).view
    kernels = SimpleNamespace(JIT=True, KERNELS=SimpleNamespace(py_func=None, signatures=[]))

    def used(size: int) -> bool:
        return topic_views.use_payload_kernels(offsets, parts, size)

    monkeypatch.setattr(topic_views, "load_kernels", lambda _: kernels)
    assert [used(loads), used(compiles // 2), used(compiles * 2)] == [False, False, True]
    kernels.KERNELS.signatures = ["int64"]  # compiled
    assert [used(loads // 2), used(loads * 2), used(compiles * 2)] == [False, True, True]
    kernels.JIT = False
    assert not used(compiles * 2)
    monkeypatch.setattr(topic_views, "load_kernels", lambda _: None)
    assert not used(compiles * 2)
    assert not topic_views.use_payload_kernels(topic_view("groups", None).view, parts, compiles * 2)


def test_a_layout_has_the_secrets_of_the_layouts_inside_of_it() -> None:
    """Any byte of an undecoded value of such a topic may be one."""
    text = """
layout: setting
fields: {name: {string: u8}, value: {string: u8, sensitive: true}}
---
layout: settings
fields: {all: {array: setting, count: u8}}
---
layout: holder
fields: {kind: u8, body: {choice: bodies, given: {kind: kind}}}
---
layout: plain
fields: {n: u8, more: {array: u8, count: u8}}
---
choice: bodies
given: {kind: u8}
by: kind
cases: {1: settings, 2: plain}
"""
    codecs = codecs_of(make_plan(model_of(text)))
    assert [has_secrets(c) for c in (codecs.SETTING, codecs.SETTINGS, codecs.HOLDER)] == [True] * 3
    assert not has_secrets(codecs.PLAIN)
