"""Transactions around damage: held against a model that knows what was written, and which batches can still be read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kafka_log
from codecgen.runtime.errors import CodecError
from kafka_log import Policy, discover
from kafka_log.logs import transactions as subject
from kafka_log.logs.transactions import Transactions, read_transactions
from tests.shares import draw_seeds, later_seeds
from tests.support.histories import History, Written, history

QUICK, MANY = 80, 2000
FRAMES = ("zeros", "high", "noise")
"""Ways to destroy a batch so that no header is left."""
KINDS = (*FRAMES, "body", "producer", "length", "cut", "gap")
ENGINES: Any = ("arrow", "construct")


class Model(NamedTuple):
    """What follows from batches that can be read, one after the other."""

    aborted: set[int]
    transactions: set[tuple[int, int, int]]
    begun: dict[int, int]


def model(before: Iterable[Written], readable: Iterable[Written]) -> Model:
    """``before`` were deleted with the first segments; of them only what is open is known."""
    started: dict[int, tuple[int, list[int]]] = {}
    aborted: set[int] = set()
    ended: set[tuple[int, int, int]] = set()
    for is_there, one in [*((False, b) for b in before), *((True, b) for b in readable)]:
        if one.kind == "data":
            _, offsets = started.setdefault(one.producer, (one.offset, []))
            offsets.extend(range(one.offset, one.offset + one.count))
        elif one.kind != "plain" and one.producer in started:
            first, offsets = started.pop(one.producer)
            if is_there and one.kind == "abort":
                aborted |= set(offsets)
                ended.add((one.producer, first, one.offset))
    return Model(aborted, ended, {producer: first for producer, (first, _) in started.items()})


def committed(found: Model, readable: Iterable[Written]) -> list[int]:
    end = min(found.begun.values(), default=None)
    offsets = [o for b in readable if b.kind in ("plain", "data") for o in _offsets(b)]
    return [o for o in offsets if o not in found.aborted and (end is None or o < end)]


def _offsets(one: Written) -> range:
    return range(one.offset, one.offset + one.count)


def destroyed(data: bytes, kind: str, r: random.Random) -> bytes:
    out = bytearray(data)
    if kind == "zeros":
        return bytes(len(data))
    if kind == "high":
        return b"\xff" * len(data)
    if kind == "noise":
        return b"\xff" * 12 + r.randbytes(len(data) - 12)
    if kind == "cut":
        return data[
            : r.randrange(20, len(data) - 8)
        ]  # zeros of the next offset may stand for fewer
    if kind == "gap":
        return data[:30] + data[40:]
    at = {"body": len(data) - 1, "producer": 50, "length": 10}[kind]
    out[at] ^= 1 << r.randrange(1, 7)
    return bytes(out)


def damaged(made: History, r: random.Random, kinds: Sequence[str]) -> list[Written]:
    """Destroy one or two batches of a history on the disk. What can still be read."""
    there = [one for one in made.batches if one.offset >= made.log_start]
    wanted = [i for i in range(len(there)) if there[i].kind != "plain"] or [0]
    hit = {r.choice(wanted) for _ in range(r.choice((1, 1, 2)))}
    segments: dict[int, list[bytes]] = {}
    for i, one in enumerate(there):
        data = destroyed(one.data, r.choice(kinds), r) if i in hit else one.data
        segments.setdefault(one.base, []).append(data)
    for base, parts in segments.items():
        (made.directory / f"{base:020}.log").write_bytes(b"".join(parts))
    return [one for i, one in enumerate(there) if i not in hit]


def said(found: Transactions) -> tuple[set[tuple[int, int, int]], dict[int, int], int | None]:
    aborted = {(t.producer_id, t.first_offset, t.last_offset) for t in found.aborted}
    return aborted, dict(found.open_first_offsets), found.last_stable_offset


def holds(root: Path, seed: int, kinds: Sequence[str], policy: Policy) -> tuple[bool, bool]:
    """Whether the history has something that a walk misses that ends at damage: a marker, an open transaction."""
    r = random.Random(seed)
    made = history(root / f"t-{seed}", seed)
    readable = damaged(made, r, kinds)
    expected = model([b for b in made.batches if b.offset < made.log_start], readable)
    stable = min(expected.begun.values(), default=None)
    segments = discover(made.directory)[0].segments
    for engine in ENGINES:
        found = read_transactions(segments, policy, damage_raises=False, engine=engine)
        assert said(found) == (expected.transactions, expected.begun, stable), (seed, engine)
    if policy is Policy.SALVAGE:
        wanted = committed(expected, readable)
        for engine in ("auto", *ENGINES):
            options: Any = {"isolation": "read_committed", "engine": engine}
            rows = kafka_log.read_table(
                made.directory, ["offset"], "salvage", on_damage="drop", **options
            )
            assert rows["offset"].to_pylist() == wanted, (seed, engine)
    return bool(expected.transactions), bool(expected.begun)


@pytest.mark.slow
def test_the_rows_of_a_damaged_log(tmp_path: Path) -> None:
    met = Counter(holds(tmp_path, seed, KINDS, Policy.SALVAGE) for seed in range(QUICK))
    assert min(met[flags] for flags in ((True, True), (True, False), (False, True))) > 2, met


@pytest.mark.slow
def test_the_rows_of_many_damaged_logs(tmp_path: Path) -> None:
    for seed in later_seeds(QUICK, MANY):
        holds(tmp_path, seed, KINDS, Policy.SALVAGE)


@pytest.mark.slow
def test_without_checksums(tmp_path: Path) -> None:
    """What is no batch is passed over under the other policies too, where it is no error."""
    for seed in range(QUICK):
        holds(tmp_path, seed, FRAMES, Policy.KAFKA)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_header_with_a_wrong_checksum_is_believed_unless_under_salvage(
    tmp_path: Path, engine: Any
) -> None:
    made = history(tmp_path / "t-0", 3)
    there = [one for one in made.batches if one.offset >= made.log_start]
    only = next(one for one in there if one.kind == "data")
    (path, *others) = sorted(made.directory.glob("*.log"))
    for other in (*others, *made.directory.glob("*.snapshot")):
        other.unlink()
    hurt = bytearray(only.data)
    hurt[-1] ^= 1
    path.write_bytes(hurt)
    segments = discover(path)[0].segments
    for policy, begun in (
        (Policy.KAFKA, ((only.producer, only.offset),)),
        (Policy.SALVAGE, ()),
    ):
        found = read_transactions(segments, policy, damage_raises=False, engine=engine)
        assert found.open_first_offsets == begun
    assert read_transactions(segments, engine=engine).open_first_offsets == (
        (only.producer, only.offset),
    )


@pytest.mark.slow
def test_both_feeds_give_the_same_steps(tmp_path: Path) -> None:
    """All that is known of each batch, also what only a table of transactions shows."""
    met = 0
    for seed in draw_seeds(40):
        made = history(tmp_path / f"t-{seed}", seed)
        segments = discover(made.directory)[0].segments
        for damage in subject.DamageHandling:
            if damage is not subject.DamageHandling.RAISE:
                damaged(made, random.Random(seed), FRAMES)
            steps = [list(subject._steps(segments, damage, engine, 0, [])) for engine in ENGINES]
            assert steps[0] == steps[1], (seed, damage)
            met += len(steps[0])
    assert met > 1000


def test_damage_is_an_error_for_both_feeds(tmp_path: Path) -> None:
    made = history(tmp_path / "t-0", 5)
    path = sorted(made.directory.glob("*.log"))[0]
    data = path.read_bytes()
    path.write_bytes(b"\xff" * 40 + data)
    segments = discover(made.directory)[0].segments
    errors = []
    for engine in ENGINES:
        with pytest.raises(CodecError) as raised:
            read_transactions(segments, engine=engine)
        errors.append((type(raised.value), raised.value.where.file, raised.value.where.position))
    assert errors[0] == errors[1] and errors[0][1] == str(path)
