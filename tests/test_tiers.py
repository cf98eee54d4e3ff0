"""Each test is in one tier, and the run of a tier has all tests of it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.tiers import CI, QUICK, changed_names, has_no_test, names_a_changed_file

CASE = """
import pytest
FILES = [f"folder-{name}" for name in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")]

def test_plain(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.broker
def test_broker(): pass

@pytest.mark.soak
def test_soak(): pass

@pytest.mark.share(3)
@pytest.mark.parametrize("file", FILES)
def test_quick_share(file): pass

@pytest.mark.share(9, ci=0)
@pytest.mark.parametrize("file", FILES)
def test_subset(file): pass

@pytest.mark.slow
@pytest.mark.share(ci=3)
@pytest.mark.parametrize("file", FILES)
def test_sample(file): pass

@pytest.mark.broker
@pytest.mark.share(ci=9)
@pytest.mark.parametrize("file", [*FILES, pytest.param("x", marks=pytest.mark.soak)])
def test_one_of_nine(file): pass
"""
CONFTEST = """
import json, pytest
from tests.tiers import mark_tiers, tier

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    mark_tiers(items, {changed!r}, {turn!r})
    tiers = [(item.nodeid.partition("::")[2], tier(item), [mark.name for mark in item.iter_markers()]) for item in items]
    print("TIERS", json.dumps(tiers))
"""


def tiers_of_case(
    folder: Path, changed: tuple[str, ...] = (), seed: str = "0", turn: int | None = None
) -> dict[str, tuple[str, list[str]]]:
    """Return the tier and the marks of each test of CASE."""
    folder.mkdir()
    (folder / "test_case.py").write_text(CASE, encoding="utf-8")
    (folder / "conftest.py").write_text(
        CONFTEST.format(changed=changed, turn=turn), encoding="utf-8"
    )
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "--collect-only", "-p", "no:cacheprovider", "."]  # fmt: skip
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": seed,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("TIERS ")]
    return {name: (tier, marks) for name, tier, marks in json.loads(line.removeprefix("TIERS "))}


def test_marks_put_a_test_into_a_tier(tmp_path: Path) -> None:
    found = tiers_of_case(tmp_path / "a")
    assert {name: found[name][0] for name in ("test_plain", "test_slow", "test_broker", "test_soak")} == {
        "test_plain": "quick", "test_slow": "ci", "test_broker": "ci", "test_soak": "soak"
    }  # fmt: skip
    counts = {
        test: [sum(name.startswith(f"{test}[") and tier == one for name, (tier, _) in found.items()) for one in ("quick", "ci", "soak")]
        for test in ("test_quick_share", "test_subset", "test_sample", "test_one_of_nine")
    }  # fmt: skip
    assert counts == {
        "test_quick_share": [3, 2, 4],
        "test_subset": [1, 0, 8],
        "test_sample": [0, 3, 6],
        "test_one_of_nine": [0, 1, 9],
    }
    for tier, marks in found.values():
        # The expressions of pytest's -m select by these marks.
        assert (tier == "quick") == ("slow" not in marks and "broker" not in marks)
        assert (tier == "soak") == ("soak" in marks)
        assert tier != "soak" or "slow" in marks


@pytest.mark.slow
def test_the_choice_is_the_same_each_time_and_has_what_changed(tmp_path: Path) -> None:
    def sample(found: dict[str, tuple[str, list[str]]]) -> set[str]:
        names = {name for name, (tier, _) in found.items() if tier == "ci"}
        return {name for name in names if name.startswith(("test_sample", "test_subset"))}

    before = sample(tiers_of_case(tmp_path / "a", seed="1"))
    left_out = next(
        name for name in ("second", "third", "fourth", "fifth") if f"test_sample[folder-{name}]" not in before
    )  # fmt: skip
    changed = (f"tests/vectors/folder/{left_out}.log", "pipeline/kafka_log/first.py")
    after = sample(tiers_of_case(tmp_path / "b", changed, seed="2"))
    assert after == before | {f"test_sample[folder-{left_out}]", f"test_subset[folder-{left_out}]"}


def test_slow_tests_take_turns(tmp_path: Path) -> None:
    """A commit runs half of those of each file, the next turn the others; a file that changed has all of them."""
    every = tiers_of_case(tmp_path / "both")
    changed = tiers_of_case(tmp_path / "changed", ("test_case.py",), turn=0)
    assert changed == every
    turns = [tiers_of_case(tmp_path / str(turn), turn=turn) for turn in (0, 1)]
    slow = {name for name, (tier, _) in every.items() if tier == "ci"}
    first, second = ({name for name in slow if found[name][0] == "ci"} for found in turns)
    assert first | second == slow
    assert not first & second
    assert abs(len(first) - len(second)) <= 1
    for found in turns:
        assert {name for name, (tier, _) in found.items() if tier == "ci"} <= slow
        assert {name for name in found if found[name] != every[name]} <= slow


def test_names_of_changed_files() -> None:
    long = "v2-" + "x" * 80
    names = changed_names(
        ["samples/kafka-4.x/codecs-0/00000000000000000000.log", f"tests/vectors/malformed/{long}.log", "README.md"]
    )  # fmt: skip
    assert names_a_changed_file("tests/a.py::test_a[codecs-0-00000000000000000000]", names)
    assert names_a_changed_file(f"tests/a.py::test_a[{f'malformed-{long}'[-60:]}]", names)
    assert names_a_changed_file(f"tests/a.py::test_a[{long}]", names)
    assert not names_a_changed_file("tests/a.py::test_a[codecs-1-00000000000000000000]", names)
    assert not names_a_changed_file("tests/README.py::test_README", names)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("def test_a() -> None: ...", (QUICK, CI)),
        ("pytestmark = [pytest.mark.spark, pytest.mark.slow]", (CI,)),
        ("pytestmark = pytest.mark.soak", ()),
        ("@pytest.mark.soak\ndef test_a() -> None: ...", (QUICK, CI)),
    ],
)
def test_files_that_a_run_does_not_import(text: str, runs: tuple[str, ...]) -> None:
    assert tuple(run for run in (QUICK, CI) if not has_no_test(text, run)) == runs
    assert not has_no_test(text, "")


def test_the_command_selects_by_these_expressions() -> None:
    chores = (ROOT / "demo" / "run.py").read_text(encoding="utf-8")
    assert f'TIERS = {{"quick": "{QUICK}", "ci": "{CI}"}}\n' in chores


def is_left_to_the_soak(test: ast.FunctionDef) -> bool:
    """Return whether a decorator of the test leaves all of it to the soak."""
    return "pytest.mark.soak" in map(ast.unparse, test.decorator_list)


@pytest.mark.slow
def test_every_file_has_a_test_in_ci() -> None:
    """What only the soak runs breaks unnoticed for a day or longer. The soak also asks this of the collected tests."""
    without = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        tests = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        assert tests, path
        if has_no_test(text, CI) or all(map(is_left_to_the_soak, tests)):
            without.append(path.relative_to(ROOT).as_posix())
    assert without == []


COLLECTED = """
from pathlib import Path
import sys
import pytest
from tests.tiers import CI, QUICK, has_no_test, tier

class Judge:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        runs = {"quick": [QUICK, CI], "ci": [CI], "soak": []}
        missing = set()
        for item in items:
            text = item.path.read_text("utf-8")
            missing |= {(run, item.path.name) for run in runs[tier(item)] if has_no_test(text, run)}
        in_ci = {item.path for item in items if tier(item) != "soak"}
        missing |= {("no test in ci", item.path.name) for item in items if item.path not in in_ci}
        print("JUDGED", len(items), sorted(missing))

sys.exit(pytest.main(["--collect-only", "-q", "-s", "-p", "no:cacheprovider"], [Judge()]))
"""


@pytest.mark.soak
@pytest.mark.slow
def test_every_test_is_in_a_file_that_the_run_of_its_tier_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"TURN": "both"},
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("JUDGED ")]
    _, count, missing = line.split(maxsplit=2)
    assert int(count) > 15_000
    assert missing == "[]"
