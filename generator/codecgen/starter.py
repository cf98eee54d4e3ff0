"""Create a first schema directory: files that pass the checks, can be generated, and test themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codecgen import directories
from codecgen.check import run as run_checks
from codecgen.runtime.version import LANGUAGE
from codecgen.schema import loader
from codecgen.schema.lookup import enum_uses
from codecgen.schema.model import Enum, UsedDirectory
from codecgen.schema.other_words import NAME
from codecgen.schema.uses import Find

SCHEMAS = "schemas"
STEPS = (
    f"codecgen check {SCHEMAS}",
    f"codecgen generate {SCHEMAS} --out generated",
    "python -m pytest",
)
"""What to do with the files, in their directory."""


class StarterError(Exception):
    """Nothing was written. The text is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """An enum of a used package, and one of its values, for the first layout."""

    alias: str
    package: str
    enum: Enum | None
    value: str = ""
    number: int = 0

    @property
    def field(self) -> str:
        """Return the line of the field that uses the enum."""
        return "" if self.enum is None else f"{self.alias}_{self.enum.name}"


def write(name: str, directory: Path, uses: str | None) -> tuple[str, ...]:
    """Write the starter files into ``directory``, created if needed, and return their relative
    paths. Raise StarterError, with nothing written, if one exists or :func:`starter` refuses
    ``name`` or ``uses``. Raise OSError if a file cannot be written; files written before it stay.
    """
    files = starter(name, uses)
    there = [file for file in files if (directory / file).exists()]
    if there:
        raise StarterError(f"{directory / there[0]} already exists; name another directory (--dir)")
    for file, text in files.items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as out:
            out.write(text)
    return tuple(files)


def starter(name: str, uses: str | None) -> Mapping[str, str]:
    """Return the text of the starter files, whose schemas were checked, by relative path. ``uses``
    is an installed package to use, or None. Raise StarterError if the name is not snake_case or too
    long (with ``_codecs`` more than 64 characters), or if the package is not installed, has no
    schemas or has findings.
    """
    if not NAME.match(name):
        raise StarterError(
            f"{name!r} is not a valid name: lower-case letters, digits and _, a letter first; perhaps my_format"
        )
    package = name if name.endswith("_codecs") else f"{name}_codecs"
    find, borrowed = _find_used(uses)
    schemas = {
        loader.MANIFEST: _manifest(name, package, borrowed),
        "message.yaml": _layout(borrowed),
    }
    model, found = loader.load(schemas, find)
    found += [] if model is None else run_checks(model)
    if found:
        raise StarterError(f"{name} cannot be begun: {found[0].message}")
    return {
        "README.md": _readme(name, package, borrowed),
        **{f"{SCHEMAS}/{file}": text for file, text in schemas.items()},
        f"test_{name}.py": _test(package, borrowed),
    }


def _find_used(package: str | None) -> tuple[Find | None, Borrowed | None]:
    """Return (function that finds the used package, what to borrow from it): its most used enum
    with a value that fits one byte, or none. Return ``(None, None)`` without a package. Raise
    StarterError if it is not installed, has no schemas, or these have findings.
    """
    if package is None:
        return None, None
    place = directories.shipped(package)
    if place is None:
        raise StarterError("; ".join(directories.explain_missing(package)))
    model, found, _ = directories.load(place)
    if model is None or found:
        raise StarterError(f"the schemas of {package} have findings: codecgen check {place}")
    used = UsedDirectory(model, str(place), f"{package}:")
    alias = package.removesuffix("_codecs") or package
    # The enum that the most fields have is one that a reader may know.
    fields = Counter(enum for layout in model.layouts.values() for _, enum, _ in enum_uses(layout))
    for enum in sorted(model.enums.values(), key=lambda enum: -fields[enum.name]):
        for value in enum.values:
            if 0 <= value.value < 1 << 8:
                return lambda _: used, Borrowed(alias, package, enum, value.name, value.value)
    return lambda _: used, Borrowed(alias, package, None)


# ---------------------------------------------------------------- the files


def _manifest(name: str, package: str, borrowed: Borrowed | None) -> str:
    """Return the text of a new codecgen.yaml: the version of the language, ``package``, and a title
    made of ``name`` (``my_format`` becomes "My format"). If ``borrowed`` is not None, ``uses``
    gives its package under its alias.
    """
    title = name.replace("_", " ").capitalize()
    uses = (
        ""
        if borrowed is None
        else f"uses: {{{borrowed.alias}: {borrowed.package}}}"
        f"  # what it declares is called {borrowed.alias}.NAME here\n"
    )
    return f"""\
# What holds for the directory as a whole.
language: {LANGUAGE}  # the version of the language that the files are in
package: {package}  # what Python imports
title: {title}
{uses}"""


def _layout(borrowed: Borrowed | None) -> str:
    """Return the YAML of the first layout, its example and its enum. If ``borrowed`` has an enum,
    the layout has a field of it.
    """
    field = code = value = ""
    length = 7
    if borrowed is not None and borrowed.enum is not None:
        enum = f"{borrowed.alias}.{borrowed.enum.name}"
        field = (
            f"  # An enum of another package. `codecgen explain {enum}` says what it is.\n"
            f"  {borrowed.field}: {{type: u8, enum: {enum}}}\n"
        )
        code, value, length = f" {borrowed.number:02x}", f", {borrowed.field}: {borrowed.value}", 8
    return f"""\
# A layout is its fields, in the order of the bytes. Change this one into yours.
layout: message
doc: A few words that are sent.

fields:
  # A bare word is a type: i8 to i64, u8 to u64, f64, bool, uuid, varints. Numbers are big endian.
  # `const` is the only value: parsers refuse others, builders fill it in.
  magic: {{type: u16, const: 4660, doc: The first two bytes of every message.}}
  # Nobody counts bytes: a length says what it measures. Parsers verify it, builders work it out.
  length: {{type: u16, measures: rest, doc: Bytes after this field.}}
  kind: {{type: u8, enum: kind}}
{field}  # Text with its length before it, in one byte. `bytes` likewise; arrays have a `count`.
  text: {{string: u8, doc: "What is said, in UTF-8."}}

# Bytes beside what they mean. `codecgen check` parses and builds them.
examples:
  - name: a greeting
    hex: 1234 {length:04x} 01{code} 05 68656c6c6f
    values: {{kind: greeting{value}, text: hello}}

---
# Names for numbers. Strict readers refuse others, unless `unknown: keep` says that they are values too.
enums:
  kind:
    doc: What a message is for.
    values:
      question: 0
      greeting: {{value: 1, doc: It wants no answer.}}
"""


def _readme(name: str, package: str, borrowed: Borrowed | None) -> str:
    """Return the Markdown of the README. It names the used package if ``borrowed`` is not None."""
    steps = "\n".join(f"    {step}" for step in STEPS)
    needs = (
        ""
        if borrowed is None
        else f"\n   It imports `{borrowed.package}`, which must be installed."
    )
    return f"""\
# {name.replace("_", " ").capitalize()}

The format is in [{SCHEMAS}](schemas). Everything else is made from it, by three commands in this directory:

{steps}

1. says what is wrong in the schemas, with the line and a caret.
2. writes the package `{package}`, and pages that describe the format, below `generated`.{needs}
3. parses and builds the example with it: [test_{name}.py](test_{name}.py). It needs pytest.

`codecgen explain message.length` says what one thing is and where it lies.
"""


def _test(package: str, borrowed: Borrowed | None) -> str:
    """Return the source of the pytest file, which parses and builds the example. If ``borrowed``
    has an enum, it also checks that field.
    """
    has_enum = borrowed is not None and borrowed.enum is not None
    code, length = ("", 7)
    value = ""
    if borrowed is not None and has_enum:
        code, length = f" {borrowed.number:02x}", 8
        value = f"    assert message.{borrowed.field} == {borrowed.number}\n"
    given = f', "{borrowed.field}": {borrowed.number}' if borrowed is not None and has_enum else ""
    return f'''\
"""The example of {SCHEMAS}/message.yaml, by the generated codec."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "generated"))

from codecgen.runtime.errors import CodecError
from {package} import MESSAGE, Kind

DATA = bytes.fromhex("1234 {length:04x} 01{code} 05 68656c6c6f")


def test_bytes_are_parsed():
    message = MESSAGE.parse(DATA)
    assert message.kind == Kind.GREETING
{value}    assert message.text == "hello"


def test_values_are_built():
    # What the schema settles (the magic number, the length) is not given.
    assert MESSAGE.build({{"kind": Kind.GREETING{given}, "text": "hello"}}) == DATA


def test_bytes_that_are_cut_off_are_refused():
    with pytest.raises(CodecError) as caught:
        MESSAGE.parse(DATA[:-1])
    print(caught.value)  # says the byte, the field and the line of YAML
'''
