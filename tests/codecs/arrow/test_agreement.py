"""The kernels and the reference codecs read the same from every reference segment and every sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_log import SegmentReader
from tests.paths import VECTORS
from tests.support.scanned_rows import ALL, read_by_reference, reference, scanned
from tests.support.vector_files import FILES, POLICIES, WELL_FORMED, name


def test_there_are_files() -> None:
    assert len(FILES) > 200
    assert len(WELL_FORMED) > 50


def test_what_is_read_once_cannot_be_changed() -> None:
    """Neither by a test that changes what it got, nor by one that reads under another policy."""
    path = VECTORS / "control" / "bad-keys.log"
    for policy in POLICIES:
        reference(path, policy).rows.clear()
        fresh = read_by_reference(path, policy)
        assert reference(path, policy) == fresh
        assert fresh.noted == reference(path, policy).noted
    assert reference(path, "strict") != reference(path, "kafka")


@pytest.mark.share(18, ci=9)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_agrees_under_every_policy(path: Path) -> None:
    for policy in POLICIES:
        assert scanned(path, policy) == reference(path, policy)


@pytest.mark.share(4)
@pytest.mark.parametrize("path", FILES[::4], ids=name)
def test_agrees_in_small_chunks(path: Path) -> None:
    for policy in POLICIES:
        assert scanned(path, policy, chunk_bytes=300) == reference(path, policy)


@pytest.mark.share(4)
@pytest.mark.parametrize("path", WELL_FORMED, ids=name)
def test_the_kernels_take_what_brokers_write(path: Path) -> None:
    read = scanned(path, "kafka")
    empty = sum(1 for batch in SegmentReader(path) if batch.findings or batch.problems)
    assert read.fallbacks == empty
    assert read.end is not None and read.end.stop == "eof"


@pytest.mark.share(3)
@pytest.mark.parametrize("path", WELL_FORMED[::8], ids=name)
@pytest.mark.parametrize("column", ALL)
def test_a_column_alone_is_the_same(path: Path, column: str) -> None:
    expected = [{column: row[column]} for row in reference(path, "kafka").rows]
    assert scanned(path, "kafka", columns=(column,)).rows == expected


@pytest.mark.parametrize("path", FILES[::16], ids=name)
def test_without_kernels_it_is_the_same(path: Path) -> None:
    for policy in POLICIES:
        assert scanned(path, policy, engine="construct") == reference(path, policy)
