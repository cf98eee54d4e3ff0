"""What a walk over directories passes over: what has the name of a segment and is no file, and what has segments and no partition's name."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory, read_table, scan
from kafka_log.cli import main
from kafka_log.logs import listing
from kafka_log.logs.discovery import survey
from kafka_log.logs.names import parse_partition_name
from kafka_log.logs.partitions import DirectoryError
from kafka_log.segment.model import Lost
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.regular_files import kind_of, open_regular
from tests.paths import SAMPLES
from tests.support.batches import batch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kinds of files of POSIX")

FIRST = f"{0:020d}.log"
ODD = f"{10:020d}.log"
READING = [
    *("ls", "stat", "check", "dump", "txn", "producers", "keys", "groups", "metadata"),
    "dump --batches",
    "dump --format vectors",
    "keys --key k0",
]
WRITING = ["export", "salvage", "cut --offsets 0:2", "reindex", "convert --codec zstd"]


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    found = tmp_path / "logs"
    for name in ("good-0", "odd-0"):
        (found / name).mkdir(parents=True)
        (found / name / FIRST).write_bytes(batch(0))
    for name in ("__consumer_offsets-0", "__cluster_metadata-0"):
        shutil.copytree(SAMPLES / "kafka-4.x" / name, found / name)
    return found


def _socket(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # a path of more than some 100 bytes cannot be bound
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)


def _device(path: Path) -> None:
    if os.getuid():
        path.symlink_to("/dev/null")
    else:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))


KINDS: dict[str, Callable[[Path], None]] = {
    "a dangling link": lambda path: path.symlink_to("/nowhere/at/all"),
    "a link that leads nowhere: " + os.strerror(errno.ELOOP): lambda path: path.symlink_to(path),
    "a FIFO": lambda path: os.mkfifo(path),
    "a socket": _socket,
    "a directory": lambda path: path.mkdir(),
    "a device": _device,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_a_segment_that_cannot_be_read(broker: Path, kind: str) -> None:
    path = broker / "odd-0" / ODD
    KINDS[kind](path)
    assert kind_of(path) == kind
    found = survey(broker)
    assert found.skipped_paths == []
    (odd,) = (p for p in found.partitions if p.topic == "odd")
    assert [(s.path.name, s.problem) for s in odd.segments] == [
        (FIRST, None),
        (ODD, f"this is {kind}"),
    ]
    with pytest.raises(UnreadableError) as raised:
        read_table(broker / "odd-0", ["offset"])
    assert raised.value.filename == str(path)
    lost: list[tuple[Path, Lost]] = []
    kept = scan(
        broker, ["offset"], topics="odd", policy="salvage", on_lost=lambda *one: lost.append(one)
    )
    assert kept.read_all()["offset"].to_pylist() == [0, 1, 2]
    assert [where for where, _ in lost] == [path]
    with pytest.raises(
        DirectoryError, match="this is " if kind != "a directory" else "no segments"
    ):
        survey(path)
    rows = LogDirectory(broker, topics="odd").check().to_pylist()
    assert [(r["severity"], Path(r["file"])) for r in rows if r["code"] == "no_segment"] == [
        ("error", path)
    ]
    assert all(kind in r["meaning"] for r in rows if r["code"] == "no_segment")


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_counts_bytes_of_it(broker: Path, kind: str, tmp_path: Path) -> None:
    log = broker / "odd-0"
    size = (log / FIRST).stat().st_size
    KINDS[kind](log / ODD)
    (odd,) = (p for p in survey(broker).partitions if p.topic == "odd")
    assert [segment.is_empty for segment in odd.segments] == [False, False]
    assert odd.size == size
    directory = LogDirectory(broker, topics="odd")
    (row,) = directory.stat().to_pylist()
    assert (row["bytes"], row["trailing_bytes"], row["segments"]) == (size, 0, 2)
    report = directory.salvage(tmp_path / "out").to_pylist()
    found = {(row["file"], row["what"], row["byte"], row["bytes"]) for row in report}
    assert found == {(FIRST, "kept", 0, size), (ODD, "kept", None, None), (ODD, "lost", None, None)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["overview", "txn", "diff", "merge", "report", "stat", "reindex"])
def test_no_text_names_bytes_of_it(
    broker: Path, kind: str, verb: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = broker / "odd-0"
    KINDS[kind](log / ODD)
    more = [str(log)] if verb in ("diff", "merge") else []
    more += ["--out", str(tmp_path / "out")] if verb in ("merge", "report", "reindex") else []
    assert main([verb, str(log), *more]) == 1
    told = " ".join(capfd.readouterr())
    if verb == "report":
        told = (tmp_path / "out").read_text("utf-8")
    assert ODD in told
    assert not re.search(r"bytes 0 to [01]\b|\b[01] bytes?\b", told), told


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_no_segment_that_retention_removed(broker: Path, kind: str) -> None:
    """The log goes on after it, as after segments that retention deletes."""
    (broker / "odd-0" / FIRST).unlink()
    KINDS[kind](broker / "odd-0" / FIRST)
    (broker / "odd-0" / ODD).write_bytes(batch(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnreadableError, match=FIRST):
            read_table(broker / "odd-0", ["offset"])
        with pytest.raises(CodecError, match=FIRST):
            LogDirectory(broker, topics="odd").producers()


def test_a_segment_in_a_state_that_is_not_read(broker: Path) -> None:
    """A broker deletes it soon; whoever asks for it gets the error."""
    path = broker / "odd-0" / f"{ODD}.deleted"
    path.symlink_to("gone")
    assert read_table(broker / "odd-0", ["offset"]).num_rows == 3
    with pytest.raises(UnreadableError, match="dangling link"):
        read_table(broker / "odd-0", ["offset"], include="deleted")


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", [*READING, *WRITING, "diff", "sql", "dump --policy salvage"])
def test_every_verb_fails_and_names_it(
    tmp_path: Path, verb: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The only answer of each verb that comes from the segment."""
    logs = tmp_path / "logs"
    names = {"groups": "__consumer_offsets-0", "metadata": "__cluster_metadata-0"}
    command, *more = verb.split()
    place = logs / names.get(command, "odd-0")
    place.mkdir(parents=True)
    path = place / FIRST
    path.symlink_to("gone")
    if verb in WRITING:
        more += ["--out", str(tmp_path / "out")]
    if command == "sql":
        more += ["select * from records"]
    if command == "diff":
        more += [str(shutil.copytree(logs, tmp_path / "other", symlinks=True))]
    assert main([command, str(logs), *more]) == 1
    out, err = capfdbinary.readouterr()
    assert b"a dangling link" in out + err
    assert FIRST.encode() in out + err


def test_a_directory_that_lists_names_alone(broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the permission to search a directory, the system lists names and nothing else."""
    refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    class Entry:
        def __init__(self, name: str) -> None:
            self.name = name

        def is_file(self) -> bool:
            return True

        def is_dir(self) -> bool:
            return False

        def stat(self) -> os.stat_result:
            raise refused

    monkeypatch.setattr(listing, "_open_listing", lambda _: nullcontext([Entry(FIRST)]))
    (found,) = listing.list_segment_files(broker / "odd-0")
    assert (found.base_offset, found.problem) == (0, "Permission denied")


def test_what_is_a_file_is_not(broker: Path) -> None:
    """A link to a segment is read, and nothing is said of a healthy directory."""
    (broker / "odd-0" / ODD).symlink_to(broker / "good-0" / FIRST)
    assert kind_of(broker / "odd-0" / ODD) is None
    assert survey(broker).skipped_paths == []
    assert survey(SAMPLES / "kafka-4.x").skipped_paths == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan(broker / "odd-0").close()


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_every_verb_says_it_in_one_line(
    broker: Path, tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(broker / "odd-0" / "x.log")
    (broker / "lost+found").mkdir()
    (broker / "lost+found" / FIRST).write_bytes(batch(0))
    command, *more = verb.split()
    if verb in WRITING:
        more += ["--out", str(tmp_path / "out")]
    main([command, str(broker), *more])
    (said,) = [
        line for line in capsys.readouterr().err.splitlines() if "kafka-log: skipped" in line
    ]
    assert f"{broker / 'odd-0' / 'x.log'} (a FIFO)" in said
    assert f"{broker / 'lost+found'} (it has segments, but its name is not topic-partition)" in said
    assert said.endswith("to read a directory or file with another name, pass its path")


def test_diff_says_it_of_both_sides(broker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    other = tmp_path / "other"
    shutil.copytree(broker, other)
    for side in (broker, other):
        os.mkfifo(side / "odd-0" / "x.log")
    assert main(["diff", str(broker), str(other)]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "kafka-log: skipped" in line]
    assert [str(side) in line for side, line in zip((broker, other), said, strict=True)] == [
        True,
        True,
    ]


NAMES = [
    ("d-99999999999", "segments"),
    ("d-2147483648", "segments"),
    ("-5", "segments"),
    ("orders-", "segments"),
    ("orders", "segments"),
    (f"orders-99999999999.{'0' * 32}-delete", "segments"),
    ("orders-\N{ARABIC-INDIC DIGIT THREE}", "segments"),
    ("backup", "partitions"),
]


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize(("name", "has"), NAMES)
@pytest.mark.parametrize("verb", [["dump"], ["keys"], ["groups"], ["stat"]])
def test_a_directory_whose_name_is_no_partitions(
    broker: Path, name: str, has: str, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    place = broker / name
    inner = place / "t-0" if has == "partitions" else place
    inner.mkdir(parents=True)
    (inner / FIRST).write_bytes(batch(0))
    assert parse_partition_name(place) is None
    assert main([*verb, str(broker)]) == 0
    shown = capsys.readouterr()
    assert "0  " in shown.out
    assert f"{place} (it has {has}, but its name is not topic-partition)" in shown.err
    # Its own path reads it.
    assert main(["keys", str(place)]) == 0
    assert "kafka-log: skipped" not in capsys.readouterr().err
    assert main(["keys", str(broker), str(place)]) == 0
    assert "kafka-log: skipped" not in capsys.readouterr().err


@pytest.mark.share(5)
@pytest.mark.parametrize("name", ["orders--1", "a b-1", f"{'x' * 247}-1", f"{'ü' * 120}-1"])
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_odd_names_that_are_partitions(
    tmp_path: Path, name: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _odd_name(tmp_path, os.fsencode(name), verb, capsys)


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux")
@pytest.mark.share(3)
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_names_of_odd_bytes(tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    _odd_name(tmp_path, b"odd\xff\x1b\n-1", verb, capsys)


def _odd_name(tmp_path: Path, name: bytes, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    for directory in (b"good-0", name):
        place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/logs/" + directory))
        place.mkdir(parents=True)
        (place / FIRST).write_bytes(batch(0))
    command, *more = verb.split()
    if verb in WRITING:
        more += ["--out", str(tmp_path / "out")]
    code = main([command, str(tmp_path / "logs"), *more])
    shown = capsys.readouterr()
    if verb in ("groups", "metadata"):
        assert code == 2 and "there is no topic" in shown.err and "good" in shown.err
    else:
        assert (code, shown.err if verb not in ("export",) else "") == (0, "")
    assert "\x1b" not in shown.err and "\x1b" not in shown.out
    if verb in WRITING:
        there = [p for p in (tmp_path / "out").iterdir() if not p.name.startswith("kafka-log-")]
        assert len(there) == 2
        # The same again finds all of it.
        assert main([command, str(tmp_path / "logs"), *more]) == 0
        assert sorted(there) == sorted(
            p for p in (tmp_path / "out").iterdir() if not p.name.startswith("kafka-log-")
        )


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", [*READING, *WRITING])
def test_an_offset_that_cannot_be(
    broker: Path, tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a partition that no answer of groups and metadata comes from."""
    beyond = broker / "odd-0" / f"{'9' * 20}.log"
    beyond.write_bytes(batch(0))
    command, *more = verb.split()
    if verb in WRITING:
        more += ["--out", str(tmp_path / "out")]
    code = main([command, str(broker), *more])
    shown = capsys.readouterr()
    if verb == "metadata":
        assert code == 0
        return
    assert code == 1
    assert str(beyond) in shown.err + shown.out


FIFOS = [
    *("leader-epoch-checkpoint", "partition.metadata", f"{0:020d}.index"),
    *(f"{0:020d}.timeindex", f"{0:020d}.txnindex", f"{0:020d}.snapshot", f"{5:020d}.snapshot"),
    *("../meta.properties", "../log-start-offset-checkpoint", "../replication-offset-checkpoint"),
]


@pytest.mark.slow
@pytest.mark.share(ci=9)
@pytest.mark.parametrize("verb", [*READING, "dump --offsets 1:2", "dump --time 0:", *WRITING])
def test_fifos_in_the_place_of_other_files(broker: Path, tmp_path: Path, verb: str) -> None:
    """Nobody waits for what nobody writes."""
    for name in FIFOS:
        os.mkfifo(broker / "odd-0" / name)
    command, *more = verb.split()
    if verb in WRITING:
        more += ["--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "kafka_log", command, str(broker), *more],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if command == "check" else 0), done.stderr


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / FIRST
    os.mkfifo(path)
    yield path


def test_a_fifo_is_not_waited_for(fifo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="this is a FIFO"):
        open_regular(fifo)
    for command in (["dump"], ["hexdump"], ["dump", "--batches"], ["ls"]):
        assert main([*command, str(fifo)]) == 2
        said = capsys.readouterr().err
        assert "this is a FIFO" in said and str(fifo) in said


def test_links_that_have_the_name_of_a_partition(broker: Path) -> None:
    (broker / "gone-3").symlink_to("/nowhere/at/all")
    (broker / "round-0").symlink_to("round-0")
    found = survey(broker, unreadable_raises=False)
    assert found.skipped_paths == []
    reasons = {p.key: p.error.reason for p in found.partitions if p.error is not None}
    assert reasons == {
        ("gone", 3): "this is a dangling link: it cannot be read",
        ("round", 0): f"{os.strerror(errno.ELOOP)}: it cannot be read",
    }
    with pytest.raises(OSError, match="gone-3") as raised:
        survey(broker)
    assert not isinstance(raised.value, FileNotFoundError)
    assert main(["ls", str(broker)]) == 1


def test_where_there_is_nothing_else_the_error_says_it(tmp_path: Path) -> None:
    (tmp_path / "d-99999999999").mkdir()
    (tmp_path / "d-99999999999" / FIRST).write_bytes(batch(0))
    with pytest.raises(
        DirectoryError, match=r"d-99999999999: it has segments, but its name is not"
    ):
        survey(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["5.log", "0.log", f"{5:021d}.log", "copy.log", ".log"])
@pytest.mark.parametrize("is_alone", [False, True])
def test_logs_by_other_names(
    broker: Path, tmp_path: Path, name: str, is_alone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker opens the file of 20 digits in its place, or does not start."""
    odd = broker / "odd-0"
    (odd / name).write_bytes(batch(5))
    if is_alone:
        (odd / FIRST).unlink()
    (found,) = (p for p in survey(broker, unreadable_raises=False).partitions if p.topic == "odd")
    assert found.error is not None
    assert (found.error.filename, len(found.segments)) == (str(odd / name), not is_alone)
    with pytest.raises(UnreadableError, match="20 digits"):
        survey(odd)
    for verb in (
        ["dump"],
        ["ls"],
        ["stat"],
        ["check"],
        ["salvage", "--out", str(tmp_path / "out")],
    ):
        assert main([verb[0], str(odd), *verb[1:]]) == 1
        shown = capsys.readouterr()
        assert name in shown.out + shown.err
    written = [path.stat().st_size for path in (tmp_path / "out").glob("odd-0/*.log")]
    assert written == ([] if is_alone else [len(batch(0))])
    (row,) = (r for r in LogDirectory(odd).check().to_pylist() if r["code"] == "segment_name")
    opened = name.startswith(("5", "0"))
    assert Path(row["file"]) == odd / name
    assert (f"{int(name[:-4]):020d}.log" if opened else "No broker starts") in row["meaning"]
    # Its own path reads it.
    assert read_table(odd / name, ["offset"])["offset"].to_pylist() == [5, 6, 7]
