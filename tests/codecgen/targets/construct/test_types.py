"""Types of schemas with names that mean something to Python, or that meet what generated modules import."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.codecgen.generated import package_of
from tests.laws.stub_types import Stubs
from tests.paths import ROOT

SCHEMA = """\
enums:
  sequence: {values: {none: 0, labels_: 1}}
  parsed: {values: {value: 3}, unknown: keep}
  literal: {values: {one: 1}}
---
layout: none
doc: Names of builtins.
fields:
  int: {type: u8}
  str: {string: u8, none: 255}
  bytes: {bytes: u8}
  bool: {type: bool}
  float: {type: f64}
  uuid: {type: uuid}
  property: {type: u8, const: 7}
  dict: {array: u16, count: u8}
  object: {type: u8, enum: parsed}
  type_check_only: {bits: u8, members: {int: {at: "0-1", enum: sequence}, property: {at: 2}, rest: {reserved: keep}}}
---
layout: a
fields:
  magic: {type: u8, const: 1}
  builtins: {type: u8, enum: literal, when: "magic == 1"}
  nones: {array: none, count: u8}
derived:
  total: {type: i32, is: magic, doc: A number.}
  nones:
    magic: {type: i32, is: magic + item.int, doc: Of each.}
---
layout: a1
fields:
  magic: {type: u8, const: 2}
  any: {layout: a}
---
choice: attribute_error
doc: One of two.
by: magic
cases: {1: a, 2: a1}
---
layout: holder
fields:
  one: {choice: attribute_error}
  mapping: {array: {choice: attribute_error}, count: u8}
"""
NONE = {
    "int": 1,
    "str": None,
    "bytes": b"b",
    "bool": True,
    "float": 0.5,
    "uuid": uuid.UUID(int=3),
    "dict": [1, 2],
    "object": 9,
    "type_check_only": {"int": "labels_", "property": True},
}
A = {"magic": 1, "builtins": "one", "nones": [NONE]}
HOLDER = {"one": {"magic": 2, "any": A}, "mapping": [A, {"magic": 2, "any": A}]}
USE = """\
from hostile_codecs import A as codec, HOLDER, NONE
from hostile_codecs.case import A_, A1_, AttributeError_, None_

reveal_type(codec.parse(b""))
reveal_type(codec.parse(b"").nones[0].magic)
reveal_type(codec.parse(b"").builtins)
reveal_type(NONE.parse(b"").str)
reveal_type(NONE.parse(b"").object)
reveal_type(NONE.parse(b"").type_check_only.int)
reveal_type(NONE.parse(b"").property)
reveal_type(HOLDER.parse(b"").mapping)
"""
SHOWN = [
    "hostile_codecs.case.A_",
    "int",
    "hostile_codecs.case.Literal | None",
    "str | None",
    "int",
    "hostile_codecs.case.Sequence",
    "Literal[7]",
    "typing.Sequence[hostile_codecs.case.A_ | hostile_codecs.case.A1_]",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def package(folder: Path) -> ModuleType:
    return package_of(SCHEMA, folder, "hostile_codecs")


def stub(folder: Path) -> Stubs:
    path = "hostile_codecs/case.pyi"
    return Stubs({path: (folder / "out" / path).read_text("utf-8")})


def test_values_are_of_their_types(package: Any, folder: Path) -> None:
    found = package.HOLDER.parse(package.HOLDER.build(HOLDER))
    assert not stub(folder).wrong("HOLDER", found)
    assert isinstance(found.one, package.A1_) and isinstance(found.one.any, package.A_)
    assert isinstance(found.one.any.nones[0], package.None_)
    assert isinstance(found.one, package.AttributeError_)
    with pytest.raises(AttributeError, match="no attribute"):
        package.nothing  # noqa: B018


def test_a_name_that_is_taken_is_that_of_the_enum_and_of_the_codec(package: Any) -> None:
    assert package.Sequence(1).label == "labels_"
    assert package.A.layout_name == "a" and package.A1.layout_name == "a1"


@pytest.mark.slow
def test_mypy_and_ruff_take_the_stub(package: Any, folder: Path) -> None:
    out = folder / "out"
    (out / "use.py").write_text(USE, "utf-8")
    path = os.pathsep.join([str(out), str(ROOT / "generator")])
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
    command += ["--config-file", os.devnull, "--explicit-package-bases"]
    done = subprocess.run(
        [*command, "use.py"],
        cwd=out,
        env={**os.environ, "MYPYPATH": path},
        capture_output=True,
        text=True,
    )
    told = re.findall(r'^use.py:\d+: note: Revealed type is "(.*)"$', done.stdout, re.M)
    assert told == SHOWN, done.stdout + done.stderr
    assert not re.search(r"^(use|hostile_codecs).*error", done.stdout, re.M), done.stdout
    ruff = [sys.executable, "-m", "ruff", "format", "--line-length", "100", "--diff", "."]
    shown = subprocess.run(ruff, cwd=out / "hostile_codecs", capture_output=True, text=True)
    assert "would be reformatted" not in shown.stderr, shown.stdout
