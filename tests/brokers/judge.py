"""Kafka's own reader as the judge of ours: ``python -m tests.brokers.judge --files 100000 --seed 1``.

Mutated segments (``mutants``) are read by Kafka's classes and by each engine under the policy ``kafka``: batches, records,
and where and why reading ends must be the same. One reproducer of each class of difference is printed.
"""

from __future__ import annotations

import argparse
import base64
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kafka_log.segment.model import UNKNOWN_VERSION

from .judge_rows import Row, arrow, construct, java
from .mutants import Mutants

BLOCK = 50
"""Files that Kafka's reader is asked for at a time: their names fit into a pipe."""

CUT_OFF = {"header", "lastOffset", "maxTimestamp", "producerId", "lastSequence", "count"}
"""Errors of entries that end within their header: of these only the place is compared."""

NO_MEMORY = "a length above the heap"
OPENED_FOR_NONE = "a stream that cannot be opened, and a count of 0"
READ_AHEAD = "records in the step of the stream that has the damage"
LISTED = (NO_MEMORY, OPENED_FOR_NONE, READ_AHEAD)
"""What may differ, as docs/policies.md lists it."""

STREAM = re.compile(r"KafkaException|Snappy|Zip|IOException|EOF")


def plain(row: Row) -> Row:
    """A row without the texts of errors: that there is one, and where, must be the same."""
    out = dict(row)
    if "errors" in out:
        # Kafka's consumer looks at the magic byte, its reader of files does not.
        out["errors"] = sorted({error["at"] for error in out["errors"]} - {UNKNOWN_VERSION})
        if not out["errors"]:
            del out["errors"]
            return plain(out)
        if CUT_OFF & set(out["errors"]):
            return {name: out[name] for name in ("type", "position", "sizeInBytes")}
    if "error" in out.get("control", ()):
        out["control"] = out["control"] | {"error": True}
    if out["type"] == "end":
        out["exception"] = out["exception"] is not None
    return out


@dataclass
class Difference:
    """A class of differences, by its name, and the first file with one."""

    name: str
    data: bytes
    theirs: list[Row] = field(repr=False)
    ours: list[Row] = field(repr=False)


def groups(rows: list[Row]) -> list[list[Row]]:
    """Each batch with its records, and the end."""
    found: list[list[Row]] = []
    for row in rows:
        if row["type"] == "record":
            found[-1].append(row)
        else:
            found.append([row])
    return found


def listed(theirs: list[Row], found: list[Row]) -> str | None:
    """The difference of a batch that may be, None when it is not one of those."""
    texts = [error["error"] for error in theirs[0].get("errors", ()) if error["at"] == "records"]
    said = texts[0] if texts else ""
    if "OutOfMemoryError" in said:
        return NO_MEMORY
    a, b = ({**plain(rows[0]), "errors": None} for rows in (theirs, found))
    if a != b or not texts or theirs[0].get("compression") in (None, "none"):
        return None
    if theirs[0]["count"] == 0:
        return OPENED_FOR_NONE if len(theirs) == len(found) == 1 else None
    more = len(found) >= len(theirs) and found[1 : len(theirs)] == theirs[1:]
    if not more or theirs[0]["magic"] < 2:
        return None
    return READ_AHEAD if STREAM.search(said) else None


def difference(theirs: list[Row], found: list[Row]) -> tuple[list[str], str | None]:
    """The listed differences, and the name of the first other one: what differs, and what was said there."""
    passed: list[str] = []
    for their, our in zip(groups(theirs), groups(found), strict=False):
        a, b = ([plain(row) for row in rows] for rows in (their, our))
        if passed and a[0]["type"] == b[0]["type"] == "end":
            a[0]["records"] = b[0]["records"]
        if a == b:
            continue
        name = listed(their, our) if a[0]["type"] == b[0]["type"] == "batch" else None
        if name is not None:
            passed.append(name)
            continue
        return passed, f"{_differ(a, b)}: {_said(their[0])} / {_said(our[0])}"
    return passed, None


def _differ(a: list[Row], b: list[Row]) -> str:
    """What of a batch, or of the end, is not the same."""
    for their, our in zip(a, b, strict=False):
        if their["type"] != our["type"]:
            return f"{their['type']} or {our['type']}"
        if their != our:
            names = {**their, **our}
            what = ",".join(name for name in names if their.get(name) != our.get(name))
            return f"v{a[0].get('magic')} {their['type']} {what}"
    return f"v{a[0].get('magic')} {'fewer' if len(a) < len(b) else 'more'} records there"


def _said(row: Row | None) -> str:
    """What a row says is wrong, without what differs from file to file."""
    if row is None:
        return "-"
    texts = {error["at"]: error["error"] for error in row.get("errors", ())}
    text = texts.get("records") or next(iter(texts.values()), None) or row.get("exception") or "-"
    text = re.sub(r"\([^()]*byte[^()]*\)", "", text.rpartition("from ")[2])
    return re.sub(r"-?\d+", "N", re.sub(r"(\w+\.)+(?=[A-Z])|/\S*/", "", text))[:90].strip()


@dataclass
class Verdict:
    """What became of some files."""

    files: int = 0
    records: int = 0
    damaged: int = 0
    listed: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    differences: dict[str, Difference] = field(default_factory=dict)


def judge(files: int, seed: int, *, seconds: float = 1e9, progress: bool = False) -> Verdict:
    """Have ``files`` mutants read by all, and compare."""
    verdict = Verdict()
    mutants = Mutants(random.Random(seed))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, java() as kafka:
        paths = [Path(scratch) / f"{i:020}.log" for i in range(BLOCK)]
        while verdict.files < files and time.monotonic() - begin < seconds:
            block = paths[: files - verdict.files]
            for path in block:
                path.write_bytes(mutants.one())
            kafka.ask(block)
            for path in block:
                one(verdict, path, kafka.answer())
            if progress:
                rate = verdict.files / (time.monotonic() - begin)
                text = f"{verdict.files} files, {sum(verdict.found.values())} differences"
                print(f"\r{text}, {rate:.0f} a second ", end="", file=sys.stderr, flush=True)
    return verdict


def one(verdict: Verdict, path: Path, theirs: list[Row]) -> None:
    """Compare what was read from one file."""
    verdict.files += 1
    verdict.records += theirs[-1]["records"]
    verdict.damaged += any("errors" in row or row.get("exception") for row in theirs)
    reference = construct(path)
    passed, name = difference(theirs, reference)
    verdict.listed.update(passed)
    names = [name]
    fast = arrow(path)
    if fast != reference:
        names.append(f"engines: {difference(reference, fast)[1] or 'texts'}")
    for name in filter(None, names):
        verdict.found[name] += 1
        kept = verdict.differences.get(name)
        data = path.read_bytes()
        if kept is None or len(data) < len(kept.data):
            verdict.differences[name] = Difference(name, data, theirs, reference)


def main() -> int:
    """Judge, and show what was found. 1 when there are differences that are not listed."""
    parser = argparse.ArgumentParser(prog="python -m tests.brokers.judge", description=__doc__)
    parser.add_argument("--files", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many seconds")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the file of each difference")
    arguments = parser.parse_args()
    verdict = judge(arguments.files, arguments.seed, seconds=arguments.seconds, progress=True)
    print(f"\n{verdict.files} files, {verdict.damaged} with errors, {verdict.records} records")
    for reason, count in verdict.listed.most_common():
        print(f"{count:6} listed: {reason}")
    for i, (name, count) in enumerate(verdict.found.most_common()):
        print(f"{count:6} {name}")
        data = verdict.differences[name].data
        if arguments.out is not None:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{i:03}.log").write_bytes(data)
            (arguments.out / f"{i:03}.txt").write_text(name + "\n", encoding="utf-8")
        else:
            print(f"       {base64.b64encode(data).decode()[:4000]}")
    return 1 if verdict.found else 0


if __name__ == "__main__":
    sys.exit(main())
