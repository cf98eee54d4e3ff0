"""How long it takes from the start of a process to the first record, and how memory and time grow with a segment.

    python -m benchmarks.start [--mib 2048] [--rounds 5] [--output benchmarks/results/start.md]

Every figure is a process of its own, in a copy of the packages with caches of its own. Needs as much room on the disk
for temporary files as the largest segment.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measure, shapes
from benchmarks.files import Scanner, repeated
from benchmarks.measure import Report

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("generator/codecgen", "generated/kafka_codecs", "pipeline/kafka_log")
SCANNER = f"from {Scanner.__module__} import Scanner\n"
FIRST = f"""
import sys
{SCANNER}
batch = next(iter(Scanner(sys.argv[1], engine="arrow")))
print(batch.column("key")[0], flush=True)
"""
ALL = f"""
import sys, time
{SCANNER}
def peak():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
next(iter(Scanner(sys.argv[2], engine="arrow")))
before, start = peak(), time.thread_time()
rows = sum(batch.num_rows for batch in Scanner(sys.argv[1], engine="arrow"))
print(rows, time.thread_time() - start, before, peak())
"""
NOTES = """
Wall seconds from the start of a process until it has printed the first record of a small file: the median, and the
fewest and the most. *no cache*: as after installation, so the kernels are compiled. Three at once: until the last is done.
""".strip()
GROWTH = """
One pass over a segment in a stream, by a process of its own: seconds of CPU time, and the peak of resident memory before
(when the kernels are loaded and have read a small file) and after it. MiB. Linux only.
""".strip()


@dataclass(frozen=True)
class Installed:
    """A copy of the packages. Where ``locked``, no cache can be written beside the modules: a file is in its place."""

    folder: Path
    locked: bool

    @classmethod
    def make(cls, folder: Path, locked: bool) -> Installed:
        for package in PACKAGES:
            target = folder / Path(package).name
            shutil.copytree(ROOT / package, target, ignore=shutil.ignore_patterns("__pycache__"))
        if locked:
            for kernels in folder.rglob("*_kernels.py"):
                (kernels.parent / "__pycache__").write_bytes(b"")
        return cls(folder, locked)

    def start(self, program: str, arguments: list[str], extra: Mapping[str, str]) -> subprocess.Popen[str]:  # fmt: skip
        # Nothing that keeps Python from writing its bytecode, which an installation has.
        own = ("NUMBA_", "PYTHON")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        environment |= {"PYTHONPATH": str(self.folder), **extra}
        return subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
        )

    def forget(self, home: Path) -> None:
        """Remove what numba has kept."""
        shutil.rmtree(home, ignore_errors=True)
        for path in self.folder.rglob("*.nb[ci]"):
            path.unlink()

    def kept(self, home: Path) -> str:
        """Where numba has kept its code."""
        places = []
        for name, root in (("beside the module", self.folder), ("elsewhere", home)):
            if any(root.rglob("*.nbc")):
                places.append(name)
        return ", ".join(places) or "nowhere"


def first_record(installed: Installed, path: Path, at_once: int, extra: Mapping[str, str]) -> float:
    start = time.perf_counter()
    processes = [installed.start(FIRST, [str(path)], extra) for _ in range(at_once)]
    for process in processes:
        out, _ = process.communicate()
        assert process.returncode == 0 and out, process.returncode
    return time.perf_counter() - start


def environments(folder: Path) -> dict[str, tuple[bool, dict[str, str]]]:
    """How it may be installed: (can nothing be written beside the module?, variables)."""
    home, nowhere = str(folder / "home"), str(folder / "file" / "home")
    (folder / "file").write_bytes(b"")  # no folder can be made in a file
    user = {"HOME": home, "XDG_CACHE_HOME": home, "LOCALAPPDATA": home}
    nobody = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "LOCALAPPDATA": nowhere}
    return {
        "writable package": (False, user),
        "read-only package, home": (True, user),
        "read-only package and home, NUMBA_CACHE_DIR": (True, nobody | {"NUMBA_CACHE_DIR": home}),
        "read-only package and home": (True, nobody),
    }


def starts(report: Report, folder: Path, path: Path, rounds: int) -> None:
    report.add("", "## The first record", "", NOTES)
    report.table("installation", "no cache", "no cache, 3 at once", "later", "later, 3 at once", "cache")  # fmt: skip
    home = folder / "home"
    for name, (locked, extra) in environments(folder).items():
        installed = Installed.make(folder / name.replace(" ", "-"), locked)
        first_record(installed, path, 1, extra)  # Python's own bytecode, and the page cache
        cells = []
        for cached in (False, True):
            for at_once in (1, 3):
                found = []
                for _ in range(rounds if cached else 1 if at_once > 1 else 2):
                    if not cached:
                        installed.forget(home)
                    found.append(first_record(installed, path, at_once, extra))
                cells.append(f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})")
        report.row(name, *cells, installed.kept(home))
        installed.forget(home)


def growth(report: Report, folder: Path, path: Path, mib: int) -> None:
    report.add("", "## Large segments", "", GROWTH)
    report.table("segment", "records", "MiB before", "MiB at the peak", "seconds", "seconds for each GiB")  # fmt: skip
    installed = Installed(ROOT, False)
    roots = os.pathsep.join(str((ROOT / package).parent) for package in PACKAGES)
    for codec in ("none", "zstd"):
        block = shapes.segment("A", 16 << 10, 8 << 20, codec)
        for size in (mib // 4, mib // 2, mib):
            large = folder / "large.log"
            records = repeated(large, block, size << 20)
            arguments = [str(large), str(path)]
            process = installed.start(ALL, arguments, {"PYTHONPATH": roots})
            out, _ = process.communicate()
            rows, seconds, before, after = (float(word) for word in out.split())
            assert int(rows) == records
            report.row(
                f"{size} MiB" + ("" if codec == "none" else f", {codec}"),
                f"{records:,}",
                f"{before / 1024:.0f}",
                f"{after / 1024:.0f}",
                f"{seconds:.2f}",
                f"{seconds / size * 1024:.2f}",
            )
            large.unlink()


def main() -> None:
    parser = measure.parser(__doc__, rounds=5, mib=2048)
    options = parser.parse_args()
    report = Report("Starting, and large segments", measure.command("benchmarks.start", options))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "small.log"
        path.write_bytes(shapes.segment("A", 16 << 10, 1 << 20))
        starts(report, folder, path, options.rounds)
        growth(report, folder, path, options.mib)
    report.write(options.output)


if __name__ == "__main__":
    main()
