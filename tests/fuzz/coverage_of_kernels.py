"""Which lines of the kernels of records and batches run while files and mutants are read, with the kernels as plain Python. A program: it needs
``NUMBA_DISABLE_JIT=1`` before anything is imported, and prints the lines that never ran. It fails when a function never runs,
or more than one line in twenty of those that do not just refuse something (that takes bytes with a right checksum around
them, which the fuzzer makes).

    NUMBA_DISABLE_JIT=1 python -m tests.fuzz.coverage_of_kernels
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import coverage

from tests.paths import ROOT, VECTORS

KERNELS = ROOT / "generated" / "kafka_codecs" / "arrow"
VIEWS = ("batches", "records")
LARGEST = 12_000
MUTANTS = 400
NEVER = {"batches_kernels": {"open_message_v0", "open_message_v1"}}
"""What opens entries that are no row of their own: of the old messages, only those that are shorter than any can be."""


def run(path: Path) -> None:
    """A file by both views, in chunks that end within batches too."""
    from kafka_codecs.arrow.batches import BATCHES
    from kafka_log.segment.scanner import header_scanner
    from tests.support.scanned_rows import scanned

    for policy in ("strict", "kafka"):
        scanned(path, policy)
    scanned(path, "salvage", chunk_bytes=300)
    for some in (("offset",), ("headers", "delete_horizon", "sequence")):
        scanned(path, "kafka", columns=some)
    columns = [column.name for column in BATCHES.columns]
    list(header_scanner(path, columns, engine="arrow", on_damage="keep"))


@dataclass(frozen=True)
class Lines:
    """Lines of a module of kernels: those that refuse an entry or stop, and all others."""

    refusals: int
    others: int
    never: list[str]
    functions: list[str]

    @property
    def never_others(self) -> list[str]:
        return [line for line in self.never if not refuses(line.partition(": ")[2])]


def refuses(line: str) -> bool:
    return line.startswith(("return fail(", "return 0", "return False", "return n, p", "return -1"))


def lines_of(path: Path, measured: coverage.Coverage) -> Lines:
    text = path.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(text, 1) if line.startswith("__all__"))
    _, statements, never, _ = measured.analysis(str(path))
    kept = [n for n in statements if n > first]
    missing = {n for n in never if n > first}
    bodies: dict[str, list[int]] = {}
    name = ""
    for n, line in enumerate(text, 1):
        name = line[4:].partition("(")[0] if line.startswith("def ") else name
        if n in kept and line.startswith(" "):
            bodies.setdefault(name, []).append(n)
    for name in NEVER.get(path.stem, ()):
        missing -= set(bodies.pop(name))
    return Lines(
        sum(refuses(text[n - 1].strip()) for n in kept),
        sum(not refuses(text[n - 1].strip()) for n in kept),
        [f"{n}: {text[n - 1].strip()}" for n in sorted(missing)],
        [name for name, body in bodies.items() if missing >= set(body)],
    )


def measure() -> dict[str, Lines]:
    paths = [KERNELS / f"{view}_kernels.py" for view in VIEWS]
    measured = coverage.Coverage(data_file=None, include=[str(path) for path in paths])
    measured.start()
    from tests.support.mutated_bytes import mutants

    files = [path for path in sorted(VECTORS.rglob("*.log")) if path.stat().st_size < LARGEST]
    assert len(files) > 100
    with tempfile.TemporaryDirectory() as folder:
        mutant = Path(folder) / "mutant.log"
        for path in files:
            run(path)
        for data in mutants(MUTANTS, 7):
            mutant.write_bytes(data)
            run(mutant)
    measured.stop()
    return {path.stem: lines_of(path, measured) for path in paths}


def main() -> int:
    """1 when a function never runs, or too few lines do."""
    bad = False
    for module, lines in measure().items():
        refused = len(lines.never) - len(lines.never_others)
        print(f"{module}: {len(lines.never_others)} of {lines.others} lines never run")
        print(
            f"and {refused} of {lines.refusals} that refuse or stop; functions: {lines.functions}"
        )
        print(*lines.never, sep="\n    ")
        bad |= bool(lines.functions)
        bad |= len(lines.never_others) > 0.05 * lines.others
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
