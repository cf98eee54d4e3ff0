"""Views of index files: kernels, NumPy readers and the functions of rows see the entries that struct sees."""

from __future__ import annotations

import importlib
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rejected, Rows, choose
from codecgen.runtime.arrow.view import View
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.paths import SAMPLES, VECTORS

FORMS = {
    "offset_index": (".index", ">ii"),
    "time_index": (".timeindex", ">qi"),
    "aborted_transactions": (".txnindex", ">hqqqq"),
}
ENGINES = ("kernels", "numpy")


def view_of(name: str) -> View:
    found: View = getattr(importlib.import_module(f"kafka_codecs.arrow.{name}"), name.upper())
    return found


def read(name: str, engine: str, data: bytes) -> tuple[list[tuple[int, ...]], list[Rejected], int]:
    """The rows, what was rejected, and where the last row ends."""
    view = view_of(name)
    kernels = importlib.import_module(f"kafka_codecs.arrow.{name}_{engine}")
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    rows: list[tuple[int, ...]] = []
    rejected: list[Rejected] = []
    end = 0
    for found in Decoder(view, choose(view, None), kernels=kernels).decode(chunk, 0):
        if isinstance(found, Rows):
            found.batch.validate(full=True)
            columns = [c.cast(pa.int64()) for c in found.batch.columns]
            rows += zip(*[column.to_pylist() for column in columns], strict=True)
            end = found.end
        else:
            rejected.append(found)
    return rows, rejected, end


def by_struct(name: str, data: bytes) -> list[tuple[int, ...]]:
    form = FORMS[name][1]
    size = struct.calcsize(form)
    found = list(struct.iter_unpack(form, data[: len(data) // size * size]))
    return [row[1:] for row in found] if name == "aborted_transactions" else found


def by_functions(name: str, data: bytes) -> list[tuple[int, ...]]:
    """The rows by the functions that take what the codecs parse."""
    view = getattr(importlib.import_module(f"kafka_codecs.rows.{name}"), name.upper())
    rows: list[tuple[int, ...]] = []
    at = 0
    while True:
        source = Source(data, Session(), pos=at)
        size = view.of.frame(source)
        if size is None:
            return rows
        opened = view.of.case(source).open(source)
        if opened.error is not None:
            raise opened.error
        rows += view.rows(view.of.case(Source(data, Session(), pos=at)), opened, Place(at, size))
        at += size


def files(name: str) -> list[Path]:
    suffix = FORMS[name][0]
    return sorted([*SAMPLES.rglob(f"*{suffix}"), *VECTORS.rglob(f"*{suffix}")])


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_files_that_brokers_wrote(name: str) -> None:
    count = 0
    for path in files(name):
        data = path.read_bytes()
        expected = by_struct(name, data)
        assert by_functions(name, data) == expected
        for engine in ENGINES:
            assert read(name, engine, data) == (expected, [], len(data)), path
        count += len(expected)
    assert count > 3


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FORMS)
def test_an_entry_that_is_cut_off_is_left(name: str, engine: str) -> None:
    path = max(files(name), key=lambda path: path.stat().st_size)
    data = path.read_bytes()
    size = struct.calcsize(FORMS[name][1])
    for cut in {1, size // 2, size - 1}:
        rows, rejected, end = read(name, engine, data + data[:size][:cut])
        assert (rows, rejected, end) == (by_struct(name, data), [], len(data))
    assert read(name, engine, data[: size - 1]) == ([], [], 0)
    assert read(name, engine, b"") == ([], [], 0)


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_entries_that_are_not_used_yet_are_zeros(engine: str) -> None:
    for name in ("offset_index", "time_index"):
        data = max(files(name), key=lambda path: path.stat().st_size).read_bytes()
        size = struct.calcsize(FORMS[name][1])
        rows, rejected, _ = read(name, engine, data + bytes(9 * size))
        assert rows == by_struct(name, data) + [(0, 0)] * 9 and not rejected


@pytest.mark.share(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("offset_index", struct.pack(">ii", 5, -1)),
        ("time_index", struct.pack(">qi", -1, 5)),
        ("aborted_transactions", struct.pack(">hqqqq", 1, 2, 3, 4, 5)),
        ("aborted_transactions", bytes.fromhex("8000") + bytes(32)),
    ],
)
def test_an_entry_that_is_not_as_it_should_be_is_named(name: str, bad: bytes, engine: str) -> None:
    good = struct.pack(FORMS[name][1], 0, *range(1, len(FORMS[name][1]) - 1))
    rows, rejected, end = read(name, engine, good * 3 + bad + good * 2 + bad)
    size = len(good)
    assert rows == by_struct(name, good) * 5
    assert [(item.start, item.end) for item in rejected] == [
        (3 * size, 4 * size),
        (6 * size, 7 * size),
    ]
    assert engine == "numpy" or all(item.place is not None for item in rejected)
    assert end == 6 * size
    with pytest.raises(CodecError):
        by_functions(name, good + bad)


COLUMNS = {
    "offset_index": {"relative_offset": pa.int32(), "position": pa.int32()},
    "time_index": {"timestamp": pa.timestamp("ms", "UTC"), "relative_offset": pa.int32()},
    "aborted_transactions": {
        "producer_id": pa.int64(),
        "first_offset": pa.int64(),
        "last_offset": pa.int64(),
        "last_stable_offset": pa.int64(),
    },
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str) -> None:
    view = view_of(name)
    wanted = pa.schema([pa.field(n, kind, False) for n, kind in COLUMNS[name].items()])
    assert Decoder(view, choose(view, None)).schema == wanted
    assert len(view.columns) == len(wanted) and view.discriminator is None and view.framed


def test_more_entries_than_fit_at_once() -> None:
    data: Any = b"".join(struct.pack(">ii", i, 2 * i) for i in range(200_000))
    for engine in ENGINES:
        assert read("offset_index", engine, data)[0] == by_struct("offset_index", data)
