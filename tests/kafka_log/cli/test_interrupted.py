"""Ctrl-C: every verb says what it has done, in one line, and exits with 2."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.commands import LOG_COMMANDS

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="asks /proc what is read"
)

PARTITIONS, BEGUN = 400, 5
READ = r"; read (?P<read>[\d.]+ (bytes|[kMG]B)) of (?P<all>[\d.]+ [kMG]B) of the segments"
NOTHING = "nothing was printed"
WRITTEN = rf"(?P<done>\d+) of {PARTITIONS} partitions are complete in \S+; run the same command again to continue{READ}"

SAYS = {
    "stat": ([], NOTHING + READ),
    "check": ([], NOTHING + READ),
    "diff": (["OTHER"], NOTHING + READ),
    "dump": (["--format", "jsonl"], rf"at least (?P<done>[\d,]+) records are printed{READ}"),
    "txn": ([], NOTHING + READ),
    "producers": ([], NOTHING + READ),
    "keys": ([], NOTHING + READ),
    "schemas": ([], NOTHING + READ),
    "sql": (
        ["select sum(octet_length(value)) from records"],
        "the output above is incomplete",
    ),
    "export": (
        ["--out", "OUT", "--format", "jsonl"],
        rf"(?P<done>\d+) of {PARTITIONS} files are complete, with [\d,]+ rows; run the same command again to continue",
    ),
    "salvage": (["--out", "OUT"], WRITTEN),
    "merge": (["OTHER", "--out", "OUT"], WRITTEN),
    "cut": (["--out", "OUT", "--offsets", "0:"], WRITTEN),
    "reindex": (["--out", "OUT"], WRITTEN),
    "convert": (["--out", "OUT", "--codec", "zstd"], WRITTEN),
    "report": (["--out", "OUT"], "no page was written" + READ),
}
"""What a verb takes, and what it says."""
SHORT = {"overview", "ls", "hexdump", "coordinator"}
"""Verbs that read no log from its beginning to its end."""
OF_OWN_TOPICS = {"groups": "__consumer_offsets", "metadata": "__cluster_metadata"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many partitions with one and the same segment."""
    root = tmp_path_factory.mktemp("long")
    first = root / "segment"
    first.write_bytes(b"".join(batch(i * 3) for i in range(5_000)))
    for name in ("a", "b"):
        for i in range(PARTITIONS):
            directory = root / name / f"t-{i:03d}"
            directory.mkdir(parents=True)
            os.link(first, directory / f"{0:020d}.log")
    return root / "a"


def is_reading(process: subprocess.Popen[bytes], part: re.Pattern[str]) -> bool:
    """Whether a process has a file open whose path has a match."""
    try:
        links = list(Path(f"/proc/{process.pid}/fd").iterdir())
    except OSError:
        return False
    for link in links:
        try:
            if part.search(str(link.readlink())):
                return True
        except OSError:
            continue
    return False


def interrupted(arguments: Sequence[str], part: str, out: Path) -> tuple[int, str]:
    """Exit code and error output of a command that gets SIGINT once it has a file open that ``part`` matches."""
    command = [sys.executable, "-m", "kafka_log", *arguments]
    path = os.pathsep.join(p for p in sys.path if p)
    with (
        out.open("wb") as file,
        subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
        ) as process,
    ):
        until = time.monotonic() + 120
        while process.poll() is None and not is_reading(process, re.compile(part)):
            assert time.monotonic() < until, "it never read there"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    return process.returncode, errors.decode()


@pytest.mark.share(ci=18)
@pytest.mark.slow
@pytest.mark.parametrize("verb", SAYS)
def test_a_verb_says_what_it_has_done(verb: str, broker: Path, tmp_path: Path) -> None:
    more, says = SAYS[verb]
    places = {"OUT": str(tmp_path / "out"), "OTHER": str(broker.parent / "b")}
    arguments = [verb, str(broker), *(places.get(word, word) for word in more)]
    printed = tmp_path / "printed"
    code, errors = interrupted(arguments, rf"/t-{BEGUN:03d}/|/t-\d*[1-9]\d/", printed)
    *before, last = errors.splitlines()
    assert verb == "export" or not before  # that names each file
    found = re.fullmatch(f"kafka-log: interrupted: {says}", last)
    assert found is not None, errors
    assert code == 2
    groups = found.groupdict()
    if "read" in groups:
        assert groups["read"] not in ("0 bytes", groups["all"])
    if verb == "dump":
        whole = [line for line in printed.read_bytes().split(b"\n") if line.endswith(b"}")]
        assert int(groups["done"].replace(",", "")) <= len(whole)
        assert json.loads(whole[0])["offset"] == 0
    elif "done" in groups:
        made = [p for p in (tmp_path / "out").iterdir() if re.fullmatch(r"t-\d+(\.jsonl)?", p.name)]
        assert len(made) == int(groups["done"]) > 0
    else:
        assert printed.read_bytes() == b""


@pytest.mark.slow
@pytest.mark.parametrize("verb", OF_OWN_TOPICS)
def test_what_reads_a_topic_of_kafkas_own(verb: str, tmp_path: Path) -> None:
    (source,) = list((SAMPLES / "kafka-4.x").glob(f"{OF_OWN_TOPICS[verb]}-*/{0:020d}.log"))[:1]
    long = tmp_path / source.parent.name
    long.mkdir()
    data = source.read_bytes()
    (long / source.name).write_bytes(data * (20_000_000 // len(data)))
    code, errors = interrupted([verb, str(tmp_path)], r"\.log$", tmp_path / "printed")
    assert (code, errors) == (2, "kafka-log: interrupted: nothing was printed\n")


def test_every_verb_is_here() -> None:
    assert {*SAYS, *SHORT, *OF_OWN_TOPICS} == {*LOG_COMMANDS}


@pytest.mark.parametrize("verb", sorted(SHORT - {"coordinator"}))
def test_short_ones(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """These are over before a hand is at the keys: the signal comes when they first look at a file."""
    path = SAMPLES / "kafka-4.x" / "codecs-1"
    is_dir = Path.is_dir

    def look(path: Path) -> bool:
        signal.raise_signal(signal.SIGINT)
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", look)
    assert main([verb, str(path / f"{0:020d}.log" if verb == "hexdump" else path)]) == 2
    assert capsys.readouterr().err.startswith("kafka-log: interrupted: ")


def test_export_before_its_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    path = str(SAMPLES / "kafka-4.x" / "codecs-1")
    assert main(["export", path, "--out", str(tmp_path / "out")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(
        r"kafka-log: interrupted: (0 of 1 files are complete.*|no file is complete yet.*)", last
    )
