"""Commands on a log whose broker deletes segments after the directory was listed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_log.cli import main
from kafka_log.disk import directory as listing
from kafka_log.disk.files import Found
from kafka_log.disk.files import files_of as list_files
from tests.paths import SAMPLES
from tests.support.check_plants import FIRST, PLAIN, SECOND, TX

COMMANDS = {
    "stat": ["stat"],
    "stat of records": ["stat", "--deep", "--by", "codec"],
    "txn": ["txn"],
    "producers": ["producers"],
    "keys": ["keys"],
    "dump": ["dump", "--output", "jsonl"],
    "dump of batches": ["dump", "--batches"],
    "dump of committed records": ["dump", "--isolation", "read_committed"],
}


@pytest.fixture
def retention(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Rename these files as a broker does before it deletes them, right after their directory was listed."""
    doomed: list[Path] = []

    def list_and_rename(directory: Path) -> Found:
        found = list_files(directory)
        for path in [path for path in doomed if path.parent == directory]:
            path.rename(path.with_name(path.name + ".deleted"))
            doomed.remove(path)
        return found

    monkeypatch.setattr(listing, "files_of", list_and_rename)
    yield doomed
    assert doomed == []


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
