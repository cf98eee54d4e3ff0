"""Each command has the filters that mean something to it, as the table in docs/tool/README.md says, and refuses the others in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_log.cli import COMMANDS, main, parser
from tests.paths import ROOT, SAMPLES
from tests.support.batches import batch

FILTERS = {
    "topic": "orders",
    "partition": "0",
    "offsets": "1:2",
    "time": "0:1",
    "key": "k",
    "header": "h",
    "producer": "1",
    "isolation": "read_committed",
    "control-records": None,
    "deleted-records": None,
    "include": "all",
}


def table() -> dict[str, dict[str, bool]]:
    """What the page says: commands, and which filters each has."""
    text = (ROOT / "docs" / "tool" / "README.md").read_text()
    lines = text.partition("| command | topic, partition |")[2].splitlines()
    columns = [cell.strip() for cell in ("topic, partition |" + lines[0]).strip("|").split("|")]
    found = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        names, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        said = {
            name: not cell.startswith("no")
            for column, cell in zip(columns, cells, strict=True)
            for name in column.split(", ")
        }
        found |= dict.fromkeys(names.split(", "), said)
    return found


def test_the_page_has_every_command() -> None:
    assert table().keys() == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_what_the_page_says(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    has = set(re.findall(r"^  --([a-z-]+)", capsys.readouterr().out, re.M))
    said = table()[command]
    assert {name: name in has for name in FILTERS} == said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command in COMMANDS for name, has in table()[command].items() if not has],
)
def test_others_are_refused_by_name(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = {"export": ["out"], "diff": ["b"], "merge": ["b"]}
    out = (
        ["--out", "x"]
        if command in ("salvage", "merge", "cut", "convert", "reindex", "report")
        else []
    )
    value = FILTERS[name]
    more = [f"--{name}"] if value is None else [f"--{name}", value]
    path = str(SAMPLES / "kafka-4.x" / "codecs-0")
    with pytest.raises(SystemExit) as caught:
        main([command, path, *needed.get(command, []), *out, *more])
    assert caught.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"kafka-log: error: --{name} does not apply to {command}: it")


def test_a_word_that_no_command_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ls", "x", "--nothing"])
    assert capsys.readouterr().err.endswith("error: unrecognized arguments: --nothing\n")


@pytest.mark.parametrize("words", [["--topic", "-name"], ["--topic=-name"]])
def test_topics_that_begin_with_a_dash(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka allows such names."""
    for topic in ("-name", "other"):
        (tmp_path / f"{topic}-0").mkdir()
        (tmp_path / f"{topic}-0" / f"{0:020d}.log").write_bytes(batch(0))
    for command in ("ls", "stat", "keys"):
        assert main([command, str(tmp_path), *words, "--format", "csv"]) == 0
        (row,) = capsys.readouterr().out.splitlines()[1:]
        assert row.startswith("-name,0,")


def test_paths_on_both_sides_of_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(SAMPLES / "kafka-4.x" / f"codecs-{n}") for n in range(3)]
    assert main(["ls", *paths, "--format", "csv"]) == 0
    expected = capsys.readouterr().out
    assert main(["ls", paths[0], "--format", "csv", *paths[1:]]) == 0
    assert capsys.readouterr().out == expected
    with pytest.raises(SystemExit):
        main(["ls", paths[0], "--format", "csv", paths[1], "--depth"])
    assert "unrecognized arguments" in capsys.readouterr().err
