"""Bytes that the system does not give: bad sectors, files that may not be read, that become shorter, and that are gone."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_log import SegmentReader, discover, read_table, scan, scan_batches
from kafka_log.cli import main
from kafka_log.logs.transactions import read_transactions
from kafka_log.read.plan import Split
from kafka_log.segment import positioned_reads
from kafka_log.segment.positioned_reads import (
    SECTOR,
    UnreadableError,
    open_segment,
    read_what_there_is,
    size_of,
)
from kafka_log.segment.reader import damage
from kafka_log.segment.regular_files import open_regular
from tests.paths import ROOT
from tests.shares import examples
from tests.support.batches import batch
from tests.support.record_batches import record_batches
from tests.support.unreadable_files import (
    ENDS,
    ENGINES,
    PARTS,
    SECTORS,
    WHOLE,
    Range,
    bad,
    until_error,
    untouched,
)


def offsets_of(numbers: list[int]) -> list[int]:
    return [i * 10 + d for i in numbers for d in (range(3) if i % 3 else range(1))]


def offsets(path: Path, policy: str, **options: Any) -> list[int]:
    found: list[int] = read_table(path, ["offset"], policy, **options)[0].to_pylist()
    return found


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("logs") / "t-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(WHOLE)
    (directory / f"{600:020d}.log").write_bytes(batch(600))
    return directory


LAST = [600, 601, 602]
sectors = st.lists(
    st.tuples(st.integers(0, SECTORS), st.sampled_from((1, 1, 8))), min_size=1, max_size=4
).map(lambda found: [(n * SECTOR, (n + count) * SECTOR) for n, count in found])


@pytest.mark.soak
@pytest.mark.share(ci=2)
@pytest.mark.parametrize("engine", ENGINES)
@given(sectors, st.booleans(), st.sampled_from((100, 5000, 8 << 20)))
@examples(60)
def test_only_batches_with_bad_sectors_are_lost(
    log: Path, engine: Any, ranges: list[Range], partial: bool, chunk_bytes: int
) -> None:
    path, _last = (segment.path for segment in discover(log)[0].segments)
    good = untouched(ranges)
    before = [i for i in range(len(PARTS)) if set(range(i + 1)) <= set(good)]
    first = min(start for start, _ in ranges)
    with bad(path, ranges, partial):
        options = {"engine": engine, "chunk_bytes": max(chunk_bytes, 100)}
        assert offsets(log, "salvage", **options, on_damage="drop") == offsets_of(good) + LAST
        # Of those that are hit the first records may come.
        assert set(offsets(log, "salvage", **options)) >= {*offsets_of(good), *LAST}
        reader = SegmentReader(path, policy="salvage")
        assert [b.position for b in reader if not damage(b)] == [ENDS[i] for i in good]
        assert reader.end is not None
        lost = [(x.start, x.end) for x in reader.end.lost]
        covered = sorted([*lost, *((ENDS[i], ENDS[i + 1]) for i in good)])
        assert [a for a, _ in covered] == [0, *(b for _, b in covered[:-1])]
        assert covered[-1][1] == len(WHOLE)
        assert all(
            "Input/output error" in x.reason and str(path) in x.reason for x in reader.end.lost
        )
        if len(good) == len(PARTS):
            return
        found, error = until_error(scan(log, ["offset"], engine=engine, chunk_bytes=chunk_bytes))
        assert found == offsets_of(before)
        assert error.errno == errno.EIO and error.where.file == str(path)
        assert error.where.position == max(first, 0)
        parts = record_batches([Split(discover(path)[0].segments[0])], ["offset"], engine=engine)
        assert until_error(parts)[0] == offsets_of(before)
        kept = record_batches(
            discover(log)[0].segments, ["offset"], "salvage", on_damage="drop", engine=engine
        )
        assert [o for b in kept for o in b.column(0).to_pylist()] == offsets_of(good) + LAST


@given(sectors, st.booleans(), st.integers(0, len(WHOLE)), st.integers(0, 9000))
@examples(60)
def test_what_can_be_read_around_bad_sectors(
    log: Path, ranges: list[Range], partial: bool, position: int, n: int
) -> None:
    path = log / f"{0:020d}.log"
    n = min(n, len(WHOLE) - position)
    expected = bytearray(WHOLE)
    for start, end in ranges:
        expected[start:end] = b"\xee" * (min(end, len(WHOLE)) - start)
    with bad(path, ranges, partial), path.open("rb", buffering=0) as file:
        found = read_what_there_is(file, position, n, 0xEE)
    assert found == expected[position : position + n]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_header_that_cannot_be_read(log: Path, engine: Any) -> None:
    """Walks over headers do not touch what they do not need."""
    path = log / f"{0:020d}.log"
    bad_one = ENDS[7] // SECTOR * SECTOR
    ranges = [(bad_one, bad_one + SECTOR)]
    with bad(path, ranges):
        _, error = until_error(scan_batches(path, ["position"], engine=engine))
        assert error.where.position in range(*ranges[0]) and error.where.file == str(path)
        found = scan_batches(path, ["position"], "salvage", engine=engine).read_all()
        assert set(found[0].to_pylist()) >= {ENDS[i] for i in untouched(ranges)}
        segments = discover(log)[0].segments
        with pytest.raises(UnreadableError, match=str(path)):
            read_transactions(segments)
        assert read_transactions(segments, damage_raises=False).aborted == ()


def test_a_disk_that_gives_nothing(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log / f"{0:020d}.log"
    with bad(path, [(0, 1 << 40)]):
        assert offsets(log, "salvage") == LAST
        code = main(["stat", str(log), "--policy", "salvage", "--format", "jsonl"])
        printed = capsys.readouterr()
        row = json.loads(printed.out)
        assert (code, row["lost_bytes"], row["records"]) == (1, len(WHOLE), 3)
        said = f"{path}: bytes 0 to {len(WHOLE)} are lost: Input/output error"
        assert said in row["first_problem"] and said in printed.err
        code = main(["dump", str(log), "--format", "vectors"])
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert code == 1
        assert found[0]["sha256"] is None and found[0]["sizeInBytes"] == len(WHOLE)
        assert (found[1]["stop"], found[1]["exception"]["position"]) == ("error", 0)
        assert [item["offset"] for item in found if item["type"] == "record"] == LAST
        code = main(["dump", str(log), "--policy", "salvage"])
        text = capsys.readouterr().out
        assert code == 1 and f"!! lost: bytes 0 to {len(WHOLE)}" in text and "602  " in text


def test_zeros_that_cannot_be_read_are_no_zeros(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(batch(0) + bytes(1 << 20))
    with bad(path, [(8192, 8704)]):
        with pytest.raises(CodecError, match=str(path)):
            read_table(path)
        assert offsets(path, "salvage") == [0, 1, 2]


# ---------------------------------------------------------------- files that change or are gone


@pytest.fixture
def copy(log: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(log, tmp_path / "t-0"))


CUT = ENDS[31] + 40


def cut(stream: Any, path: Path, size: int) -> Iterator[Any]:
    """A stream whose file becomes shorter after its first item."""
    for number, part in enumerate(stream):
        if number == 0:
            os.truncate(path, size)
        yield part


@pytest.mark.parametrize("size", [0, 5, ENDS[31], CUT])
def test_a_file_that_becomes_shorter(copy: Path, size: int) -> None:
    path = copy / f"{0:020d}.log"
    whole = offsets_of([i for i in range(60) if ENDS[i + 1] <= size])
    stream = scan(copy, ["offset"], chunk_bytes=400, engine="arrow")
    found, error = until_error(cut(stream, path, size))
    assert error.where.file == str(path) and error.errno is None
    assert "the file became shorter while it was read" in str(error)
    assert error.where.position is not None and error.where.position >= size
    assert found and found == offsets_of(list(range(60)))[: len(found)]
    assert len(found) >= len(whole)
    path.write_bytes(WHOLE)
    stream = scan(copy, ["offset"], "salvage", chunk_bytes=400, engine="arrow")
    assert [
        o for part in cut(stream, path, size) for o in part.column(0).to_pylist()
    ] == found + LAST


def test_what_is_gone_of_a_file_is_lost(copy: Path) -> None:
    path = copy / f"{0:020d}.log"
    for policy in ("kafka", "salvage"):
        path.write_bytes(WHOLE)
        reader = SegmentReader(path, policy=policy)
        assert sum(1 for _ in cut(reader, path, CUT)) == 31
        assert reader.end is not None
        if policy == "kafka":
            assert isinstance(reader.end.error, UnreadableError)
            assert reader.end.error.where.position == CUT
        else:
            assert [(x.start, x.end) for x in reader.end.lost] == [(ENDS[31], len(WHOLE))]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_deleted_while_it_is_read_is_read_to_its_end(
    copy: Path, engine: Any
) -> None:
    found = []
    for part in scan(copy, ["offset"], engine=engine, chunk_bytes=400):
        (copy / f"{0:020d}.log").unlink(missing_ok=True)
        found += part.column(0).to_pylist()
    assert found == offsets_of(list(range(60))) + LAST


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_deleted_before_it_is_read(copy: Path, engine: Any) -> None:
    first, last = discover(copy)[0].segments
    both = scan(copy, ["offset"], engine=engine)
    salvaged = scan(copy, ["offset"], "salvage", engine=engine)
    last.path.unlink()
    found, error = until_error(both)
    assert found == offsets_of(list(range(60)))
    assert (error.errno, error.where.file) == (errno.ENOENT, str(last.path))
    assert [o for part in salvaged for o in part.column(0).to_pylist()] == found
    parts = record_batches([first, last], ["offset"], engine=engine)
    assert until_error(parts)[0] == found
    columns = ["offset", "problem"]
    rows = record_batches([last], columns, "salvage", on_damage="keep", engine=engine)
    (row,) = [row for part in rows for row in part.to_pylist()]
    assert row["offset"] is None
    assert row["problem"].startswith(f"bytes 0 to {last.size} are lost: No such file")


@pytest.mark.parametrize("refused", [0, 1])
def test_no_file_stays_open_if_its_size_is_unknown(
    copy: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """The segment, or the file that a cleaner put aside, cannot tell its size."""
    path = copy / f"{0:020d}.log"
    shutil.copy(path, path.with_name(path.name + ".deleted"))
    opened: list[FileIO] = []

    def open_and_note(path: Path) -> FileIO:
        opened.append(open_regular(path))
        return opened[-1]

    def tell_size(file: FileIO) -> int:
        if len(opened) > refused and file is opened[refused]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return size_of(file)

    monkeypatch.setattr(positioned_reads, "open_regular", open_and_note)
    monkeypatch.setattr(positioned_reads, "size_of", tell_size)
    if refused:
        open_segment(path, size=1).close()
    else:
        with pytest.raises(UnreadableError, match=path.name):
            open_segment(path, size=1)
    assert len(opened) == refused + 1 and all(file.closed for file in opened)


def test_a_file_that_was_never_there() -> None:
    for policy in ("strict", "kafka", "salvage"):
        with pytest.raises(FileNotFoundError):
            list(SegmentReader("no-such-file.log", policy=policy))


def test_a_directory_in_the_place_of_a_file(tmp_path: Path) -> None:
    reader = SegmentReader(tmp_path)
    assert list(reader) == []
    assert reader.end is not None and isinstance(reader.end.error, IsADirectoryError | OSError)
    with pytest.raises(OSError, match=str(tmp_path)):
        list(SegmentReader(tmp_path, policy="strict"))


def test_the_error_can_be_sent_to_others(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError) as raised:
        positioned_reads.open_segment(tmp_path / "gone")
    sent = pickle.loads(pickle.dumps(raised.value))
    assert (str(sent), sent.errno, sent.filename) == (
        str(raised.value),
        errno.ENOENT,
        str(tmp_path / "gone"),
    )
    assert isinstance(sent, OSError) and isinstance(sent, CodecError)


# ---------------------------------------------------------------- permissions

FORBIDDEN = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from kafka_log import read_table, scan
from kafka_log.cli import main

broker, uid, place = sys.argv[1:]

def run():
    out = {}
    found = []
    try:
        for part in scan(broker, ["offset"], engine="construct"):
            found += part.column(0).to_pylist()
    except OSError as error:
        out["error"] = [str(error), error.errno]
    out["kafka"] = found
    out["salvage"] = read_table(broker, ["offset"], "salvage", engine="construct")[0].to_pylist()
    read = ["--policy", "salvage", "--engine", "construct"]
    for command, more in (
        (["stat", *read, "--format", "jsonl"], []),
        (["dump"], read),
        (["dump", "--format", "vectors"], read),
        (["ls", "--format", "jsonl"], []),
        (["check", "--engine", "construct", "--format", "jsonl"], []),
        (["keys", "--format", "jsonl"], []),
        (["keys", "--key", "k0", "--format", "jsonl"], []),
        (["producers", "--format", "jsonl"], []),
        (["txn", "--format", "jsonl"], []),
        (["salvage", "--format", "jsonl"], ["--out", f"{place}/{os.getuid()}"]),
    ):
        text = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with redirect_stdout(text), redirect_stderr(io.StringIO()) as said:
            code = main([*command, broker, *more])
        text.flush()
        out[" ".join(command)] = [code, text.buffer.getvalue().decode()]
        out[" ".join(command) + " says"] = said.getvalue()
    return out

run()  # loads all that it needs
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
for name in ("b-0", "c-0/00000000000000000000.log"):
    assert not os.access(Path(broker) / name, os.R_OK)
print(json.dumps(run()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="permissions are those of POSIX")
def test_what_may_not_be_read() -> None:
    """A partition's directory and a segment; run as a user whom permissions bind."""
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        broker = Path(made)
        for name, first in (("a-0", 0), ("b-0", 10), ("c-0", 20), ("d-0", 30)):
            (broker / name).mkdir()
            (broker / name / f"{0:020d}.log").write_bytes(batch(first))
        broker.chmod(0o755)
        forbidden, closed = broker / "c-0" / f"{0:020d}.log", broker / "b-0"
        roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
        forbidden.chmod(0)
        closed.chmod(0)
        command = [sys.executable, "-c", FORBIDDEN, made, "65534", place]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
            capture_output=True,
            text=True,
            check=False,
        )
        closed.chmod(0o755)
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kafka"] == [0, 1, 2]
    assert found["error"] == [f"Permission denied: it cannot be read ({closed})", errno.EACCES]
    assert found["salvage"] == [0, 1, 2, 30, 31, 32]
    code, text = found["stat --policy salvage --engine construct --format jsonl"]
    rows = [json.loads(line) for line in text.splitlines()]
    assert code == 1 and sum(row["lost_bytes"] for row in rows) == len(batch(20))
    problems = [row["first_problem"] for row in rows]
    assert problems[0] is None and problems[1] == found["error"][0] and problems[3] is None
    assert f"are lost: Permission denied: it cannot be read (byte 0 of {forbidden})" in problems[2]
    code, text = found["ls --format jsonl"]
    rows = [json.loads(line) for line in text.splitlines()]
    assert code == 1 and [(r["topic"], r["segments"]) for r in rows] == [
        ("a", 1),
        ("b", 0),
        ("c", 1),
        ("d", 1),
    ]
    code, text = found["check --engine construct --format jsonl"]
    files = [(row["code"], row["file"]) for row in map(json.loads, text.splitlines())]
    assert code == 1 and {("io_error", str(closed)), ("io_error", str(forbidden))} <= {*files}
    code, text = found["dump"]
    assert code == 1 and f"!! {problems[1]}" in text and f"byte 0 of {forbidden}" in text
    code, text = found["dump --format vectors"]
    objects = [json.loads(line) for line in text.splitlines()]
    assert code == 1 and {"error", "file", "end", "batch", "record"} == {o["type"] for o in objects}
    code, text = found["keys --format jsonl"]
    rows = [json.loads(line) for line in text.splitlines()]
    counts = [(row["topic"], row["records"], row["keys"]) for row in rows]
    assert code == 1 and counts == [("a", 3, 3), ("b", 0, 0), ("c", 0, 0), ("d", 3, 3)]
    of_file = f"Permission denied: it cannot be read (byte 0 of {forbidden})"
    of_both = [found["error"][0], of_file]
    assert [row["problem"] for row in rows] == [None, *of_both, None]
    said = "".join(f"kafka-log: {line}\n" for line in of_both)
    assert found["keys --format jsonl says"] == said
    code, text = found["keys --key k0 --format jsonl"]
    assert code == 1 and [json.loads(line)["offset"] for line in text.splitlines()] == [0, 30]
    assert found["keys --key k0 --format jsonl says"] == said
    for verb in ("producers", "txn"):
        assert found[f"{verb} --format jsonl"] == [1, ""]
        closed_one, other = found[f"{verb} --format jsonl says"].splitlines()
        assert closed_one == f"kafka-log: {of_both[0]}" and other.endswith(of_file)
    code, text = found["salvage --format jsonl"]
    lost = {row["file"] for row in map(json.loads, text.splitlines()) if row["what"] == "lost"}
    assert code == 1 and lost == {str(closed), forbidden.name}
