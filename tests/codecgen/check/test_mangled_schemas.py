"""Our own schemas after accidents: `check` has findings, or the package that is generated can be imported and used."""

from __future__ import annotations

import builtins
import importlib
import re
import symtable
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import event, given
from hypothesis import strategies as st

from codecgen.check import run
from codecgen.diagnostics import Diagnostic, render
from codecgen.plan import make_plan
from codecgen.runtime.rows import RowView
from codecgen.schema import loader
from codecgen.targets.registry import ON_REQUEST, TARGETS
from tests.paths import SCHEMAS

FILES = loader.read_files(SCHEMAS)
PACKAGE = "mangled_codecs"
NEVER_ALONE = "metadata/metadata_body.yaml"
"""A choice whose versions are named where it is used."""
ROOTS = sorted(FILES.keys() - {loader.MANIFEST, NEVER_ALONE})

TOKENS = sorted({token for text in FILES.values() for token in text.replace(",", " ").split()})
_PAIR = re.compile(r"\b([a-z_]+): ((?:[^{}\[\],:#\n]|\{[^{}\n]*\}|\[[^\[\]\n]*\])+)")
PAIRS = sorted({found for text in FILES.values() for found in _PAIR.findall(text)})
"""Keys with their values."""
VALUES: dict[str, list[str]] = {}
for _key, _value in PAIRS:
    VALUES.setdefault(_key, []).append(_value)


@cache
def declared() -> dict[str, str]:
    """Return the file of each name that is declared."""
    model, _ = loader.load(FILES)
    assert model is not None
    groups = (model.layouts, model.choices, model.enums, model.views)
    return {name: thing.span.file for group in groups for name, thing in group.items()}


@cache
def needed(root: str) -> dict[str, str]:
    """Return the manifest, a file, and all files that it needs: a directory without findings."""
    names = {loader.MANIFEST, root}
    while True:
        files = {name: FILES[name] for name in sorted(names)}
        manifest = files[loader.MANIFEST].replace("kafka_codecs", PACKAGE)
        # Its folders are not all among the files.
        files[loader.MANIFEST] = re.sub("(?m)^  as_of_folders: .*\n", "", manifest)
        found = checked(files)[1]
        if not found:
            return files
        words = {word for d in found for word in re.findall(r'"(\w+)"', d.message)}
        more = {declared()[word] for word in words if word in declared()} - names
        assert more, render(found, files)
        names |= more


def checked(files: dict[str, str]) -> tuple[Any, list[Diagnostic]]:
    """Return the model of a directory, and what is wrong with it."""
    model, found = loader.load(files)
    return model, found + (run(model) if model is not None else [])


@pytest.mark.slow
@given(st.data())
def test_mangled_schemas_give_findings_or_work(data: st.DataObject) -> None:
    files = dict(needed(data.draw(st.sampled_from(ROOTS))))
    name = data.draw(st.sampled_from(sorted(files.keys() - {loader.MANIFEST})))
    files[name] = mangle(files[name], data)
    event(judge(files))


@pytest.mark.slow
def test_few_mangled_schemas_give_findings_or_work() -> None:
    files = needed("files/transaction_index.yaml")
    assert judge(files) == "works"
    name = "files/transaction_index.yaml"
    assert judge(files | {name: files[name].replace("i64", "i63")}) == "findings"


def mangle(text: str, data: st.DataObject) -> str:
    """Change some lines of a file."""
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        lines = lines or [""]
        at = data.draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        words, pairs = line.split(" "), list(_PAIR.finditer(line))
        kinds = ["drop", "repeat", "word", "swap", "indent"]
        kinds += ["pair"] * 3 * ("{" in line) + ["value"] * 4 * bool(pairs)
        match data.draw(st.sampled_from(kinds)):
            case "drop":
                del lines[at]
            case "repeat":
                lines.insert(at, line)
            case "word":
                words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
                    st.sampled_from(TOKENS)
                )
                lines[at] = " ".join(words)
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "indent":
                lines[at] = "  " + line
            case "pair":
                key, value = data.draw(st.sampled_from(PAIRS))
                opening = data.draw(st.sampled_from([m.end() for m in re.finditer(r"\{", line)]))
                lines[at] = f"{line[:opening]}{key}: {value}, {line[opening:]}"
            case "value":
                pair = data.draw(st.sampled_from(pairs))
                value = data.draw(st.sampled_from(VALUES[pair[1]]))
                lines[at] = line[: pair.start(2)] + value + line[pair.end(2) :]
    return "\n".join(lines)


def judge(files: dict[str, str]) -> str:
    """Return whether a directory has findings or works; fail where it passes the check and does not work."""
    model, found = checked(files)
    render(found, files)
    if model is None or found:
        return "findings"
    plan = make_plan(model)
    emitted = {name: emit(plan) for name, emit in TARGETS.items()}
    if any(result.diagnostics for result in emitted.values()):
        assert {d.code for result in emitted.values() for d in result.diagnostics} <= {"C023"}
        return "refused by a target"  # by `check` too
    modules = {
        path: text
        for result in emitted.values()
        for path, text in result.files.items()
        if path.endswith(".py")
    }
    for path, text in modules.items():
        assert list(unknown_names(path, text)) == []
    with imported(modules, plan.manifest.package):
        use_rows(plan.manifest.package, modules)
    for name in ("html", "kaitai"):
        made = ON_REQUEST[name](plan, {})
        assert {d.code for d in made.diagnostics} <= {"C023", "C024"}
        for path, text in made.files.items():
            if path.endswith(".ksy"):
                assert yaml.safe_load(text)["seq"] is not None
    return "works"


def unknown_names(path: str, text: str) -> Iterator[str]:
    """Yield names that functions of a module take from nowhere."""
    module = symtable.symtable(text, path, "exec")
    known = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    known |= {child.get_name() for child in module.get_children()} | {"__name__", "__file__"}
    scopes = [module]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            name = symbol.get_name()
            is_global = (symbol.is_global() or scope is module) and symbol.is_referenced()
            if is_global and name not in known and not hasattr(builtins, name):
                yield f"{path}: {name}"


@contextmanager
def imported(modules: dict[str, str], package: str) -> Iterator[None]:
    """Import all modules of a package but those of kernels, which would be compiled."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in modules.items():
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_text(text, "utf-8")
        sys.path.insert(0, root)
        try:
            for path in sorted(modules):
                if not path.endswith(("_kernels.py", "_encoders.py")):
                    importlib.import_module(
                        path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                    )
            yield
        finally:
            sys.path.remove(root)
            importlib.invalidate_caches()
            for name in [n for n in sys.modules if n.partition(".")[0] == package]:
                del sys.modules[name]


def use_rows(package: str, modules: dict[str, str]) -> None:
    """Make readers of all rows that are made of headers."""
    for path in modules:
        if path.startswith(f"{package}/rows/"):
            module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
            for view in vars(module).values():
                if isinstance(view, RowView):
                    view.header(view.columns)
