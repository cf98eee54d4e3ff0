"""Commands on a log whose broker deletes segments after the directory was listed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from io import FileIO
from pathlib import Path

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory, discover, read_table
from kafka_log.cli import main
from kafka_log.logs import discovery
from kafka_log.logs.listing import Listing
from kafka_log.logs.listing import list_directory as list_files
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.segment import positioned_reads
from kafka_log.segment.regular_files import open_regular
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.check_plants import FIRST, PLAIN, SECOND, TX
from tests.support.histories import history

COMMANDS = {
    "stat": ["stat"],
    "stat of records": ["stat", "--deep", "--by", "codec"],
    "txn": ["txn"],
    "producers": ["producers"],
    "keys": ["keys"],
    "dump": ["dump", "--format", "jsonl"],
    "dump of batches": ["dump", "--batches"],
    "dump of committed records": ["dump", "--isolation", "read_committed"],
    "dump of offsets": ["dump", "--offsets", "1:"],
    "vectors": ["dump", "--format", "vectors"],
    "largest batches": ["stat", "--largest", "3"],
    "records of a key": ["keys", "--key", "null:"],
}


Change = Callable[[Path], object]
"""What happens to a directory right after it was listed."""


@pytest.fixture
def after_listing(monkeypatch: pytest.MonkeyPatch) -> dict[Path, Change]:
    """Change directories right after they were listed, once."""
    changes: dict[Path, Change] = {}

    def list_and_change(directory: Path) -> Listing:
        found = list_files(directory)
        if (change := changes.pop(directory, None)) is not None:
            change(directory)
        return found

    monkeypatch.setattr(discovery, "list_directory", list_and_change)
    return changes


@pytest.fixture
def retention(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Rename these files as a broker does before it deletes them, right after their directory was listed."""
    doomed: list[Path] = []

    def list_and_rename(directory: Path) -> Listing:
        found = list_files(directory)
        for path in [path for path in doomed if path.parent == directory]:
            path.rename(path.with_name(path.name + ".deleted"))
            doomed.remove(path)
        return found

    monkeypatch.setattr(discovery, "list_directory", list_and_rename)
    yield doomed
    assert doomed == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "engine"),
    [(name, "auto") for name in COMMANDS]
    + [(name, "arrow") for name in COMMANDS if name.startswith(("stat", "dump"))],
)
def test_a_segment_is_read_by_the_name_that_it_has_by_then(
    tmp_path: Path,
    name: str,
    engine: str,
    retention: list[Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for partition in (PLAIN, TX):
        shutil.copytree(SAMPLES / "kafka-4.x" / partition, tmp_path / partition)
    of_engine = [] if engine == "auto" else ["--engine", engine]
    command = [*COMMANDS[name], str(tmp_path), *of_engine]
    expected = main(command), capsys.readouterr()
    retention += sorted((tmp_path / PLAIN).glob(f"{FIRST}.*"))
    retention += sorted((tmp_path / PLAIN).glob(f"{SECOND}.*"))
    retention += sorted((tmp_path / TX).glob(f"{FIRST}.*"))
    assert (main(command), capsys.readouterr()) == expected


def remove(*names: str) -> Change:
    """Return what removes segments with these base offsets and their indexes, without a trace."""

    def change(directory: Path) -> None:
        for name in names:
            found = [*directory.glob(f"{name}.*")]
            assert found
            for path in found:
                path.unlink()

    return change


@pytest.fixture
def partitions(tmp_path: Path) -> Path:
    root = tmp_path / "logs"
    for partition in (PLAIN, TX):
        shutil.copytree(SAMPLES / "kafka-4.x" / partition, root / partition)
    return root


def run(
    command: Sequence[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, list[str]]:
    """Return the exit code, the output and the lines of the standard error."""
    code = main([*command, str(root)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err.splitlines()


@pytest.mark.share(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_retention_removes_is_noted_and_no_error(
    partitions: Path,
    name: str,
    after_listing: dict[Path, Change],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The answer is that of the log as it is by then."""
    after_listing[partitions / PLAIN] = remove(FIRST, SECOND)
    code, out, notes = run(COMMANDS[name], partitions, capsys)
    assert after_listing == {}
    again = run(COMMANDS[name], partitions, capsys)
    removed = [note for note in notes if "the broker removed this segment" in note]
    start = int(min(path.stem for path in (partitions / PLAIN).glob("*.log")))
    for base in (FIRST, SECOND):
        (note,) = [note for note in removed if f"{base}.log" in note]
        assert f"its offsets, {int(base)} to at most {start - 1}, are below {start}" in note
        assert "no record of the log is missing" in note
    assert len(removed) == 2
    assert [note for note in notes if note not in removed] == again[2]
    assert code == again[0] == 0
    if name not in ("stat", "dump of batches", "vectors"):  # they name, or count, the files
        assert out == again[1]


@pytest.mark.share(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_segment_that_is_gone_from_the_middle_is_an_error(
    partitions: Path,
    name: str,
    after_listing: dict[Path, Change],
    capsys: pytest.CaptureFixture[str],
) -> None:
    after_listing[partitions / PLAIN] = remove(SECOND)
    code, out, notes = run(COMMANDS[name], partitions, capsys)
    assert after_listing == {} and code == 1
    assert f"{SECOND}.log" in out + "\n".join(notes)
    assert not [note for note in notes if "the broker removed" in note]


@pytest.mark.share(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_topic_that_is_deleted_is_read_by_its_new_name(
    partitions: Path,
    name: str,
    after_listing: dict[Path, Change],
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = run(COMMANDS[name], partitions, capsys)
    renamed = partitions / f"{PLAIN}.{'0a' * 16}-delete"
    after_listing[partitions / PLAIN] = lambda directory: directory.rename(renamed)
    assert run(COMMANDS[name], partitions, capsys) == expected
    assert renamed.is_dir()


@pytest.mark.share(6)
@pytest.mark.parametrize("name", COMMANDS)
def test_segments_that_a_cleaner_replaces_are_read_as_they_were_listed(
    partitions: Path,
    name: str,
    after_listing: dict[Path, Change],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first one gets the records of the second one: without the names by which both go on, these would come twice."""
    expected = run(COMMANDS[name], partitions, capsys)

    def merge(directory: Path) -> None:
        first, second = (directory / f"{base}.log" for base in (FIRST, SECOND))
        merged = first.read_bytes() + second.read_bytes()
        for path in (first, second):
            path.rename(path.with_name(path.name + ".deleted"))
        first.write_bytes(merged)

    after_listing[partitions / PLAIN] = merge
    assert run(COMMANDS[name], partitions, capsys) == expected
    assert after_listing == {}


def test_the_api_warns(partitions: Path, after_listing: dict[Path, Change]) -> None:
    directory = partitions / PLAIN
    after_listing[directory] = remove(FIRST)
    with pytest.warns(UserWarning, match="the broker removed this segment") as caught:
        found = read_table(directory, ["offset"])
    assert len(caught) == 1
    assert found.equals(read_table(directory, ["offset"]))
    after_listing[directory] = remove(SECOND)
    with pytest.warns(UserWarning, match="the broker removed this segment"):
        answer = LogDirectory(directory).stat()
    assert answer["problems"].to_pylist() == [0]


@pytest.fixture
def on_open(monkeypatch: pytest.MonkeyPatch) -> dict[Path, Change]:
    """Change the directory of these segments when they are opened, once each."""
    changes: dict[Path, Change] = {}

    def change_and_open(path: Path) -> FileIO:
        if (change := changes.pop(path, None)) is not None:
            change(path.parent)
        return open_regular(path)

    monkeypatch.setattr(positioned_reads, "open_regular", change_and_open)
    return changes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:kafka-log.*the broker removed this segment")
@pytest.mark.parametrize("command", ["txn", "producers", "dump --isolation read_committed"])
def test_what_removed_segments_began_does_not_go_on(
    tmp_path: Path,
    command: str,
    on_open: dict[Path, Change],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A transaction that was aborted in a segment that is gone is not taken for an open or a committed one."""
    tried = 0
    for seed in draw_seeds(40):
        for k in (1, 2):
            made = history(tmp_path / f"{seed}-{k}" / "t-0", seed)
            segments = sorted(made.directory.glob("*.log"))
            if len(segments) <= k + 1:
                continue
            tried += 1
            on_open[segments[k]] = remove(*(path.stem for path in segments[: k + 1]))
            arguments = [*command.split(), str(made.directory)]
            code, out = main(arguments), capsys.readouterr().out
            assert not on_open
            assert (code, out) == (main(arguments), capsys.readouterr().out), (seed, k)
            assert code == 0
    assert tried > 20


def test_local_segments_of_a_tiered_log_may_be_in_the_tier(tmp_path: Path) -> None:
    """Retention of local segments removes what the tier has: it was not looked for there."""
    root = tmp_path / "tiered"
    shutil.copytree(SAMPLES / "kafka-4.x" / PLAIN, root / "local" / PLAIN)
    metadata = (root / "local" / PLAIN / "partition.metadata").read_text()
    tier = root / "tier" / f"{PLAIN}-{metadata.rpartition('topic_id: ')[2].strip()}"
    tier.mkdir(parents=True)
    first = root / "local" / PLAIN / f"{FIRST}.log"
    shutil.copyfile(first, tier / f"{FIRST}-{'A' * 22}.log")
    found = merge_tiered_segments(discover([root / "local", root / "tier"], "remote"))
    remove(FIRST)(root / "local" / PLAIN)
    with pytest.raises(CodecError, match="No such file"):
        read_table(found, ["offset"])
