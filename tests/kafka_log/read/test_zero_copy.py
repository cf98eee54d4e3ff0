"""Views of the bytes that were read: the rows of a scan with copies, which stay as they are whatever happens to the file and the stream."""

from __future__ import annotations

import io
import os
import random
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow import chunks, decoder, decompressor
from codecgen.runtime.arrow.output_buffers import CAN_BUILD_VIEWS
from codecgen.runtime.arrow.primitives.compiling import JIT
from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY
from kafka_log import scan
from kafka_log.segment import skipping
from kafka_log.segment.scanner import Scanner
from tests.paths import SAMPLES, VECTORS
from tests.shares import examples
from tests.support import mixed_logs
from tests.support.random_segments import mutated, segments

ENGINES: Any = ("construct", "arrow")
POLICIES = ("kafka", "strict", "salvage")
FILES = sorted(path for path in VECTORS.rglob("*.log") if path.parent.name != "large")
LENGTHS = (0, 1, 3, 4, 5, 11, 12, 13, 40, 3000)
"""Up to 12 bytes lie in the view itself, the first 4 of them apart."""
LONG = tuple(random.Random(n).randbytes(n) for n in LENGTHS)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Result = tuple[pa.Table, str | None]


def read(source: Any, columns: Any = None, policy: str = "kafka", **options: Any) -> Result:
    """The rows up to an error, without views of keys and values, and the error. The batches are kept until the end, and are sound then."""
    batches: list[Any] = []
    error = None
    stream = scan(source, columns, policy, **options)
    try:
        for batch in stream:
            batches.append(batch)
    except CodecError as raised:
        error = str(raised)
    for batch in batches:
        batch.validate(full=True)
    return without_views(pa.Table.from_batches(batches, stream.schema)), error


def without_views(table: pa.Table) -> pa.Table:
    """The table with columns of binaries in place of views."""
    fields = [f.with_type(pa.binary()) if f.type == pa.binary_view() else f for f in table.schema]
    return table.cast(pa.schema(fields))


def check(source: Any, policies: tuple[str, ...] = POLICIES, **options: Any) -> None:
    for policy in policies:
        for engine in ENGINES:
            more: Any = {"engine": engine, **options}
            assert read(source, None, policy, zero_copy=True, **more) == read(
                source, None, policy, **more
            ), (policy, engine)


def segment(path: Path, batches: int = 40, codecs: tuple[str, ...] = ("none",)) -> Path:
    r = random.Random(batches)
    data = b""
    for i in range(batches):
        records = [{"offset_delta": k, "key": r.choice(LONG), "value": r.choice(LONG)} for k in range(5)]  # fmt: skip
        batch: Any = {"magic": 2, "base_offset": 5 * i, "last_offset_delta": 4, "records": records}
        data += LOG_ENTRY.build(batch | {"attributes": {"compression": codecs[i % len(codecs)]}})
    path.write_bytes(data)
    return path


@pytest.mark.slow
@pytest.mark.share(12, ci=3)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rows_of_every_vector(path: Path) -> None:
    check(path)


@pytest.mark.soak
@examples(60)
@given(
    seed=st.integers(0, 1 << 20),
    filters=st.fixed_dictionaries(
        {},
        optional={
            "offsets": st.sampled_from(((3, 40), (None, 20), (25, None), (-9, None))),
            "timestamps": st.sampled_from(((mixed_logs.START + 20, mixed_logs.START + 70),)),
            "keys": st.sampled_from(([None, b"a"], [LONG[-1]])),
            "headers": st.sampled_from((["a"], [("b", None)])),
            "producers": st.sampled_from(([1], [-1, 2])),
            "isolation": st.just("read_committed"),
            "control_records": st.booleans(),
            "on_damage": st.sampled_from(("keep", "drop")),
            "binary_view": st.just(True),
        },
    ),
    chunk_bytes=st.sampled_from((100, 5000, 1 << 20)),
    worth=st.sampled_from((0, 200, 1 << 20)),
    damaged=st.booleans(),
)
def test_rows_of_selections(
    seed: int, filters: dict[str, Any], chunk_bytes: int, worth: int, damaged: bool
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(skipping, "WORTH", worth),
        patch.object(mixed_logs, "VALUES", (None, *LONG)),
        patch.object(mixed_logs, "KEYS", (*mixed_logs.KEYS, *LONG)),
    ):
        path = mixed_logs.mixed_log(Path(folder) / "t-0", seed)
        if damaged:
            for file in path.iterdir():
                file.write_bytes(mutated(file.read_bytes(), random.Random(seed)))
        if "on_damage" in filters:
            check(path, ("kafka", "salvage"), chunk_bytes=chunk_bytes, **filters)
        else:
            check(path, chunk_bytes=chunk_bytes, **filters)


@pytest.mark.slow
@examples(20)
@given(data=segments, chunk_bytes=st.sampled_from((100, 1 << 20)))
def test_rows_of_random_segments(data: bytes, chunk_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{0:020}.log"
        path.write_bytes(data)
        check(path, ("kafka", "salvage"), chunk_bytes=chunk_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("codecs", [("none",), ("zstd",), CODECS])
@pytest.mark.parametrize("chunk_bytes", [700, 20_000, 8 << 20])
def test_rows_of_all_lengths(
    codecs: tuple[str, ...], chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompressor, "SCRATCH", 20_000)
    path = segment(tmp_path / f"{0:020}.log", 40, codecs)
    check(path, chunk_bytes=chunk_bytes)
    for columns in (["value"], ["key", "offset"], ["offset"], ["topic", "value", "damage"]):
        rows = read(path, columns)
        assert read(path, columns, zero_copy=True) == rows and rows[1] is None


@pytest.mark.parametrize("codecs", [("none",), CODECS])
def test_rows_whose_buffers_are_too_large_for_views(
    codecs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = segment(tmp_path / f"{0:020}.log", 20, codecs)
    wanted = read(path)
    monkeypatch.setattr(decoder, "MAX_BYTES", chunks.MAX_BYTES >> 16)
    assert path.stat().st_size > decoder.MAX_BYTES
    assert read(path, zero_copy=True, engine="arrow") == wanted


needs_kernels = pytest.mark.skipif(not (JIT and CAN_BUILD_VIEWS), reason="values are copied")


def buffers_of(table: Any) -> dict[int, int]:
    """The sizes of the buffers that views of keys and values point into, by address."""
    columns = (table.column(name) for name in ("key", "value"))
    found = (b for column in columns for part in column.chunks for b in part.buffers()[2:])
    return {b.address: b.size for b in found}


@needs_kernels
def test_values_are_in_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = segment(tmp_path / f"{0:020}.log")
    table = Scanner(path, engine="arrow", zero_copy=True, chunk_bytes=20_000).to_reader().read_all()
    assert table.schema.field("key").type == table.schema.field("value").type == pa.binary_view()
    data = path.read_bytes()
    held = buffers_of(table)
    assert len(held) > 3
    assert sum(held.values()) <= len(data) + len(held) * (64 + 5 * 3100)  # a batch is read again
    (first,) = {b.address: b for b in table.column("value").chunk(0).buffers()[2:]}.values()
    assert data.startswith(first.to_pybytes()[:-64])


@needs_kernels
@pytest.mark.parametrize("codec", CODECS[1:])
def test_kept_arrays_keep_no_more_than_is_used(codec: str, tmp_path: Path) -> None:
    """Neither a chunk nor decompressed sections are larger than what a small file has."""
    path = segment(tmp_path / f"{0:020}.log", 4, ("none", codec))
    held = buffers_of(scan(path, zero_copy=True, engine="arrow").read_all())
    of_rows = chain(*(read(path)[0].column(name).to_pylist() for name in ("key", "value")))
    plain = sum(len(value or b"") for value in of_rows)
    assert len(held) == 2 and sum(held.values()) < path.stat().st_size + plain + 1000


@needs_kernels
def test_few_rows_do_not_keep_the_bytes_that_were_read(tmp_path: Path) -> None:
    path = segment(tmp_path / f"{0:020}.log")
    table = scan(path, zero_copy=True, engine="arrow", keys=[LONG[6]]).read_all()
    assert table.num_rows
    assert sum(buffers_of(table).values()) <= table.num_rows * (3000 + 12)


@needs_kernels
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_memory_of_a_stream_is_bounded(
    codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drops each batch before the next has memory for two chunks, or for two decompressed sections."""
    monkeypatch.setattr(decompressor, "SCRATCH", 50_000)
    path = segment(tmp_path / f"{0:020}.log", 400, (codec,))
    before, most = pa.total_allocated_bytes(), 0
    for _ in Scanner(path, engine="arrow", zero_copy=True, chunk_bytes=50_000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert path.stat().st_size > 700_000
    assert most < 6 * 50_000 + 100_000


def through_ipc(table: Any) -> Any:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


KEEPERS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda table: table.slice(7, 20),
    "concatenate": lambda table: pa.concat_tables([table.slice(100), table]).combine_chunks(),
    "ipc": through_ipc,
    "one value": lambda table: table.column("value").chunk(0).slice(3, 1),
    "cast": without_views,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("codecs", [("none",), CODECS])
@pytest.mark.parametrize("keeper", KEEPERS)
def test_kept_arrays(
    keeper: str, codecs: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of a table has its values when file, stream and table are gone, and their memory was asked for again."""
    monkeypatch.setattr(decompressor, "SCRATCH", 20_000)
    path = segment(tmp_path / f"{0:020}.log", 40, codecs)
    wanted = KEEPERS[keeper](scan(path, engine="arrow").read_all()).to_pylist()
    kept = KEEPERS[keeper](scan(path, zero_copy=True, engine="arrow", chunk_bytes=9000).read_all())
    path.unlink()
    other = segment(tmp_path / f"{1:020}.log", 60)
    for _ in range(3):
        scan(other, zero_copy=True, engine="arrow", chunk_bytes=9000).read_all()
    kept.validate(full=True)
    assert kept.to_pylist() == wanted


@pytest.mark.parametrize("policy", ["kafka", "salvage"])
@pytest.mark.parametrize("size", [0, 9000, 30_000])
def test_a_file_that_becomes_shorter(policy: str, size: int, tmp_path: Path) -> None:
    """It ends neither the process nor changes what was read before."""
    found = []
    for zero_copy in (False, True):
        path = segment(tmp_path / f"{0:020}.log", 60)
        options: Any = {"engine": "arrow", "chunk_bytes": 10_000, "zero_copy": zero_copy}
        stream = scan(path, None, policy, **options)
        batches: list[Any] = []
        error = None
        try:
            for batch in stream:
                batches.append(batch)
                os.truncate(path, size)
        except CodecError as raised:
            error = str(raised)
        found.append((without_views(pa.Table.from_batches(batches, stream.schema)), error))
    assert found[0] == found[1] and found[0][0].num_rows
    assert (found[0][1] is None) == (policy == "salvage")


def test_what_it_does_not_go_with() -> None:
    with pytest.raises(ValueError, match="zero_copy does not go with view and decode"):
        scan(SAMPLES / "kafka-4.x", view="offsets", zero_copy=True)
    with pytest.raises(ValueError, match="zero_copy does not go with view and decode"):
        scan(SAMPLES / "kafka-4.x", topics="codecs", decode="auto", zero_copy=True)
    more: Any = {"zero_copy": "no"}
    with pytest.raises(ValueError, match="zero_copy is 'no': True or False is expected"):
        scan(SAMPLES / "kafka-4.x", **more)
