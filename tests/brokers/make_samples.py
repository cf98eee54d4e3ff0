"""Makes the sample log directories and expected.json: python -m tests.brokers.make_samples OUT_DIR"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .expected import METADATA, consume, describe
from .maven import BrokerError
from .scenarios import SCENARIOS, Scenario

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Made:
    """A log directory after a clean stop, and what it is expected to hold."""

    log_dir: Path
    expected: dict[str, Any]


def make(scenario: Scenario, directory: Path) -> Made:
    """Runs the scenario's broker in an empty directory, fills it, reads it back and stops it."""
    # A day back: later than no broker's clock, and young enough for the producers not to expire.
    start = (int(time.time() * 1000) // HOUR_MS - 24) * HOUR_MS
    broker = scenario.broker(directory)
    with broker:
        scenario.fill(broker, start)
        with broker.client() as client:
            versions = dict(client.ask("versions"))
        consumed = consume(broker)
    expected = {
        "broker": broker.build.version,
        **versions,
        "first_time": start,
        "partitions": describe(broker.log_dir, consumed),
    }
    return Made(broker.log_dir, expected)


def copy(made: Made, target: Path) -> None:
    """Copies a log directory without what a broker leaves only while it runs."""
    if target.exists():
        shutil.rmtree(target)
    ignore = shutil.ignore_patterns(".lock", "*.deleted", "*.cleaned", "*.swap")
    shutil.copytree(made.log_dir, target, ignore=ignore)
    for path in target.rglob("*"):
        # The snapshots of the metadata log are read-only, which a later run could not replace.
        path.chmod(0o755 if path.is_dir() else 0o644)
    # Kafka 4.4 leaves these two preallocated even after a clean stop: 20 MB, nearly all zeros.
    for suffix, entry in ((".index", 8), (".timeindex", 12)):
        for path in (target / METADATA).glob(f"*{suffix}"):
            content = path.read_bytes()
            used = len(content.rstrip(b"\0"))
            path.write_bytes(content[: -(-used // entry) * entry])


def write_expected(path: Path, expected: dict[str, Any]) -> None:
    path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def make_all(out: Path, scenarios: Iterable[Scenario], work: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    listing = out / "expected.json"
    # The part of a scenario that is not made again stays as it is.
    expected = json.loads(listing.read_text(encoding="utf-8")) if listing.is_file() else {}
    for scenario in scenarios:
        began = time.monotonic()
        made = make(scenario, work / scenario.name)
        copy(made, out / scenario.name)
        expected[scenario.name] = made.expected
        size = sum(path.stat().st_size for path in (out / scenario.name).rglob("*"))
        print(f"{scenario.name}: {size} bytes in {time.monotonic() - began:.0f} s")
    write_expected(listing, expected)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.brokers.make_samples", description=__doc__
    )
    parser.add_argument("out", type=Path, help="the folder to write to, for example samples")
    parser.add_argument("--only", choices=[scenario.name for scenario in SCENARIOS])
    parser.add_argument(
        "--work", type=Path, help="an empty folder for the brokers, kept afterwards"
    )
    given = parser.parse_args(arguments)
    scenarios = [scenario for scenario in SCENARIOS if given.only in (None, scenario.name)]
    try:
        if given.work is not None:
            make_all(given.out, scenarios, given.work.resolve())
        else:
            # Kept when something fails: the error names a log file in it.
            work = Path(tempfile.mkdtemp(prefix="kafka-samples-")).resolve()
            make_all(given.out, scenarios, work)
            shutil.rmtree(work)
    except BrokerError as error:
        print(f"make_samples: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
