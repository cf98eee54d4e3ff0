"""``kafka-log coordinator``: the partition that a name belongs to, against Java and the sum that defines its hash."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import CONSUMER_OFFSETS_KEY, OFFSET_COMMIT_KEY, SHARE_GROUP_STATE_KEY
from kafka_log import encode
from kafka_log.cli import main
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.coordinators import coordinator_partition, java_hash
from kafka_log.logs.partitions import NotFoundError
from tests.paths import SAMPLES
from tests.support.made_topics import log

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


def test_metadata_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    path = log(tmp_path, "__cluster_metadata-0", b"\xff" * 100)
    [row, _] = LogDirectory(path).coordinator("g").to_pylist()
    assert row["partitions_from"] == "default"


def test_names_that_are_known() -> None:
    names = ["group-classic", "tx-group", "group-consumer", "tx-one", "nobody"]
    found = LogDirectory(SAMPLES / "kafka-4.x").coordinator(names).to_pylist()
    known = {(row["name"], row["topic"]) for row in found if row["known"]}
    offsets = {(name, "__consumer_offsets") for name in names[:3]}
    assert known == offsets | {("tx-one", "__transaction_state")}
    assert all(row["known"] is not None for row in found)
    assert all(row["known"] is None for row in LogDirectory([]).coordinator(names).to_pylist())


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
    topic_id = uuid.UUID(bytes=base64.urlsafe_b64decode("XltkfBVhTDGMYthxGxdo9g=="))
    key = SHARE_GROUP_STATE_KEY.build(
        {"type": "share_snapshot", "group_id": "g", "topic_id": topic_id, "partition": 3}
    )
    rows = {"offset": [0], "key": [key], "value": [b"any"]}
    log(tmp_path, "__share_group_state-0", b"".join(encode(pa.table(rows))))
    found = LogDirectory(tmp_path).coordinator([name, name[:-1] + "4"], partitions=1).to_pylist()
    known = [row["known"] for row in found if row["topic"] == "__share_group_state"]
    assert known == [True, False]
