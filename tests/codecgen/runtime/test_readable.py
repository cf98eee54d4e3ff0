"""What is parsed shows itself: as lines, as HTML, and with the values that the schema derives."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import construct
import pytest

from codecgen.runtime.errors import CodecError
from codecgen.runtime.parsed import Parsed
from codecgen.runtime.readable import ELEMENTS, LINES, Milliseconds, time_of, word
from kafka_codecs import LEADER_EPOCH_CHECKPOINT, LOG_ENTRY, MESSAGE, RECORD_BATCH, Compression
from kafka_log import Batch, Record, SegmentReader
from tests.paths import SAMPLES, VECTORS

HOSTILE = "<script>alert('x')</script>&"


class Checked(HTMLParser):
    """Raises where tags are not balanced; gathers the texts, and the names of tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not attrs
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def batch(records: int = 7, **more: Any) -> Parsed:
    one = {"key": b"k", "value": bytes(1000), "headers": [{"key": HOSTILE, "value": None}]}
    values = {
        "base_offset": 7,
        "attributes": {"compression": "zstd"},
        "base_timestamp": 1_795_154_400_000,
        "records": [one | {"offset_delta": i, "timestamp_delta": 5} for i in range(records)],
    }
    return RECORD_BATCH.parse(RECORD_BATCH.build(values | more))


def test_a_line_for_each_field() -> None:
    lines = repr(batch()).splitlines()
    assert lines[0] == "record_batch"
    assert "  base_offset: 7" in lines
    assert "    compression: zstd (4)" in lines
    assert "  records: 7 record" in lines
    assert "      value: b'" + "\\x00" * 32 + "'... (1000 bytes)" in lines
    assert "      = timestamp: 1795154400005 ms (2026-11-20T06:00:00.005Z)" in lines
    assert f"    ... {7 - ELEMENTS} more" in lines
    assert lines[-4] == "  = last_offset: 13"


def test_html_is_escaped() -> None:
    html = Checked(batch()._repr_html_())
    assert html.tags == {"table", "caption", "tr", "th", "td", "code", "details", "summary", "p"}
    assert repr(HOSTILE) in html.texts  # as text
    record = Record(1, 2, -1, None, b"<b>", ((HOSTILE, b"&"),))
    assert Checked(record._repr_html_()).tags == {"table", "caption", "tr", "th", "td", "code"}


def test_derived_values_are_attributes_and_no_items() -> None:
    parsed = batch()
    assert (parsed.last_offset, parsed.next_offset, parsed.delete_horizon) == (13, 14, None)
    assert [r.offset for r in parsed.records] == list(range(7, 14))
    assert {r.timestamp for r in parsed.records} == {1_795_154_400_005}
    assert "last_offset" not in parsed and "offset" not in parsed.records[0]
    assert "last_offset" in dir(parsed) and "offset" in dir(parsed.records[0])
    assert parsed.attributes.compression is Compression.ZSTD
    assert parsed.attributes.is_transactional is False
    with pytest.raises(AttributeError):
        _ = parsed.records[0].base_offset
    with pytest.raises(AttributeError):
        _ = MESSAGE.parse(MESSAGE.build({"magic": 0, "offset": 3, "value": b"x"})).timestamp


def test_what_is_parsed_is_a_container_that_can_be_copied_and_built() -> None:
    parsed = batch()
    assert isinstance(parsed, construct.Container)
    assert parsed.copy() == parsed and parsed.copy().next_offset == 14
    for other in (copy.deepcopy(parsed), pickle.loads(pickle.dumps(parsed))):
        assert other == parsed
    assert RECORD_BATCH.parse(RECORD_BATCH.build(parsed)) == parsed


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["kafka-4.x", "kafka-2.8"])
def test_the_log_reader_agrees_on_derived_values(folder: str) -> None:
    """The reader has them from the views, these are from the layouts."""
    seen = 0
    for path in sorted((SAMPLES / folder).glob("*-[0-9]/*.log")):
        data = path.read_bytes()
        for read in SegmentReader(path):
            if read.magic != 2 or not read.records:
                continue
            parsed = RECORD_BATCH.parse(data[read.position : read.position + read.size])
            assert parsed.next_offset == read.next_offset
            assert [(r.offset, r.timestamp, r.sequence) for r in parsed.records] == [
                (r.offset, r.timestamp, r.sequence) for r in read.records
            ]
            seen += len(read.records)
    assert seen > 500


@pytest.mark.slow
def test_whatever_is_parsed_can_be_shown() -> None:
    shown = 0
    for path in sorted(VECTORS.rglob("*.log"))[::4]:
        try:
            found = [LOG_ENTRY.parse(path.read_bytes(), strict=False)]
        except CodecError:
            found = []
        for value in [*found, *_batches(path)]:
            lines = repr(value).splitlines()
            assert len(lines) <= LINES + 1
            assert max(map(len, lines)) < 1000
            Checked(value._repr_html_())
            shown += 1
    assert shown > 60


def _batches(path: Any) -> list[Batch]:
    return [
        found for found, _ in zip(SegmentReader(path, policy="salvage"), range(3), strict=False)
    ]


def test_texts_too() -> None:
    parsed = LEADER_EPOCH_CHECKPOINT.parse(b"0\n1\n0 0\n")
    assert repr(parsed).splitlines()[0] == "leader_epoch_checkpoint"
    assert isinstance(parsed, Parsed)


def test_times() -> None:
    assert time_of(1) == datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)
    assert time_of(-2) == datetime(1969, 12, 31, 23, 59, 59, 998000, UTC)
    assert time_of(None) is time_of(-1) is time_of(2**63 - 1) is time_of(-(2**63)) is None
    assert Record(1, 1_795_154_400_000, -1, None, None).time == datetime(
        2026, 11, 20, 6, tzinfo=UTC
    )
    assert word(Milliseconds(60_000)) == "60000 ms"  # a span
    assert word(Milliseconds(2**63 - 1)) == f"{2**63 - 1} ms"


def test_batches_of_the_log_reader() -> None:
    (read, *_) = SegmentReader(SAMPLES / "kafka-4.x/codecs-4/00000000000000000000.log")
    lines = repr(read).splitlines()
    assert lines[0] == "Batch"
    assert "  codec: 4 (zstd)" in lines and "  timestamp_type: 0 (CreateTime)" in lines
    assert repr(read.records[0]).startswith("Record(offset=0, timestamp=")
    assert "\n" not in repr(read.records[0])
    assert read.max_time == read.records[0].time
