"""A writer that changes any one field is found, whether a view has a column for the field or not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.construct import Array, Bit, Bits, Bytes, Field, Integer, Layout, Varint
from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory
from kafka_log.write.field_comparison import Rewritten, compare_fields
from kafka_log.write.verification import Written, WrittenError
from tests.shares import examples
from tests.support.writer_faults import refuses

FAULTS = {"convert --codec zstd": "recompress", "salvage --flatten": "edit"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with two batches that have a value in each field, also in reserved bits."""
    path = tmp_path_factory.mktemp("logs") / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(map(_batch, (0, 3))))
    return path.parent


def _batch(base: int) -> bytes:
    records: list[dict[str, Any]] = [
        {
            "attributes": {"unused": 4},
            "offset_delta": i,
            "timestamp_delta": i,
            "key": b"k" if i else None,
            "value": b"v%d" % i,
            "headers": [{"key": "h", "value": b"x"}, {"key": "h", "value": None}][:i],
        }
        for i in range(3)
    ]
    batch: Any = {
        "base_offset": base,
        "partition_leader_epoch": 4,
        "attributes": {"unused": 9, "compression": "lz4"},
        "base_timestamp": 1_700_000_000_000,
        "producer_id": 7,
        "producer_epoch": 1,
        "base_sequence": base,
        "records": records,
    }
    return RECORD_BATCH.build(batch, strict=False)


@pytest.mark.parametrize("path", ["attributes.unused", "records[1].attributes.unused"])
def test_a_fault_in_bits_without_a_column_is_refused(source: Path, path: str) -> None:
    refuses(source, FAULTS, lambda paths: paths[paths.index(path)])


@pytest.mark.slow
@given(data=st.data())
@examples(60)
def test_a_fault_in_any_field_is_refused(source: Path, data: st.DataObject) -> None:
    refuses(source, FAULTS, lambda paths: data.draw(st.sampled_from(paths)))


def test_without_a_fault_all_is_written(source: Path, tmp_path: Path) -> None:
    log = LogDirectory(source)
    assert {row["what"] for row in log.convert(tmp_path / "a", codec="zstd").to_pylist()} == {
        "converted"
    }
    assert {row["what"] for row in log.salvage(tmp_path / "b", flatten=True).to_pylist()} == {
        "rewritten"
    }


def _layout(*added: Field, bits: tuple[Bit, ...] = (), item: tuple[Field, ...] = ()) -> Layout:
    """Return a layout of bits, a number and an array, with more fields, bits and fields of elements."""
    element = Layout("item", Field("value", Integer(1)), *item)
    items = Field("items", Array(element, count=Varint()))
    return Layout(
        "entry",
        Field("flags", Bits(Integer(1), Bit("old", 0), *bits)),
        Field("number", Integer(2)),
        *added,
        items,
    )


OLDER = _layout()
NEWER = _layout(
    Field("epoch", Integer(4), default=lambda _: None, absent=-1),
    Field("host", Bytes(Varint(), null=-1)),
    Field("twice", Integer(4), default=lambda this: 2 * this.number),
    Field("large", Integer(1), when=lambda this: this.number > 9, default=lambda _: 5),
    Field("more", Array(Layout("number", Field("value", Integer(1))), count=Varint())),
    bits=(Bit("new", 1), Bit("set", 2, default=lambda _: True)),
    item=(Field("weight", Integer(1), default=lambda _: 7),),
)
ADDED: dict[str, dict[str, Any]] = {
    "epoch": {"epoch": 3},
    "host": {"host": b""},
    "twice": {"twice": 0},
    "large": {"large": 6},
    "the number of more": {"more": [{"value": 1}]},
    "flags.new": {"flags": {"old": True, "new": True}},
    "flags.set": {"flags": {"old": True, "set": False}},
    "items[0].weight": {"items": [{"value": 1, "weight": 8}]},
}
"""Values that are not the defaults, by the path of the field that only the newer layout has."""


def _rewritten(directory: Path, changes: dict[str, Any], number: int) -> Rewritten:
    values = {"flags": {"old": True}, "number": number, "items": [{"value": 1}]}
    places = []
    for layout, given_values in ((OLDER, values), (NEWER, values | changes)):
        path = directory / str(len(places))
        path.write_bytes(layout.build(given_values))
        places.append(Written(path, 0, path.stat().st_size))
    return Rewritten(places[0], places[1], OLDER, NEWER, {}, 0)


@pytest.mark.parametrize("number", [0, 10])
def test_fields_that_only_the_newer_layout_has_may_have_their_defaults(
    tmp_path: Path, number: int
) -> None:
    compare_fields([_rewritten(tmp_path, {}, number)])


@pytest.mark.parametrize("path", ADDED)
def test_another_value_in_a_field_that_only_the_newer_layout_has_is_refused(
    tmp_path: Path, path: str
) -> None:
    with pytest.raises(WrittenError, match=f"^{re.escape(path)} of the batch at offset 0 is "):
        compare_fields([_rewritten(tmp_path, ADDED[path], 10)])
