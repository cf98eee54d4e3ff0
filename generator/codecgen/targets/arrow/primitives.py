"""The text of the primitives that every module of kernels begins with, from the modules of the runtime that have them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from codecgen.runtime import arrow as runtime

_ALWAYS = ("prelude", "prelude_checksums")
_OWN = "codecgen"


def primitives(*more: str) -> str:
    """What follows ``from __future__ import annotations``: the imports of all primitives, then these. ``more`` are further
    modules: ``prelude_write`` for kernels that write."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    bodies = []
    for name in (*_ALWAYS, *more):
        text = Path(runtime.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        behind = 0
        for node in ast.parse(text).body:
            if isinstance(node, ast.Import):
                plain.add(ast.unparse(node))
            elif not isinstance(node, ast.ImportFrom):
                continue
            elif node.module and node.module != "__future__" and not node.module.startswith(_OWN):
                named.setdefault(node.module, set()).update(alias.name for alias in node.names)
            behind = node.end_lineno or behind
        bodies.append("\n".join(text.splitlines()[behind:]).strip("\n"))
    return "\n" + _imports(plain, named) + "\n" + "\n\n\n".join(bodies) + "\n"


def _imports(plain: set[str], named: dict[str, set[str]]) -> str:
    """Imports as they are sorted everywhere: those of Python itself, then the others."""
    lines = [(line.split()[1], 0, line) for line in plain]
    for module, names in named.items():
        order = sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
        lines.append((module, 1, f"from {module} import {', '.join(order)}"))
    parts = []
    for own in (True, False):
        some = [x for x in lines if (x[0].partition(".")[0] in sys.stdlib_module_names) is own]
        parts.append("".join(f"{x[2]}\n" for x in sorted(some, key=lambda x: (x[1], x[0]))))
    return "\n".join(part for part in parts if part)
