"""A sample of kernels as machine code: they read the rows that the same kernels read as plain Python."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.laws.made import Generated, checked, generated, imported
from tests.laws.memory import Broken
from tests.laws.mutations import mutated
from tests.laws.view_laws import entries, reader
from tests.laws.world import World


def compare(world: World, folder: Path, r: random.Random) -> int:
    """Read the same bytes by both; how many views were compared. Raises Broken."""
    model, found = checked(world)
    if found:
        return 0
    made = generated(world, model)
    if made.refused:
        return 0
    with imported(made):
        return sum(_view(made, name, folder, r) for name in made.facts.views)


def _view(made: Generated, name: str, folder: Path, r: random.Random) -> int:
    tree = made.facts.views[name]
    view = getattr(importlib.import_module(f"{made.package}.arrow.{name}"), name.upper())
    if view.kernels is None:
        return 0
    plain = reader(view, importlib.import_module(view.kernels))
    text = made.files[view.kernels.replace(".", "/") + ".py"]
    code = reader(view, compiled_module(f"compiled_{len(list(folder.iterdir()))}", text, folder))
    for _ in range(4):
        parts = entries(made, tree, r)
        for data in [b"".join(parts), *mutated(b"".join(parts), r, 20)]:
            one, other = plain(data, None, True), code(data, None, True)
            if _shown(one) != _shown(other):
                raise Broken(f"{name}: {data.hex()} is {other} by compiled kernels, not {one}")
    return 1


def _shown(read: Any) -> Any:
    rows, rejected = read
    return rows, [(item.start, item.end) for item in rejected]


def compiled_module(name: str, text: str, folder: Path) -> ModuleType:
    """A module of kernels, compiled."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
