"""Batches that are read many at a time, and heads that are read at once, are what reading one by one gives."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from itertools import cycle, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import _HeaderCase
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import Policy, SegmentReader
from kafka_log.segment import passes
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.framing import HEADER_START, layout_of
from kafka_log.segment.model import Batch, Problem, Tail
from kafka_log.segment.row_values import MORE_OF_BATCH, OF_BATCH
from tests.paths import ROOT, SAMPLES, VECTORS
from tests.shares import draw_seeds
from tests.support.random_segments import mutated, sources

FILES = sorted([*VECTORS.rglob("*.log"), *SAMPLES.rglob("*.log")])
HOW = tuple(product(Policy, Tail))


class OneByOne(SegmentReader):
    """Reads each batch by itself."""

    reads_plain = False


def told(value: Any) -> Any:
    """A value with its errors as texts."""
    if isinstance(value, Batch):
        return {f.name: told(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Problem):
        return value.at, str(value.error)
    if isinstance(value, tuple | list):
        return [told(item) for item in value]
    return str(value) if isinstance(value, CodecError) else value


def read(kind: type[SegmentReader], path: Path, policy: Policy, tail: Tail) -> list[Any]:
    """All that a reader of headers says."""
    reader = kind(path, policy=policy, records=False, tail=tail)
    found: list[Any] = []
    try:
        for batch in reader:
            found.append(told(batch))
    except CodecError as error:
        found.append(str(error))
    return [*found, str(reader.end)]


def agree(path: Path, how: tuple[Policy, Tail]) -> None:
    assert read(SegmentReader, path, *how) == read(OneByOne, path, *how)


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("window", [64, 1 << 20])
def test_files_of_all_kinds(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "WINDOW", window)
    for path, how in zip(FILES, cycle(HOW), strict=False):
        if path.stat().st_size < 20_000:
            agree(path, how)


@pytest.mark.slow
@pytest.mark.parametrize("seed", draw_seeds(1, first=11))
def test_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    some = sources(VECTORS / "matrix", 4000)
    path = tmp_path / "00000000000000000000.log"
    for i in range(150):
        monkeypatch.setattr(passes, "WINDOW", random.choice((61, 500, 1 << 20)))
        monkeypatch.setattr(passes, "MAX_BUFFERED", random.choice((300, 16 << 20)))
        path.write_bytes(mutated(random.choice(some), random) * (1 + i % 2))
        agree(path, random.choice(HOW))


def test_it_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = RECORD_BATCH.build({"last_offset_delta": 0, "records": []})
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch * 1000)
    monkeypatch.setattr(SegmentReader, "batch_at", None)
    assert len(list(SegmentReader(path, records=False))) == 1000


def test_headers_one_field_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    names = OF_BATCH + MORE_OF_BATCH
    found: dict[Path, list[Any]] = {}
    for turn in range(2):
        for path in FILES:
            rows: list[Any] = []
            try:
                rows.extend(headers(path, names))
            except CodecError as error:
                rows.append(str(error))
            assert found.setdefault(path, rows) == rows
        monkeypatch.setattr(_HeaderCase, "leading_fields", None)
        assert turn or found


HEADS = st.builds(
    lambda offset, size, epoch, magic: (
        offset + size.to_bytes(4, "big", signed=True) + epoch + magic
    ),
    st.binary(min_size=8, max_size=8),
    st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-2, 70)),
    st.binary(min_size=4, max_size=4),
    st.one_of(st.binary(min_size=1, max_size=1), st.sampled_from([b"\0", b"\1", b"\2"])),
)


@given(HEADS)
def test_frames(head: bytes) -> None:
    found = LOG_ENTRY.plain_frame(head, 0)
    source = Source(head, Session(strict=False))
    magic = LOG_ENTRY.peek(source)
    try:
        size = layout_of(magic).frame(source)
    except CodecError:
        size = None
    is_known = magic in LOG_ENTRY.cases and size is not None
    assert found == ((layout_of(magic), magic, size) if is_known else None)
    assert LOG_ENTRY.plain_frame(head[: HEADER_START - 1], 0) is None


def test_little_is_loaded_for_headers(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(RECORD_BATCH.build({"last_offset_delta": 0, "records": []}) * 3)
    code = (
        "import sys; from kafka_log.cli import main; main(['dump', '--batches', sys.argv[1]]);"
        "sys.exit(' '.join({'rich', 'numpy', 'pyarrow', 'numba'} & set(sys.modules)) or None)"
    )
    roots = os.pathsep.join(str(ROOT / part) for part in ("generator", "generated", "pipeline"))
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env=os.environ | {"PYTHONPATH": roots},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("baseOffset") == 3
