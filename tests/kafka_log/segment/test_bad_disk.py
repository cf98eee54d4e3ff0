"""Input/output errors of a real file system: pages that the kernel cannot give, by every way of reading."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_log import SegmentReader, read_table, scan, scan_batches
from kafka_log.cli import main
from tests.support import bad_disk
from tests.support.batches import batch
from tests.support.unreadable_files import ENGINES, until_error

PAGE = 4096
SIZES = [50, 700, 30_000, 9000] * 12
PARTS = [batch(i * 10, size=size) for i, size in enumerate(SIZES)]
ENDS = [sum(map(len, PARTS[:i])) for i in range(len(PARTS) + 1)]
BAD = [PAGE * n for n in (2, 30, 31, 200, ENDS[26] // PAGE)]
"""Some within batches, and one with a header."""
GOOD = [
    i
    for i in range(len(PARTS))
    if not any(ENDS[i] < page + PAGE and page < ENDS[i + 1] for page in BAD)
]


@contextmanager
def mounted(source: Path, place: Path) -> Iterator[None]:
    """The files of a directory, with pages of the first one that cannot be read."""
    ranges = [f"{page}-{page + PAGE}" for page in BAD]
    command = [sys.executable, bad_disk.__file__, str(source), str(place), *ranges]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout is not None
        if server.stdout.readline() != b"mounted\n":
            pytest.skip("nothing can be mounted here")
        try:
            yield
        finally:
            lazily = 2
            ctypes.CDLL(None).umount2(os.fsencode(place), lazily)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not Path("/dev/fuse").exists():
        pytest.skip("the system has no file systems in user space")
    source, place = (tmp_path_factory.mktemp("disk") / name for name in ("source", "t-0"))
    source.mkdir()
    place.mkdir()
    (source / f"{0:020d}.log").write_bytes(b"".join(PARTS))
    (source / f"{900:020d}.log").write_bytes(batch(900))
    with mounted(source, place):
        yield place


def offsets_of(numbers: list[int]) -> list[int]:
    return [i * 10 + d for i in numbers for d in range(3)]


def test_the_pages_are_bad(log: Path) -> None:
    with (log / f"{0:020d}.log").open("rb", buffering=0) as file:
        for page in BAD:
            with pytest.raises(OSError) as raised:
                os.pread(file.fileno(), 10, page)
            assert raised.value.errno == errno.EIO
        assert os.pread(file.fileno(), 10, BAD[0] + PAGE) == b"".join(PARTS)[BAD[0] + PAGE :][:10]


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", [pytest.param(e, marks=[pytest.mark.soak] * (e == "construct")) for e in ENGINES]
)
def test_all_else_is_read(log: Path, engine: str) -> None:
    path = log / f"{0:020d}.log"
    found = read_table(log, ["offset"], "salvage", on_damage="drop", engine=engine)  # type: ignore[arg-type]
    assert found[0].to_pylist() == offsets_of([*GOOD, 90])
    more = read_table(log, ["offset"], "salvage", engine=engine)[0].to_pylist()  # type: ignore[arg-type]
    assert set(found[0].to_pylist()) < set(more) <= {*offsets_of([*range(len(PARTS)), 90])}
    assert len(more) == len(set(more))
    rows, error = until_error(scan(log, ["offset"], engine=engine))  # type: ignore[arg-type]
    first = min(set(range(len(PARTS))) - set(GOOD))
    assert rows == offsets_of(list(range(first)))
    assert (error.errno, error.where.file, error.where.position) == (errno.EIO, str(path), BAD[0])
    reader = SegmentReader(path, policy="salvage")
    assert [b.position for b in reader if b.is_valid] == [ENDS[i] for i in GOOD]
    assert reader.end is not None
    lost = sum(x.end - x.start for x in reader.end.lost)
    assert lost == sum(len(PARTS[i]) for i in range(len(PARTS)) if i not in GOOD)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_headers_by_the_function_of_the_system(log: Path, engine: str) -> None:
    found = scan_batches(log, ["position"], "salvage", engine=engine).read_all()  # type: ignore[arg-type]
    assert {ENDS[i] for i in GOOD} <= set(found[0].to_pylist())
    rows, error = until_error(scan_batches(log, ["position"], engine=engine))  # type: ignore[arg-type]
    assert rows == ENDS[: len(rows)] and (engine == "construct" or len(rows) > 1)
    assert error.errno == errno.EIO and error.where.file == str(log / f"{0:020d}.log")


@pytest.mark.soak
@pytest.mark.slow
def test_the_command_goes_on(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(log), "--policy", "salvage", "--format", "vectors"]) == 1
    text = capsys.readouterr().out
    more = read_table(log, ["offset"], "salvage").num_rows
    assert text.count('"type":"record"') == more > 3 * (len(GOOD) + 1)
    assert '"sha256":null' in text and "Input/output error" in text
