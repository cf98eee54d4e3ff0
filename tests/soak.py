"""Everything at full length, with random inputs that are new each day: ``make soak``, or ``make soak PARTS="laws mutants"``.

A part is a folder of tests, or a long run by itself. What passed is not run again for the same files and the same seed: a soak
that was stopped goes on. Logs are in .soak/.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.guards import AVAILABLE
from tests.paths import ROOT

STATE = ROOT / ".soak"
SEED_FILE = "seed"
PROCESSES = min(8, (os.cpu_count() or 1) + 1)
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", str(PROCESSES), "--dist", "loadfile")
THOROUGH = ("tests/codecs/test_laws.py", "tests/codecgen/runtime/compression/test_laws.py")
"""Laws that are tried with a thousand examples each, in the part `hypothesis`."""
SCHEMAS, MUTANTS = 20_000, 600
MUTATED_BATCHES = {"off": 2_000_000, "on": 500_000}
MADE_TABLES = {"off": 200_000, "on": 50_000}
"""Inputs of the fuzzers of kernels that decode and that encode, between guard pages; with the word "on", each access to memory is checked
too. No limit of time ends a run earlier. An idle core decodes about 2,500 mutants a second without these checks."""
FAULTS = 100_000
"""Random faults of each kind, of which repair must call none certain that it gets wrong."""


@dataclass(frozen=True)
class Part:
    """A command of the soak, with the variables that it needs."""

    name: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


def parts(seed: int, folder: Path) -> list[Part]:
    """Return all parts."""
    python = (sys.executable, "-m")
    laws = (*python, "tests.laws", "--schemas", str(SCHEMAS), "--seed", str(seed))
    mutants = (
        *python,
        "tests.mutants",
        "--of",
        "all",
        "--sample",
        str(MUTANTS),
        "--seed",
        str(seed),
    )
    faults = (*python, "tests.kafka_log.segment.repair.faults", "--faults", str(FAULTS))
    found = [
        Part(
            "hypothesis",
            [*PYTEST, f"--hypothesis-seed={seed}", *THOROUGH],
            {"HYPOTHESIS_PROFILE": "thorough"},
        ),
        Part("laws", [*laws, "--every-construct", "--out", str(folder / "laws")]),
        Part("faults", [*faults, "--seed", str(seed)]),
        Part("mutants", [*mutants, "--jobs", str(os.cpu_count() or 1)]),
    ]
    if AVAILABLE:
        for checks in ("off", "on"):
            counts = {
                "decode": ("--batches", MUTATED_BATCHES[checks]),
                "encode": ("--tables", MADE_TABLES[checks]),
            }
            for name, (option, count) in counts.items():
                fuzz = (*python, f"tests.fuzz.{name}", option, str(count), "--checks", checks)
                found.append(Part(f"fuzz/{name}-checks-{checks}", [*fuzz, "--seed", str(seed)]))
    for tests in folders_of_tests():
        name = tests.relative_to(ROOT / "tests").as_posix()
        of_folder = sorted(str(path.relative_to(ROOT)) for path in tests.glob("test_*.py"))
        variables = {
            "HYPOTHESIS_PROFILE": "soak",
            "LAWS_SEED": str(seed),
            "TEST_SKIPS": "fail",
            "CHECK_SECONDS": "600",
            "TEST_RECORDS": str(folder / f"{file_name(name)}.records"),
        }
        command = [*PYTEST, f"--hypothesis-seed={seed}", *of_folder]
        found.append(Part("project" if name == "." else f"tests/{name}", command, variables))
    return found


def folders_of_tests() -> list[Path]:
    """Return the folders that hold test files themselves."""
    return sorted({path.parent for path in (ROOT / "tests").rglob("test_*.py")})


def chosen(every: Sequence[Part], wanted: Sequence[str]) -> list[Part]:
    """Return the parts with these names; a name stands for the folders below it too, and may leave out `tests/`.

    Raises:
        ValueError: if there is no part of that name.
    """
    if not wanted:
        return list(every)
    found: list[Part] = []
    for name in wanted:
        path = name.strip("/")
        of_name = [p for p in every if f"{p.name}/".startswith((f"{path}/", f"tests/{path}/"))]
        if not of_name:
            names = ", ".join(part.name for part in every)
            raise ValueError(f"There is no part {name!r} of the soak. Parts: {names}")
        found += [part for part in of_name if part not in found]
    return found


def fingerprint() -> str:
    """Return a hash of the files that a run depends on: what git has, and what was changed since."""
    digest = hashlib.sha256()
    untracked = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    for command in (["git", "rev-parse", "HEAD"], ["git", "diff", "HEAD"], untracked):
        done = subprocess.run(command, cwd=ROOT, capture_output=True)
        digest.update(done.stdout if done.returncode == 0 else str(time.time()).encode())
    for name in filter(None, done.stdout.split(b"\0")):
        path = ROOT / os.fsdecode(name)
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:12]


def seed_of(folder: Path, given: int | None) -> int:
    """Return the seed: the one that is given, else that of the soak that was stopped, else the date."""
    kept = folder / SEED_FILE
    seed = given
    if seed is None and kept.is_file():
        seed = int(kept.read_text(encoding="utf-8"))
    if seed is None:
        seed = int(datetime.date.today().strftime("%Y%m%d"))
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(f"{seed}\n", encoding="utf-8")
    return seed


def file_name(name: str) -> str:
    return name.replace("/", "-").replace(".", "project")


def run_part(part: Part, folder: Path, seed: int) -> bool:
    """Run a part, unless it has passed with this seed before; return whether it passes."""
    log = folder / f"{file_name(part.name)}.{seed}.log"
    passed = log.with_suffix(".passed")
    if passed.is_file():
        print(f"{part.name}: passed before ({passed.read_text(encoding='utf-8').strip()})")
        return True
    print(f"{part.name}: runs; {log}", flush=True)
    begin = time.monotonic()
    with log.open("w", encoding="utf-8") as out:
        code = subprocess.run(
            part.command, cwd=ROOT, env={**os.environ, **part.variables}, stdout=out, stderr=subprocess.STDOUT
        ).returncode  # fmt: skip
    seconds = f"{time.monotonic() - begin:.0f} s"
    if code == 0:
        passed.write_text(f"{seconds}\n", encoding="utf-8")
        print(f"{part.name}: passed in {seconds}")
    else:
        end = log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
        print("\n".join(end))
        print(f"{part.name}: FAILED with exit code {code} after {seconds}; {log}")
    return code == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run parts of the soak. Return 0 if all pass, 1 if one fails, 2 for a name that is none of a part."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="such as laws, kafka_log or tests/codecs; by default all")  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="S", help="of all random inputs; by default the date")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the parts, run none")
    options = parser.parse_args(arguments)
    folder = STATE / fingerprint()
    try:
        names = chosen(parts(0, folder), options.parts)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(part.name for part in names))
        return 0
    seed = seed_of(folder, options.seed)
    print(
        f'seed {seed}; with the same files, `make soak PARTS="--seed {seed} ..."` does the same again'
    )
    failed = [p.name for p in chosen(parts(seed, folder), options.parts) if not run_part(p, folder, seed)]  # fmt: skip
    if failed:
        print(f"seed {seed}; failed: {', '.join(failed)}")
        return 1
    print(f"seed {seed}; all of {len(names)} parts passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
