"""Scans of headers give the same by the reference codecs, the kernels and NumPy: rows, errors, and what is lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codecgen.runtime.arrow.decoder import load_numpy_reader
from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.batches import BATCHES
from kafka_log import SegmentReader, scan_batches
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import SECTOR
from kafka_log.segment.scanner import header_scanner
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds, later_seeds
from tests.support.random_segments import mutated, sources
from tests.support.scanned_rows import unpacked
from tests.support.unreadable_files import ENDS, SECTORS, WHOLE, bad, untouched

MALFORMED = sorted((VECTORS / "malformed").glob("*.log"))
COLUMNS = [column.name for column in BATCHES.columns]
POLICIES = ("strict", "kafka", "salvage")
QUICK, MANY = 150, 5000
QUICK_WAYS = 5


class Found(NamedTuple):
    rows: list[dict[str, Any]]
    error: str | None
    end: str
    lost: list[tuple[int, int]]


def found(path: Path, policy: str, engine: str, **options: Any) -> Found:
    known: Any = "construct" if engine == "construct" else "arrow"
    scanner = header_scanner(path, COLUMNS, policy, engine=known, **options)
    if engine == "numpy":
        scanner.kernels = load_numpy_reader(BATCHES)
    rows: list[dict[str, Any]] = []
    error = None
    try:
        for batch in scanner:
            rows += unpacked(batch)
    except CodecError as raised:
        error = f"{type(raised).__name__}: {raised}"
    lost = [] if scanner.end is None else [(x.start, x.end) for x in scanner.end.lost]
    return Found(rows, error, str(scanner.end), lost)


def agree(path: Path, policy: str, **options: Any) -> Found:
    expected = found(path, policy, "construct", **options)
    for engine in ("arrow", "numpy"):
        assert found(path, policy, engine, **options) == expected, (engine, policy, options)
    return expected


def torn(data: bytes, r: random.Random) -> bytes:
    """Bytes that are changed, go missing, come twice, or stand where none were."""
    out = bytearray(mutated(data, r))
    for _ in range(r.randrange(3)):
        at, n = r.randrange(len(out) + 1), r.randrange(1, 200)
        kind = r.randrange(4)
        if kind == 0:
            del out[at : at + n]
        elif kind == 1:
            out[at:at] = bytes(n)
        elif kind == 2:
            out[at : at + n] = r.randbytes(n)
        else:
            out[at:at] = out[at : at + n]
    return bytes(out)


WAYS = [(policy, tail, keep) for policy in POLICIES for tail in Tail for keep in ("keep", "raise")]


@pytest.mark.slow
@pytest.mark.share(3, ci=0)
@pytest.mark.parametrize("path", MALFORMED, ids=lambda p: p.stem)
def test_malformed_vectors(path: Path) -> None:
    """Each file in some of the ways, another file in others."""
    begin = MALFORMED.index(path) % QUICK_WAYS
    for policy, tail, keep in WAYS[begin::QUICK_WAYS]:
        agree(path, policy, tail=tail, on_damage=keep)


@pytest.mark.slow
@pytest.mark.share(ci=9)
@pytest.mark.parametrize("path", MALFORMED, ids=lambda p: p.stem)
def test_malformed_vectors_in_every_way(path: Path) -> None:
    for policy, tail, keep in WAYS:
        agree(path, policy, tail=tail, on_damage=keep)


def test_no_checksum_is_verified() -> None:
    """Where a reader of batches finds that the bytes are not those that were written, a scan of headers does not look."""
    path = VECTORS / "malformed" / "v2-bad-crc.log"
    reader = SegmentReader(path, policy="salvage", records=False, salvage_records=False)
    whole = [batch.position for batch in reader]
    assert reader.end is not None and reader.end.lost
    for engine in ("construct", "arrow"):
        rows = scan_batches(path, ["position"], "salvage", engine=engine)
        assert set(rows.read_all()[0].to_pylist()) > set(whole)
        assert found(path, "salvage", engine).lost == []


def holds(path: Path, seeds: range) -> list[Found]:
    runs = sources(VECTORS, 60_000) + sources(SAMPLES, 60_000)
    made = []
    for seed in seeds:
        r = random.Random(seed)
        path.write_bytes(torn(r.choice(runs), r))
        for policy in POLICIES:
            options = {"tail": r.choice(list(Tail)), "on_damage": r.choice((None, "keep", "raise"))}
            made.append(agree(path, policy, chunk_bytes=r.choice((300, 8 << 20)), **options))
    return made


@pytest.mark.slow
def test_random_mutants(tmp_path: Path) -> None:
    made = holds(tmp_path / f"{0:020}.log", range(QUICK))
    assert sum(1 for one in made if one.lost) > 20
    assert sum(1 for one in made if one.error is not None) > 20
    assert sum(1 for one in made if one.rows) > QUICK


@pytest.mark.soak
def test_many_random_mutants(tmp_path: Path) -> None:
    holds(tmp_path / f"{0:020}.log", later_seeds(QUICK, MANY))


@pytest.mark.soak
def test_bad_sectors(tmp_path: Path) -> None:
    """Sectors that hold no header stop nobody, as nobody reads them; where batches are small all is read at once."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(WHOLE)
    lost = 0
    for seed in draw_seeds(30):
        r = random.Random(seed)
        begins = [r.randrange(SECTORS) * SECTOR for _ in range(r.randrange(1, 4))]
        ranges = [(at, at + SECTOR) for at in begins]
        with bad(path, ranges, partial=r.random() < 0.5):
            for policy in ("kafka", "salvage"):
                one = agree(path, policy, on_damage="keep", chunk_bytes=r.choice((300, 8 << 20)))
        read = {row["position"] for row in one.rows}
        assert read >= {ENDS[i] for i in untouched(ranges)}
        lost += len(one.lost)
        assert all(read.isdisjoint(range(*gap)) for gap in one.lost)
    assert lost


def test_what_a_kernel_has_no_case_for_is_verified(tmp_path: Path) -> None:
    """A magic byte that no format has: the checksum alone says whether it is a batch."""
    path = tmp_path / f"{0:020}.log"
    fields = {"magic": 2, "base_offset": 0, "last_offset_delta": 0, "records": []}
    batch = bytearray(LOG_ENTRY.build(fields))
    path.write_bytes(batch)
    assert len(agree(path, "salvage").rows) == 1
    batch[16] = 9
    path.write_bytes(batch)
    assert len(agree(path, "salvage").rows) == 1  # the checksum does not cover it
    batch[-1] ^= 1
    path.write_bytes(batch)
    assert agree(path, "salvage").lost == [(0, len(batch))]
    assert agree(path, "strict").error is not None
