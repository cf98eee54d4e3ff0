"""Long runs: ``python -m tests.laws --schemas N --seed S``.

Hypothesis draws constants of the modules that a process has loaded, in an order that hashes change. A run is therefore
a process of its own with hashes that are always the same: only so the same seed gives the same schemas.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.laws.coverage import constructs
from tests.laws.runs import Run, run, shrunk


def main() -> int:
    """Judge random schemas, show progress and what was found. 1 when there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument(
        "--schemas", type=int, default=500, metavar="N", help="how many, 500 by default"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="the same schemas for the same seed and code",
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many seconds")
    parser.add_argument(
        "--shrink",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for each finding; 0: not at all",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="a file for each finding")
    parser.add_argument(
        "--every-construct",
        action="store_true",
        help="it is also bad when no schema uses a construct, or when a third of them is rejected",
    )
    parser.add_argument("--verbose", action="store_true", help="also what check and targets refuse")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", "tests.laws", *sys.argv[1:]]
        return subprocess.run(again, env={**os.environ, "PYTHONHASHSEED": "0"}).returncode
    begin = time.monotonic()

    def progress(result: Run) -> None:
        rate = result.schemas / (time.monotonic() - begin)
        text = f"{result.schemas} schemas, {result.views} views, {result.rows} rows, {len(result.findings)} findings"
        print(f"\r{text}, {rate:.0f} a second ", end="", file=sys.stderr, flush=True)

    result = run(arguments.schemas, arguments.seed, arguments.seconds, progress)
    print(file=sys.stderr)
    show(result, arguments.verbose)
    for name, count in result.found.most_common():
        finding = result.findings[name]
        if arguments.shrink:
            finding = shrunk(finding, result.seeds[name], arguments.shrink)
        text = f"{name}\n({count} times; block {result.seeds[name]})\n\n{finding.schema}\n{finding.text}"
        print("=" * 100, text, sep="\n")
        if arguments.out is not None:
            arguments.out.mkdir(parents=True, exist_ok=True)
            safe = "".join(c if c.isalnum() else "_" for c in name)[:80]
            (arguments.out / f"{safe}.txt").write_text(text, encoding="utf-8")
    bad = bool(result.findings)
    if arguments.every_construct:
        bad |= bool(constructs() - result.used)
        bad |= sum(result.rejected.values()) >= result.schemas / 3
    return 1 if bad else 0


def show(result: Run, verbose: bool) -> None:
    """The numbers of a run."""
    rejected = sum(result.rejected.values())
    print(
        f"{result.schemas} schemas ({rejected} more were rejected by check), {result.views} views, "
        f"{result.rows} rows read, {result.written} written"
    )
    missing = sorted(constructs() - result.used)
    print(f"constructs that none of them used: {', '.join(missing) or 'none'}")
    for title, counter in (("check", result.rejected), ("targets", result.refused)):
        for text, count in counter.most_common(25 if verbose else 0):
            print(f"{title}: {count} {text}")
    for name, count in result.found.most_common():
        print(f"{count:5} {name}")


if __name__ == "__main__":
    sys.exit(main())
