"""Pages of ``kafka-log browse``: they show what the other commands answer, for whole and damaged logs, and nothing is taken for HTML."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import struct
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect.browse.batch_windows import Budget, Target, read_window, start_of
from kafka_log.inspect.browse.listing import segment_id
from kafka_log.inspect.browse.records import RecordView
from kafka_log.logs.discovery import discover
from kafka_log.logs.names import CLEAN_SHUTDOWN
from kafka_log.segment.model import Batch
from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.json_values import to_rows
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.browse_sites import Visitor, links
from tests.support.check_plants import flip
from tests.support.hostile_texts import NASTY
from tests.support.partition_logs import put_offsets, write_log
from tests.support.seen_pages import Page
from tests.support.torn_logs import torn_log

BROKER = SAMPLES / "kafka-4.x"
FIRST, SECOND = f"{0:020d}", f"{42:020d}"


@pytest.fixture(scope="module")
def whole() -> Visitor:
    return Visitor(BROKER)


@pytest.fixture(scope="module")
def damaged_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker with a batch that fails its checksum, and a hanging transaction."""
    root = tmp_path_factory.mktemp("logs") / "disk"
    shutil.copytree(BROKER, root)
    flip(root / "segments.small-0" / f"{SECOND}.log", 500)
    state = root / "__transaction_state-0" / f"{FIRST}.log"
    state.write_bytes(state.read_bytes()[:13571])
    return root


@pytest.fixture(scope="module")
def damaged(damaged_logs: Path) -> Visitor:
    return Visitor(damaged_logs)


def lines_of(*words: object) -> list[dict[str, Any]]:
    """What a command prints as JSON lines."""
    out = io.StringIO()
    with redirect_stdout(out):
        main([*map(str, words), "--format", "jsonl"])
    return [json.loads(line) for line in out.getvalue().splitlines()]


def plain(text: str) -> int:
    return int(text.replace(",", ""))


# ---------------------------------------------------------------- the same answers


@pytest.mark.slow
def test_the_first_page_lists_topics_as_ls_does(whole: Visitor) -> None:
    rows = whole.see("/").rows
    wanted = [
        [r["topic"], r["partitions"], r["segments"], r["bytes"], r["state"]]
        for r in lines_of("ls", BROKER, "--by", "topic")
        if r["topic"] != "total"
    ]
    topics = rows[1 : 1 + len(wanted)]
    assert [[r[0], plain(r[2]), plain(r[3]), plain(r[5]), r[6]] for r in topics] == wanted
    assert [r[0] for r in whole.see("/?name=SEGM").rows[1:2]] == ["segments.small"]
    assert "No topic has such a name" in whole.see("/?name=nothing").text


@pytest.mark.slow
def test_a_partition_lists_its_segments_as_ls_does(whole: Visitor) -> None:
    for row in whole.see("/").rows[1:4]:
        (topic_url,) = links(whole.see(f"/?name={row[0]}"), "^/topics/")[:1]
        assert row[0] in whole.see(topic_url).text
    page = whole.see(whole.partition("compacted", 1))
    wanted = LogDirectory(BROKER, topics="compacted", partitions=1).ls(segments=True)
    assert [[plain(r[1]), plain(r[2]), r[6]] for r in page.rows[1:]] == [
        [r["base_offset"], r["bytes"], r["state"]] for r in to_rows(wanted)
    ]


@pytest.mark.slow
def test_problems_are_those_of_check_and_txn(damaged: Visitor, damaged_logs: Path) -> None:
    log = LogDirectory(damaged_logs)
    findings, hanging = log.check().to_pylist(), log.txn(states="hanging").num_rows
    assert findings and hanging == 1
    first, page = damaged.see("/"), damaged.see("/problems")
    assert "3 errors (1 hanging transaction) and 2 warnings found" in first.text
    for row in findings:
        assert escape_unprintable(row["meaning"]) in page.text
        assert escape_unprintable(row["remedy"]) in page.text
    assert "Hanging transaction in transactions-2" in page.text
    assert (
        f"kafka-log salvage {damaged_logs / 'segments.small-0'} --repair --out salvaged"
        in page.text
    )
    (where,) = links(page, "offset=5$")
    assert damaged.see(where).rows[1][0] == "5 to 7"
    assert links(first, "byte=383")[0] in links(page, "byte=383")
    (row,) = (row for row in first.rows if row[0] == "segments.small")
    assert row[1] == "1 error"
    (row,) = (row for row in first.rows if row[0] == "__transaction_state")
    assert row[1] == "1 error 2 warnings"
    for topic, marks in (
        ("segments.small", {"0": "1 error", "1": ""}),
        ("transactions", {"2": "1 error"}),
    ):
        (url,) = links(damaged.see(f"/?name={topic}"), "^/topics/")[:1]
        assert marks.items() <= {r[0]: r[1] for r in damaged.see(url).rows[1:]}.items()
    assert "Nothing is wrong" in Visitor(BROKER).see("/").text


@pytest.mark.slow
def test_counts_are_those_of_the_report(damaged_logs: Path, tmp_path: Path) -> None:
    """Of errors, warnings, and notes, among them those about open transactions."""
    root = tmp_path / "disk"
    shutil.copytree(damaged_logs, root)
    (root / "features-0" / f"{FIRST}.index").unlink()
    shutil.copytree(BROKER / "transactions-2", root / "opened-0")
    (root / "opened-0" / "partition.metadata").unlink()
    out = tmp_path / "report.html"
    with redirect_stdout(io.StringIO()):
        assert main(["report", str(root), "--out", str(out)]) == 1
    report, visitor = Page.read(out.read_bytes()), Visitor(root)
    first, problems = visitor.see("/"), visitor.see("/problems")
    counted = int(re.search(r"Findings \((\d+)\)", report.text)[1])  # type: ignore[index]
    assert f"All {counted}," in first.text
    for pattern in (r"\d+ errors? \(.*?\).*? found", r"there (is|are) \d+ notes?( \(.*?\))?"):
        (said,) = {re.search(pattern, page.text)[0] for page in (report, first, problems)}  # type: ignore[index]
        assert said
    names = {"features-0": "1 note", "transactions-2": "1 error", "opened-0": "1 error"}
    for name, badges in names.items():
        topic, _, number = name.rpartition("-")
        (url,) = links(visitor.see(f"/?name={topic}"), "^/topics/")[:1]
        cell = next(row[1] for row in visitor.see(url).rows if row[0] == number)
        assert badges in cell
        assert [name, cell] in [row[:2] for row in report.rows]


PARTITIONS = sorted((one.topic, one.partition) for one in discover(BROKER) if one.size)


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(st.sampled_from(PARTITIONS), st.integers(0, 160))
def test_batches_from_an_offset_are_those_of_dump(
    whole: Visitor, key: tuple[str, int], offset: int
) -> None:
    directory = BROKER / f"{key[0]}-{key[1]}"
    wanted = lines_of("dump", directory, "--batches", "--offsets", f"{offset}:")
    page = whole.see(f"{whole.partition(*key)}/batches?offset={offset}")
    shown = page.rows[1:]
    if not wanted:
        assert "no batch from here on" in page.text
    for row, dumped in zip(shown, wanted, strict=False):
        assert plain(row[1]) == dumped["position"]
        assert plain(row[2]) == dumped["size"]
        assert row[0].split(" to ")[-1] == str(dumped["last_offset"])


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(st.sampled_from(PARTITIONS), st.data())
def test_records_of_a_batch_are_those_of_dump(
    whole: Visitor, key: tuple[str, int], data: st.DataObject
) -> None:
    directory = BROKER / f"{key[0]}-{key[1]}"
    dumped = lines_of("dump", directory, "--batches")
    one = data.draw(st.sampled_from(dumped))
    first = one["last_offset"] if one["base_offset"] is None else one["base_offset"]
    wanted = lines_of(
        "dump",
        directory,
        "--offsets",
        f"{first}:{one['last_offset'] + 1}",
        "--control-records",
        "--deleted-records",
    )
    (url,) = links(whole.see(f"{whole.partition(*key)}/batches?offset={first}"), "/batch[?]")[:1]
    page = whole.see(url)
    heads = [i for i, row in enumerate(page.rows) if row[0] == "offset"]
    assert bool(heads) == bool(wanted)
    shown = page.rows[heads[0] + 1 :] if heads else []
    assert [row[0] for row in shown] == [str(r["offset"]) for r in wanted[:50]]
    for row, record in zip(shown, wanted, strict=False):
        for cell, value in ((row[2], record["key"]), (row[3], record["value"])):
            text = json.dumps(value, ensure_ascii=False)
            assert (
                cell == text or (len(text) > 200 and cell.startswith(text[:150])) or "\\u" in cell
            )
    values = {row[0]: row[1] for row in page.rows if len(row) == 4}
    assert values["position"] == str(one["position"])
    assert values["producer_id"] == str(one["producer_id"])


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(st.sampled_from([key for key in PARTITIONS if key[0] != "__cluster_metadata"]), st.data())
def test_bytes_are_those_of_hexdump(
    whole: Visitor, key: tuple[str, int], data: st.DataObject
) -> None:
    directory = BROKER / f"{key[0]}-{key[1]}"
    segment = data.draw(st.sampled_from([s for s in discover(directory)[0].segments if s.size]))
    dumped = lines_of("dump", segment.path, "--batches")
    one = data.draw(st.sampled_from(dumped))
    inside = data.draw(st.integers(one["position"], one["position"] + one["size"] - 1))
    wanted = lines_of("hexdump", segment.path, "--byte", inside, "--records", 50)
    (begin,) = {
        url.partition("&")[0]
        for url in links(
            whole.see(f"{whole.partition(*key)}/batches?offset={segment.base_offset}"), "/batch[?]"
        )
    }
    page = whole.see(begin.replace("/batch?", "/bytes?") + f"&byte={inside}")
    shown = [row for row in page.rows if row[0] != "byte"]
    assert [(row[0], row[2]) for row in shown] == [
        (str(r["position"]), r["field"] or "") for r in wanted
    ]
    for row, piece in zip(shown, wanted, strict=True):
        if piece["bytes"] is not None and piece["length"] <= 8:
            assert bytes.fromhex(row[1]).hex() == piece["bytes"]
        assert row[3].startswith(escape_unprintable(piece["value"][:250]))


@pytest.mark.parametrize("number", [0, 1])
def test_the_bytes_of_a_record_are_marked(
    whole: Visitor, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compressed or not, with links to the records around it."""
    monkeypatch.setattr("kafka_log.inspect.browse.bytes_page.MAX_ENTRIES", 2)
    place = whole.partition("codecs", number)
    offset = next(
        one["base_offset"] + 1
        for one in lines_of("dump", BROKER / f"codecs-{number}", "--batches")
        if one["record_count"] >= 4
    )
    (key,) = (row["key"] for row in lines_of("dump", BROKER / f"codecs-{number}", "--offsets", f"{offset}:{offset + 1}"))  # fmt: skip
    (url,) = links(whole.see(f"{place}/batches?offset={offset}"), "/batch[?]")[:1]
    page = whole.see(f"{url.replace('/batch?', '/bytes?')}&offset={offset}")
    assert f"Bytes of the record at offset {offset}, key {json.dumps(key)}" in page.text
    marked = whole.last.split('class="asked"')
    assert len(marked) > 3
    rows = [row for row in page.rows if "records[1]" in row[2]]
    assert len(rows) == len(marked) - 1 and any("records[2]" in row[2] for row in page.rows)
    (before,) = links(page, f"/bytes.*offset={offset - 1}$")
    (after,) = links(page, f"/bytes.*offset={offset + 2}$")
    assert f"record at offset {offset - 1}," in whole.see(before).text
    assert f"record at offset {offset + 2}," in whole.see(after).text


def test_header_and_bytes_lead_to_each_other(whole: Visitor) -> None:
    place = whole.partition("codecs", 0)
    (batch_url,) = links(whole.see(f"{place}/batches?offset=0"), "/batch[?]")[:1]
    header = whole.see(batch_url)
    named = [a["href"] for tag, a in header.tags if tag == "a" and "#bytes-" in a["href"]]
    bytes_page = whole.see(named[0].partition("#")[0])
    assert {url.partition("#")[2] for url in named} <= set(bytes_page.ids)
    back = [a["href"] for tag, a in bytes_page.tags if tag == "a" and "#field-" in a["href"]]
    assert back and {url.partition("#")[2] for url in back} <= set(header.ids)
    assert "Sequence number of the first record" in bytes_page.text


@pytest.mark.slow
def test_transactions_and_groups_are_those_of_txn_and_groups(
    damaged: Visitor, damaged_logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = damaged.see("/")
    assert {"/transactions", "/groups"} <= set(first.links)
    log = LogDirectory(damaged_logs)
    page = damaged.see("/transactions")
    assert f"{log.txn().num_rows} transactions: 1 open" in page.text and "Hanging: 1." in page.text
    assert next(row[1] for row in page.rows if row[0] == "transactions-2") == "hanging"
    page = damaged.see("/groups")
    for row in to_rows(log.groups()):
        cells = [row["group"], f"{row['topic']}-{row['partition']}", str(row["committed_offset"])]
        assert cells in [found[:3] for found in page.rows]
    monkeypatch.setattr("kafka_log.inspect.browse.problems.MAX_SEGMENTS", 5)
    seen, url = 0, "/transactions"
    while url:
        page = damaged.see(url)
        found = re.search(r"(\d+) transactions?:", page.text)
        seen += 0 if found is None else int(found[1])
        url = next(iter(links(page, "from=")), "")
    assert seen == log.txn().num_rows
    monkeypatch.setattr("kafka_log.inspect.browse.activity_pages.MAX_BYTES", 5)
    assert "is too large to be read here" in damaged.see("/groups").text


@pytest.mark.slow
def test_batches_and_records_say_what_read_committed_hides(damaged: Visitor) -> None:
    """As a read_committed consumer gets them, and by the state of each transaction."""
    for number in range(3):
        directory = BROKER / f"transactions-{number}"
        visible = {
            row["offset"] for row in lines_of("dump", directory, "--isolation", "read_committed")
        }
        place = damaged.partition("transactions", number)
        batches = damaged.see(f"{place}/batches")
        assert not any("control" in row[7] and "hidden" in row[7] for row in batches.rows)
        for row in lines_of("dump", directory):
            page = damaged.see(f"{place}/batches?offset={row['offset']}").rows[1]
            assert ("hidden from read_committed" in page[7]) is (row["offset"] not in visible)
            (url,) = links(damaged.see(f"{place}/batches?offset={row['offset']}"), "/batch[?]")[:1]
            record = damaged.see(f"{url.replace('/batch?', '/record?')}&offset={row['offset']}")
            assert ("hidden from read_committed" in record.text) is (row["offset"] not in visible)
    place = damaged.partition("transactions", 2)
    found = damaged.see(f"{place}/batches?offset=5")
    assert found.rows[1][7] == "hanging, hidden from read_committed, transactional"
    assert ("span", {"class": "badge hanging"}) in found.tags
    (url,) = links(found, "/batch[?]")[:1]
    record = damaged.see(f"{url.replace('/batch?', '/record?')}&record=0")
    assert {"1001, epoch 0", "hanging"} <= set(record.texts)
    assert "hidden from read_committed; offsets 5 to 7" in record.text


@pytest.mark.slow
def test_transactions_and_commits_lead_to_their_batches(damaged: Visitor) -> None:
    page = damaged.see("/transactions")
    place = damaged.partition("transactions", 2)
    assert {place, f"{place}/batches?offset=5"} <= set(page.links)
    groups = damaged.see("/groups")
    assert links(groups, "^/partitions/[^/]*$") and links(groups, "/batches[?]offset=")
    for url in {*links(page, "/batches"), *links(groups, "/batches")}:
        assert damaged.see(url).rows, url


def test_the_page_of_transactions_names_lost_ends(tmp_path: Path) -> None:
    """Those of partitions, and those of the log of the coordinators."""
    own, other = torn_log(tmp_path / "own", "clean shutdown"), tmp_path / "other"
    shutil.copytree(BROKER / "__transaction_state-0", other / "__transaction_state-0")
    state = other / "__transaction_state-0" / f"{FIRST}.log"
    state.write_bytes(state.read_bytes()[:-3])
    (other / CLEAN_SHUTDOWN).touch()
    for root, name in ((own, "t-0"), (other, state.parent.name)):
        text = Visitor(root).see("/transactions").text
        assert re.search(rf"{name}/{FIRST}\.log: bytes \d+ to \d+ are lost: ", text)
        assert text.count("are lost: ") == 1


def test_a_wrong_time_index_does_not_stretch_the_timeline(tmp_path: Path) -> None:
    for name in ("transactions-2", "codecs-0"):
        shutil.copytree(BROKER / name, tmp_path / name)
        index = tmp_path / name / f"{FIRST}.timeindex"
        index.write_bytes(struct.pack(">qi", 4_000_000_000_000, 9))
    page = Visitor(tmp_path).see("/transactions")
    assert "2096-" not in page.text
    newest = max(one["timestamp"] for one in lines_of("dump", tmp_path / "transactions-2"))
    (open_one,) = (text for text in page.texts if text.startswith("open: "))
    assert open_one == "open: 2026-11-20T07:00:00.000Z to the end of the log"
    assert newest.startswith("2026-11-20T") and any(text >= newest for text in page.texts)


def test_damaged_and_missing_groups_are_named(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    shutil.copytree(BROKER / "__consumer_offsets-0", root / "__consumer_offsets-0")
    flip(root / "__consumer_offsets-0" / f"{FIRST}.log", 200)
    assert "newer commits of groups may be missing" in Visitor(root).see("/groups").text
    none = Visitor(BROKER / "codecs-1").see("/groups")
    assert "there is no __consumer_offsets below the paths" in none.text


# ---------------------------------------------------------------- going through a log


@pytest.mark.parametrize("topic, number", [("codecs", 1), ("compacted", 1), ("segments.small", 0)])
def test_all_batches_come_once_in_both_directions(
    damaged: Visitor, damaged_logs: Path, topic: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_log.inspect.browse.batch_pages.MAX_ENTRIES", 3)
    place = damaged.partition(topic, number)
    wanted = [
        (segment.path.name, start)
        for segment in discover(damaged_logs / f"{topic}-{number}")[0].segments
        for start in _starts(segment.path)
    ]
    for begin, word in ((f"{place}/batches", "Later →"), (f"{place}/batches?end=1", "← Earlier")):
        url: str | None = begin
        seen: list[tuple[str, int]] = []
        while url is not None:
            page = damaged.see(url)
            name = next(text for text in page.texts if text.endswith(".log") and "/" not in text)
            of_page = [(name, plain(row[1])) for row in page.rows[1:]]
            seen = [*seen, *of_page] if word == "Later →" else [*of_page, *seen]
            url = damaged.link(word)
        assert seen == wanted


def _starts(path: Path) -> list[int]:
    """Where batches and damaged ranges of a segment begin."""
    whole = read_window(discover(path)[0].segments[0], None, Target("byte"), 10_000, Budget())
    return [e.position if isinstance(e, Batch) else e.start for e in whole.entries]


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=25)
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_an_offset_or_a_time_is_found_in_any_log(
    seed: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("log")
    write_log(root / "t-0", random.Random(seed), ordered=True)
    visitor = Visitor(root)
    dumped = lines_of("dump", root / "t-0", "--batches")
    one = data.draw(st.sampled_from(dumped))
    page = visitor.see(f"{visitor.partition('t')}/batches?offset={one['last_offset']}")
    assert plain(page.rows[1][1]) == one["position"]
    time = one["max_timestamp"]
    later = [r for r in dumped if r["max_timestamp"] >= time]
    page = visitor.see(f"{visitor.partition('t')}/batches?time={time}")
    assert plain(page.rows[1][1]) in {r["position"] for r in later}


@pytest.mark.slow
def test_search_finds_what_grep_finds(whole: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = BROKER / "codecs-0"
    wanted = [str(r["offset"]) for r in lines_of("dump", directory, "--grep", "kappa")]
    assert len(wanted) > 3
    for most in (50, 2, 1):
        monkeypatch.setattr("kafka_log.inspect.browse.record_pages.MAX_ENTRIES", most)
        url: str | None = f"{whole.partition('codecs')}/search?text=kappa"
        found: list[str] = []
        while url is not None:
            page = whole.see(url)
            found += [row[0] for row in page.rows if row[0] != "offset"]
            url = next(iter(links(page, "/search[?]")), None)
        assert found == wanted
    page = whole.see(f"{whole.partition('codecs')}/search?text=kappa&offset={wanted[1]}")
    assert [row[0] for row in page.rows[1:]][:1] == [wanted[1]]


def test_a_search_stops_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / f"{FIRST}.log").write_bytes(b"".join(batch(3 * i) for i in range(40)))
    monkeypatch.setattr("kafka_log.inspect.browse.records.SLICE", 1)
    monkeypatch.setattr(
        "kafka_log.inspect.browse.record_pages.Budget", lambda: Budget(300, 1e9, lambda: 0.0)
    )
    visitor = Visitor(tmp_path)
    url: str | None = f"{visitor.partition('t')}/search?text=k2"
    found, pages = [], 0
    while url is not None:
        page = visitor.see(url)
        assert "up to" in page.text
        found += [int(row[0]) for row in page.rows if row[0] != "offset"]
        url = next(iter(links(page, "/search[?]")), None)
        pages += 1
    assert found == [3 * i + 2 for i in range(40)]
    assert pages > 5


def test_without_an_index_a_page_goes_on_where_the_last_one_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / f"{FIRST}.log").write_bytes(b"".join(batch(3 * i) for i in range(40)))
    monkeypatch.setattr(
        "kafka_log.inspect.browse.batch_pages.Budget", lambda: Budget(1000, 1e9, lambda: 0.0)
    )
    visitor = Visitor(tmp_path)
    place = visitor.partition("t")
    for begin, last in (("offset=100", "99 to 101"), ("end=1", "117 to 119")):
        url, pages = f"{place}/batches?{begin}", 0
        while not (page := visitor.see(url)).rows:
            (url,) = links(page, "resume=")
            pages += 1
        assert pages > 1
        assert last in [row[0] for row in page.rows]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts bytes as Linux does")
def test_a_page_of_a_large_log_reads_little_of_it(tmp_path: Path) -> None:
    one, number = batch(0, records=1, size=1000), 40_000
    directory = tmp_path / "t-0"
    directory.mkdir()
    data = bytearray(one * number)
    for i in range(number):  # no checksum covers the base offset
        data[i * len(one) : i * len(one) + 8] = i.to_bytes(8, "big")
    path = directory / f"{FIRST}.log"
    path.write_bytes(data)
    put_offsets(path, [(i, i * len(one)) for i in range(4, number, 4)])
    visitor = Visitor(tmp_path)
    place = visitor.partition("t")
    last, middle = str(number - 1), str(number // 2)
    for query, offset in (("end=1", last), (f"offset={middle}", middle), (f"offset={last}", last)):
        before = _bytes_read()
        page = visitor.see(f"{place}/batches?{query}")
        assert offset in (page.rows[1][0], page.rows[-1][0])
        (url,) = links(page, "/batch[?]")[-1:]
        visitor.see(links(visitor.see(url), "/record[?]")[0])
        visitor.see(links(visitor.see(url), "/bytes[?]")[0])
        assert _bytes_read() - before < 16 << 20  # of four pages


def _bytes_read() -> int:
    """The bytes that this process has read so far."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])


# ---------------------------------------------------------------- damage


@pytest.mark.slow
def test_damage_is_shown_with_what_is_lost(damaged: Visitor) -> None:
    (url,) = links(damaged.see("/"), "byte=383")
    page = damaged.see(url)
    assert page.rows[1][0] == "damaged details"
    assert page.rows[1][7].startswith("offsets lost or at risk: 48 to 53; ")
    (one,) = links(page, "/batch[?].*byte=383")
    shown = damaged.see(one)
    assert "Offsets lost or at risk: 48 to 53." in shown.text
    assert "Damaged batch, offsets 48 to 53 by its header" in shown.text
    assert "Wrong checksum: the batch in bytes 383 to 765 is damaged" in shown.text
    assert "kafka-log salvage leaves these records out" in shown.text
    assert [row[0] for row in shown.rows[-6:]] == list(map(str, range(48, 54)))
    assert shown.rows[-1][5] == "damaged"
    assert "Damaged" in damaged.see(links(shown, "/bytes[?]")[0]).text
    assert "Damaged" in damaged.see(links(shown, "/record[?]")[0]).text
    place = damaged.partition("segments.small")
    bytes_page = damaged.see(links(shown, "/bytes[?]")[0])
    (crc,) = (row for row in bytes_page.rows if row[2] == "crc")
    [(stored, computed)] = re.findall(r"^(0x\w{8}) computed (0x\w{8})$", crc[3])
    assert crc[1].replace(" ", "") == stored[2:] and stored != computed
    for shows in (page, shown, bytes_page, damaged.see(links(shown, "/record[?]")[0])):
        assert f"stored checksum {stored}, computed {computed} over" in shows.text
        assert ".yaml" not in shows.text
    for shows in (shown, bytes_page):
        (finding,) = (a["href"] for tag, a in shows.tags if tag == "a" and "#problem-" in a["href"])
        target, _, anchor = finding.partition("#")
        assert target == place and anchor in damaged.see(target).ids
    found = damaged.see(f"{place}/search?text=nothing")
    assert "Damaged, so that records may be missing" in found.text


@pytest.mark.slow
def test_salvage_does_what_the_page_of_a_damaged_batch_says(tmp_path: Path) -> None:
    root, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(BROKER / "segments.small-0", root / "segments.small-0")
    flip(root / "segments.small-0" / f"{SECOND}.log", 500)
    for options, kept in (([], False), (["--keep-damaged"], True)):
        with redirect_stdout(io.StringIO()):
            main(["salvage", str(root), "--out", str(out / str(kept)), *options])
        offsets = {row["offset"] for row in lines_of("dump", out / str(kept))}
        assert (set(range(48, 54)) <= offsets) is kept and {47, 54} <= offsets


CUT = {
    # segment and size: missing bytes and batches, and offsets
    "inside a batch": (SECOND, 2505, "at least 200 bytes of 1 batch", "those of"),
    "between batches": (SECOND, 2316, "at least 17 bytes of 1 batch", "78 to 83"),
    "to nothing": (SECOND, 0, "at least 2,333 bytes of 6 batches", "42 to 83"),
    "the active one": (f"{126:020d}", 389, "at least 406 bytes of 2 batches", "132 to 143"),
    "the active one, after its last index entry": (
        f"{126:020d}",
        1000,
        "at least 167 bytes of 1 batch",
        "those of",
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_a_cut_segment_shows_what_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "is_spent", False)  # however slow the machine is
    segment, size, missing, offsets = CUT[name]
    shutil.copytree(BROKER / "segments.small-0", tmp_path / "segments.small-0")
    for path in BROKER.glob("*-checkpoint"):
        shutil.copy(path, tmp_path)
    path = tmp_path / "segments.small-0" / f"{segment}.log"
    with path.open("r+b") as file:
        file.truncate(size)
    visitor = Visitor(tmp_path)
    place = visitor.partition("segments.small")
    said = f"Missing: {missing}. Offsets lost or at risk: {offsets}"
    [partition] = discover(tmp_path)
    wanted = next(segment_id(one) for one in partition.segments if one.path == path)
    for query in (f"segment={wanted}&byte={size}", f"segment={wanted}&end=1"):
        assert said in visitor.see(f"{place}/batches?{query}").text
    last = 83 if segment == SECOND else 143
    found = visitor.see(f"{place}/batches?offset={last}")
    assert said in found.text and "verdict error" in str(found.tags)
    if segment == SECOND:
        assert "Missing" not in visitor.see(f"{place}/batches?offset={last + 1}").text
    problem = next(
        found
        for link in dict.fromkeys(links(visitor.see(place), "/batches[?]"))
        if "Missing" in (found := visitor.see(link)).text
    )
    assert said in problem.text


def test_an_incomplete_end_after_a_clean_shutdown_is_damage(tmp_path: Path) -> None:
    shutil.copytree(BROKER / "codecs-1", tmp_path / "codecs-1")
    (tmp_path / ".kafka_cleanshutdown").touch()
    path = tmp_path / "codecs-1" / f"{FIRST}.log"
    path.write_bytes(path.read_bytes()[:-200])
    visitor = Visitor(tmp_path)
    page = visitor.see(f"{visitor.partition('codecs', 1)}/batches?end=1")
    assert page.rows[-1][0] == "damaged details" and "normal" not in page.text
    assert (
        "Missing: at least 200 bytes of 1 batch. Offsets lost or at risk: from 64 on, if any."
        in page.text
    )


def test_the_batch_after_damage_is_found_by_its_byte(tmp_path: Path) -> None:
    size = len(batch(0))
    path = tmp_path / "t-0" / f"{FIRST}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(batch(3 * i) for i in range(4)))
    flip(path, size + 40)
    [partition] = discover(tmp_path / "t-0")
    for byte in range(0, 4 * size, size):
        window = read_window(partition.segments[0], None, Target("byte", byte), 1, Budget())
        assert start_of(window.entries[0]) == byte


@pytest.mark.slow
@pytest.mark.parametrize("tail", [b"\0" * 500, batch(40)[:50], b"", b"\0" * 3])
def test_the_end_of_an_active_segment_is_no_damage(tmp_path: Path, tail: bytes) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    (directory / f"{FIRST}.log").write_bytes(batch(0) + batch(3) + tail)
    visitor = Visitor(tmp_path)
    for url, _, page in visitor.crawl(60):
        if "/bytes" not in url:
            assert not any(a.get("class") == "badge error" for _, a in page.tags), url
            assert not any("verdict error" in a.get("class", "") for _, a in page.tags), url
    assert "Damaged" not in visitor.see(f"{visitor.partition('t')}/search?text=nothing").text


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=10)
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_any_damage_gives_pages(
    data: st.DataObject, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("damaged")
    r = random.Random(seed)
    write_log(root / "t-0", r, segments=2, batches=3)
    for path in sorted((root / "t-0").iterdir()):
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, max(len(content) - 1, 0)))
            content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        path.write_bytes(bytes(content))
    visitor = Visitor(root)
    assert sum(1 for _ in visitor.crawl(25)) >= 3


@pytest.mark.slow
def test_every_link_of_the_sample_leads_to_a_page(damaged: Visitor) -> None:
    for url, status, _ in damaged.crawl(60):
        assert status == 200, url


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("name", ["kafka-2.8", "kafka-4.x", "schema-registry"])
def test_all_links_of_the_samples_lead_to_pages(name: str) -> None:
    for url, status, _ in Visitor(SAMPLES / name).crawl(1500):
        assert status == 200, url


def test_files_that_change_give_fresh_pages(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    path = directory / f"{FIRST}.log"
    path.write_bytes(batch(0) + batch(3))
    visitor = Visitor(tmp_path)
    place = visitor.partition("t")
    pages = [url for url, _, _ in visitor.crawl(40)]
    with path.open("ab") as file:
        file.write(batch(6))
    assert [row[0] for row in visitor.see(f"{place}/batches?offset=4").rows[1:]] == ["3 to 5", "6 to 8"]  # fmt: skip
    (directory / f"{9:020d}.log").write_bytes(batch(9))
    path.rename(directory / f"{FIRST}.log.deleted")
    visitor.lister._fresh_until = 0.0
    for url in pages:
        status, page = visitor.ask(url)
        assert status in (200, 404)
        assert status == 200 or "no longer" in page.text
    assert [row[0] for row in visitor.see(f"{place}/batches").rows[1:]] == ["9 to 11"]
    (directory / f"{9:020d}.log").unlink()  # between the listing and the reading
    for page_name in ("batches", "batches?end=1", "batches?offset=9", "search?text=x"):
        visitor.ask(f"{place}/{page_name}")
    shutil.rmtree(directory)
    visitor.lister._fresh_until = 0.0
    assert visitor.ask(place)[0] == 404


@pytest.mark.parametrize(
    "query",
    [
        "offset=-1",
        "offset=x",
        "offset=99999999999999999999",
        "time=never",
        "byte=1.5",
        "segment=..",
        "segment=/etc/passwd",
        "before=-3",
    ],
)
def test_impossible_parameters_are_refused(whole: Visitor, query: str) -> None:
    status, page = whole.ask(f"{whole.partition('codecs')}/batches?{query}")
    assert status in (400, 404)
    assert "passwd" not in page.text


@pytest.mark.parametrize(
    "url, name, value, said",
    [
        ("batches?offset=abc", "offset", "abc", "Offset has to be a number from 0 on, not 'abc'."),
        ("batches?time=never", "time", "never", "never"),
        ("search?text=", "text", "", "No text was given: enter the text to search for."),
    ],
)
def test_a_refused_form_stays_filled_in(
    whole: Visitor, url: str, name: str, value: str, said: str
) -> None:
    status, page = whole.ask(f"{whole.partition('codecs')}/{url}")
    assert status == 400 and said in page.text
    fields = {a["name"]: a["value"] for tag, a in page.tags if tag == "input"}
    assert set(fields) == {"offset", "time", "text"} and fields[name] == value


@pytest.mark.parametrize("query", ["offset=999", "time=2200-01-01"])
def test_a_place_after_the_end_leads_to_the_last_batches(whole: Visitor, query: str) -> None:
    place = whole.partition("codecs", 1)
    page = whole.see(f"{place}/batches?{query}")
    assert "There is no batch from here on. The log has offsets 0 to 63." in page.text
    assert f"{place}/batches?end=1" in page.links


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/partitions/..%2f..",
        "/partitions/../../x",
        "/x",
        "/partitions",
        "//",
        "/topics/x",
        "/partitions/x/batch",
    ],
)
def test_other_paths_do_not_exist(whole: Visitor, path: str) -> None:
    assert whole.ask(path)[0] in (404, 200) if path == "//" else whole.ask(path)[0] == 404


# ---------------------------------------------------------------- hostile names and values

HOSTILE = [*NASTY, "</style><script>alert(1)</script>", "\x1b[31m\x00\x7f", "\u2066\u202e\u2069", "x" * 3_000_000]  # fmt: skip


@pytest.mark.slow
def test_hostile_values_are_text(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    data = b""
    for i, text in enumerate(HOSTILE):
        raw = text.encode()
        made: Any = {"offset_delta": 0, "key": raw, "value": raw, "headers": [{"key": text[:1000], "value": raw}]}  # fmt: skip
        data += RECORD_BATCH.build({"base_offset": i, "records": [made]})
    (directory / f"{FIRST}.log").write_bytes(data)
    visitor = Visitor(tmp_path)
    place = visitor.partition("t")
    for i, text in enumerate(HOSTILE):
        (url,) = links(visitor.see(f"{place}/batches?offset={i}"), "/batch[?]")[:1]
        page = visitor.see(url)
        record = visitor.see(links(page, "/record[?]")[0])
        visitor.see(links(page, "/bytes[?]")[0])
        visitor.see(f"{place}/search?" + f"text={'alert' if i % 2 else 'x'}&offset={i}")
        for shown in (page, record):
            assert not set("".join(shown.texts)) & set("\x00\x1b\x7f\u202e\u2066\u2069\u200b")
        if len(text) > 10_000:
            assert "characters)" in record.text and "bytes more" in record.text


@pytest.mark.slow
def test_hostile_names_are_text(tmp_path: Path) -> None:
    for i, text in enumerate(HOSTILE[:-1]):
        name = f"{i}{text}".replace("/", ":").replace("\0", "")[:80]
        directory = tmp_path / f"{name}-0"
        directory.mkdir()
        (directory / f"{FIRST}.log").write_bytes(batch(0))
    raw = bytes(tmp_path) + b"/raw\xff-0"
    Path(raw.decode("utf-8", "surrogateescape")).mkdir()
    Path((raw + b"/" + FIRST.encode() + b".log").decode("utf-8", "surrogateescape")).write_bytes(batch(0))  # fmt: skip
    visitor = Visitor(tmp_path)
    seen = 0
    for url, status, page in visitor.crawl(90):
        assert status == 200, url
        assert not set("".join(page.texts)) & set("\x00\x1b\x7f\u202e\u2066\u2069\u200b")
        seen += 1
    assert seen == 90


# ---------------------------------------------------------------- secrets


@pytest.mark.slow
def test_secrets_are_hidden_unless_asked_for() -> None:
    place = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
    hidden = Visitor(place)
    assert RecordView().hides_bytes("__cluster_metadata")
    shown = 0
    for url, status, page in hidden.crawl(60):
        assert status == 200
        if "/record?" in url:
            assert "hidden, because it may contain secrets" in page.text
        if "/bytes?" in url:
            shown += 1
            records = [row for row in page.rows if "records" in row[2] or not row[2]]
            assert records and all(row[1] == "" for row in records)
    assert shown
    for view in (RecordView("none"), RecordView("hex"), RecordView("utf8")):
        other = Visitor(place, view=view)
        for (url, _, page), (_, _, same) in zip(other.crawl(25), hidden.crawl(25), strict=True):
            assert page.texts == same.texts, url
    asked = Visitor(place, view=RecordView(show_secrets=True))
    (url,) = links(asked.see(f"{asked.partition('__cluster_metadata')}/batches"), "/batch[?]")[:1]
    assert any("records[0]" in row[2] for row in asked.see(url.replace("/batch?", "/bytes?")).rows)


def test_values_are_decoded_as_dump_does() -> None:
    place = SAMPLES / "kafka-4.x" / "codecs-0"
    visitor = Visitor(place, view=RecordView("key=utf8,value=hex"))
    (url,) = links(visitor.see(f"{visitor.partition('codecs')}/batches?offset=0"), "/batch[?]")[:1]
    (first,) = lines_of("dump", place, "--decode", "key=utf8,value=hex", "-n", 1)
    page = visitor.see(links(visitor.see(url), "/record[?]")[0])
    assert first["value"] in page.text.replace(" ", "")
