"""``kafka-log coordinator``: the partition that a name belongs to, against Java and the sum that defines its hash."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_codecs import CONSUMER_OFFSETS_KEY, OFFSET_COMMIT_KEY, SHARE_GROUP_STATE_KEY
from kafka_log import encode
from kafka_log.cli import main
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.coordinators import coordinator_partition, java_hash
from kafka_log.logs.partitions import DirectoryError, NotFoundError
from tests.paths import SAMPLES
from tests.support.made_topics import commit, entry, log, metadata, uuid

# What String.hashCode of Java 17 gives.
JAVA = {
    "": 0,
    "a": 97,
    "group-classic": -336321724,
    "polygenelubricants": -(1 << 31),
    "GydZG_": -(1 << 31),
    "\N{GRINNING FACE}": 1772899,
    "gr\u00fcppe-\N{FISH}\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL A}": 1338504574,
    "\u6d88\u8cbb\u8005": 28096050,
    "console-consumer-12345": 158455506,
}


@pytest.mark.parametrize("text", JAVA)
def test_the_hash_is_that_of_java(text: str) -> None:
    assert java_hash(text) == JAVA[text]


def units(text: str) -> list[int]:
    """UTF-16 code units, by the definition of UTF-16."""
    out = []
    for code in map(ord, text):
        high, low = divmod(code - 0x10000, 0x400)
        out += [code] if code < 0x10000 else [0xD800 + high, 0xDC00 + low]
    return out


@given(st.text(), st.integers(1, 1000))
def test_the_partition_is_the_remainder_of_the_absolute_hash(text: str, partitions: int) -> None:
    found = units(text)
    total = sum(unit * 31 ** (len(found) - 1 - i) for i, unit in enumerate(found)) % (1 << 32)
    expected = min(total, (1 << 32) - total)
    assert abs(java_hash(text)) == expected
    if expected < 1 << 31:
        assert coordinator_partition(text, partitions) == expected % partitions


def test_the_smallest_hash_has_no_absolute_value() -> None:
    """Kafka takes 0, where 2^31 would give another partition."""
    assert coordinator_partition("polygenelubricants", 50) == 0
    assert (1 << 31) % 50 != 0


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(NotFoundError, match="is not text in UTF-8"):
        coordinator_partition("\udcff")
    with pytest.raises(NotFoundError, match="at least 1"):
        coordinator_partition("g", 0)
    with pytest.raises(NotFoundError, match="a topic has 1 to 2147483647"):
        LogDirectory([]).coordinator("g", partitions=1 << 31)


def test_of_a_name_and_no_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coordinator", "group-classic", "--partitions", "7", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "name,topic,partition,partitions,partitions_from,known,directories",
        "group-classic,__consumer_offsets,4,7,given,,[]",
        "group-classic,__transaction_state,4,7,given,,[]",
    ]
    assert main(["coordinator", "\udcff"]) == 2


def test_the_directory_after_the_name_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["group-classic", "--name", "tx-one"]
    assert main(["coordinator", *names, str(SAMPLES / "kafka-4.x"), "--format", "csv"]) == 0
    rows = [line.split(",")[:6] for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["group-classic", "__consumer_offsets", "0", "1", "metadata", "true"],
        ["group-classic", "__transaction_state", "0", "1", "metadata", "false"],
        ["tx-one", "__consumer_offsets", "0", "1", "metadata", "false"],
        ["tx-one", "__transaction_state", "0", "1", "metadata", "true"],
    ]
    assert main(["coordinator", "group-classic", "another-group"]) == 2
    assert "another-group: there is no such file" in capsys.readouterr().err


def test_share_partitions_have_names_of_their_own() -> None:
    name = "g:XltkfBVhTDGMYthxGxdo9g:3"
    found = LogDirectory([]).coordinator(["g", name]).to_pylist()
    topics = {row["topic"]: row["partition"] for row in found if row["name"] == name}
    assert topics["__share_group_state"] == abs(java_hash(name)) % 50
    assert "__share_group_state" not in {row["topic"] for row in found if row["name"] == "g"}


def test_the_number_of_partitions_is_what_the_metadata_says() -> None:
    found = LogDirectory(SAMPLES / "kafka-4.x").coordinator("group-classic").to_pylist()
    assert {(row["partition"], row["partitions"], row["partitions_from"]) for row in found} == {
        (0, 1, "metadata")
    }
    [offsets, _] = found
    assert offsets["directories"] == [str(SAMPLES / "kafka-4.x" / "__consumer_offsets-0")]


def test_directories_of_several_brokers(tmp_path: Path) -> None:
    for broker in ("a", "b"):
        log(tmp_path / broker, "__consumer_offsets-24")
    found = LogDirectory([tmp_path / "a", tmp_path / "b"]).coordinator("group-classic")
    [offsets, transactions] = found.to_pylist()
    assert offsets["partitions_from"] == "default"
    assert offsets["directories"] == [
        str(tmp_path / broker / "__consumer_offsets-24") for broker in ("a", "b")
    ]
    assert transactions["directories"] == []


def test_a_partition_that_a_topic_of_this_size_does_not_have(tmp_path: Path) -> None:
    log(tmp_path, "__consumer_offsets-50")
    with pytest.raises(NotFoundError, match=r"__consumer_offsets-50 exists, .* more than 50"):
        LogDirectory(tmp_path).coordinator("g")
    LogDirectory(tmp_path).coordinator("g", partitions=51)


def topic(offset: int, name: str, partitions: int) -> list[bytes]:
    """Records of a topic and of its partitions, from ``offset`` on."""
    new = metadata(offset, "TOPIC_RECORD", name=name, topic_id=uuid(offset + 1))
    fields: dict[str, Any] = {
        "topic_id": uuid(offset + 1),
        "replicas": [0],
        "isr": [0],
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    own = [
        metadata(offset + 1 + i, "PARTITION_RECORD", partition_id=i, leader=0, **fields)
        for i in range(partitions)
    ]
    return [new, *own]


@pytest.mark.parametrize("damage", ["before", "after", "gone", "unknown", "empty"])
def test_metadata_that_cannot_be_read(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers are those before the damage, or else 50: no answer without the error."""
    whole = topic(0, "__consumer_offsets", 3)
    batches = {
        "before": [b"\xff" * 100, *whole[1:]],
        "after": [*whole, b"\xff" * 100],
        "gone": [*whole, *topic(9, "t", 1)],
        "unknown": [*whole, entry(4, None, b"\1\x63\0\0")],
        "empty": [],
    }[damage]
    path = log(tmp_path, "__cluster_metadata-0", *batches)
    if damage == "empty":
        (path / f"{0:020}.log").unlink()
    expected = (50, "default") if damage in ("before", "empty") else (3, "metadata")
    opened, lines = LogDirectory(path), list[str]()
    [row, _] = opened.coordinator("g", on_damage=lines.append).to_pylist()
    assert (row["partitions"], row["partitions_from"]) == expected
    assert len(lines) == 1 and str(path) in lines[0] and "--partitions" in lines[0]
    with pytest.raises((CodecError, DirectoryError), match=re.escape(str(path))):
        opened.coordinator("g")
    assert main(["coordinator", "g", str(path), "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    assert str(path) in err and f",{expected[0]},{expected[1]}," in out
    assert main(["coordinator", "g", str(path), "--partitions", "50"]) == 0
    assert not capsys.readouterr().err


def test_metadata_after_a_damaged_snapshot(tmp_path: Path) -> None:
    """The log has the same records, so nothing is unknown."""
    path = log(tmp_path, "__cluster_metadata-0", *topic(0, "__consumer_offsets", 3))
    (path / f"{2:020}-{0:010}.checkpoint").write_bytes(b"\xff" * 100)
    [row, _] = LogDirectory(path).coordinator("g").to_pylist()
    assert (row["partitions"], row["partitions_from"]) == (3, "metadata")


def test_damage_is_printed_with_a_contradicting_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, "__cluster_metadata-0", b"\xff" * 100)
    log(tmp_path, "__consumer_offsets-50")
    assert main(["coordinator", "g", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert str(path) in err and "__consumer_offsets-50 exists" in err


def test_a_name_beside_damage(tmp_path: Path) -> None:
    """Another replica that is whole and has the name knows it; else it may be in what is lost."""
    whole, second = commit(0, "g", 1), commit(1, "h", 1)
    broken = bytearray(second)
    broken[-1] ^= 1
    log(tmp_path / "whole", "__consumer_offsets-0", whole, second)
    log(tmp_path / "short", "__consumer_offsets-0", whole)
    log(tmp_path / "torn", "__consumer_offsets-0", whole, second[:-9])
    log(tmp_path / "damaged", "__consumer_offsets-0", whole, bytes(broken))

    def known(*brokers: str) -> list[bool | None]:
        opened = LogDirectory([tmp_path / broker for broker in brokers])
        rows = opened.coordinator(["g", "h", "nobody"], partitions=1).to_pylist()
        return [row["known"] for row in rows if row["topic"] == "__consumer_offsets"]

    assert known("whole") == [True, True, False]
    assert known("short") == known("torn") == [True, False, False]
    assert known("damaged") == [None, None, None]
    assert known("damaged", "short") == [True, None, None]
    assert known("damaged", "whole") == [True, True, None]


def test_names_that_are_known() -> None:
    names = ["group-classic", "tx-group", "group-consumer", "tx-one", "nobody"]
    found = LogDirectory(SAMPLES / "kafka-4.x").coordinator(names).to_pylist()
    known = {(row["name"], row["topic"]) for row in found if row["known"]}
    offsets = {(name, "__consumer_offsets") for name in names[:3]}
    assert known == offsets | {("tx-one", "__transaction_state")}
    assert all(row["known"] is not None for row in found)
    unknown = LogDirectory([]).coordinator(names).to_pylist()
    assert {row["name"] for row in unknown if row["known"] is None} == {*names}


def test_a_name_whose_records_are_deleted(tmp_path: Path) -> None:
    """The last record of each key counts, also where one of two replicas is behind."""
    group = CONSUMER_OFFSETS_KEY.build({"type": "group_metadata", "group": "g"})
    other = OFFSET_COMMIT_KEY.build({"group": "g", "topic": "t", "partition": 0})
    for broker, steps in (("a", [group, other]), ("b", [group, other, group]), ("c", [])):
        deleted = [False, False, True][: len(steps)]
        values = [None if gone else b"any" for gone in deleted]
        rows = {"offset": [*range(len(steps))], "key": steps, "value": values}
        data = b"".join(encode(pa.table(rows))) if steps else b""
        log(tmp_path / broker, "__consumer_offsets-0", data)

    def known(*brokers: str) -> bool | None:
        places = [tmp_path / broker for broker in brokers]
        [row, _] = LogDirectory(places).coordinator("g", partitions=1).to_pylist()
        found = row["known"]
        assert found is None or isinstance(found, bool)
        return found

    assert [known(broker) for broker in "abc"] == [True, True, False]
    assert known("c", "a")
    gone = {"offset": [0, 1], "key": [group, group], "value": [b"any", None]}
    log(tmp_path / "d", "__consumer_offsets-0", b"".join(encode(pa.table(gone))))
    assert known("d") is False


def test_share_partitions_that_are_known(tmp_path: Path) -> None:
    name = "g:XltkfBVhTDGMYthxGxdo9g:3"
    topic_id = UUID(bytes=base64.urlsafe_b64decode("XltkfBVhTDGMYthxGxdo9g=="))
    key = SHARE_GROUP_STATE_KEY.build(
        {"type": "share_snapshot", "group_id": "g", "topic_id": topic_id, "partition": 3}
    )
    rows = {"offset": [0], "key": [key], "value": [b"any"]}
    log(tmp_path, "__share_group_state-0", b"".join(encode(pa.table(rows))))
    found = LogDirectory(tmp_path).coordinator([name, name[:-1] + "4"], partitions=1).to_pylist()
    known = [row["known"] for row in found if row["topic"] == "__share_group_state"]
    assert known == [True, False]
