"""Names and patterns of topics, numbers and ranges of partitions, as people write them and as answers take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.logs.partition_filters import (
    PartitionFilter,
    TopicFilter,
    find_unmatched_numbers,
    find_unmatched_topics,
    parse_partitions,
    parse_topics,
)
from kafka_log.logs.partitions import NotFoundError, SkippedPath, filter_by_topics
from tests.paths import SAMPLES
from tests.support.made_topics import log

BROKER = SAMPLES / "kafka-4.x"
LEGAL = st.text("abcXYZ019._-", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", ("orders",)),
        ("a,b , c,,a", ("a", "b", "c")),
        ("-orders,-x", ("-orders", "-x")),
        ("{a,b}-*,c", ("{a,b}-*", "c")),
        ("[a,]x,b", ("[a,]x", "b")),
        (r"a\,b,c", (r"a\,b", "c")),
        ("{a,{b,c}},d", ("{a,{b,c}}", "d")),
    ],
)
def test_lists_of_topics(text: str, expected: tuple[str, ...]) -> None:
    assert parse_topics(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "not a topic"), (" , ", "not a topic"), ("[a", "without its ]"), ("{a", "without its }"), ("a\\", "nothing follows"), ("[b-a]", "not a range")],
)  # fmt: skip
def test_lists_that_are_none(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_topics(text)


@given(st.lists(LEGAL, min_size=1, max_size=5), LEGAL)
def test_names_select_themselves_only(names: list[str], other: str) -> None:
    selected = TopicFilter(parse_topics(",".join(names)))
    assert all(name in selected for name in names)
    assert (other in selected) == (other in names)
    assert find_unmatched_topics(names, [other]) == sorted(set(names) - {other})


@given(LEGAL, LEGAL)
def test_a_star_matches_every_topic_but_internal_ones(start: str, end: str) -> None:
    assert start + end in TopicFilter(["*"])
    assert start + end in TopicFilter([f"{start}*"])
    assert start + end in TopicFilter([f"?*{end}"])


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_patterns_match_internal_topics_only_if_they_begin_as_these_do(topic: str) -> None:
    for pattern in ("*", "_*", "?" * len(topic), "[_]*", f"{{{topic},orders}}"):
        assert topic not in TopicFilter([pattern])
        assert TopicFilter([pattern]).find_excluded([topic, "x"]) == [topic]
    for pattern in (topic, "__*", topic[:-1] + "?"):
        assert topic in TopicFilter([pattern])
        assert TopicFilter([pattern]).find_excluded([topic]) == []
    assert topic in TopicFilter(["*", topic])
    assert "__heartbeat" in TopicFilter(["*"]), "a topic of a user, whatever its name"


def test_a_name_selects_a_directory_that_is_named_like_a_pattern() -> None:
    assert "a*b" in TopicFilter(["a*b"])
    assert "a,b" in TopicFilter(parse_topics(r"a\,b"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", (7,)), ("0-3,7", (range(4), 7)), ("3-3", (range(3, 4),)), (" 1 , 2-4", (1, range(2, 5))), ("0-2147483647", (range(1 << 31),))],
)  # fmt: skip
def test_lists_of_partitions(text: str, expected: Any) -> None:
    assert parse_partitions(text) == expected


@pytest.mark.parametrize("text", ["", "a", "-1", "1-", "-1-2", "1,,2", "2147483648", "0-9999999999", "1:2", "٣"])  # fmt: skip
def test_partitions_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a partition number: write .* 0-3,7"):
        parse_partitions(text)


def test_a_range_in_the_wrong_order() -> None:
    with pytest.raises(ValueError, match="the partition 3 is after 1: write the lower one first"):
        parse_partitions("3-1")


@given(st.lists(st.integers(0, 20) | st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted).map(lambda p: range(p[0], p[1] + 1)), max_size=4), st.sets(st.integers(0, 20)))  # fmt: skip
def test_ranges_are_sets(wanted: list[Any], there: set[int]) -> None:
    every = {n for one in wanted for n in ([one] if isinstance(one, int) else one)}
    selected = PartitionFilter(wanted)
    assert {n for n in range(25) if n in selected} == every
    for one in find_unmatched_numbers(wanted, there):
        assert there.isdisjoint([one] if isinstance(one, int) else one)


def test_skipped_paths_of_selected_topics() -> None:
    paths = [SkippedPath(Path(name), "is no file", name) for name in ("orders-eu", "users")]
    assert [one.topic for one in filter_by_topics(paths, ["orders-*"])] == ["orders-eu"]


# ---------------------------------------------------------------- answers


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[tuple[str, int]]:
    assert main(["ls", str(BROKER), *options, "--format", "jsonl"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    return [(row["topic"], row["partition"]) for row in rows]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--topic", "codecs", "--partition", "0-1,4"], [("codecs", 0), ("codecs", 1), ("codecs", 4)]),
        (["--topic", "empt?,trimmed"], [("empty", 0), ("trimmed", 0)]),
        (["--topic", "comp*", "--partition", "0"], [("compacted", 0), ("compacted-again", 0)]),
        (["--topic", "{empty,trimmed}"], [("empty", 0), ("trimmed", 0)]),
        (["--topic", "__*"], [("__cluster_metadata", 0), ("__consumer_offsets", 0), ("__transaction_state", 0)]),
        (["--topic", "e*", "--topic", "trimmed"], [("empty", 0), ("trimmed", 0)]),
        (["--topic", "codecs", "--partition", "3-99"], [("codecs", 3), ("codecs", 4)]),
    ],
)  # fmt: skip
def test_the_command_line_and_python_select_the_same(
    options: list[str], expected: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(capsys, *options) == expected
    topics = [one for flag, text in zip(options[::2], options[1::2], strict=True) if flag == "--topic" for one in parse_topics(text)]  # fmt: skip
    numbers = next((text for flag, text in zip(options[::2], options[1::2], strict=True) if flag == "--partition"), None)  # fmt: skip
    opened = LogDirectory(BROKER, topics=topics, partitions=numbers)
    assert [p.key for p in opened.all_partitions] == expected
    table = read_table(BROKER, ["topic", "partition"], topics=topics, partitions=numbers)
    assert {tuple(row.values()) for row in table.to_pylist()} <= set(expected)


def test_a_star_leaves_out_internal_topics(capsys: pytest.CaptureFixture[str]) -> None:
    every = listed(capsys)
    assert listed(capsys, "--topic", "*") == [key for key in every if key[0] not in INTERNAL_TOPICS]
    assert listed(capsys, "--topic", "*,__*") == every


def test_topics_with_a_leading_dash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("-a", "-b", "c"):
        log(tmp_path, f"{name}-0")
    for options in (["--topic=-a,-b"], ["--topic", "-a,-b"], ["--topic", "-*"], ["--topic", "-a", "--topic=-b"]):  # fmt: skip
        assert main(["ls", str(tmp_path), *options, "--format", "jsonl"]) == 0
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        assert [row["topic"] for row in rows] == ["-a", "-b"]


def test_what_selects_nothing() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"topics": "codesc-*"}, r"there is no topic codesc-\*; there are: .*; did you mean codecs\?"),
        ({"topics": ["codecs", "x*"]}, r"there is no topic x\*; there are: "),
        ({"topics": "codecs", "partitions": "4,6-9"}, "there is no partition 6-9; there are: 0, 1, 2, 3, 4"),
        ({"topics": "*_state"}, r"there is no topic \*_state; .*; a pattern matches internal topics \(__transaction_state\) only if it begins with __"),
    ]  # fmt: skip
    for filters, reason in cases:
        with pytest.raises(NotFoundError, match=reason):
            read_table(BROKER, **filters)
        with pytest.raises(NotFoundError, match=reason):
            _ = LogDirectory(BROKER, **filters).all_partitions


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["topics", "partitions", "configs"])
def test_metadata_of_topics_by_pattern(kind: str) -> None:
    every = LogDirectory(BROKER).metadata(kind).to_pylist()
    found = LogDirectory(BROKER, topics="co*").metadata(kind).to_pylist()
    name = "resource_name" if kind == "configs" else "topic"
    assert found == [row for row in every if row[name].startswith("co") and row.get("resource_type", 2) in (2, "topic", "TOPIC")]  # fmt: skip
    assert found


def test_committed_offsets_of_topics_by_pattern() -> None:
    every = LogDirectory(BROKER).groups().to_pylist()
    found = LogDirectory(BROKER, topics="c*", partitions="1-9").groups().to_pylist()
    assert found == [r for r in every if r["topic"].startswith("c") and 1 <= r["partition"] <= 9]
    assert 0 < len(found) < len(every)


@pytest.mark.parametrize("command", ["groups", "metadata"])
def test_questions_of_the_cluster_refuse_patterns_without_a_topic(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(BROKER), "--topic", "x*"]) == 2
    assert "there is no topic x*; there are: " in capsys.readouterr().err
    assert main([command, str(BROKER), "--topic", "c*"]) == 0


def test_an_export_with_patterns_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(BROKER), "--topic", "co*", "--partition", "0-1", "--time", "2020-01-01:", "--out", str(tmp_path / "out"), "--format", "jsonl"]  # fmt: skip
    assert main(command) == 0
    assert "5 written, 0 already complete" in capsys.readouterr().err
    assert main(command) == 0
    assert "0 written, 5 already complete" in capsys.readouterr().err


@pytest.mark.parametrize(
    "make", [lambda f: LogDirectory(BROKER, **f), lambda f: read_table(BROKER, **f)]
)
@pytest.mark.parametrize(
    ("filters", "reason"),
    [({"topics": "[a"}, "topics: .* without its"), ({"partitions": "x"}, "partitions: 'x' is not"), ({"partitions": [range(0)]}, "is not empty"), ({"partitions": [range(0, 9, 2)]}, "has no steps")],
)  # fmt: skip
def test_values_that_are_refused(make: Callable[[Any], Any], filters: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make(filters)
