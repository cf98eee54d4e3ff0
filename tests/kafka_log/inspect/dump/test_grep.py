"""``kafka-log dump --grep`` selects the records that Python's regular expressions find."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_log.cli import main
from kafka_log.inspect.dump.decoding import KeyValueDecoder, KeyValueFormats
from kafka_log.inspect.dump.search import RecordSearch
from kafka_log.read.scanning import scan
from tests.paths import SAMPLES

NEW = SAMPLES / "kafka-4.x"
REGISTRY = SAMPLES / "schema-registry"

PATTERNS = ["a", "^a", "b$", "a.b", "[^a]b", "(ab|ba)+", "ä", "a{2,}", "^$", r"\d\D", "A", ""]
"""Patterns that mean the same to RE2 and to Python's ``re``."""

Bytes = st.one_of(
    st.none(),
    st.text("abäA1 \n", max_size=6).map(str.encode),
    st.binary(max_size=4),
    st.just(b"a\xffb"),
)


def finds(pattern: str, value: bytes | None, flags: re.RegexFlag) -> bool:
    if value is None:
        return False
    try:
        return re.search(pattern, value.decode("utf-8"), flags | re.M) is not None
    except UnicodeDecodeError:
        found = re.search(pattern.encode(), value, flags | re.M)
        return found is not None


def written(directory: Path, rows: list[tuple[bytes | None, bytes | None]]) -> Path:
    records: list[Any] = [
        {"offset_delta": i, "key": k, "value": v} for i, (k, v) in enumerate(rows)
    ]
    (directory / f"{0:020d}.log").write_bytes(RECORD_BATCH.build({"records": records}))
    return directory


def search(pattern: str, *, ignore_case: bool = False) -> RecordSearch:
    return RecordSearch(
        pattern,
        ignore_case=ignore_case,
        decoder=KeyValueDecoder(KeyValueFormats(), repr),
    )


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(Bytes, Bytes), min_size=1, max_size=8),
    pattern=st.sampled_from(PATTERNS),
    ignore_case=st.booleans(),
)
def test_the_same_records_as_by_python(
    rows: list[tuple[bytes | None, bytes | None]],
    pattern: str,
    ignore_case: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = written(tmp_path_factory.mktemp("t"), rows)
    flags = re.I if ignore_case else re.NOFLAG
    if ignore_case and "ä" in pattern:
        return  # Python folds no letters of bytes
    wanted = [i for i, row in enumerate(rows) if any(finds(pattern, part, flags) for part in row)]
    found = search(pattern, ignore_case=ignore_case)
    scanned = scan(directory, ["offset", *found.columns])
    offsets = [o for batch in scanned for o in found.filter(batch).column("offset").to_pylist()]
    assert offsets == wanted


def dumped(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[int]:
    assert main(["dump", *map(str, arguments), "--format", "jsonl", "--columns", "offset"]) == 0
    return [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()]


def test_decoded_values_are_searched(capsys: pytest.CaptureFixture[str]) -> None:
    topic = REGISTRY / "customers-0"
    assert dumped(capsys, topic, "--decode", "value=avro", "--grep", '"zip": "3000"')
    assert not dumped(capsys, topic, "--grep", '"zip": "3000"')
    group = (NEW / "__consumer_offsets-0", "--grep", '"group": "tx-group"')
    assert dumped(capsys, *group)
    assert not dumped(capsys, *group, "--decode", "none")


def test_bytes_that_no_decoder_reads_are_not_searched_as_they_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = written(tmp_path, [(None, b"\xde\xad"), (None, b"12345678")])
    assert dumped(capsys, directory, "--decode", "int", "--grep", "dead|3q0|base64") == []
    assert dumped(capsys, directory, "--decode", "int", "--grep", "^3544952156018063160$") == [1]


def test_control_records_are_searched(capsys: pytest.CaptureFixture[str]) -> None:
    topic = NEW / "transactions-2"
    assert dumped(capsys, topic, "--control-records", "--grep", "commit", "-i") == [4]


def test_the_last_that_match_and_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    topic = NEW / "codecs-0"
    every = dumped(capsys, topic, "--grep", "gamma")
    assert len(every) > 4
    assert dumped(capsys, topic, "--grep", "gamma", "--last", "3") == every[-3:]
    assert dumped(capsys, topic, "--grep", "gamma", "-n", "2") == every[:2]


def test_nothing_matches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(NEW / "codecs-0"), "--grep", "no such text"]) == 0
    assert "nothing matches --grep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grep", "(a"], "--grep '(a' is not a regular expression: missing ): (a"),
        (["--grep", "a", "--batches"], "--grep is for records"),
        (["--grep", "a", "--format", "vectors"], "--grep is for records"),
        (["-i"], "add --grep PATTERN"),
    ],
)
def test_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(NEW / "codecs-0"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_exponential_pattern_takes_no_exponential_time(tmp_path: Path) -> None:
    directory = written(tmp_path, [(None, b"a" * 100_000)])
    scanned = scan(directory, ["offset", *RecordSearch.columns])
    assert [batch.num_rows for batch in map(search("(a+)+b").filter, scanned)] == [0]


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(Bytes, Bytes), min_size=1, max_size=8),
    pattern=st.sampled_from(
        [b"\xff", b"a|\xff", b"[\xc3\xff]b", b"^\xff*b", b"\xa4$", b"\xed\xa0\x80|A"]
    ),
)
def test_a_pattern_of_other_bytes_searches_bytes(
    rows: list[tuple[bytes | None, bytes | None]],
    pattern: bytes,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """As ``grep`` does in the locale C."""
    directory = written(tmp_path_factory.mktemp("t"), rows)
    wanted = [
        i
        for i, row in enumerate(rows)
        if any(part is not None and re.search(pattern, part, re.M) for part in row)
    ]
    found = search(os.fsdecode(pattern))
    batches = scan(directory, ["offset", *found.columns])
    assert [o for batch in batches for o in found.filter(batch)["offset"].to_pylist()] == wanted


@pytest.mark.parametrize("pattern", [r"\\udcff", r"\\ud800", "plain", "\udcff", "surrogate|plain"])
def test_decoded_texts_with_half_a_surrogate_pair(
    pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [b'"\\udcff"', b'{"\\ud800": 1}', b'"plain"', b"\xff", None]
    written(tmp_path, [(None, value) for value in values])
    command = [
        "dump",
        str(tmp_path),
        "--decode",
        "value=json",
        "--columns",
        "offset",
        "--format",
        "jsonl",
    ]
    assert main([*command, "--grep", pattern]) == 0
    wanted = {r"\\udcff": [0], r"\\ud800": [1], "\udcff": [3]}.get(pattern, [2])
    assert [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()] == wanted


def test_other_surrogates_are_no_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, [(None, b"a")])
    for pattern in ("\ud800", "a\udfff", "[\udcff"):
        assert main(["dump", str(tmp_path), "--grep", pattern]) == 2
        shown = capsys.readouterr()
        assert not shown.out
        assert "is not a regular expression" in shown.err and len(shown.err.splitlines()) == 1
