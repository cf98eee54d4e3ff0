"""Names and filters that nothing agrees with: a line on the error output says so."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import LogDirectory, read_table, scan_batches
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.made_topics import entry, log

BROKER = str(SAMPLES / "kafka-4.x")
WITH_TOPICS = ("ls", "stat", "check", "dump", "txn", "producers", "groups", "metadata", "keys", "schemas", "export", "salvage", "merge", "cut", "reindex", "convert", "diff")  # fmt: skip


def run(
    capsys: pytest.CaptureFixture[str], command: str, *options: str, tmp_path: Path | None = None
) -> tuple[int, str, list[str]]:
    needed = {"diff": [BROKER]}.get(command, [])
    if command in ("export", "salvage", "merge", "cut", "reindex", "convert"):
        assert tmp_path is not None
        needed = ["--out", str(tmp_path / "out")]
    if command == "merge":
        needed = [BROKER, *needed]
    code = main([command, BROKER, *needed, *options])
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if " skipped: " not in line]
    return code, out, lines


@pytest.mark.slow
@pytest.mark.parametrize("command", WITH_TOPICS)
def test_a_topic_that_is_not_there(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    more = ["--offsets", "0:1"] if command == "cut" else []
    for given in (["codec"], ["codecs", "codec"]):
        topics = [word for name in given for word in ("--topic", name)]
        code, out, err = run(capsys, command, *topics, *more, tmp_path=tmp_path)
        assert (code, out, len(err)) == (2, "", 1)
        assert "there is no topic codec; there are: " in err[0]
        assert err[0].endswith("; did you mean codecs?")


@pytest.mark.parametrize("kind", ["partitions", "configs"])
def test_a_topic_without_metadata(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "metadata", "--what", kind, "--topic", "codecs,codec")
    assert (code, out, len(err)) == (2, "", 1)
    assert "there is no topic codec; there are: " in err[0]
    code, _, err = run(capsys, "metadata", "--what", kind, "--topic", "compacted")
    assert (code, err) == (0, [])


@pytest.mark.parametrize("command", [c for c in WITH_TOPICS if c not in ("groups", "metadata", "cut")])  # fmt: skip
def test_a_partition_that_is_not_there(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = run(capsys, command, "--topic", "codecs", "--partition", "99", tmp_path=tmp_path)
    assert code == 2
    assert err == ["kafka-log: there is no partition 99; there are: 0, 1, 2, 3, 4"]


@pytest.mark.slow
@pytest.mark.parametrize("states", [[], ["--states"], ["--format", "jsonl"]])
def test_a_group_that_is_not_there(states: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    there = "there are: group-classic, group-consumer, tx-group"
    for given, hint in (
        (["nope"], ""),
        (["group-clasic"], "; did you mean group-classic?"),
        (["tx-group", "tx-grou"], "; did you mean tx-group?"),
    ):
        options = [word for name in given for word in ("--group", name)]
        code, out, err = run(capsys, "groups", *options, *states)
        assert (code, out) == (2, "")
        assert err == [f"kafka-log: there is no group {given[-1]}; {there}{hint}"]


def test_a_group_that_is_there_and_has_no_such_commit(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "groups", "--group", "tx-group", "--offsets", "9999:")
    assert (code, out) == (0, "no committed offsets\n")
    assert err == ["kafka-log: nothing matches --offsets, --group"]
    code, out, err = run(capsys, "groups", "--topic", "empty")
    assert (code, err) == (0, ["kafka-log: nothing matches --topic"])
    code, out, err = run(capsys, "groups", "--as-of", "2001-01-01")
    assert (code, err) == (0, ["kafka-log: nothing matches --as-of"])


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("output", ["text", "jsonl", "csv"])
@pytest.mark.parametrize(
    ("command", "filters"),
    [
        *((c, {"--producer": "424242"}) for c in ("stat", "dump", "txn", "producers", "keys", "export")),
        *((c, {"--offsets": "100000:"}) for c in ("stat", "dump", "txn", "producers", "keys", "cut", "export")),
        *((c, {"--time": "2001-01-01:2001-01-02"}) for c in ("dump", "cut")),
        *((c, {"--key": "nobody"}) for c in ("dump", "keys", "export")),
        ("dump", {"--header": "nothing", "--time": "2001-01-01:"}),
        ("dump --batches", {"--producer": "424242"}),
        ("dump --batches --columns size", {"--producer": "424242"}),
        ("stat --largest 3", {"--producer": "424242"}),
        ("txn", {"--producer": "1001", "--state": "committed"}),
    ],
)  # fmt: skip
def test_filters_that_nothing_matches(
    command: str,
    filters: dict[str, str],
    output: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    verb, *more = command.split()
    out = ["--format", "csv"] if verb == "export" else ["--format", output]
    options = [word for item in filters.items() for word in item]
    code, _, err = run(capsys, verb, *more, *out, *options, tmp_path=tmp_path)
    assert code == 0
    said = [line for line in err if "nothing matches" in line]
    [line] = said
    assert set(line.removeprefix("kafka-log: nothing matches ").split(", ")) == set(filters)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["dump", "dump --batches", "stat", "keys", "txn", "producers", "export", "cut"]
)
def test_offsets_beyond_the_end(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A line says which offsets there are, of a few partitions."""
    verb, *more = command.split()
    codes = [*more, "--topic", "codecs", "--partition", "0", "--offsets", "1000:"]
    code, _, err = run(capsys, verb, *codes, tmp_path=tmp_path)
    assert code == 0
    assert "kafka-log: available offsets: codecs-0 0 to 66" in err
    code, _, err = run(capsys, verb, *more, "--offsets", "100000:", tmp_path=tmp_path / "all")
    [line] = [line for line in err if "available offsets: " in line]
    assert line.endswith(" more partitions") and line.count(" to ") + line.count("none") == 5


def test_offsets_of_logs_that_start_later(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = run(capsys, "dump", "--topic", "trimmed", "--offsets", "0:1")
    assert (code, err[0]) == (0, "kafka-log: nothing matches --offsets")
    assert err[1].startswith("kafka-log: available offsets: trimmed-0 ")
    assert not err[1].startswith("kafka-log: available offsets: trimmed-0 0 ")
    empty = str(log(tmp_path, "orders-0"))
    assert main(["dump", empty, "--offsets", "5:"]) == 0
    assert "available offsets: orders-0 is empty (next offset 0)" in capsys.readouterr().err


@pytest.mark.parametrize("byte", [24, 3], ids=["last offset", "base offset"])
def test_offsets_of_a_damaged_end_are_not_offered(
    byte: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flipped bit of the last header: nobody knows where the log ends."""
    wrong = bytearray(entry(3, None, b"x"))
    wrong[byte] ^= 1
    log(tmp_path, "t-0", *(entry(i, None, b"a") for i in range(3)), bytes(wrong))
    assert main(["dump", str(tmp_path), "--offsets", f"{1 << 41}:"]) == 0
    err = capsys.readouterr().err
    assert "nothing matches --offsets" in err
    assert "available offsets" not in err


@pytest.mark.parametrize("offset", [-2, 168, 999999])
def test_metadata_as_of_an_offset_that_is_not_there(
    offset: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "metadata", "--as-of", str(offset))
    assert (code, out) == (2, "")
    assert err == [f"kafka-log: there is no offset {offset}: the log ends at 167"]


def test_what_is_empty_without_a_filter(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(log(tmp_path, "orders-0"))
    for command in ("dump", "stat", "txn", "producers", "keys"):
        assert main([command, path]) == 0
        assert capsys.readouterr().err == ""


CHECKED_NOTHING = (["--offsets", "1000:"], ["--producer", "4242"], ["--time", "2001-01-01:2001-01-02"])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("filters", CHECKED_NOTHING)
def test_check_is_not_content_with_no_batch(
    filters: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    here = ["--topic", "codecs", "--partition", "0", *filters]
    code, out, err = run(capsys, "check", *here)
    assert (code, out) == (0, "no batch was checked: none in 1 segment is chosen\n")
    assert err[0] == f"kafka-log: nothing matches {filters[0]}"
    code, out, err = run(capsys, "check", *here, "--format", "jsonl")
    assert (code, out, err[0]) == (0, "", f"kafka-log: nothing matches {filters[0]}")
    of_some = ["--topic", "codecs", "--partition", "0", "--offsets", "60:"]
    assert run(capsys, "check", *of_some) == (0, "nothing is wrong\n", [])


def test_check_of_segments_without_batches(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "check", "--topic", "empty")
    assert (code, err) == (0, [])
    assert out.startswith(
        "there is no batch yet: nothing was checked but 1 segment without batches"
    )


@pytest.mark.slow
def test_check_warns_if_it_judges_no_batch() -> None:
    log = LogDirectory(BROKER, topics="codecs", partitions=0)
    with pytest.warns(UserWarning, match="no batch was checked: none matches offsets"):
        assert log.check(offsets=(1000, None)).num_rows == 0
    with pytest.warns(UserWarning, match="no batch was checked: none matches producers"):
        assert log.check(producers=4242).num_rows == 0
    counts: list[int] = []
    assert log.check(offsets=(60, None), on_checked=counts.append).num_rows == 0
    assert 0 < sum(counts) < log.stat()["batches"][0].as_py()


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    """A topic that is there, and one that has only directories which are not live."""
    root = tmp_path / "logs"
    shutil.copytree(SAMPLES / "kafka-4.x" / "codecs-0", root / "codecs-0")
    for state in ("delete", "future"):
        shutil.copytree(SAMPLES / "kafka-4.x" / "codecs-1", root / f"gone-6.{'0a' * 16}-{state}")
    return root


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "command", [c for c in WITH_TOPICS if c not in ("groups", "metadata", "diff", "merge")]
)
def test_a_topic_that_only_has_what_is_left_out(
    command: str, hidden: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    more = ["--offsets", "0:1"] if command == "cut" else []
    if command in ("export", "salvage", "cut", "reindex", "convert"):
        more += ["--out", str(tmp_path / "out")]
    assert main([command, str(hidden), "--topic", "gone", *more]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert "there is no topic gone; there are: codecs" in err
    assert "--include delete,future (in Python include='delete,future') reads them" in err
    assert main(["ls", str(hidden), "--topic", "gone", "--include", "delete"]) == 0


def test_a_partition_that_only_has_what_is_left_out(
    hidden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(hidden), "--partition", "6"]) == 2
    assert "--include delete,future" in capsys.readouterr().err
    assert main(["dump", str(hidden), "--topic", "codecs", "--partition", "6"]) == 2
    assert "include" not in capsys.readouterr().err.splitlines()[-1]


def test_the_api_warns_if_all_is_left_out(hidden: Path) -> None:
    shutil.rmtree(hidden / "codecs-0")
    said = "no segment is read, because all of them are in excluded states; include='delete,future'"
    answers: tuple[Callable[[], pa.Table], ...] = (
        lambda: read_table(hidden),
        lambda: scan_batches(hidden).read_all(),
        lambda: LogDirectory(hidden).stat(),
        lambda: LogDirectory(hidden).keys(),
    )
    for answer in answers:
        with pytest.warns(UserWarning, match=said):
            assert answer().num_rows == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(hidden, include="delete").num_rows


def test_commands_say_once_that_all_is_left_out(
    hidden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(hidden / "codecs-0")
    for command in ("dump", "stat", "keys", "txn"):
        assert main([command, str(hidden)]) == 0
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("kafka-log: segments that are not live were skipped: ")


@pytest.mark.parametrize(
    ("what", "option"),
    [("brokers", "--topic"), ("features", "--topic"), ("topics", "--partition"), ("configs", "--partition")],
)  # fmt: skip
def test_filters_that_mean_nothing_to_a_kind(
    what: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "metadata", "--what", what, option, "0")
    assert (code, out, len(err)) == (2, "", 1)
    assert f"{option} does not apply to --what {what}" in err[0]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A partition whose second batch, which would match, has a wrong checksum or no batch's length."""
    directory = tmp_path / "disk" / "t-0"
    directory.mkdir(parents=True)
    first, second = (batch(base) for base in (0, 3))
    broken = bytearray(second)
    broken[-1] ^= 1
    broken[8:12] = (5).to_bytes(4, "big")
    (directory / f"{0:020d}.log").write_bytes(first + broken)
    (directory / f"{100:020d}.log").write_bytes(batch(100))
    return tmp_path / "disk"


@pytest.mark.parametrize(
    "command",
    ["dump", "dump --policy strict", "dump --batches", "dump --batches --policy strict", "stat", "stat --largest 3", "keys", "keys --key x", "producers", "txn", "check", "export", "cut"],
)  # fmt: skip
def test_damage_keeps_it_unknown_what_matches(
    command: str, damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *words = command.split()
    out = ["--out", str(damaged.parent / "out")] if verb in ("export", "cut") else []
    code = main([verb, str(damaged), *words, *out, "--offsets", "3:6"])
    shown = capsys.readouterr()
    assert code == 1
    assert "nothing matches" not in shown.err


def test_what_was_read_as_a_whole_is_known(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("dump", "stat", "keys", "producers"):
        segment = str(damaged / "t-0" / f"{100:020d}.log")
        assert main([command, segment, "--offsets", "3:6"]) == 0
        assert "nothing matches --offsets" in capsys.readouterr().err


def test_the_last_records_before_the_largest_offset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    largest = (1 << 63) - 1
    directory = tmp_path / "t-0"
    directory.mkdir()
    every = [5, 6, *range(largest - 3, largest + 1)]
    data = b"".join(entry(offset, None, b"v") for offset in every)
    (directory / f"{5:020d}.log").write_bytes(data)
    for count in (1, 2, 3, 5, 6, 9):
        command = ["dump", str(tmp_path), "--format", "csv", "--columns", "offset"]
        assert main([*command, "--last", str(count)]) == 0
        assert capsys.readouterr().out.split()[1:] == [str(o) for o in every[-count:]]
    assert main(["dump", str(tmp_path), "--last", "0", "--follow"]) == 2
    assert "so that no offset follows it" in capsys.readouterr().err
