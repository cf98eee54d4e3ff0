"""The page of ``kafka-log report``: it holds or counts what the other commands answer, and nothing in it is taken for HTML."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shlex
import shutil
import time
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect.check.text import describe_place
from kafka_log.inspect.report.activity_sections import split_at_gaps
from kafka_log.inspect.report.contents import Contents, choose_period, find_quantile, gather
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.report.page import make_page
from kafka_log.inspect.report.verdict import judge, summarize_counts
from kafka_log.logs.names import LOG_START
from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.json_values import to_rows
from tests.paths import SAMPLES
from tests.support.check_plants import flip, put, restamp
from tests.support.hostile_texts import NASTY
from tests.support.seen_pages import Page

BROKER = SAMPLES / "kafka-4.x"
OLD = SAMPLES / "kafka-2.8"
ORIGIN = Origin(["logs"], {}, ["--out", "report.html"], 0, 1, "logs")
TIME_MS = 1_795_342_500_000
FIRST, SECOND = (f"{base:020d}" for base in (0, 42))


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker with a batch that fails its checksum, a wrong index, a segment that is gone and a hanging transaction."""
    root = tmp_path_factory.mktemp("logs") / "disk"
    shutil.copytree(BROKER, root)
    flip(root / "segments.small-0" / f"{SECOND}.log", 500)
    put(f"segments.small-0/{84:020d}.index", 12, 16, b"oops")(root)
    for end in ("log", "index", "timeindex"):
        (root / "segments.small-1" / f"{FIRST}.{end}").unlink()
    state = root / "__transaction_state-0" / f"{FIRST}.log"
    state.write_bytes(state.read_bytes()[:13571])
    return root


def contents_of(*paths: Path, **options: Any) -> Contents:
    log = LogDirectory(paths)
    return gather(log, LogDirectory(paths, replicas="newest"), **options)


@pytest.fixture(scope="module")
def gathered(damaged: Path) -> Contents:
    return contents_of(damaged)


def page_of(*paths: Path, **options: Any) -> Page:
    return Page.read(make_page(contents_of(*paths, **options), ORIGIN))


def plain(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------- what is in the page


@pytest.mark.slow
@pytest.mark.parametrize("path", [BROKER, OLD], ids=lambda path: path.name)
def test_every_partition_has_the_numbers_of_stat(path: Path) -> None:
    page = page_of(path)
    for row in to_rows(LogDirectory(path).stat(policy="salvage")):
        numbers = [f"{row[name]:,}" for name in ("segments", "bytes", "batches", "records")]
        cells = [f"{row['topic']}-{row['partition']}", *numbers[:2], "", *numbers[2:]]
        assert cells in [[found[0], *found[2 : len(cells) + 1]] for found in page.rows]


@pytest.mark.slow
def test_every_finding_is_listed(damaged: Path, gathered: Contents) -> None:
    page = Page.read(make_page(gathered, ORIGIN))
    expected = to_rows(LogDirectory(damaged).check())
    assert gathered.findings == expected and len(expected) > 3
    text = plain(page.text)
    for row in expected:
        assert plain(describe_place(row)) in text
        assert plain(row["meaning"]) in text
        assert plain(row["remedy"]) in text
        assert row["code"] in text


def test_the_verdict_names_the_damage_and_the_hanging_transaction(
    damaged: Path, gathered: Contents
) -> None:
    verdict = judge(gathered)
    assert verdict.level == "error"
    assert "hanging transaction" in verdict.headline
    titles = [problem.title for problem in verdict.problems]
    assert titles[0] == "Batch with a wrong checksum in segments.small-0"
    title = "Hanging transaction in transactions-2, since 2026-11-20 07:00:00 UTC, 5 offsets hidden"
    assert title in titles[:3]
    hanging = verdict.problems[titles.index(title)]
    assert "stop at offset 5" in hanging.meaning
    salvage = f"kafka-log salvage {damaged / 'segments.small-0'} --repair --out salvaged"
    assert verdict.problems[0].commands == (salvage,)
    assert "the broker may truncate the log at the damage" in verdict.problems[0].remedy
    assert hanging.commands == (
        f"kafka-log export {damaged / 'transactions-2'} --offsets 5: --out hidden",
        "kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic transactions --partition 2 --start-offset 5",
    )


@pytest.mark.slow
def test_a_healthy_log_and_its_open_transaction() -> None:
    contents = contents_of(BROKER)
    verdict = judge(contents)
    assert verdict.level == "good" and not contents.has_problems
    assert [problem.title for problem in verdict.problems] == [
        "Open transaction in transactions-2, since 2026-11-20 07:00:00 UTC, 5 offsets hidden"
    ]
    assert judge(contents_of(BROKER, now=1_800_000_000_000)).level == "error"
    assert judge(contents_of(BROKER / "codecs-1")).headline == "Nothing is wrong"


def test_the_map_has_the_lost_range(gathered: Contents) -> None:
    (one,) = [one for one in gathered.maps if one.path.endswith(f"small-0/{SECOND}.log")]
    assert (one.topic, one.partition, one.size, one.batches) == ("segments.small", 0, 2705, 6)
    (lost,) = one.lost
    assert (lost.start, lost.end, lost.first_offset, lost.last_offset) == (383, 766, 48, 53)
    assert one.marks == (383,)


def test_reasons_have_no_place_in_a_schema(gathered: Contents) -> None:
    assert any(".yaml" in lost.reason for one in gathered.maps for lost in one.lost)
    text = Page.read(make_page(gathered, ORIGIN)).text
    assert ".yaml" not in text and re.search(
        r"stored checksum 0x\w{8}, computed 0x\w{8} over", text
    )


@pytest.mark.slow
def test_the_map_gives_offsets_without_lost_ones(gathered: Contents, damaged: Path) -> None:
    (one,) = [one for one in gathered.maps if one.path.endswith(f"small-0/{SECOND}.log")]
    assert one.offsets == ((42, 47), (54, 83))
    assert "6 valid batches with offsets 42 to 47, 54 to 83." in page_of(damaged).text


def test_the_extent_of_open_transactions_comes_before_the_reason(gathered: Contents) -> None:
    page = Page.read(make_page(gathered, ORIGIN))
    (headings,) = [row for row in page.rows if "hidden offsets" in row]
    before = headings[: headings.index("reason")]
    assert {"begun (UTC)", "producer", "offsets", "hidden offsets", "records"} <= set(before)
    (cells,) = [row for row in page.rows if row[:2] == ["transactions-2", "hanging"]]
    assert cells[2:9] == ["2026-11-20 07:00:00", "2026-11-20 07:00:02", "5 to 7", "5", "1001", "0", "3"]  # fmt: skip


def test_headline_badges_and_counts_agree(damaged: Path, gathered: Contents) -> None:
    errors = sum(row["severity"] == "error" for row in gathered.findings) + gathered.hanging
    assert judge(gathered).headline.startswith(f"{errors} errors (1 hanging transaction) and ")
    page = Page.read(make_page(gathered, ORIGIN))
    assert f"Findings ({len(gathered.findings) + 1})" in page.text
    assert ["error", "Hanging transaction", "txn", "1", "5 offsets hidden"] in page.rows
    (cells,) = [cells for cells in page.rows if cells[0] == "transactions-2" and len(cells) > 12]
    assert cells[1] == "1 error"


def test_only_a_hanging_transaction_is_a_finding() -> None:
    page = page_of(BROKER / "transactions-2", now=1_800_000_000_000)
    assert "Findings (1)" in page.text and "1 error (1 hanging transaction) found" in page.text


def test_an_open_transaction_is_a_note() -> None:
    """The verdict, the findings and the badge of its partition count it."""
    contents = contents_of(BROKER / "transactions-2")
    page = Page.read(make_page(contents, ORIGIN))
    assert "Besides, there is 1 note (1 open transaction)." in plain(page.text)
    assert "Findings (1)" in page.text
    assert ["note", "Open transaction", "txn", "1", "5 offsets hidden"] in page.rows
    assert ["transactions-2", "1 note"] in [row[:2] for row in page.rows]
    assert summarize_counts(contents) == "1 note (1 open transaction)"


@pytest.mark.slow
def test_damaged_batches_are_counted_apart(damaged: Path, gathered: Contents) -> None:
    page = Page.read(make_page(gathered, ORIGIN))
    every = LogDirectory(damaged).stat(policy="salvage", deleted_records=True)
    total = sum(every["batches"].to_pylist())
    assert total > sum(row["batches"] for row in gathered.stat)
    said = f"Checked: {total - 1} valid batches and 1 with a wrong checksum, in all {total} in"
    assert said in plain(page.text)
    assert page.text.count("Batches with a wrong checksum are counted by what") == 3
    assert "wrong checksum, in all" not in page_of(BROKER).text
    assert "by what their headers say" not in page_of(BROKER).text


def test_transactions_that_are_not_drawn_are_counted(gathered: Contents) -> None:
    assert gathered.transactions is not None
    page = Page.read(make_page(gathered, ORIGIN))
    total = gathered.transactions.num_rows
    found = re.search(rf"(\d+) of {total} transactions are drawn", page.text)
    times = zip(
        *(gathered.transactions.column(f"{n}_timestamp") for n in ("first", "last")), strict=True
    )
    assert found and int(found[1]) == min(40, sum(a.is_valid and b.is_valid for a, b in times))


def test_a_timestamp_0_is_named() -> None:
    """A producer set it; a record without a timestamp has none."""
    text = page_of(BROKER / "features-0", BROKER / "codecs-1").text
    assert "oldest record (UTC), without 1 partition with timestamp 02026-11-20 06:00" in text
    page = page_of(BROKER / "features-0")
    assert "timestamp 0 (1970)" in page.text
    assert "timestamp 0" not in page_of(BROKER / "codecs-1").text
    assert "with times far from the others: 1970-01-01T00:00:00.000Z." in plain(page.text)


def test_the_timeline_ends_at_the_newest_record_of_open_transactions(tmp_path: Path) -> None:
    """A wrong time index, the header of a damaged batch, and another partition do not move it."""
    for name in ("transactions-2", SMALL):
        shutil.copytree(BROKER / name, tmp_path / name)
    before = page_of(tmp_path).texts
    for path in tmp_path.glob("*/*.timeindex"):
        path.write_bytes(b"\0\0\3\0\0\0\0\0" + path.read_bytes()[8:])
    put(f"{SMALL}/{LAST}.log", 35, 43, b"\0\0\3\0\0\0\0\0")(tmp_path)
    restamp(tmp_path / SMALL / f"{SECOND}.log", 383, max_timestamp=0x30000000000)
    contents = contents_of(tmp_path)
    page = Page.read(make_page(contents, ORIGIN))
    far = "2074-"
    start = page.texts.index("Timeline")
    timeline = page.texts[start : page.texts.index("Open transactions", start)]
    assert not any(far in text for text in timeline) and timeline[-1] in before


def test_a_bar_ends_with_the_newest_record_of_its_partition(
    tmp_path: Path, gathered: Contents
) -> None:
    """Another partition's time does not stretch it, and a year without transactions no other bar."""
    assert gathered.transactions is not None
    table = gathered.transactions
    rows = table.to_pylist()
    (hanging,) = [row for row in rows if row["hanging"]]
    for name in ("first_timestamp", "last_timestamp"):
        hanging[name] -= timedelta(days=365)
    end = int(hanging["last_timestamp"].timestamp() * 1000) + 60_000
    stat = [
        {**row, "last_timestamp": end}
        if (row["topic"], row["partition"]) == ("transactions", 2)
        else row
        for row in gathered.stat
    ]
    changed = replace(gathered, transactions=pa.Table.from_pylist(rows, table.schema), stat=stat)
    page = Page.read(make_page(changed, ORIGIN))
    bars = [a for tag, a in page.tags if tag == "rect" and a.get("class") in ("hanging", "committed", "aborted")]  # fmt: skip
    assert (bars[0]["class"], bars[0]["x"], bars[0]["width"]) == ("hanging", "0", "1000")
    assert sum(float(bar["width"]) for bar in bars[1:]) > 1000
    start = page.texts.index("Timeline")
    assert "2025-11-20T07:01:02.000Z" in page.texts[start:]
    assert "There are 2 axes" in page.text


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 100)), min_size=1, max_size=20))
def test_each_axis_is_without_a_long_gap(values: list[tuple[int, int]]) -> None:
    spans = [(begin, begin + size) for begin, size in values]
    groups = split_at_gaps(spans)
    assert sorted(i for group in groups for i in group) == list(range(len(spans)))
    for group in groups:
        ordered = sorted(spans[i] for i in group)
        length = max(end for _, end in ordered) - ordered[0][0]
        for n in range(1, len(ordered)):
            assert ordered[n][0] - max(end for _, end in ordered[:n]) <= length / 2
    between = sorted((min(spans[i][0] for i in g), max(spans[i][1] for i in g)) for g in groups)
    assert all(a[1] < b[0] for a, b in pairwise(between))


def test_transactions_at_one_moment_are_no_long_bars(gathered: Contents) -> None:
    assert gathered.transactions is not None
    ended = gathered.transactions.filter(pc.equal(gathered.transactions["state"], "aborted"))
    moment = pa.array([TIME_MS] * ended.num_rows, pa.timestamp("ms", "UTC"))
    for name in ("first_timestamp", "last_timestamp"):
        at = ended.schema.get_field_index(name)
        ended = ended.set_column(at, ended.schema.field(at), moment)
    page = Page.read(make_page(replace(gathered, transactions=ended), ORIGIN))
    bars = [a for tag, a in page.tags if tag == "rect" and a.get("class") == "aborted"]
    assert bars and {bar["width"] for bar in bars} == {"4"}
    assert page.texts.count("2026-11-22T10:15:00.000Z") == 1


def test_notes_are_linked_from_the_verdict(tmp_path: Path) -> None:
    root = tmp_path / "features-0"
    shutil.copytree(BROKER / "features-0", root)
    (root / f"{FIRST}.index").unlink()
    page = page_of(root)
    assert "Besides, there is 1 note." in plain(page.text)
    assert "#finding-note-index_missing" in page.links


def test_the_given_time_is_a_date(gathered: Contents) -> None:
    text = Page.read(make_page(gathered, replace(ORIGIN, now_ms=1_800_000_000_000))).text
    assert "judged as of 2027-01-15T08:00:00.000Z (--now)" in text
    assert "judged as of" not in Page.read(make_page(gathered, ORIGIN)).text


@pytest.mark.slow
def test_epochs_end_where_the_log_ends() -> None:
    contents = contents_of(BROKER)
    text = make_page(contents, ORIGIN).decode()
    ends = {row["last_offset"] for row in contents.stat if row["last_offset"] is not None}
    stops = [
        int(n.replace(",", "")) for n in re.findall(r"epoch \d+: offsets [\d,]+ to ([\d,]+)", text)
    ]
    assert stops and max(stops) <= max(ends)
    for i, epochs in contents.epochs.items():
        last = contents.stat[i]["last_offset"] if len(epochs) > 1 else None
        if last is not None and epochs[-1][1] > last:
            assert f"{epochs[-1][0]} from {epochs[-1][1]} (no record)" in text


def test_an_incomplete_end_and_records_that_cannot_be_decoded(tmp_path: Path) -> None:
    root = tmp_path / "segments.small-0"
    shutil.copytree(BROKER / "segments.small-0", root)
    active = root / f"{126:020d}.log"
    flip(active, 200)
    active.write_bytes(active.read_bytes()[:-9])
    restamp(root / f"{FIRST}.log", 383, record_count=7)
    contents = contents_of(root, deep=True)
    kinds = {
        one.path[-6:-4]: [(lost.kind, lost.start) for lost in one.lost] for one in contents.maps
    }
    assert kinds["00"] == [("refused", 383)]
    assert [kind for kind, _ in kinds["26"]] == ["lost", "tail", "missing"]
    (refused,) = next(one.lost for one in contents.maps if one.path[-6:-4] == "00")
    assert (refused.end, refused.first_offset, refused.last_offset) == (766, 6, 11)
    text = plain(Page.read(make_page(contents, ORIGIN)).text)
    assert "records of offsets 6 to 11 cannot be decoded" in text


def test_replicas_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(BROKER / "codecs-1", tmp_path / name / "codecs-1")
    contents = contents_of(tmp_path)
    assert contents.has_replicas
    assert {row["directory"] for row in contents.stat} == {
        str(tmp_path / name / "codecs-1") for name in ("a", "b")
    }
    one = to_rows(LogDirectory(BROKER / "codecs-1").stat())[0]
    assert contents.traffic is not None
    assert sum(contents.traffic.column("records").to_pylist()) == one["records"]
    text = Page.read(make_page(contents, ORIGIN)).text
    assert str(tmp_path / "a" / "codecs-1") in text and str(tmp_path / "b" / "codecs-1") in text
    assert "one copy of each partition" in text


def test_two_topics_of_one_name_have_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of them is a copy of the other: the finding says so, and what counts one copy is left out."""
    for name in ("a", "b"):
        for topic in ("codecs-1", "__consumer_offsets-0"):
            shutil.copytree(BROKER / topic, tmp_path / "logs" / name / topic)
            other = BROKER / "features-0" / "partition.metadata"
            if name == "b":
                shutil.copy(other, tmp_path / "logs" / name / topic)
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "logs"), "--out", str(out)]) == 1
    text = plain(out.read_text(encoding="utf-8"))
    assert "Contradicting topic ids" in text
    assert text.count("Counts of one copy of each partition are not known") == 2
    assert "states another topic id than that of" in text
    assert "No batch has a timestamp" not in text and "There is no batch" not in text
    contents = contents_of(tmp_path / "logs")
    assert contents.traffic is None and len(contents.stat) == 4


def test_findings_are_those_of_the_copy(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(BROKER / "codecs-1", tmp_path / name / "codecs-1")
    flip(tmp_path / "b" / "codecs-1" / f"{FIRST}.log", 300)
    found = {cells[1]: cells[2] for cells in page_of(tmp_path).rows if cells[0] == "codecs-1"}
    assert found[str(tmp_path / "a" / "codecs-1")] == ""
    assert found[str(tmp_path / "b" / "codecs-1")] == "1 error"


def test_a_hanging_transaction_in_two_copies_is_one(damaged: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        for topic in ("transactions-2", "__transaction_state-0"):
            shutil.copytree(damaged / topic, tmp_path / "logs" / name / topic)
    contents = contents_of(tmp_path / "logs")
    assert contents.hanging == 1
    (problem,) = [one for one in judge(contents).problems if one.title.startswith("Hanging")]
    assert "and 1 other copy" in problem.where


@pytest.mark.slow
def test_every_command_of_the_page_runs(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        shutil.copytree(damaged, tmp_path / "logs" / name)
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "logs"), "--out", str(out)]) == 1
    for line in re.findall(r"(kafka-log [^<]*)</code>", out.read_text(encoding="utf-8")):
        words = shlex.split(html.unescape(line))[1:]
        if "--out" in words:
            words[words.index("--out") + 1] = str(tmp_path / words[1].replace("/", "_"))
        assert main(words) in (0, 1), line
        capsys.readouterr()


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    text = plain(page_of(BROKER / "codecs-1").text)
    assert "there is no __consumer_offsets below the paths" in text
    assert "there is no __cluster_metadata below the paths" in text
    damaged = tmp_path / "logs"
    shutil.copytree(BROKER / "__consumer_offsets-0", damaged / "__consumer_offsets-0")
    log = damaged / "__consumer_offsets-0" / f"{FIRST}.log"
    flip(log, 200)
    contents = contents_of(damaged)
    assert any("newer commits of groups may be missing" in line for line in contents.unread)
    assert contents.has_problems and contents.commits is not None


@pytest.mark.slow
def test_records_below_the_log_start_are_mentioned() -> None:
    assert (BROKER / LOG_START).exists()
    assert any("trimmed-0 before 7" in line for line in contents_of(BROKER).remarks)


def test_deep_reads_records() -> None:
    shallow, deep = page_of(BROKER / "codecs-1"), page_of(BROKER / "codecs-1", deep=True)
    assert "compression ratio" in deep.text and "compression ratio" not in shallow.text


@pytest.mark.slow
def test_the_bar_reaches_its_end_and_no_further(damaged: Path) -> None:
    from kafka_log.inspect.report.contents import PASSES

    done: list[int] = []
    contents = contents_of(damaged, advance=done.append)
    size = sum(partition.size for partition in contents.partitions)
    assert 0.9 * PASSES * size <= sum(done) <= PASSES * size


# ---------------------------------------------------------------- a page that a browser reads


def test_the_page_is_well_formed_and_loads_nothing(gathered: Contents) -> None:
    data = make_page(gathered, ORIGIN)
    page = Page.read(data)
    assert data.startswith(b"<!DOCTYPE html>\n")
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"script", "img", "link", "iframe", "object", "embed", "form", "base", "image", "use"})  # fmt: skip
    attributes = {name for _, found in page.tags for name in found}
    assert attributes.isdisjoint({"src", "srcset", "style", "action", "xlink:href", "background"})
    assert not [name for name in attributes if name.startswith("on")]
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert all(link.startswith("#") for link in page.links)
    assert b"http:" not in data and b"https:" not in data and b"url(" not in data
    assert "@import" not in page.style
    policies = [
        found["content"]
        for _, found in page.tags
        if found.get("http-equiv") == "Content-Security-Policy"
    ]
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]
    position = data.index(b"Content-Security-Policy")
    assert position < data.index(b"<style>")


def changed(value: Any, text: str) -> Any:
    """A value of a row with another text in the place of each that comes from files."""
    if isinstance(value, str):
        return text
    return [changed(one, text) for one in value] if isinstance(value, list) else value


FIXED = {"severity", "code", "state", "codec", "codecs", "resource_type"}
"""Columns whose texts are our own."""


def with_texts(contents: Contents, text: str) -> Contents:
    def rows(found: Any) -> Any:
        if found is None:
            return None
        return [
            {name: value if name in FIXED else changed(value, text) for name, value in row.items()}
            for row in found
        ]

    table = contents.transactions
    assert table is not None
    printable = pa.scalar(text.encode("utf-8", "replace").decode(), pa.string())
    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name != "state":
            table = table.set_column(
                i, field, pa.array([printable.as_py()] * len(table), field.type)
            )
    return replace(
        contents,
        findings=rows(contents.findings),
        topics=rows(contents.topics),
        stat=rows(contents.stat),
        transactions=table,
        commits=rows(contents.commits),
        groups=rows(contents.groups),
        cluster={kind: rows(found) for kind, found in contents.cluster.items()},
        maps=[replace(one, topic=text, path=text, error=None) for one in contents.maps],
        missing=dict.fromkeys(contents.missing, text),
        unread=[text],
        remarks=[text],
        partitions=[replace(one, topic=text) for one in contents.partitions],
    )


HOSTILE = [
    *NASTY,
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    '" onmouseover="alert(1)" x=\'',
    "a\x00b\x1b[31m\x9b\u2028\u202e\ud800",
    "]]><svg onload=alert(1)>",
    "x" * 100_000,
]


def check_hostile(contents: Contents, clean: Page, text: str) -> None:
    found = Page.read(
        make_page(with_texts(contents, text), replace(ORIGIN, title=text, paths=[text]))
    )
    assert found.comments == 0
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in clean.tags} | {"p"}
    assert {name for _, named in found.tags for name in named} <= {
        name for _, named in clean.tags for name in named
    }
    assert found.style == clean.style
    shown = "".join(found.texts) + "".join(" ".join(named.values()) for _, named in found.tags)
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800]", shown) is None
    assert escape_unprintable(text[:80]) in found.text or not text.strip()


@pytest.fixture(scope="module")
def clean(gathered: Contents) -> Page:
    return Page.read(make_page(with_texts(gathered, "plain"), ORIGIN))


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_from_files_stay_texts(text: str, gathered: Contents, clean: Page) -> None:
    check_hostile(gathered, clean, text)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(alphabet=st.characters(codec=None), max_size=40))
def test_any_text_stays_a_text(text: str, gathered: Contents, clean: Page) -> None:
    check_hostile(gathered, clean, text)


def test_directories_with_hostile_names(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>\n\x1b[31m\"'&amp;"
    shutil.copytree(BROKER / "codecs-1", tmp_path / name / f"{name}-0")
    page = page_of(tmp_path)
    assert "img" not in {tag for tag, _ in page.tags}
    assert escape_unprintable(name) in page.text


# ---------------------------------------------------------------- limits


@pytest.mark.slow
def test_a_large_cluster_gives_a_small_page_that_says_what_it_leaves_out(
    gathered: Contents,
) -> None:
    count, found = 10_000, 20_000
    assert gathered.commits and gathered.groups
    stat = [
        replace_row(gathered.stat[0], topic=f"topic-{i % 997}", partition=i, bytes=i)
        for i in range(count)
    ]
    rows = [
        replace_row(
            gathered.findings[i % len(gathered.findings)], topic=f"topic-{i}", meaning="m" * 900
        )
        for i in range(found)
    ]
    contents = replace(
        gathered,
        stat=stat,
        findings=rows,
        topics=[replace_row(gathered.topics[0], topic=f"topic-{i}") for i in range(997)],
        commits=[replace_row(gathered.commits[0], group=f"g{i}", lag=i) for i in range(count)],
        groups=[replace_row(gathered.groups[0], group=f"g{i}", lag=i) for i in range(count)],
        unread=[f"line {i}" for i in range(count)],
        damaged_segments=5_000,
    )
    begun = time.process_time()
    data = make_page(contents, ORIGIN)
    assert time.process_time() - begun < 10
    assert len(data) < 2_000_000
    text = plain(Page.read(data).text)
    assert f"Findings ({found + gathered.hanging:,})" in text
    kinds: dict[tuple[str, str], int] = {}
    for row in rows:
        kinds[row["severity"], row["code"]] = kinds.get((row["severity"], row["code"]), 0) + 1
    limits = {"error": 25, "warning": 15, "note": 5}
    for (severity, _), number in kinds.items():
        left = f"And {number - limits[severity]:,} places more of {number:,}"
        assert f"{left}. All of them: kafka-log check logs --format csv" in text
    assert (
        "And 9,700 rows more of 10,000. All of them: kafka-log stat logs --policy salvage --format csv"
        in text
    )
    assert (
        "And 9,900 groups more of 10,000. All of them: kafka-log groups logs --states --format csv"
        in text
    )
    assert "And 9,950 lines more of 10,000" in text
    assert f"And {5_000 - len(gathered.maps):,} damaged segments more of 5,000" in text


def replace_row(row: dict[str, Any], **values: Any) -> dict[str, Any]:
    return row | values


def test_a_few_wrong_timestamps_do_not_choose_the_period() -> None:
    row = {
        "first_timestamp": 1_700_000_000_000,
        "last_timestamp": 1_700_000_100_000,
        "batch_bytes": 1000,
    }
    assert choose_period([row]) == "minute"
    wrong = row | {"first_timestamp": 0, "last_timestamp": 1 << 60, "batch_bytes": 1}
    assert choose_period([row, wrong]) == "minute"
    assert choose_period([row | {"last_timestamp": 1_700_900_000_000}]) == "hour"
    assert choose_period([]) == "hour"


@pytest.mark.parametrize(
    "times", [(0, (1 << 63) - 1), ((1 << 63) - 1,), (1 << 62, 5), (-(1 << 63), 7)], ids=str
)
def test_times_of_any_size(times: tuple[int, ...], tmp_path: Path) -> None:
    root = tmp_path / "segments.small-0"
    shutil.copytree(BROKER / "segments.small-0", root)
    for i, value in enumerate(times):
        restamp(root / f"{FIRST}.log", 383 * i, base_timestamp=value, max_timestamp=value)
    page = page_of(tmp_path)
    row = to_rows(LogDirectory(tmp_path).stat(policy="salvage"))[0]
    assert f"{row['records']:,}" in next(cells for cells in page.rows if cells[0] == root.name)


@given(st.lists(st.tuples(st.integers(), st.integers(0, 9)), min_size=1))
def test_a_quantile_is_a_value(values: list[tuple[int, int]]) -> None:
    found = [find_quantile(values, share) for share in (0.0, 0.5, 1.0)]
    assert found == sorted(found) and set(found) <= {value for value, _ in values}  # type: ignore[type-var]


# ---------------------------------------------------------------- the command


@pytest.mark.slow
def test_the_command(damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert main(["report", str(damaged), "--out", str(out)]) == 1
    printed = capsys.readouterr().out
    assert re.match(r"\d errors \(1 hanging transaction\), .*; the page has .* kB\n", printed)
    text = plain(Page.read(out.read_bytes()).text)
    assert f"kafka-log report {damaged} --out {out}" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    healthy = ["report", str(BROKER), "--topic", "codecs", "--partition", "0-2", "--out", str(out)]
    assert main(healthy) == 2
    assert f"{out}: the file exists" in capsys.readouterr().err
    assert main([*healthy, "--overwrite"]) == 0
    text = plain(Page.read(out.read_bytes()).text)
    assert f"kafka-log report {BROKER} --topic=codecs --partition=0-2 --out {out}" in text


def test_files_that_must_not_be_written(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    link = tmp_path / "link.html"
    link.symlink_to(own)
    for out, said in {
        own: "kafka-log report did not write this file",
        link: "not a regular file",
        tmp_path: "not a regular file",
        tmp_path / "none" / "report.html": "does not exist",
        damaged / "report.html": "it lies inside",
    }.items():
        assert main(["report", str(damaged), "--out", str(out), "--overwrite"]) == 2
        assert said in capsys.readouterr().err
    assert own.read_text() == "mine" and not (damaged / "report.html").exists()


def test_a_failed_report_leaves_the_old_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "report.html"
    assert main(["report", str(BROKER / "codecs-1"), "--out", str(out)]) == 0
    before = out.read_bytes()

    def fail(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_log.inspect.report.page.make_page", fail)
    assert main(["report", str(BROKER / "codecs-1"), "--out", str(out), "--overwrite"]) == 2
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_segments_that_are_not_live(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(BROKER / "segments.small-0", tmp_path / "logs" / "segments.small-0")
    for path in (tmp_path / "logs" / "segments.small-0").glob("*.log"):
        path.rename(path.with_name(f"{path.name}.deleted"))
    out = tmp_path / "report.html"
    words = ["report", str(tmp_path / "logs"), "--out", str(out)]
    assert main(words) == 2
    assert "no segment was checked" in capsys.readouterr().err and not out.exists()
    assert main([*words, "--include", "deleted"]) in (0, 1)
    assert "--include=deleted" in Page.read(out.read_bytes()).text


# ---------------------------------------------------------------- segments that were cut

SMALL, CODECS = "segments.small-0", "codecs-1"
LAST = f"{126:020d}"
CUTS = {
    # partition, segment, size: lost ranges with bytes, kind, offsets, missing bytes and batches
    "inside a batch": (
        (SMALL, SECOND, 2505),
        [(2316, 2505, "lost", 78, 83, 0, 0), (2505, 2505, "missing", None, None, 200, 1)],
    ),
    "inside a batch, batches follow": (
        (SMALL, SECOND, 1000),
        [(766, 1000, "lost", 54, 59, 0, 0), (1000, 1000, "missing", 60, 83, 1333, 5)],
    ),
    "between batches": (
        (SMALL, SECOND, 2316),
        [(2316, 2316, "missing", 78, 83, 17, 1)],
    ),
    "to nothing": (
        (SMALL, SECOND, 0),
        [(0, 0, "missing", 42, 83, 2333, 6)],
    ),
    "the active one inside a batch": (
        (SMALL, LAST, 500),
        [(389, 500, "tail", 132, 137, 0, 0), (500, 500, "missing", 138, 143, 295, 2)],
    ),
    "the active one between batches": (
        (CODECS, FIRST, 1769),
        [(1769, 1769, "missing", 61, 63, 0, 0)],
    ),
    "the active one inside a header": (
        (CODECS, FIRST, 20),
        [(0, 20, "tail", 0, 63, 0, 0)],
    ),
}


def copy_cut(root: Path, partition: str, segment: str, size: int, *, clean: bool) -> None:
    """Copy a partition with the checkpoints of its broker, and cut one of its segments to ``size`` bytes."""
    shutil.copytree(BROKER / partition, root / partition)
    for path in BROKER.glob("*-checkpoint"):
        shutil.copy(path, root)
    shutil.copy(BROKER / "meta.properties", root)
    if clean:
        shutil.copy(BROKER / ".kafka_cleanshutdown", root)
    path = root / partition / f"{segment}.log"
    assert path.stat().st_size > size
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.mark.slow
@pytest.mark.parametrize("name", CUTS)
def test_a_cut_segment_has_a_map_of_what_is_lost(name: str, tmp_path: Path) -> None:
    (partition, segment, size), expected = CUTS[name]
    copy_cut(tmp_path, partition, segment, size, clean=False)
    contents = contents_of(tmp_path)
    (one,) = contents.maps
    assert (one.path, one.size) == (str(tmp_path / partition / f"{segment}.log"), size)
    found = [
        (x.start, x.end, x.kind, x.first_offset, x.last_offset, x.missing_bytes, x.missing_batches)
        for x in one.lost
    ]
    assert found == expected
    page = Page.read(make_page(contents, ORIGIN))
    drawn = [(a.get("class"), a.get("x")) for tag, a in page.tags if tag == "rect"]
    places = {x for kind, x in drawn if kind == "missing"}
    assert bool(places) == any(kind == "missing" for _, _, kind, *_ in expected)
    assert not any(kind == "mark" and x in places for kind, x in drawn)
    rows = [row[:3] for row in page.rows]
    for start, end, kind, first, last, missing, batches in expected:
        cells = [f"bytes {start:,} to {end - 1:,}", f"{end - start:,}"]
        if kind == "missing":
            of = f"{batches} batch{'es' * (batches > 1)}"
            cells = [f"at byte {start:,}", f"at least {missing:,} bytes of {of}"]
            cells[1] = cells[1] if missing else "unknown"
        offsets = "those of the incomplete batch" if first is None else f"{first} to {last}"
        assert [*cells, offsets] in rows
    lost = sum(row["records"] for row in contents.findings if row["severity"] != "note")
    whole = {SECOND: 84, LAST: 144, FIRST: 64}[segment]
    begin = next(x.first_offset for x in one.lost if x.first_offset is not None)
    assert lost >= whole - begin


def test_a_cut_after_a_clean_shutdown_says_what_is_lost(tmp_path: Path) -> None:
    copy_cut(tmp_path, CODECS, FIRST, 14728, clean=True)
    contents = contents_of(tmp_path)
    (row,) = [row for row in contents.findings if row["severity"] == "error"]
    assert row["code"] == "torn_tail"
    assert (row["first_offset"], row["last_offset"], row["records"]) == (61, 63, 3)
    assert "By the checkpoints, the log reached offset 64." in row["meaning"]
    (one,) = contents.maps
    assert [(x.kind, x.first_offset, x.last_offset) for x in one.lost] == [
        ("lost", 61, 63),
        ("missing", None, None),
    ]
    rows = [row[:3] for row in Page.read(make_page(contents, ORIGIN)).rows]
    cut = ["at byte 14,728", "at least 200 bytes of 1 batch", "those of the incomplete batch"]
    assert ["bytes 1,769 to 14,727", "12,959", "61 to 63"] in rows and cut in rows


def test_batches_cut_out_of_the_middle_have_a_place_in_the_map(tmp_path: Path) -> None:
    shutil.copytree(BROKER / SMALL, tmp_path / SMALL)
    path = tmp_path / SMALL / f"{SECOND}.log"
    data = path.read_bytes()
    path.write_bytes(data[:383] + data[1149:])
    (one,) = contents_of(tmp_path).maps
    assert [(x.start, x.end, x.kind, x.first_offset, x.last_offset) for x in one.lost] == [
        (383, 383, "missing", 48, 59)
    ]
    assert one.offsets == ((42, 47), (60, 83))


def test_an_index_of_another_segment_proves_no_cut(tmp_path: Path) -> None:
    """Its entries have offsets that are not missing: the index is wrong, not the segment."""
    shutil.copytree(BROKER / SMALL, tmp_path / SMALL)
    put(f"{SMALL}/{SECOND}.index", 40, 48, b"\0\0\0\x29\0\0\x20\0")(tmp_path)
    contents = contents_of(tmp_path)
    assert {row["code"] for row in contents.findings if row["severity"] != "note"}
    assert not any(lost.kind == "missing" for one in contents.maps for lost in one.lost)
