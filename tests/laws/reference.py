"""The rows of a view by the reference codecs and the laws' own reading of the view."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from codecgen.diagnostics import Diagnostic
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from tests.laws.bytes_of import bits, signed, version_of
from tests.laws.meaning import Meaning, words_of, wrapped
from tests.laws.world import Facts, Tree, in_range, listed

Row = dict[str, Any]
_LEFT_OUT = re.compile(r'rows of "(?P<layout>\S+)" in the view "(?P<view>\S+)"')


@dataclass
class Entry:
    """Some bytes that stand for one entry: its rows, or none where a strict reader refuses it (``error``).

    ``header_only`` says that the rows are made of the header alone, ``read`` whether a lenient reader takes it, ``lenient`` what it
    sees, ``silent`` that there may be no rows, ``full_check`` that a strict reader looks at more than the columns show,
    ``left_out`` that a note says that kernels leave its layout to the reference codecs."""

    start: int
    end: int
    rows: list[Row] | None = None
    error: CodecError | None = None
    read: bool = True
    lenient: list[Row] = field(default_factory=list)
    header_only: bool = False
    silent: bool = False
    full_check: bool = False
    left_out: bool = False


class Reference:
    """Reads runs of entries by the codec of a choice."""

    def __init__(
        self,
        facts: Facts,
        view: Tree,
        package: ModuleType,
        limits: Limits,
        notes: Sequence[Diagnostic] = (),
    ) -> None:
        told = [_LEFT_OUT.search(note.help) for note in notes]
        self.left_out = {
            m["layout"].rpartition(".")[2]  # without the directory that is used
            for m in told
            if m is not None and m["view"].rpartition(".")[2] == view["view"]
        }
        self.facts = facts
        self.view = view
        self.limits = limits
        self.codec = getattr(package, str(view["of"]).upper())

    def entries(self, data: bytes) -> Iterator[Entry]:
        """The entries of some bytes, as far as their lengths lead. A last one that ends early is left out."""
        at = 0
        while at < len(data):
            source = Source(data, Session(limits=self.limits), pos=at)
            try:
                layout = self.codec.case(source)
                size = layout.frame(source) if layout.framed else self.size_of(layout, source)
            except CodecError:
                return
            if not layout.framed and size is None:
                yield self.entry(data[at:], at, layout)  # nobody knows where the next one begins
                return
            if size is None or size <= 0 or size > len(data) - at:
                return
            yield self.entry(data[at : at + size], at, layout)
            at += size

    def size_of(self, layout: Any, source: Source) -> int | None:
        """The length of an entry that ends where its fields end; None for one that a strict reader refuses."""
        start = source.pos
        try:
            layout.read(source, None)
        except CodecError:
            return None
        return source.pos - start

    def entry(self, data: bytes, at: int, codec: Any) -> Entry:
        entry = Entry(at, at + len(data))
        for strict in (True, False):
            try:
                parsed = codec.parse(data, strict=strict, limits=self.limits)
            except CodecError as error:
                if strict:
                    entry.error = error
                else:
                    entry.read = False
                continue
            rows = list(self.rows(codec.layout_name, codec.version, parsed, at))
            entry.full_check |= self.full_check(codec.layout_name, codec.version, parsed, at)
            entry.lenient = rows
            if strict:
                entry.rows = rows
        own = [rows for rows in self.view["rows"] if rows["of"] == codec.layout_name]
        entry.header_only = any(rows.get("header_only") for rows in own)
        name, version = codec.layout_name, codec.version
        entry.left_out = bool({name, f"{name}@{version}"} & self.left_out)
        entry.silent = not own or any("when" in rows for rows in own)
        return entry

    def rows(
        self, layout: str, version: int | None, parsed: Mapping[str, Any], at: int
    ) -> Iterator[Row]:
        """The rows of one entry."""
        for rows in self.view["rows"]:
            if rows["of"] != layout:
                continue
            each, *beside = listed(rows.get("each")) or [None]
            scope = Scope(self.facts, layout, version, parsed, at, each)
            if "when" in rows and not scope.meaning().holds(rows["when"]):
                continue
            if each is None:
                yield self.row(rows, scope, None)
            for i, item in enumerate(parsed[each] or () if each is not None else ()):
                scope.beside = {name: parsed[name][i] for name in beside}
                yield self.row(rows, scope, item)
            return

    def full_check(
        self, layout: str, version: int | None, parsed: Mapping[str, Any], at: int
    ) -> bool:
        """Whether there is more to an entry than its rows."""
        own = [rows for rows in self.view["rows"] if rows["of"] == layout and "full_check" in rows]
        scope = Scope(self.facts, layout, version, parsed, at, None)
        return any(scope.meaning().holds(rows["full_check"]) for rows in own)

    def row(self, rows: Tree, scope: Scope, item: Any) -> Row:
        out: Row = {}
        for name, column in self.view["columns"].items():
            text = rows["columns"].get(name)
            value = None if text is None else scope.meaning(item).of(text)
            out[name] = shown(value, column, None if text is None else scope.origin(text, item))
        return out


class Scope:
    """What the columns of an entry can name."""

    def __init__(
        self, facts: Facts, layout: str, version: int | None, parsed: Any, at: int, each: str | None
    ) -> None:
        self.facts = facts
        self.layout = layout
        self.version = version
        self.parsed = parsed
        self.at = at
        self.each = each
        self.beside: dict[str, Any] = {}
        self.derived = facts.layouts[layout].get("derived", {})
        self.words = words_of(facts, layout)
        if each is not None:
            element = facts.layouts[layout]["fields"][each]["array"].partition("@")[0]
            if element in facts.layouts:
                inside = words_of(facts, element)
                self.words |= {("item", *path): words for path, words in inside.items()}

    def meaning(self, item: Any = None) -> Meaning:
        return Meaning(lambda names: self.look(names, item), self.words)

    def look(self, names: tuple[str, ...], item: Any) -> Any:
        tree = self.facts.layouts[self.layout]
        fields = {**tree["fields"], **tree.get("tagged", {})}
        value: Any = self.parsed
        if names[0] == "item":
            value, names = item, names[1:]
        elif names[0] in self.beside and len(names) > 1:
            value, names = self.beside[names[0]], names[1:]
        elif names[0] == self.each and len(names) == 2:
            return self.worked_out(self.derived[self.each][names[1]], item)
        elif names[0] not in fields:
            if names == ("position",):
                return self.at
            if names[0] in self.derived:
                return self.worked_out(self.derived[names[0]], item)
            return self.version
        for name in names:
            value = None if value is None else value[name]
        return value

    def origin(self, text: Any, item: Any) -> Origin | None:
        """The field that a column is, None for what is worked out."""
        names = text.split(".") if isinstance(text, str) else []
        if len(names) > 1 and names[0] in self.beside:
            return None
        found: Origin | None = Origin(self.facts, {"layout": self.layout}, self.version)
        value = self.parsed
        if self.each is not None and names[:1] == ["item"]:
            names, value = names[1:], item
            array = dict(self.facts.fields(self.layout, self.version))[self.each]
            found = Origin(self.facts, array, self.version)
        for name in names:
            found = None if found is None else found.member(name, value)
            value = None if not isinstance(value, Mapping) else value.get(name)
        return found

    def worked_out(self, derived: Tree, item: Any) -> int | None:
        """A derived value: sums wrap in its type."""
        assert in_range(derived.get("versions"), self.version)
        value = self.meaning(item).of(derived["is"])
        return None if value is None else wrapped(value, int(derived["type"][1:]))


@dataclass(frozen=True)
class Origin:
    """The field that a value is of: the schema alone says which number bits are. ``version`` is that of the layout that it is in."""

    facts: Facts
    spec: Tree
    version: int | None

    def member(self, name: str, value: Any) -> Origin | None:
        """A field of the layout that is held here, or that the elements of an array have. ``value`` is one of that layout."""
        reference = self.spec.get("layout", self.spec.get("array"))
        if not isinstance(reference, str) or not isinstance(value, Mapping):
            return None
        layout = reference.partition("@")[0]
        if layout not in self.facts.layouts:
            return None
        is_whole = self.spec == {"layout": reference}
        version = (
            self.version if is_whole else version_of(self.facts, reference, self.version, value)
        )
        spec = dict(self.facts.fields(layout, version)).get(name)
        return None if spec is None else Origin(self.facts, spec, version)

    def number(self, value: Mapping[str, Any]) -> int:
        """The number that some bits are."""
        return signed(self.spec["bits"], bits(self.spec, value, self.version))


def shown(value: Any, column: Tree, origin: Origin | None = None) -> Any:
    """A value as Arrow gives it back; floats by their bits. ``origin`` tells which number bits are that a struct has."""
    inside = column.get("struct", column.get("list"))
    if value is None and (column.get("nullable") or "list" not in column):
        return None
    if "struct" in column:
        return {
            name: shown(value.get(name), part, origin.member(name, value) if origin else None)
            for name, part in column["struct"].items()
        }
    if "list" in column and isinstance(inside, str):
        return [shown(item, {"type": inside}) for item in value or ()]
    if "list" in column:
        one = {"struct": inside}
        return [shown(item, one, origin) for item in value or ()]
    if isinstance(value, Mapping):
        assert origin is not None
        value = origin.number(value)
    match column["type"]:
        case "bool":
            return bool(value)
        case "binary":
            return value.encode() if isinstance(value, str) else bytes(value)
        case "string":
            return str(value)
        case "uuid":
            return value.bytes
        case "float" | "double":
            return float_bits(value)
        case "uint64":
            return int(value)
        case "timestamp_ms":
            return wrapped(int(value), 64)
        case type_ if type_.startswith("uint"):
            return int(value)
        case type_:
            return wrapped(int(value), int(type_[3:]))


def float_bits(value: float) -> bytes:
    """A number with a fraction, so that what is no number equals itself."""
    return b"nan" if value != value else struct.pack("<d", value)
