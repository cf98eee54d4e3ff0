"""Pages whose commands are shown with their output, and whose Python runs."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafka_log import SegmentReader
from kafka_log.cli import COMMANDS
from tests import console_pages
from tests.paths import ROOT, SAMPLES

TOOL = ROOT / "docs" / "tool"
BROKER = SAMPLES / "kafka-4.x"
ONLY_BY_PROCESSES = (*console_pages.OF_SPARK, console_pages.VALUES)
"""Spark wants a process of its own. Each command of the other page loads all schemas."""


def marks_of(page: Path, *, processes: bool) -> list[pytest.MarkDecorator]:
    """Return the marks of a page: CI runs an eighth of those by processes that run in this process too.

    Pages that run only by processes are left to the soak: what they show has tests of its own.
    """
    if not processes:
        return [pytest.mark.share(16)]
    if page in ONLY_BY_PROCESSES:
        return [pytest.mark.soak]
    return [pytest.mark.slow, pytest.mark.share(ci=8)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="commands are run by bash")
@pytest.mark.parametrize(
    ("page", "processes"),
    [
        pytest.param(page, processes, id=f"{page.stem}{'-processes' * processes}", marks=marks)
        for page in console_pages.PAGES
        for processes in ((True,) if page in ONLY_BY_PROCESSES else (False, True))
        for marks in [marks_of(page, processes=processes)]
    ],
)
def test_what_the_commands_print(page: Path, processes: bool) -> None:
    assert page.read_text(encoding="utf-8") == console_pages.current(page, processes=processes)


@pytest.mark.slow
@pytest.mark.share(ci=3)
@pytest.mark.skipif(shutil.which("bash") is None, reason="commands are run by bash")
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in (console_pages.TASKS, *console_pages.HOW_TO)
        if page not in console_pages.OF_SPARK
    ],
    ids=lambda page: page.stem,
)
def test_no_answer_depends_on_the_width(page: Path) -> None:
    """Lines may break elsewhere, and less is cut off: each word of the page is printed without COLUMNS too."""
    words = {word for word in page.read_text(encoding="utf-8").split() if "…" not in word}
    unlimited = console_pages.current(page, width=None)
    assert unlimited.count("…") <= page.read_text(encoding="utf-8").count("…")
    assert words - {*unlimited.split()} == set()


WITH_PYTHON = [
    page
    for page in (*console_pages.TOOL, *console_pages.HOW_TO)
    if "```python\n" in page.read_text(encoding="utf-8") and page not in console_pages.OF_SPARK
]


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    assert found
    for code in found:
        if not re.match(r"# \w+\.py\n", code):  # a program that the commands of the page run
            exec(compile(code, page.name, "exec"), {})


def test_every_command_has_a_page_with_python() -> None:
    pages = {page.stem for page in WITH_PYTHON if page.parent == TOOL}
    assert pages == set(COMMANDS)


def test_the_table_of_commands() -> None:
    """It has all commands in the order of the help, with what the help says of them."""
    text = (TOOL / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+?) \|", text, re.M)
    helps = [import_module(COMMANDS[name]).HELP for name in COMMANDS]
    assert rows == [(name, f"{name}.md", line) for name, line in zip(COMMANDS, helps, strict=True)]


def test_every_how_to_is_in_the_table() -> None:
    text = (TOOL / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./how-to/(.+?)\)", text)
    assert set(linked) == {page.name for page in console_pages.HOW_TO}


def test_a_command_that_goes_on_in_the_next_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "```console\n$ printf '%s\\n' a \\\n    b \\\n    | tr a-z A-Z\n{}$ echo c\n{}```\n"
    page.write_text(block.format("old\n", ""), encoding="utf-8")
    assert console_pages.current(page) == block.format("A\nB\n", "c\n")


# ---------------------------------------------------------------- numbers, held against the files and what Kafka found in them


def tables_of(page: str) -> list[dict[str, str]]:
    """Return the rows of all text tables that begin with a partition or a codec, by their columns."""
    rows: list[dict[str, str]] = []
    heads: list[str] | None = None
    for line in (TOOL / page).read_text(encoding="utf-8").splitlines():
        cells = re.split(r" {2,}", line.strip())
        if cells[0] in ("topic", "codec"):
            heads = cells
        elif heads is None or len(cells) != len(heads):
            heads = None
        else:
            rows.append(dict(zip(heads, cells, strict=True)))
    return rows


def facts_of(broker: str) -> dict[str, Any]:
    """Return what Kafka's own reader and consumer found in each partition of the samples."""
    found = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
    partitions: dict[str, Any] = found[broker]["partitions"]
    return partitions


def test_the_page_of_ls_has_the_sizes_of_files() -> None:
    rows = [row for row in tables_of("ls.md") if "directory" in row]
    assert len(rows) == 6
    for row in rows:
        assert row["directory"] == f"samples/kafka-2.8/{row['topic']}-{row['partition']}"
        logs = sorted((ROOT / row["directory"]).glob("*.log"))
        assert int(row["segments"]) == len(logs)
        assert int(row["bytes"]) == sum(path.stat().st_size for path in logs)
        assert int(row["base_offset"]) == int(logs[0].stem)


def test_the_page_of_stat_has_the_numbers_of_kafka() -> None:
    brokers = {"v1": "kafka-2.8", "mixed": "kafka-2.8", "transactions": "kafka-4.x"}
    rows = [row for row in tables_of("stat.md") if row.get("topic") in brokers and "bytes" in row]
    rows = [row for row in rows if "offsets" in row]
    assert {row["topic"] for row in rows} == brokers.keys()
    for row in rows:
        broker, name = brokers[row["topic"]], f"{row['topic']}-{row['partition']}"
        fact = facts_of(broker)[name]
        files = (SAMPLES / broker / name).glob("*.log")
        assert int(row["bytes"]) == sum(path.stat().st_size for path in files)
        assert int(row["batches"]) == fact["on_disk"]["batches"]
        assert int(row["records"]) == fact["on_disk"]["records"]
        assert int(row["control_records"]) == sum(fact["on_disk"]["control_records"].values())
        read = fact["read_uncommitted"]
        assert row["offsets"] == f"{read['start_offset']}..{read['end_offset'] - 1}"


def test_the_page_of_stat_has_the_records_of_each_codec() -> None:
    rows = {
        row["codec"]: (int(row["batches"]), int(row["records"]), int(row["control_records"]))
        for row in tables_of("stat.md")
        if "codec" in row and "control_records" in row
    }
    facts = [fact["on_disk"] for fact in facts_of("kafka-4.x").values()]
    records: Counter[str] = Counter()
    for fact in facts:
        records.update(fact["records_by_codec"])
    control = sum(sum(fact["control_records"].values()) for fact in facts)
    total = rows.pop("total")
    # Batches below the log start offset are on the disk, and are not counted.
    (start,) = re.findall(r"trimmed 0 (\d+)", (BROKER / "log-start-offset-checkpoint").read_text())
    (log,) = (BROKER / "trimmed-0").glob("*.log")
    deleted = [batch for batch in SegmentReader(log) if batch.last_offset < int(start)]
    assert deleted
    for batch in deleted:
        records[str(batch.compression)] -= len(batch.records)
    assert {codec: row[1] for codec, row in rows.items()} == dict(records)
    batches = sum(fact["batches"] for fact in facts) - len(deleted)
    assert total == (batches, records.total(), control)
    assert total == tuple(map(sum, zip(*rows.values(), strict=True)))
