"""What `check` calls good a broker loads without recovery, and consumers get all of it; what it calls an error a broker complains
about, or consumers get wrong or no records."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log import LogDirectory, discover, read_table
from tests.brokers.answers import ISOLATIONS, ours, plain
from tests.brokers.loading import LOG_START, Loaded, loaded, prepared
from tests.paths import SAMPLES
from tests.support.check_plants import PLAIN, TX, Plant
from tests.support.check_plants_of_files import OF_FILES
from tests.support.check_plants_of_segments import OF_SEGMENTS

pytestmark = pytest.mark.broker
BROKER = SAMPLES / "kafka-4.x"
PLANTED = {
    *("bit in a value", "length too large", "zeroed batch", "noise between"),
    *("cut tail of a rolled segment", "zeros after a rolled segment"),
    *("cut tail of the active segment", "made longer"),
    *("batches change places", "batch there twice", "batch of another partition"),
    *("base offset far away", "segment removed", "segment renamed", "segment overlaps"),
    *("index position", "index beyond the file", "index disordered", "index cut"),
    *("timeindex of zero", "timeindex time", "timeindex beyond", "txnindex entry removed"),
    *("txnindex entry added", "txnindex cut", "snapshot bit"),
    *("leader epoch cut", "leader epochs garbled", "deleted segment", "segment alone removed"),
}
"""A sample of each sort: a broker that fails on one takes ten seconds more."""
UNSEEN = {
    "batch there twice": "consumers pass over offsets that they had; a follower refuses them",
    "segment renamed": "consumers go on from the segment before",
    "index disordered": "which entries a search meets is a matter of luck",
    "timeindex of zero": "a search by time begins earlier than it must",
    "timeindex time": "a search by time begins earlier than it must",
    "timeindex beyond": "a search by time begins earlier than it must",
}
"""Errors that neither the broker nor this test's consumers come upon."""


@dataclass(frozen=True)
class Case:
    """A partition under the broker: where it is from, what was changed, and what came of it."""

    source: Path
    plant: Plant | None
    severities: set[str]
    loaded: Loaded
    like: Loaded | None
    """What came of the same partition without the change."""

    def serves(self, other: Loaded) -> bool:
        return self.loaded.records == other.records and self.loaded.probe == other.probe


def sources(root: Path) -> dict[str, tuple[Path, Plant | None]]:
    """The partitions by the topic that they become."""
    out: dict[str, tuple[Path, Plant | None]] = {}
    for partition in [*discover(BROKER), *discover(SAMPLES / "kafka-2.8")]:
        if not partition.topic.startswith("__"):
            out[f"good-{len(out)}"] = (partition.directory, None)
    for plant in [*OF_SEGMENTS, *OF_FILES]:
        if plant.name in PLANTED:
            copy = root / f"{len(out)}"
            shutil.copytree(BROKER, copy)
            plant.plant(copy)
            out[f"bad-{len(out)}"] = (copy / plant.file.partition("/")[0], plant)
    return out


def asked(directory: Path) -> dict[str, list[int]]:
    """Offsets and times of some of its records."""
    rows = plain(read_table(directory, ["offset", "timestamp"]))[::6][:10]
    return {
        "offsets": [row["offset"] for row in rows],
        "times": [row["timestamp"] for row in rows if row["timestamp"] >= 0],
    }


def ends_of(directory: Path) -> tuple[int, int]:
    """Where its broker says that a log begins, and where it ends."""
    starts = OFFSET_CHECKPOINT.parse((directory.parent / LOG_START).read_bytes()).entries or ()
    start = sum(e.offset for e in starts if f"{e.topic}-{e.partition}" == directory.name)
    last: list[Any] = LogDirectory(directory).stat().column("last_offset").to_pylist()
    return start, (last[0] if last and last[0] is not None else -1) + 1


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    root = tmp_path_factory.mktemp("loading")
    found = sources(root / "planted")
    # Of a changed partition the broker's checkpoints say what they said before.
    pristine = {
        topic: source if plant is None else BROKER / source.name
        for topic, (source, plant) in found.items()
    }
    placed = {topic: (found[topic][0], *ends_of(whole)) for topic, whole in pristine.items()}
    with prepared(root / "broker", placed) as broker:
        rows = LogDirectory(broker.log_dir).check().to_pylist()
        severities: dict[str, set[str]] = {topic: set() for topic in found}
        for row in rows:
            if row["topic"] in severities:
                severities[row["topic"]].add(row["severity"])
        got = loaded(broker, {topic: asked(whole) for topic, whole in pristine.items()})
    by_source = {source: got[topic] for topic, (source, plant) in found.items() if plant is None}
    out = {}
    for topic, (source, plant) in found.items():
        like = by_source[BROKER / source.name] if plant else None
        out[topic] = Case(source, plant, severities[topic], got[topic], like)
    return out


def test_what_is_good_is_loaded_without_recovery(cases: dict[str, Case]) -> None:
    good = [case for case in cases.values() if not case.severities & {"error", "warning"}]
    assert len([case for case in good if case.plant is None]) > 40
    assert len([case for case in good if case.plant is not None]) >= 1
    for case in good:
        assert case.loaded.complaints == (), case.source
        assert case.loaded.records is not None, case.source
        place = LogDirectory(case.source).partitions[0]
        for isolation in ISOLATIONS:
            expected = case.loaded.records[isolation]
            found = ours(
                case.source, (place.topic, place.partition), expected["start_offset"], isolation
            )
            assert found == {name: expected[name] for name in found}, (case.source, isolation)


def test_samples_are_good(cases: dict[str, Case]) -> None:
    samples = [case for case in cases.values() if case.plant is None]
    assert samples and not any(case.severities for case in samples)


def test_an_error_is_one_for_brokers_and_consumers(cases: dict[str, Case]) -> None:
    unseen = set()
    for case in cases.values():
        if "error" in case.severities:
            assert case.plant is not None and case.like is not None
            if case.loaded.complaints == () and case.serves(case.like):
                unseen.add(case.plant.name)
    assert unseen == set(UNSEEN)


def test_a_warning_costs_no_record(cases: dict[str, Case]) -> None:
    found = [case for case in cases.values() if case.severities - {"note"} == {"warning"}]
    assert len(found) >= 3
    for case in found:
        assert case.like is not None and case.plant is not None
        assert case.serves(case.like), case.plant.name


def test_all_of_the_sample_was_there(cases: dict[str, Case]) -> None:
    assert {case.plant.name for case in cases.values() if case.plant} == PLANTED
    assert {case.source.name for case in cases.values()} >= {PLAIN, TX}
