"""The soak runs everything, goes on where it was stopped, and says which seed does it again."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests import shares, soak
from tests.fuzz.guards import AVAILABLE
from tests.paths import ROOT
from tests.shares import draw_seeds
from tests.soak import Part, chosen, parts, run_part, seed_of


def test_each_test_file_is_in_one_part(tmp_path: Path) -> None:
    files = [word for p in parts(7, tmp_path) if p.name.startswith(("tests/", "project")) for word in p.command if word.endswith(".py")]  # fmt: skip
    assert sorted(files) == sorted(
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")
    )
    for part in parts(7, tmp_path):
        assert "-m" not in part.command[3:]  # no test is left out by its marks
        assert any("7" in word for word in part.command if word not in soak.PYTEST)


@pytest.mark.skipif(not AVAILABLE, reason="guard pages are there on Linux only")
def test_the_fuzzers_run_at_length_to_their_end(tmp_path: Path) -> None:
    fuzz = [part for part in chosen(parts(7, tmp_path), ["fuzz"]) if part.name.startswith("fuzz/")]
    found = {tuple(part.command[2:7]): tuple(part.command[7:]) for part in fuzz}
    assert found == {
        (f"tests.fuzz.{name}", option, str(counts[checks]), "--checks", checks): ("--seed", "7")
        for name, option, counts in (
            ("decode", "--batches", soak.MUTATED_BATCHES),
            ("encode", "--tables", soak.MADE_TABLES),
        )
        for checks in ("off", "on")
    }


def test_parts_are_chosen_by_name(tmp_path: Path) -> None:
    def names(*wanted: str) -> list[str]:
        return [part.name for part in chosen(parts(1, tmp_path), wanted)]

    assert names("laws", "mutants") == ["laws", "tests/laws", "mutants", "tests/mutants"]
    subjects = ["browse", "check", "diff", "dump", "groups", "hexdump", "keys", "merge", "metadata"]
    subjects += ["overview", "producers", "report", "schemas", "statistics", "transactions"]
    assert names("tests/kafka_log/inspect/diff/", "kafka_log/inspect") == [
        "tests/kafka_log/inspect/diff",
        "tests/kafka_log/inspect",
        *(f"tests/kafka_log/inspect/{name}" for name in subjects if name != "diff"),
    ]
    assert names() == [part.name for part in parts(1, tmp_path)]
    with pytest.raises(ValueError, match=r"There is no part 'law' of the soak\. Parts: hypothesis"):
        names("law")


def test_what_passed_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = "import os, pathlib; p = pathlib.Path(os.environ['COUNT']); p.write_text(p.read_text() + 'x'); print('ran')"
    (tmp_path / "count").write_text("")
    good = Part("tests/a", [sys.executable, "-c", count], {"COUNT": str(tmp_path / "count")})
    assert run_part(good, tmp_path, 1) and run_part(good, tmp_path, 1)
    assert (tmp_path / "count").read_text() == "x"
    assert run_part(good, tmp_path, 2)
    assert (tmp_path / "count").read_text() == "xx"
    assert (tmp_path / "tests-a.1.log").read_text() == "ran\n"
    bad = Part("b", [sys.executable, "-c", "import sys; print('what is wrong'); sys.exit(3)"])
    capsys.readouterr()
    assert not run_part(bad, tmp_path, 1) and not run_part(bad, tmp_path, 1)
    shown = capsys.readouterr().out
    assert shown.count("what is wrong\nb: FAILED with exit code 3") == 2


def test_the_seed_is_kept_until_another_is_given(tmp_path: Path) -> None:
    first = seed_of(tmp_path / "a", None)
    assert 20_000_000 < first < 30_000_000  # year, month and day
    assert seed_of(tmp_path / "a", 5) == 5
    assert seed_of(tmp_path / "a", None) == 5


@pytest.mark.slow
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--list", "brokers"]) == 0
    assert capsys.readouterr().out == "tests/brokers\n"
    assert soak.main(["nothing"]) == 2
    assert "There is no part 'nothing'" in capsys.readouterr().err


def test_a_soak_draws_other_seeds_than_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "SEED", 0)
    assert draw_seeds(3) == range(3) and draw_seeds(3, first=100) == range(100, 103)
    drawn = [draw_seeds(3)]
    for seed in (20260131, 20260201, 20260202):
        monkeypatch.setattr(shares, "SEED", seed)
        drawn.append(draw_seeds(3))
    assert len({seed for seeds in drawn for seed in seeds}) == 12


def fixed_seeds(path: Path) -> list[str]:
    """Return the parametrizations of seeds that the soak does not change, by the text of their values."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]  # fmt: skip
    return [
        ast.unparse(call.args[1])
        for call in calls
        if ast.unparse(call.func).endswith("mark.parametrize")
        and ast.unparse(call.args[0]) in ("'seed'", "'seeds'")
        and "draw_seeds(" not in ast.unparse(call.args[1])
    ]


@pytest.mark.slow
def test_no_random_test_has_the_same_seeds_each_day() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): seeds
        for path in (ROOT / "tests").rglob("test_*.py")
        if (seeds := fixed_seeds(path))
    }
    # PYTHONHASHSEED, of which two values are enough to order a set in two ways.
    assert found == {"tests/codecgen/targets/docs/test_pages.py": ["['1', '2']"]}
