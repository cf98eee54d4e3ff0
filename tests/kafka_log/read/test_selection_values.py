"""Filters that cannot be are refused in words, and the command line means the same by them as Python."""

from __future__ import annotations

import io
import json
import random
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import read_table, scan_batches
from kafka_log.cli import main
from kafka_log.cli.selection import parse_header
from kafka_log.read.selection import Selection
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.mixed_logs import NAMES, PRODUCERS, START, mixed_log, naive, seen

SEEDS = st.integers(0, 1 << 20)


# ---------------------------------------------------------------- what cannot be asked for


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"topics": 5}, "topics is 5: names of topics are expected"),
        ({"topics": ["a", b"b"]}, "topics is b'b': names of topics are expected"),
        ({"partitions": "x"}, "partitions: 'x' is not a partition number"),
        ({"partitions": [0, -1]}, "partitions is -1: numbers of partitions are expected"),
        ({"partitions": True}, "partitions is True"),
        (
            {"offsets": (5, 3)},
            r"offsets is \(5, 3\): the first is above the end: give the lower one first",
        ),
        ({"offsets": 7}, r"offsets is 7: it must be \(first, end\)"),
        ({"offsets": (True, None)}, r"offsets is \(True, None\): it must be \(first, end\)"),
        ({"timestamps": (None, False)}, r"timestamps is \(None, False\): it must be"),
        ({"producers": False}, "producers is False: producer ids are expected"),
        ({"control_records": "no"}, "control_records is 'no': True or False is expected"),
        ({"deleted_records": 1}, "deleted_records is 1: True or False is expected"),
        ({"timestamps": (1 << 63, None)}, "timestamps is .* must fit 64 bits"),
        ({"keys": "text"}, "keys is 't': bytes are expected"),
        ({"keys": [1]}, "keys is 1: bytes are expected, or None for records without a key"),
        ({"headers": 3}, "headers is 3: the name of a header is expected"),
        ({"headers": [("a", "text")]}, r"headers is \('a', 'text'\): the name of a header"),
        ({"producers": 1.5}, "producers is 1.5: producer ids are expected"),
        ({"producers": [1 << 63]}, "producers is 9223372036854775808"),
        ({"isolation": "committed"}, "isolation is 'committed'; known: read_uncommitted"),
        ({"include": "dead"}, "include: 'dead' is not a state of segments; known: live, deleted"),
        ({"policy": "lax"}, "policy is 'lax'; known: strict, kafka, salvage"),
        ({"on_damage": "lose"}, "on_damage is 'lose'; known: raise, keep, drop"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(filters: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Selection(**filters)
    with pytest.raises(ValueError, match=reason):
        Selection().but(**filters)


@pytest.mark.parametrize("name", ["indexes", "binary_view", "show_secrets"])
def test_words_are_no_flags(name: str) -> None:
    options: Any = {name: "no"}
    with pytest.raises(ValueError, match=f"{name} is 'no': True or False is expected"):
        read_table(SAMPLES, **options)


def test_unknown_filters() -> None:
    with pytest.raises(TypeError, match="there is no filter 'offset'; known: topics, partitions"):
        read_table(SAMPLES, offset=(0, 1))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "value"),
    [("keys", b"k"), ("keys", ()), ("headers", "h"), ("isolation", "read_committed")],
)
def test_batch_headers_do_not_say_everything(name: str, value: Any) -> None:
    with pytest.raises(
        ValueError, match=f"{name} filters records, and batch headers do not tell it"
    ):
        scan_batches(SAMPLES / "kafka-4.x", **{name: value})


def test_batches_are_those_of_any_isolation_that_leaves_out_nothing() -> None:
    every = scan_batches(SAMPLES / "kafka-4.x", ["base_offset"]).read_all()
    uncommitted = scan_batches(SAMPLES / "kafka-4.x", ["base_offset"], isolation="read_uncommitted")
    assert uncommitted.read_all() == every


def test_one_value_and_several() -> None:
    assert Selection(topics="a", partitions=1, keys=b"", producers=-1, headers="h") == Selection(
        topics=["a"], partitions=(1,), keys=[b""], producers={-1}, headers=["h", "h"]
    )
    assert Selection(headers=("h", b"v")).headers == (("h", b"v"),)
    assert Selection(headers=("h", "i")).headers == ("h", "i")
    assert Selection(keys=[None]).keys == (None,)
    some = Selection(policy="salvage", offsets=(1, None))
    assert (some.damage, some.but(policy="kafka").damage) == ("keep", "raise")
    assert some.to_keywords() == {"offsets": (1, None), "policy": "salvage"}


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--partition", "one"], "argument --partition: 'one' is not a partition number"),
        (["--partition", "-1"], "argument --partition: '-1' is not a partition number"),
        (["--producer", "x"], "argument --producer: 'x' is not a producer id"),
        (["--producer", str(1 << 63)], "argument --producer: "),
        (["--offsets", "5"], "argument --offsets: '5' is not a range of offsets"),
        (["--offsets", "9:5"], "argument --offsets: the offset 9 is after 5"),
        (["--time", "noon:"], "argument --time: 'noon:' is not a range of times"),
        (
            ["--time", "1960-01-01:20261122:00"],
            "argument --time: '1960-01-01:20261122:00' can be split",
        ),
        (["--key", "hex:0"], "argument --key: 'hex:0' is not hexadecimal"),
        (["--key", "base64:?"], "argument --key: 'base64:?' is not Base64"),
        (["--header", "a=hex:0"], "argument --header: 'hex:0' is not hexadecimal"),
        (["--isolation", "none"], "argument --isolation: invalid choice: 'none'"),
        (["--include", "dead"], "argument --include: 'dead' is not a state of segments"),
    ],
)
def test_commands_refuse_by_the_name_of_the_argument(
    argv: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["export", str(SAMPLES), "--out", "nowhere", *argv])
    assert stopped.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.soak
@examples(10)
@given(seed=SEEDS)
def test_the_command_line_says_the_same(seed: int) -> None:
    r = random.Random(seed)
    key, value = r.choice((b"", b"a", b"\xff\x00")), r.choice((b"", b"1"))
    low, name, producer = r.randrange(40), r.choice(NAMES), r.choice(PRODUCERS)
    spelled = {b"": ["", "hex:", "text:"], b"a": ["a", "base64:YQ==", "text:a"]}
    for argv, filters in (
        (["--key", r.choice(spelled.get(key, ["hex:ff00", "base64:/wA="]))], {"keys": [key]}),
        (["--key", "null:", "--key", "a"], {"keys": [None, b"a"]}),
        (["--header", name, "--header", f"{name}={value.decode()}"], {"headers": [name, (name, value)]}),
        (["--header", f"{name}=null:"], {"headers": [(name, None)]}),
        (["--offsets", f"{low}:{low + 30}"], {"offsets": (low, low + 30)}),
        (["--time", f"{START + low}:"], {"timestamps": (START + low, None)}),
        (["--producer", str(producer)], {"producers": [producer]}),
        (["--isolation", "read_committed"], {"isolation": "read_committed"}),
        (["--control-records"], {"control_records": True}),
    ):  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = mixed_log(Path(folder) / "t-0", seed)
            out = Path(folder) / "out"
            assert main(["export", str(path), "--out", str(out), "--format", "arrow", *argv]) == 0
            with pa.memory_map(str(out / "t-0.arrow")) as file:
                found = pa.ipc.open_file(file).read_all().column("offset").to_pylist()
            assert found == naive(seen(path), filters), argv
            said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
            with redirect_stdout(said):
                engine = r.choice(("arrow", "construct"))
                assert (
                    main(["dump", str(path), "--format", "jsonl", "--engine", engine, *argv]) == 0
                )
            said.seek(0)
            assert [json.loads(line)["offset"] for line in said] == found, argv


@pytest.mark.parametrize("header", ["a\udcff", ("\ud800", None), [("\udcff", b"x")]])
def test_a_header_name_with_a_lone_surrogate_is_refused(header: Any) -> None:
    with pytest.raises(ValueError, match=r"headers is .* without lone surrogates"):
        Selection(headers=header)


def test_bytes_of_a_header_name_are_read_as_the_logs_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["dump", str(SAMPLES / "kafka-4.x" / "codecs-0"), "--header"]
    for name in ("trace\udcff", "\udcff=a"):
        assert main([*command, name]) == 0
        assert capsys.readouterr().err == "kafka-log: nothing matches --header\n"
    assert parse_header("a\udcff=\udcfe") == ("a\ufffd", b"\xfe")
