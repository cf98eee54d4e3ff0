"""The tool that changes Python modules: what it changes, and that it finds a change that no test notices."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import python_mutants
from tests.paths import ROOT
from tests.support.git_commands import run_git

MODULE = b"""
def clamp(value: "int | None", most: int = 7) -> int:
    if value is None:
        raise ValueError(f"{value}{1 + 1}")
    return most if value > most else value


def log(line):
    print(line)
"""
WEAK = """
import pytest

from toy import clamp


def test_clamp():
    assert (clamp(3), clamp(9)) == (3, 7)
    with pytest.raises(ValueError):
        clamp(None)


@pytest.mark.slow
def test_log(capsys):
    import toy

    toy.log("x")
    assert capsys.readouterr().out == "x\\n"
"""
EQUIVALENT = """
- why: The two are equal then.
  mutants:
    - "*clamp: value > most -> value >= most"
"""
CONFIGURATION = """
[tool.pytest.ini_options]
pythonpath = ["pipeline"]
markers = ["slow", "broker", "soak"]
"""
MUTANTS = [
    "clamp: 7 -> 8",
    "clamp: 7 -> (6)",
    "clamp: value is None -> value is not None",
    "clamp: raise ValueError(f'{value}{1 + 1}') -> pass",
    "clamp: return most if value > most else value -> return None",
    "clamp: value > most -> (not (value > most))",
    "clamp: value > most -> value >= most",
    "log: print(line) -> pass",
]


def test_mutants_of_a_module() -> None:
    found = python_mutants.mutants_of("toy.py", MODULE)
    assert [mutant.name.removeprefix("toy.py ") for mutant in found] == MUTANTS
    for mutant in found:
        assert ast.dump(ast.parse(mutant.apply(MODULE))) != ast.dump(ast.parse(MODULE))
    assert found[-1].diff(MODULE) == "@@ -8,2 +8,2 @@\n def log(line):\n-    print(line)\n+    pass"


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("x = a or b and c", ["(a and (b and c))", "a or (b or c)"]),
        ("x = a - b * c", ["(a + b * c)", "a - (b // c)"]),
        ("x = 'ä' if not a else 0 < b < 2", ["'ä' if (a) else 0 < b < 2", "0 <= b < 2", "0 < b <= 2", "(-1) < b < 2", "1 < b < 2", "0 < b < (1)", "0 < b < 3"]),
        ("x = [a for a in b if a]", ["[a for a in b if (not (a))]"]),
        ("n += 1", ["pass", "n += 2", "n += (0)"]),
        ("assert a", []),
    ],
)  # fmt: skip
def test_code_around_a_change_stays(code: str, changed: list[str]) -> None:
    found = python_mutants.mutants_of("toy.py", code.encode())
    texts = {mutant.apply(code.encode()).decode() for mutant in found}
    assert len(texts) == len(changed)
    for end in changed:
        assert any(text.endswith(end) for text in texts), end


@pytest.mark.slow
@pytest.mark.parametrize("path", ["generator", "pipeline"])
def test_every_mutant_of_ours_is_python(path: str) -> None:
    for file in sorted((ROOT / path).rglob("*.py"))[:: 60 if path == "generator" else 40]:
        source = file.read_bytes()
        found = python_mutants.mutants_of(file.name, source)
        assert len({mutant.name for mutant in found}) == len(found)
        for mutant in found[::20]:
            assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from pathlib import Path; from tests import python_mutants as tool; tool.SLOW_IMPORTS = ()\n"
    program += (
        "sys.exit(tool.main(sys.argv[2:], Path(sys.argv[1]), Path(sys.argv[1], 'equivalent.yaml')))"
    )
    roots = [str(ROOT), str(ROOT / "generator")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    command = [sys.executable, "-c", program, str(root), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pipeline/toy.py": MODULE.decode(),
        "tests/test_toy.py": WEAK,
        "pyproject.toml": CONFIGURATION,
        "equivalent.yaml": "[]",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run_git(tmp_path, "init", "-q")
    return tmp_path


@pytest.mark.slow
def test_survivors_are_named_until_they_are_listed(project: Path) -> None:
    before = (project / "pipeline/toy.py").read_bytes()
    done = run(project, "pipeline/toy.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "8 of 8 mutants, 0 listed" in done.stdout
    assert done.stdout.count("toy.py:") == 1 and "pipeline/toy.py:5 survived" in done.stdout
    assert "+    return most if value >= most else value" in done.stdout
    (project / "equivalent.yaml").write_text(EQUIVALENT)
    done = run(project, "pipeline", "--slow", "0")
    assert done.returncode == 1 and "8 of 8 mutants, 1 listed" in done.stdout
    assert done.stdout.count("toy.py:") == 1 and "pipeline/toy.py:9 survived" in done.stdout
    assert done.stdout.endswith("6 killed, 1 survived\n")
    assert (project / "pipeline/toy.py").read_bytes() == before


@pytest.mark.slow
def test_tests_that_fail_anyway_are_no_answer(project: Path) -> None:
    (project / "tests/test_toy.py").write_text(WEAK.replace("(3, 7)", "(3, 8)"))
    done = run(project, "pipeline/toy.py", "--count", "1", "--seed", "5")
    assert done.returncode == 2 and "without a mutant 1 files: killed in" in done.stdout
