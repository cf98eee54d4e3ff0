"""Codecs of schemas that tests make up, as packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from codecgen.cli import main


def package_of(text: str, root: Path, name: str, targets: str = "construct") -> ModuleType:
    """The package that is generated below ``root`` from one file of documents, ``case.yaml``."""
    schemas = root / "schemas"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text(
        f"language: 1\npackage: {name}\ntitle: A case\n", "utf-8"
    )
    (schemas / "case.yaml").write_text(text, "utf-8")
    out = root / "out"
    assert main(["generate", str(schemas), "--out", str(out), "--targets", targets]) == 0
    sys.path.insert(0, str(out))
    try:
        importlib.import_module(f"{name}.case")
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(out))
