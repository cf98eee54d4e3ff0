"""The pages of docs/api, from docstrings and signatures.

``python -m tests.api_pages`` writes them anew; ``--check`` only says which are not current.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

import kafka_log
from codecgen.runtime import errors
from codecgen.runtime.layout import Choice, Layout
from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.parsed import Parsed
from codecgen.runtime.readable import time_of
from tests.paths import ROOT

API = ROOT / "docs" / "api"
WIDTH = 96


@dataclass(frozen=True)
class Page:
    """A page: its file, what stands above, and the things on it with the names under which readers import them."""

    file: str
    title: str
    about: str
    things: tuple[tuple[str, Any], ...]


ERRORS = tuple(
    name
    for name, thing in vars(errors).items()
    if inspect.isclass(thing) and thing.__module__ == errors.__name__
)
FIRST = ("LogDirectory", "scan", "read_table", "scan_batches", "SegmentReader")
"""What people look for stands first, then the rest by name."""


def pages() -> tuple[Page, ...]:
    """All pages."""
    names = [*FIRST, *(name for name in kafka_log.__all__ if name not in FIRST)]
    return (
        Page(
            "kafka_log.md",
            "kafka_log",
            "Log directories as Arrow tables, streams of record batches, or batches one by one. What the columns of the tables mean\n"
            "is told beside [the commands](../tool/README.md), what becomes of damage in [policies](../policies.md).",
            tuple((f"kafka_log.{name}", getattr(kafka_log, name)) for name in names),
        ),
        Page(
            "kafka_codecs.md",
            "kafka_codecs",
            "`kafka_codecs` has a codec for each layout ([the list](../../generated/docs/README.md)), in capitals: `RECORD_BATCH` is a\n"
            "`Layout`, `LOG_ENTRY` a `Choice` between layouts. Both parse and build; enums have the numbers' names.",
            (
                ("codecgen.runtime.layout.Layout", Layout),
                ("codecgen.runtime.layout.Choice", Choice),
                ("codecgen.runtime.parsed.Parsed", Parsed),
                ("codecgen.runtime.located_bytes.Limits", Limits),
                ("codecgen.runtime.readable.time_of", time_of),
            ),
        ),
        Page(
            "errors.md",
            "Errors of codecs",
            "What parsing and building raise. All of them are `CodecError`, and say where.",
            tuple((f"codecgen.runtime.errors.{name}", getattr(errors, name)) for name in ERRORS),
        ),
    )


MEMBERS: dict[Any, tuple[str, ...]] = {
    Layout: ("parse", "build", "offset_of", "size_of", "is_fixed", "frame"),
    Choice: ("parse", "build", "case_of"),
    Parsed: ("copy",),
    kafka_log.SegmentReader: (),
}
"""What readers of a page need of classes that have more, for what is generated or builds on them."""


def text(page: Page) -> str:
    """The text of a page."""
    parts = [f"# {page.title}\n\n{page.about}\n\nWritten by `python -m tests.api_pages`.\n"]
    parts += [_thing(name, thing) for name, thing in page.things]
    return "\n".join(parts)


def _thing(name: str, thing: Any) -> str:
    module, _, own = name.rpartition(".")
    lines = [f"## {own}\n", _code(f"from {module} import {own}")]
    if not inspect.isclass(thing):
        return "\n".join([*lines, _signature(own, thing), _doc(thing)])
    bases = [base.__name__ for base in thing.__bases__ if issubclass(base, Exception)]
    if bases:
        lines.append(f"A kind of `{bases[0]}`.\n")
    elif not issubclass(thing, Enum | dict):
        lines.append(_signature(own, thing))
    lines.append(_doc(thing))
    lines += [_item(label, said) for label, said in _attributes(thing).items()]
    if lines[-1].startswith("- "):
        lines[-1] += "\n"
    for label, member in members(thing):
        if isinstance(member, property | cached_property):
            lines.append(f"### {own}.{label}\n\n{_doc(member)}")
        else:
            lines.append(f"### {own}.{label}\n\n{_signature(label, member)}\n{_doc(member)}")
    return "\n".join(lines)


def members(thing: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, in the order of the source."""
    found: dict[str, Any] = dict(vars(thing))
    for label in MEMBERS.get(thing, ()):
        found.setdefault(label, inspect.getattr_static(thing, label))
    for label, member in found.items():
        if label.startswith("_") or (thing in MEMBERS and label not in MEMBERS[thing]):
            continue
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if inspect.isfunction(member) or isinstance(member, property | cached_property):
            yield label, member


def _attributes(thing: Any) -> dict[str, str]:
    """What stands below values of a class in the source: members of enums and fields with a text of their own."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found = {}
    for node, after in pairwise(body):
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        said = after.value if isinstance(after, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(said, ast.Constant):
            found[target.id] = str(said.value)
    return {label: said for label, said in found.items() if not label.startswith("_")}


def _item(label: str, said: str) -> str:
    return f"- `{label}`: {_markdown(said)}"


def _signature(name: str, thing: Any) -> str:
    signature = inspect.signature(thing)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    shown = [_parameter(p) for p in parameters]
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    back = signature.return_annotation
    result = "" if back is inspect.Signature.empty or inspect.isclass(thing) else f" -> {back}"
    line = f"{name}({', '.join(shown)}){result}"
    if len(line) > WIDTH:
        line = "\n    ".join([f"{name}(", *(f"{part}," for part in shown)]) + f"\n){result}"
    return _code(line)


def _parameter(parameter: inspect.Parameter) -> str:
    """A parameter as the source has it: annotations are texts."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    line = stars.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        line += f": {parameter.annotation}"
    if parameter.default is not inspect.Parameter.empty:
        default = parameter.default
        is_member = isinstance(default, Enum)
        shown = f"{type(default).__name__}.{default.name}" if is_member else repr(default)
        line += f" = {'...' if shown.startswith('<') else shown}"
    return line


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _doc(thing: Any) -> str:
    doc = inspect.getdoc(thing) or ""
    columns = [_columns(name) for name in re.findall(r":data:`~?([\w.]+)`", doc)]
    return "\n".join([_markdown(doc) + "\n", *filter(None, columns)])


def _columns(name: str) -> str:
    """The columns of a table, for the name of its schema, or of the schemas of several kinds; nothing for other names."""
    module, _, own = name.rpartition(".")
    found = getattr(importlib.import_module(module), own)
    if isinstance(found, pa.Schema):
        return _table(found)
    if not isinstance(found, Mapping):
        return ""
    return "\n".join(f"`{kind}`:\n\n{_table(of.schema)}" for kind, of in found.items())


def _table(schema: pa.Schema) -> str:
    rows = [f"| `{field.name}` | {field.type} | {_meaning(field)} |" for field in schema]
    return "\n".join(["| column | type | |", "| --- | --- | --- |", *rows, ""])


def _meaning(field: pa.Field) -> str:
    return (field.metadata or {}).get(b"doc", b"").decode().replace("|", "\\|")


def _markdown(doc: str) -> str:
    """Return a docstring as Markdown: roles and double backticks become single ones, sections become lists and code."""
    doc = re.sub(r":(?:mod|data):`~?([\w.]+)`", r"`\1`", doc)
    doc = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", doc)
    doc = re.sub(r"``(.+?)``", r"`\1`", doc, flags=re.S)
    return re.sub(_SECTION, _section, doc).rstrip()


_SECTION = re.compile(
    r"^(Args|Attributes|Returns|Yields|Raises|Example|Examples):\n((?:(?: {4}.*)?(?:\n|\Z))+)", re.M
)


def _section(found: re.Match[str]) -> str:
    """Return a section of a Google docstring: arguments and errors as a list, an example as code, other text as it is."""
    title, body = found[1], textwrap.dedent(found[2]).strip()
    if title.startswith("Example"):
        return f"{title}:\n\n```pycon\n{body}\n```\n"
    if title in ("Returns", "Yields"):
        return f"{title}: {body}\n\n"
    items = re.sub(r"(?m)^(\**\w+): ", lambda item: f"- `{item[1]}`: ", body)
    return f"{title}:\n\n{items}\n\n"


def stale() -> list[str]:
    """Files of docs/api that are not what they would be now, or should not be there."""
    wanted = {page.file: text(page) for page in pages()} | {"README.md": index()}
    there = {path.name: path.read_text(encoding="utf-8") for path in API.glob("*")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def index() -> str:
    """The page that lists the others."""
    lines = ["# API\n", "From the docstrings; `make check` compares.\n"]
    for page in pages():
        names = ", ".join(f"`{name.rpartition('.')[2]}`" for name, _ in page.things)
        lines.append(f"- [{page.title}]({page.file}): {names}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write all pages, or (``--check``) say which are not current."""
    if arguments == ["--check"]:
        found = stale()
        if found:
            print(f"not current, run `python -m tests.api_pages`: {', '.join(found)}")
        return 1 if found else 0
    API.mkdir(exist_ok=True)
    for name in stale():
        (API / name).unlink(missing_ok=True)
    for page in pages():
        (API / page.file).write_text(text(page), encoding="utf-8", newline="\n")
    (API / "README.md").write_text(index(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
