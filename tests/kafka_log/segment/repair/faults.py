"""Random faults in segments, and what becomes of them: a table of repaired, left alone and wrong.

    python -m tests.kafka_log.segment.repair.faults --faults 100000

Each fault hits a batch of a segment in which every version and codec occurs. What is repaired is compared with the bytes that were
there before. A wrong repair that was called certain is a failure.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from kafka_codecs import LOG_ENTRY
from kafka_log import encode
from kafka_log.logs.partitions import Segment
from kafka_log.segment.positioned_reads import SECTOR
from kafka_log.segment.repair.batch_repair import Repair
from kafka_log.segment.repair.sealed_entry import find_seal
from kafka_log.segment.versions import VERSIONS, codecs_of, has_field
from kafka_log.write.rewrite.repaired_copy import find_segment_repairs

SEED = 20261127
CERTAIN, LIKELY, LEFT, WRONG_CERTAIN, WRONG_LIKELY = (
    "repaired, certain",
    "repaired, likely",
    "left alone",
    "wrong, certain",
    "wrong, likely",
)
OUTCOMES = (CERTAIN, LIKELY, LEFT, WRONG_CERTAIN, WRONG_LIKELY)

Fault = Callable[[random.Random, bytearray, "Sealed"], None]


@dataclass(frozen=True)
class Sealed:
    """A batch of a segment: its place, and the bytes of the segment that its checksum covers or that hold it."""

    start: int
    end: int
    version: int
    covered: range
    checksum: range


@dataclass(frozen=True)
class Sample:
    """A segment without damage."""

    data: bytes
    base: int
    batches: tuple[Sealed, ...]


@dataclass
class Tally:
    """Numbers of outcomes of one kind of fault, and the greatest number of wrong ones to expect by the stated probabilities."""

    outcomes: Counter[str] = field(default_factory=Counter)


def make_sample(rng: random.Random, batches: int = 5) -> Sample:
    """Return a segment of batches of one version with different codecs and sizes, and without gaps."""
    version = rng.choice([*VERSIONS, *[VERSIONS[-1]] * 6])
    base = rng.choice([0, 17, 100_000, 1 << 33])
    epoch = rng.choice([0, 3, 70])
    data, offset, entries = b"", base, []
    while len(entries) < batches:
        table = _rows(rng, offset, version)
        codec = rng.choice(sorted(codecs_of(version)))
        options = {"leader_epoch": epoch} if has_field(version, "leader_epoch") else {}
        for part in encode(table, magic=version, codec=codec, batch_bytes=1 << 20, **options):
            at = 0
            while at < len(part):  # a message each, if they are not compressed
                size = LOG_ENTRY.plain_frame(part, at)[2]  # type: ignore[index]
                seal = find_seal(LOG_ENTRY.cases[version], size)
                [(first, last, _)] = seal.ranges
                start = len(data) + at
                covered = range(start + first, start + last)
                checksum = range(start + seal.start, start + seal.end)
                entries.append(Sealed(start, start + size, version, covered, checksum))
                at += size
            data += part
        offset += table.num_rows
    return Sample(data, base, tuple(entries))


def _rows(rng: random.Random, first: int, version: int) -> pa.Table:
    """Return rows of a batch: a few to some dozens, short texts or random bytes."""
    count = rng.choice([1, 2, 5, 5, 20, 60])
    size = rng.choice([5, 40, 40, 120])
    values = [
        rng.randbytes(size) if rng.random() < 0.5 else b"%d," % rng.randrange(10**6) * (size // 6)
        for _ in range(count)
    ]
    columns = {
        "offset": pa.array(range(first, first + count)),
        "key": [None if i % 5 == 4 else b"key-%d" % i for i in range(count)],
        "value": values,
    }
    if has_field(version, "timestamp_type"):
        times = [1_700_000_000_000 + rng.randrange(1000) for _ in range(count)]
        columns["timestamp"] = pa.array(times, pa.timestamp("ms", "UTC"))
    return pa.table(columns)


def _flip_one(places: Callable[[Sealed], range]) -> Fault:
    def hurt(rng: random.Random, data: bytearray, batch: Sealed) -> None:
        data[rng.choice(places(batch))] ^= 1 << rng.randrange(8)

    return hurt


def _flip_two(rng: random.Random, data: bytearray, batch: Sealed) -> None:
    one, other = rng.sample(range(8), 2)
    data[rng.choice(batch.covered)] ^= 1 << one | 1 << other


def _burst(most: int) -> Fault:
    def hurt(rng: random.Random, data: bytearray, batch: Sealed) -> None:
        """Flip the first and the last bit of a run of 2 to ``most`` bits, and any between."""
        length = rng.randint(2, most)
        number = 1 << length - 1 | rng.getrandbits(length) | 1
        first = rng.randrange(8 * batch.covered.start, 8 * batch.covered.stop - length + 1)
        is_reversed = rng.random() < 0.5
        for i in range(length):
            if number >> i & 1:
                bit = (first + i) % 8
                data[(first + i) // 8] ^= 1 << (bit if is_reversed else 7 - bit)

    return hurt


def _scatter(rng: random.Random, data: bytearray, batch: Sealed) -> None:
    """Flip two bits at least 64 bits from each other."""
    bits = range(8 * batch.covered.start, 8 * batch.covered.stop)
    while True:
        one, other = rng.sample(bits, 2)
        if abs(one - other) >= 64:
            break
    for bit in (one, other):
        data[bit // 8] ^= 1 << bit % 8


def _zero_sector(rng: random.Random, data: bytearray, batch: Sealed) -> None:
    start = rng.randrange(batch.start, batch.end) // SECTOR * SECTOR
    count = len(data[start : start + SECTOR])
    data[start : start + count] = bytes(count)


def _replace_byte(rng: random.Random, data: bytearray, batch: Sealed) -> None:
    data[rng.choice(range(batch.start, batch.end))] = rng.randrange(256)


def _field(name: str) -> Fault:
    """Return the fault of one flipped bit in a field of the header."""

    def places(batch: Sealed) -> range:
        layout = LOG_ENTRY.cases[batch.version]
        start = batch.start + layout.offset_of(name)
        return range(start, start + layout.size_of(name))

    return _flip_one(places)


def _has(name: str) -> Callable[[Sealed], bool]:
    return lambda batch: name in LOG_ENTRY.cases[batch.version].by_name


def _always(batch: Sealed) -> bool:
    return len(batch.covered) > 16


FAULTS: dict[str, tuple[Fault, Callable[[Sealed], bool]]] = {
    "one bit of the covered bytes": (_flip_one(lambda batch: batch.covered), _always),
    "one bit of the checksum": (_flip_one(lambda batch: batch.checksum), _always),
    "two bits of one byte": (_flip_two, _always),
    "a burst of 2 to 8 bits": (_burst(8), _always),
    "a burst of 2 to 16 bits": (_burst(16), _always),
    "a burst of 2 to 32 bits": (_burst(32), _always),
    "one bit of the base offset": (_field("base_offset"), _has("base_offset")),
    "one bit of the length": (_field("batch_length"), _has("batch_length")),
    "one bit of the leader epoch": (
        _field("partition_leader_epoch"),
        _has("partition_leader_epoch"),
    ),
    "one bit of the magic byte": (_field(LOG_ENTRY.by), _always),
    "two bits far apart": (_scatter, _always),
    "a zeroed sector of 512 bytes": (_zero_sector, _always),
    "a random byte": (_replace_byte, _always),
}


def judge(sample: Sample, damaged: bytes, directory: Path) -> str:
    """Return what becomes of a damaged segment: one of OUTCOMES."""
    path = directory / f"{sample.base:020d}.log"
    path.write_bytes(damaged)
    end = sample.base + 10_000
    segment = Segment(path, "t", 0, sample.base, len(damaged), rolled=True)
    repairs = [a for a in find_segment_repairs(segment, end) if isinstance(a, Repair)]
    if not repairs:
        return LEFT
    repaired = bytearray(damaged)
    for repair in repairs:
        for edit in repair.edits:
            assert repaired[edit.byte] == edit.old
            repaired[edit.byte] = edit.new
    is_right = bytes(repaired) == sample.data
    # What is wrong is no more certain than the most certain of its repairs.
    if is_right:
        return CERTAIN if all(repair.is_certain for repair in repairs) else LIKELY
    return WRONG_CERTAIN if any(repair.is_certain for repair in repairs) else WRONG_LIKELY


def try_faults(kind: str, count: int, seed: int, directory: Path) -> Counter[str]:
    """Return the numbers of outcomes of ``count`` random faults of one kind."""
    fault, applies = FAULTS[kind]
    rng = random.Random(f"{seed} {kind}")
    found: Counter[str] = Counter()
    sample = make_sample(rng)
    while found.total() < count:
        if rng.random() < 0.02:
            sample = make_sample(rng)
        batch = rng.choice(sample.batches)
        damaged = bytearray(sample.data)
        if applies(batch):
            fault(rng, damaged, batch)
        if damaged == sample.data:
            sample = sample if applies(batch) else make_sample(rng)
            continue
        outcome = judge(sample, bytes(damaged), directory)
        if outcome in (WRONG_CERTAIN, WRONG_LIKELY):
            print(f"{kind}: {outcome} after {found.total()} faults", file=sys.stderr)
        found[outcome] += 1
    return found


def table(results: dict[str, Counter[str]]) -> str:
    """Return outcomes as a Markdown table."""
    lines = [f"| fault | tried | {' | '.join(OUTCOMES)} |", "| --- |" + " ---: |" * 6]
    for kind, found in results.items():
        cells = [found.total(), *(found[outcome] for outcome in OUTCOMES)]
        lines.append(f"| {kind} | {' | '.join(f'{n:,}' for n in cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try faults of every kind and print the table. Return 1 if a repair that was called certain is wrong, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=1000, help="of each kind")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--kind", action="append", choices=list(FAULTS), help="by default all")
    options = parser.parse_args(arguments)
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        for kind in options.kind or FAULTS:
            results[kind] = try_faults(kind, options.faults, options.seed, Path(directory))
            print(f"{kind}: {dict(results[kind])}", file=sys.stderr, flush=True)
    print(table(results))
    return 1 if any(found[WRONG_CERTAIN] for found in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
