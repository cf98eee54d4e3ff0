"""Print the test files that cover a module: `python -m tests.where generator/codecgen/plan/resolve.py`.

The first list has the files at the module's place in tests/. The second list has the files that import the module or a name
from it, directly or through other modules of tests/.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.paths import ROOT

SOURCES = ("generator", "pipeline", "generated", ".")


def module_name(path: Path, root: Path = ROOT) -> str:
    """Return the dotted name of a source file or package of the repository.

    Raises:
        ValueError: if there is no such file or package.
    """
    file = path if path.is_absolute() else root / path
    if not (file.suffix == ".py" and file.is_file()) and not file.is_dir():
        raise ValueError(f"{path} is no Python file or package")
    folder = next(root / source for source in SOURCES if file.is_relative_to(root / source))
    return ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


def mirror_tests(module: str, root: Path = ROOT) -> list[Path]:
    """Return the test files named after the module, and for a package those in its folder.

    If there are none, return all test files in the folder of the module's package.
    """
    place = root / "tests" / Path(*module.split("."))
    named = [
        *place.parent.glob(f"test_{place.name}.py"),
        *place.parent.glob(f"test_{place.name}_*.py"),
    ]
    return sorted(named + list(place.rglob("test_*.py"))) or sorted(place.parent.glob("test_*.py"))


def imported_names(path: Path) -> set[str]:
    """Return the dotted names that a file imports: modules, and names from modules."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def importing_tests(module: str, root: Path = ROOT) -> list[Path]:
    """Return the test files that import the module, or import a module of tests/ that does."""
    files = {path: imported_names(path) for path in sorted((root / "tests").rglob("*.py"))}
    found: list[Path] = []
    wanted = [module]
    while wanted:
        name = wanted.pop()
        for path in [path for path, names in files.items() if _names(names, name)]:
            del files[path]
            found.append(path)
            wanted.append(module_name(path, root))
    return sorted(path for path in found if path.name.startswith("test_"))


def _names(names: Iterable[str], module: str) -> bool:
    """Return whether one of the names is the module or a name in it."""
    return any(f"{name}.".startswith(f"{module}.") for name in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the test files of a module. Return 2 if there is no such module."""
    parser = argparse.ArgumentParser(prog="python -m tests.where", description=__doc__)
    parser.add_argument("path", type=Path, metavar="PATH", help="of a module or package, such as generator/codecgen/plan/resolve.py")  # fmt: skip
    try:
        module = module_name(parser.parse_args(arguments).path)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    mirror = mirror_tests(module)
    others = [path for path in importing_tests(module) if path not in mirror]
    lists: Mapping[str, list[Path]] = {"in its place": mirror, "by imports": others}
    for title, paths in lists.items():
        names = [path.relative_to(ROOT).as_posix() for path in paths] or ["none"]
        print(f"{title}:", *names, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
