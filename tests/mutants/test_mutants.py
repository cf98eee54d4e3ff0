"""Mutants of the schemas: how they are made, what becomes of some that are known, and a sample of all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
import yaml

from codecgen.schema.loader import load, read_files
from tests.changes import changed_files
from tests.mutants import equivalent
from tests.mutants.__main__ import of_changed_files
from tests.mutants.edits import Mutant
from tests.mutants.expressions import changes
from tests.mutants.facts import mutants
from tests.mutants.subjects import subjects
from tests.mutants.words import bits, neighbours, numbers, versions
from tests.paths import ROOT, SCHEMAS

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML has it."""
FILES = read_files(SCHEMAS)
SAMPLE, SAMPLE_OF_ALL = 15, 5
"""Mutants of the schema files that differ from the last landed commit, and of all files if none does."""
LANDED = {name: os.environ[name] for name in ("LANDED", "HOME") if name in os.environ}
"""What git needs to find the last landed commit."""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="each mutant has a forked process")
KINDS = {
    "algorithm", "bit", "code", "condition", "default", "derived value", "example", "freedom", "limit", "name", "order",
    "release", "release list", "rule", "sentinel", "span", "spelling", "title", "type", "unit", "version range", "view column", "write expression",
}  # fmt: skip


@cache
def every_mutant() -> list[Mutant]:
    return mutants(FILES)


def run(*arguments: str) -> tuple[int, str]:
    """The command, in a process that has loaded nothing of the schemas."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--verbose", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT}", **LANDED},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


# ---------------------------------------------------------------- how they are made


@pytest.mark.slow
def test_there_are_mutants_of_every_kind_and_every_file() -> None:
    assert {m.kind for m in every_mutant()} == KINDS
    assert {m.file for m in every_mutant()} == set(FILES)
    assert len(every_mutant()) > 1400
    assert len({m.name for m in every_mutant()}) == len(every_mutant())


@pytest.mark.share(12, ci=9)
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", sorted(FILES))
def test_a_mutant_is_one_change_and_still_yaml(file: str, every: int) -> None:
    text = FILES[file]
    before = list(yaml.load_all(text, LOADER))
    for mutant in [m for m in every_mutant() if m.file == file][::every]:
        changed = mutant.apply(text)
        assert changed[: mutant.start] == text[: mutant.start]
        assert changed[mutant.start + len(mutant.new) :] == text[mutant.end :]
        after = list(yaml.load_all(changed, LOADER))
        assert _ordered(after) != _ordered(before), mutant.name


def _ordered(value: object) -> object:
    """Mappings in which the order of the keys counts: it is that of the bytes."""
    if isinstance(value, dict):
        return [(key, _ordered(item)) for key, item in value.items()]
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def test_mutants_of_changed_files_come_first() -> None:
    changed = ["schemas/records/header.yaml", "schemas/README.md", "pipeline/records/batch.yaml"]
    found = of_changed_files(every_mutant(), changed)
    assert {m.file for m in found} == {"records/header.yaml"}
    assert of_changed_files(every_mutant(), changed[1:]) == every_mutant()


LAYOUT = """\
layout: a
# What is said about x.
fields:
  n: {type: u8, counts: xs}  # how many
  x: {type: i16, none: -1}
  xs: {array: u8}
"""


def made(text: str, kind: str) -> list[str]:
    found = mutants({"a.yaml": text, "codecgen.yaml": "package: p\ntitle: T\n"})
    return [m.apply(text) for m in found if m.file == "a.yaml" and m.kind == kind]


def test_comments_and_all_else_are_kept() -> None:
    for text in (text for kind in KINDS for text in made(LAYOUT, kind)):
        assert "# What is said about x.\n" in text
        assert "# how many\n" in text
    assert LAYOUT.replace("type: i16", "type: u16") in made(LAYOUT, "type")
    assert LAYOUT.replace("none: -1", "none: 0") in made(LAYOUT, "sentinel")
    assert LAYOUT.replace(", counts: xs", "") in made(LAYOUT, "span")


def test_fields_change_places() -> None:
    n, x = "n: {type: u8, counts: xs}  # how many\n  ", "x: {type: i16, none: -1}"
    swapped = next(t for t in made(LAYOUT, "order") if "xs}  # how many\n  n:" not in t and t.index("x: {t") < t.index("n: {t"))  # fmt: skip
    fields = list(yaml.safe_load(swapped)["fields"])
    assert fields == ["x", "n", "xs"]
    assert n + x in LAYOUT


def test_words() -> None:
    assert numbers("-1") == ["0", "-2"]
    assert numbers("a == 1") == []
    assert versions("0-1") == ["1", "0", "0-2"]
    assert versions("1+") == ["2+", "1", "0+"]
    assert versions("0") == ["0-1"]
    assert bits("0-2") == ["1-3", "0-1", "0-3"]
    assert bits("5") == ["6", "4", "5-6"]
    assert neighbours("b", ["a", "b", "c"]) == ["a", "c"]


def test_expressions() -> None:
    raw = "if a == 1 then -1 else first(b).c - 2"
    found = [raw[:start] + new + raw[end:] for start, end, new in changes(raw, [["a", "b"]])]
    assert found == [
        "if b == 1 then -1 else first(b).c - 2",
        "if a != 1 then -1 else first(b).c - 2",
        "if a == 2 then -1 else first(b).c - 2",
        "if a == 1 then 0 else first(b).c - 2",
        "if a == 1 then -1 else last(b).c - 2",
        "if a == 1 then -1 else first(a).c - 2",
        "if a == 1 then -1 else first(b).c + 2",
        "if a == 1 then -1 else first(b).c - 3",
    ]


@pytest.mark.soak
@pytest.mark.parametrize("some", [80, 240])
def test_many_load_and_many_do_not(some: int) -> None:
    """Mutants that no loader takes test the loader alone: they are the smaller part."""
    taken = every_mutant()[:: len(every_mutant()) // some]
    ends = Counter(load(FILES | {m.file: m.apply(FILES[m.file])})[0] is None for m in taken)
    assert ends[False] > ends[True]


# ---------------------------------------------------------------- the list


@pytest.mark.soak
def test_every_listed_mutant_is_there_and_has_a_reason() -> None:
    reasons = equivalent.read()
    every = [m for subject in subjects("all") for m in subject.mutants()]
    assert len({m.name for m in every}) == len(every)
    assert equivalent.unused([m.name for m in every], reasons) == []
    assert all(len(reason.why) > 10 for reason in reasons)
    listed = [m for m in every if equivalent.reason(m.name, reasons)]
    assert len(listed) < len(every) / 10


def test_names_of_the_list() -> None:
    reason = equivalent.Reason("because", ("a.yaml x[0]: * -> 1", "b"))
    assert reason.covers("a.yaml x[0]: 2 -> 1")
    assert not reason.covers("a.yaml x0: 2 -> 1")
    assert equivalent.unused(["b"], [reason]) == ["a.yaml x[0]: * -> 1"]
    assert equivalent.reason("c", [reason]) is None


def test_neighbours_of_one_edit_do_not_move() -> None:
    """What an edit leaves is found where it was: start and end are those of the text."""
    for first, second in pairwise(every_mutant()):
        assert isinstance(first, Mutant) and FILES[second.file][second.start : second.end] == second.old  # fmt: skip


# ---------------------------------------------------------------- what becomes of them


@needs_fork
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("messages/kraft.yaml kraft_version_record.accepts: loose_tags, -> nothing", "killed"),
        ("records/header.yaml header: nothing -> endian: little", "equivalent"),
        ("messages/leader_change.yaml leader_change_message.leader_id.type: i32 -> i16", "examples"),
        ("records/control_record_value.yaml control_record_value.abort: end_txn_marker@0 -> end_txn_marker@1", "rejected"),
    ],
)  # fmt: skip
def test_how_known_ones_end(name: str, end: str) -> None:
    code, shown = run("--only", name)
    assert code == 0, shown
    assert f" s {end}: {name}" in shown


@needs_fork
@pytest.mark.slow
@pytest.mark.soak
def test_a_mutant_that_no_test_looks_at_survives() -> None:
    """The command says so, and ends with 1: here no test is given the mutant."""
    text = (
        "import tests.mutants.__main__ as m, tests.mutants.subjects as s, sys\n"
        "s.selection = lambda mutant: s.Selection(('tests/codecgen/runtime/test_layout.py',))\n"
        "sys.exit(m.main(['--only', 'uvarint -> varint', '--sample', '1', '--seed', '1']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 survived" in done.stdout


EVERY_PARAMETER = """
import pytest
from pathlib import Path
from tests.mutants import trial
from tests.mutants.selection import Selection
from tests.paths import FOREIGN
from tests.tiers import tier

class Collected:
    @pytest.hookimpl(trylast=True)
    def pytest_itemcollected(self, item):
        quick.update([item.nodeid] if tier(item) == "quick" else [])  # `share` has marked nothing yet

    def pytest_collection_finish(self, session):
        selected.update(item.nodeid for item in session.items)

FILE = "tests/mutants/test_mutants.py"
main = pytest.main
quick, selected = set(), set()
main(["--collect-only", "-q", "-p", "no:cacheprovider", "-m", trial.NOT_SLOW, FILE], [Collected()])
print("PLAIN", len(quick), len(selected), selected < quick)
trial.pytest.main = lambda options, plugins: main(["--collect-only", *options], [*plugins, Collected()])
quick, selected = set(), set()
trial._tests(Path.cwd(), "FOREIGN", FOREIGN, Selection((FILE,)))
print("TOOL", len(quick), len(selected), selected == quick)
"""
"""Prints how many tests of this file are quick by their own marks, and how many of them pytest selects: by itself, and in a trial."""


@pytest.mark.slow
def test_a_mutant_has_to_get_past_every_parameter() -> None:
    """A trial runs the parameters that `share` leaves to slower runs, too: any of them may be the one that notices."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_PARAMETER],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    found = {
        line.split()[0]: line.split()[1:]
        for line in done.stdout.splitlines()
        if line.startswith(("PLAIN ", "TOOL "))
    }
    (quick, some, fewer), (same, every, all_of_them) = found["PLAIN"], found["TOOL"]
    assert (fewer, all_of_them, quick) == ("True", "True", same), done.stdout + done.stderr
    assert int(some) < int(every)


@needs_fork
@pytest.mark.slow
def test_none_of_a_sample_survives() -> None:
    """The sample is always the same for a commit. `make soak PARTS=mutants` tries 600 `--of all`, others each day."""
    schemas_changed = any(name.startswith(f"{SCHEMAS.name}/") for name in changed_files())
    code, shown = run("--sample", str(SAMPLE if schemas_changed else SAMPLE_OF_ALL), "--changed")
    print(shown)
    assert code == 0, shown
