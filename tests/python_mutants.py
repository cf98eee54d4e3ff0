"""Change one expression or statement of Python modules at a time, and print the changes that no test notices.

`python -m tests.python_mutants pipeline/kafka_log/text --count 40` tries 40 mutants of a package. Each runs in a copy of the
repository. The tests are those of `python -m tests.where MODULE`: quick ones first, then slow ones while time is left.
Mutants that mean the same as the code are listed in tests/python_mutants.yaml.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import difflib
import importlib
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.mutants import equivalent
from tests.mutants.outcome import FirstFailure, Outcome, register_profile
from tests.mutants.pool import outcomes
from tests.paths import ROOT
from tests.tiers import QUICK
from tests.where import SOURCES, importing_tests, mirror_tests, module_name

GOOD, SURVIVORS, COULD_NOT_RUN = 0, 1, 2
EQUIVALENT = Path(__file__).with_suffix(".yaml")
SLOW = "slow and not broker and not soak"
SLOW_IMPORTS = ("numpy", "pyarrow.compute", "pyarrow.parquet", "hypothesis", "construct", "yaml", "numba", "pyspark.sql")  # fmt: skip
OURS = ("codecgen", "kafka_codecs", "kafka_log", "pyspark_kafka_log", "tests")
UNCHANGED = "unchanged"
"""The name of the copy of the repository of which each process has a copy that it changes."""
LONGEST = 70
"""Characters of code in the name of a mutant."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NEGATED_BY_SWAP = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)


@dataclass(frozen=True, slots=True)
class PythonMutant:
    """A file with the bytes from `start` to `end` replaced by `code`. `path` is relative to the repository."""

    name: str
    path: str
    line: int
    start: int
    end: int
    code: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.code.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """Return the change as a unified diff without headers."""
        before, after = (text.decode().splitlines() for text in (source, self.apply(source)))
        return "\n".join(list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:])


class _Finder(ast.NodeVisitor):
    """Collects the mutants of a module. Types, decorators, strings and `if TYPE_CHECKING` have none."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.found: list[PythonMutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._names: Counter[str] = Counter()

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and _is_of_imports(node)):
            return  # Python 3.11 gives no places in strings
        for old, new in _changes(node):
            self._add(old, new)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._scope.append(node.name)
            defaults = () if isinstance(node, ast.ClassDef) else (*node.args.defaults, *node.args.kw_defaults)  # fmt: skip
            for child in (*defaults, *node.body):
                if child is not None:
                    self.visit(child)
            self._scope.pop()
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
        else:
            self.generic_visit(node)

    def _add(self, old: ast.stmt | ast.expr, new: str) -> None:
        what = f"{self.path} {'.'.join(self._scope) or 'module'}: {_shorten(ast.unparse(old))} -> {_shorten(new)}"
        self._names[what] += 1
        name = what if self._names[what] == 1 else f"{what} #{self._names[what]}"
        assert old.end_lineno is not None and old.end_col_offset is not None
        start = self._starts[old.lineno - 1] + old.col_offset
        end = self._starts[old.end_lineno - 1] + old.end_col_offset
        self.found.append(PythonMutant(name, self.path, old.lineno, start, end, new))


def _changes(node: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Yield expressions and statements of a node, each with the code that replaces it."""
    match node:
        case ast.Compare():
            for i, one in enumerate(node.ops):
                changed = copy.deepcopy(node)
                changed.ops[i] = SWAPS[type(one)]()  # type: ignore[call-overload]
                yield node, ast.unparse(changed)
        case ast.BoolOp() | ast.BinOp() if type(node.op) in SWAPS:
            swapped = copy.deepcopy(node)
            swapped.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
            yield node, f"({ast.unparse(swapped)})"
        case ast.Constant() if type(node.value) is int:
            yield node, str(node.value + 1)
            yield node, f"({node.value - 1})"
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield node, "pass"
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield node, "return None"
    tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", None)]
    for test in tests if not isinstance(node, ast.Assert) else ():
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        swapped_too = isinstance(test, ast.Compare) and isinstance(test.ops[0], NEGATED_BY_SWAP)
        if isinstance(test, ast.expr) and not negated and not swapped_too:
            yield test, f"(not ({ast.unparse(test)}))"


def _is_of_imports(node: ast.If) -> bool:
    """Return whether a condition is that of types, or of a module that is run as a command."""
    return ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")


def _shorten(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def mutants_of(path: str, source: bytes) -> list[PythonMutant]:
    """Return the mutants of a module in the order of their lines. Raise SyntaxError if it is none."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: mutant.line)


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant, or None for the code as it is, and the files of its tests."""

    mutant: PythonMutant | None
    tests: tuple[str, ...]
    number: int = 0


class _Deadline:
    """A pytest plugin that starts no test after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.monotonic() > self._end:
            item.session.shouldstop = "no time left"
            pytest.skip("no time left")


def run_task(task: Task, slot: int, *, copies: Path, paths: Sequence[str], slow_s: float) -> Outcome:  # fmt: skip
    """Return the outcome of a task, tried in a copy of the repository that `slot` names. The process cannot be used for another one
    after this."""
    repository = copies / str(slot)
    if not repository.is_dir():
        shutil.copytree(copies / UNCHANGED, repository)
    for path in paths:  # a process that was killed has left its mutant
        shutil.copy2(copies / UNCHANGED / path, repository / path)
    if (mutant := task.mutant) is not None:
        file = repository / mutant.path
        changed_at = file.stat().st_mtime + 2 * (task.number + 1)
        file.write_bytes(mutant.apply(file.read_bytes()))
        os.utime(file, (changed_at, changed_at))  # compiled files go by the second
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] in OURS}
    for name in kept:
        del sys.modules[name]
    os.chdir(repository)
    os.environ["PYTHONPATH"] = os.pathsep.join(str(repository / name) for name in SOURCES)
    register_profile()
    options = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    options += [f"--rootdir={repository}", f"--basetemp={copies / f'tmp-{slot}'}"]
    stages: list[tuple[str, float, tuple[str, ...]]] = [(QUICK, 1e9, (file,)) for file in task.tests]  # fmt: skip
    stages += [(SLOW, slow_s, task.tests)] if slow_s else []
    by = ""
    for marks, seconds, files in stages:
        first, shown = FirstFailure(), io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            code = pytest.main([*options, "-m", marks, *files], [first, _Deadline(seconds)])
        if first.name or code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
            by = first.name or shown.getvalue()[-300:]
            break
    sys.modules.update(kept)  # the outcome is sent as this class
    return Outcome("killed", by) if by else Outcome("survived")


def copy_repository(root: Path, to: Path) -> None:
    """Copy the files that git has, or would add, to a new directory."""
    listing = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]  # fmt: skip
    done = subprocess.run(listing, capture_output=True, check=True)
    for name in filter(None, done.stdout.split(b"\0")):
        source, target = root / os.fsdecode(name), to / os.fsdecode(name)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def tests_of(path: Path, root: Path) -> tuple[str, ...]:
    """Return the test files of a module, those at its place first."""
    module = module_name(path, root)
    files = dict.fromkeys([*mirror_tests(module, root), *importing_tests(module, root)])
    return tuple(file.relative_to(root).as_posix() for file in files)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, listed: Path = EQUIVALENT) -> int:  # fmt: skip
    """Try mutants. Return 0 if tests notice all that are not listed, 1 if not, 2 if tests fail without a mutant."""
    parser = argparse.ArgumentParser(prog="python -m tests.python_mutants", description=__doc__)
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="a Python file or package, such as pipeline/kafka_log/text")  # fmt: skip
    parser.add_argument("--count", metavar="N", type=int, help="try N mutants, chosen by the seed")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of the choice (default 0)")  # fmt: skip
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="at a time (default 2)")
    parser.add_argument("--slow", metavar="SECONDS", type=float, default=120, help="time for slow tests (default 120; 0: quick tests only)")  # fmt: skip
    parser.add_argument("--tests", metavar="FILE", nargs="+", help="these instead of those that tests.where names")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the mutants, try none")
    options = parser.parse_args(arguments)
    given = [root / name for name in options.modules]
    files = [f for one in given for f in (sorted(one.rglob("*.py")) if one.is_dir() else [one])]
    paths = [file.relative_to(root).as_posix() for file in files]
    sources = {path: (root / path).read_bytes() for path in paths}
    chosen = every = [mutant for path in paths for mutant in mutants_of(path, sources[path])]
    reasons = equivalent.read(listed)
    if options.count is not None and options.count < len(every):
        chosen = random.Random(options.seed).sample(every, options.count)
    if options.list:
        print(*(f"{m.path}:{m.line} {m.name}" for m in chosen), sep="\n")
        return GOOD
    tests = {path: tuple(options.tests or tests_of(root / path, root)) for path in paths}
    tasks = [Task(m, tests[m.path], i) for i, m in enumerate(chosen) if not equivalent.reason(m.name, reasons)]  # fmt: skip
    print(f"{len(chosen)} of {len(every)} mutants, {len(chosen) - len(tasks)} listed as equivalent")
    for name in SLOW_IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="python-mutants-", ignore_cleanup_errors=True) as scratch:  # fmt: skip
        copy_repository(root, Path(scratch, UNCHANGED))
        run = partial(run_task, copies=Path(scratch), paths=paths, slow_s=options.slow)
        unchanged = [Task(None, one) for one in dict.fromkeys(task.tests for task in tasks)]
        failed = ""
        for task, outcome, seconds in outcomes(unchanged, options.jobs, run):
            print(f"without a mutant {len(task.tests)} files: {outcome.end} in {seconds:.0f} s {outcome.by}", flush=True)  # fmt: skip
            failed = failed or outcome.by
        if failed:
            return COULD_NOT_RUN
        for task, outcome, seconds in outcomes(tasks, options.jobs, run):
            mutant = task.mutant
            assert mutant is not None
            ends[outcome.end] += 1
            if outcome.end == "survived":
                print(f"\n{mutant.path}:{mutant.line} survived in {seconds:.0f} s: {mutant.name}")
                print(mutant.diff(sources[mutant.path]), flush=True)
            elif ends.total() % 20 == 0:
                print(f"[{ends.total()}/{len(tasks)}]", flush=True)
    print(f"{ends['killed']} killed, {ends['survived']} survived")
    return SURVIVORS if ends["survived"] else GOOD


if __name__ == "__main__":
    sys.exit(main())
