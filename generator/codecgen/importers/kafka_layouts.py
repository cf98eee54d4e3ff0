"""A message -> the YAML documents of its layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from codecgen.importers.kafka_defaults import implied, written
from codecgen.importers.kafka_definitions import Field, Message, Range, Struct
from codecgen.importers.kafka_names import Key, camel, field_names, free, layout_name
from codecgen.importers.yaml_text import Mapped, Value, Word, words
from codecgen.plan.generated_names import spell

TYPES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uuid": "uuid",
    "float64": "f64",
    "string": "string",
    "bytes": "bytes",
    "records": "bytes",
}
OLD_LENGTHS = {"string": "i16", "bytes": "i32"}
FREEDOMS = ("overlong_varints", "negative_null", "any_present", "invalid_utf8", "loose_tags")
"""What Kafka's readers take, in the order in which it is listed."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What names are known by: those of structs with layouts of their own, how documents spell names, and the word of the
    enum for what a message is a record of."""

    structs: Mapping[Key, str]
    spelling: Literal["camel", "snake"]
    record_types: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    """The name of a message -> the field for what it is a key of, its enum, and the value of that."""


@dataclass(slots=True)
class Missing:
    """What a message has that its layouts do not: keys with the number of fields that have them, and fields that are in
    no version."""

    keys: dict[str, int] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)

    def count(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.keys[key] = self.keys.get(key, 0) + 1

    def add(self, other: Missing) -> None:
        for key, n in other.keys.items():
            self.keys[key] = self.keys.get(key, 0) + n
        self.fields += other.fields


def needs_name(message: Message, struct: Struct | Field) -> bool:
    """Whether a struct is a layout with a name of its own: several fields may have it, or it has tagged fields."""
    if isinstance(struct, Struct):
        return True
    around = message.valid
    return any(not f.tagged.both(around).empty for f in struct.fields or ())


def layouts(message: Message, naming: Naming) -> tuple[list[Mapped], Missing]:
    """The layout of a message and those of its structs, and what is not in them."""
    writer = _Writer(message, naming)
    return writer.documents(), writer.missing


@dataclass(slots=True)
class _Layout:
    """A layout that is made: which versions it has, and what lenient readers take in it."""

    versions: Range
    freedoms: set[str] = field(default_factory=set)


class _Writer:
    def __init__(self, message: Message, naming: Naming) -> None:
        self.message = message
        self.naming = naming
        self.missing = Missing()
        self.inline = {f.type.name: f for f in message.all_fields() if f.fields is not None}
        self.uses: dict[str, Range] = {}
        self.left_out = _held_by_tags(message)

    def documents(self) -> list[Mapped]:
        m = self.message
        self.missing.count(m.left_out)
        self.find_uses()
        out = [self.top()]
        structs: list[Struct | Field] = [*m.structs, *self.inline.values()]
        for struct in structs:
            name = struct.name if isinstance(struct, Struct) else struct.type.name
            called = self.naming.structs.get((m.name, name))
            if called is None:
                continue
            if name not in self.uses:
                self.missing.fields.append(f"{m.name}.{name}")
                continue
            comments = struct.comments if isinstance(struct, Struct) else ()
            head = Mapped()
            filled = name in self.left_out
            fields = struct.fields or ()
            out.append(self.layout(called, self.uses[name], fields, head, comments, filled=filled))
        return out

    def find_uses(self) -> None:
        """Find the versions in which each layout with a name is held. They may grow while inner ones are looked at."""
        before: dict[str, Range] | None = None
        while before != self.uses:
            before = dict(self.uses)
            self.look_into(self.message.fields, self.message.valid, self.message.valid)

    def look_into(self, fields: Sequence[Field], around: Range, scope: Range) -> None:
        """Look into fields that are there in the versions ``around`` of a layout that has the versions ``scope``: one that
        says no versions is held in all of these."""
        for one in fields:
            here = one.versions.both(around)
            if not one.type.is_struct or here.empty:
                continue
            name = one.type.name
            if (self.message.name, name) not in self.naming.structs:
                self.look_into(one.fields or (), here, scope)
                continue
            here = scope if here == around else here
            before = self.uses.get(name, here)
            here = Range(min(before.low, here.low), max(before.high, here.high))
            self.uses[name] = here
            struct = self.message.struct(name)
            inner = one.fields if struct is None else struct.fields
            self.look_into(inner or (), here, here)

    # ------------------------------------------------------------ layouts

    def top(self) -> Mapped:
        m = self.message
        head, first = Mapped(), Mapped()
        if m.type in ("request", "response") and m.api_key is not None:
            head.entries["doc"] = f"The {m.type} with apiKey {m.api_key}."
        names = field_names(m.fields)
        if m.type == "coordinator-key":
            field_, enum, value = self.naming.record_types[m.name]
            first.entries[field_] = Mapped(
                {
                    "type": Word("i16"),
                    "enum": Word(enum),
                    "const": Word(value),
                    "doc": "Says what the record is.",
                },
                short=True,
            )
        elif m.type == "coordinator-value":
            version = free("version", names.values(), "value")
            doc = "Version of the value."
            first.entries[version] = Mapped(
                {"type": Word("i16"), "is": Word("version"), "doc": doc}, short=True
            )
        return self.layout(layout_name(m), m.valid, m.fields, head, m.comments, first)

    def layout(
        self,
        name: str,
        versions: Range,
        fields: Sequence[Field],
        head: Mapped,
        comments: Sequence[str],
        first: Mapped | None = None,
        filled: bool = False,
    ) -> Mapped:
        made = _Layout(versions)
        plain, tagged = self.fields(fields, versions, made, filled=filled)
        if first is not None:
            plain.entries = {**first.entries, **plain.entries}
        if self.message.type.startswith("coordinator-") and first is not None:
            made.freedoms.add("trailing_bytes")
        flexible = self.message.flexible.both(versions)
        if not flexible.empty:
            made.freedoms |= {"overlong_varints", "loose_tags"}
        out = Mapped({"layout": Word(name)})
        if "doc" in head.entries:
            out.entries["doc"] = head.entries["doc"]
        has_versions = self.message.type != "coordinator-key"
        if has_versions:
            out.entries["versions"] = Word(str(versions))
        out.entries["flexible"] = Word("never" if flexible.empty else f"{flexible.low}+")
        if comments:
            out.comments["versions" if has_versions else "flexible"] = comments
        freedoms = [word for word in (*FREEDOMS, "trailing_bytes") if word in made.freedoms]
        if freedoms:
            out.entries["accepts"] = words(freedoms)
        out.entries["fields"] = plain
        if tagged.entries:
            out.entries["tagged"] = tagged
        return out

    # ------------------------------------------------------------ fields

    def fields(
        self, fields: Sequence[Field], around: Range, made: _Layout, *, filled: bool
    ) -> tuple[Mapped, Mapped]:
        """The fields that always stand there, and those with tags. ``filled``: all of them say what they have where the
        struct is left out."""
        plain, tagged = Mapped(), Mapped()
        names = field_names(fields)
        for one in fields:
            self.missing.count(one.left_out)
            here = one.versions.both(around)
            if here.empty:
                self.missing.fields.append(f"{self.message.name}.{one.name}")
                continue
            tags = one.tagged.both(here)
            untagged = here if tags.empty else Range(here.low, tags.low - 1)
            name = names[one.name]
            if not untagged.empty:
                default = implied(one, untagged) if filled else ""
                self.put(plain, name, one, untagged, around, made, default)
            if not tags.empty:
                twin = name if untagged.empty else free(name, names.values(), "tagged")
                self.put(tagged, twin, one, tags, around, made)
        return plain, tagged

    def put(
        self,
        into: Mapped,
        name: str,
        one: Field,
        here: Range,
        around: Range,
        made: _Layout,
        default: str = "",
    ) -> None:
        entries = self.field(one, here, around, made, is_tagged=not one.tagged.both(here).empty)
        if default and "default" not in entries.entries:
            entries.entries["default"] = Word(default)
        spelled = camel(one.name)
        if spell(name, self.naming.spelling) != spelled:
            entries.entries["spelled"] = Word(spelled)
        if one.about.strip():
            entries.entries["doc"] = " ".join(one.about.split())
        into.entries[name] = _in_order(entries)
        if one.comments:
            into.comments[name] = one.comments

    def field(
        self, one: Field, here: Range, around: Range, made: _Layout, *, is_tagged: bool
    ) -> Mapped:
        out = Mapped(short=True)
        if is_tagged:
            out.entries["tag"] = Word(str(one.tag))
        nullable = one.nullable.both(here)
        self.type(out, one, here, nullable, made)
        if here != around:
            out.entries["versions"] = Word(_part(here, one.versions, around))
        if not nullable.empty:
            if "string" not in out.entries and "bytes" not in out.entries:
                out.entries["nullable"] = Word(_part(nullable, one.nullable, around))
            self.null_freedoms(one, nullable, made, is_tagged=is_tagged)
        default = written(one)
        is_left_out = is_tagged and one.type.is_struct and not one.type.is_array
        if is_left_out and nullable.empty:
            out.entries["default"] = Word("{}")
        elif default is None:
            self.missing.count((f"default of a {one.type}",))
        elif default:
            out.entries["default"] = Word(default)
        return out

    def null_freedoms(self, one: Field, nullable: Range, made: _Layout, *, is_tagged: bool) -> None:
        flexible = self.message.flexible if one.flexible is None else one.flexible
        struct = one.type.is_struct and not one.type.is_array
        if struct:
            made.freedoms.add("any_present")
        if (struct and not is_tagged) or not nullable.within(flexible):
            made.freedoms.add("negative_null")

    def type(self, out: Mapped, one: Field, here: Range, nullable: Range, made: _Layout) -> None:
        """Puts the key that says the type."""
        if one.type.name == "string":
            made.freedoms.add("invalid_utf8")
        if one.type.is_struct:
            key: str = "array" if one.type.is_array else "layout"
            name = self.naming.structs.get((self.message.name, one.type.name))
            if name is not None:
                out.entries[key] = Word(name)
                return
            filled = one.type.name in self.left_out
            inner, _ = self.fields(one.fields or (), here, made, filled=filled)
            out.short = False
            fields = Mapped({"fields": inner})
            out.entries.update({"array": fields} if one.type.is_array else fields.entries)
            return
        word = TYPES[one.type.name]
        if one.type.is_array:
            out.entries["array"] = Word(word)
        elif one.flexible is None or one.flexible.both(here) == self.message.flexible.both(here):
            out.entries["type"] = Word(word)
        else:
            out.entries.update(_own_lengths(word, one.flexible, here, nullable))


def _own_lengths(word: str, flexible: Range, here: Range, nullable: Range) -> dict[str, Value]:
    """The keys of a field whose lengths are not those of its layout."""
    lengths: list[tuple[Range, str]] = []
    nulls: list[tuple[Range, str]] = []
    for version in range(here.low, here.high + 1):
        part = Range(version, version)
        new = part.within(flexible)
        _extend(lengths, version, "compact" if new else OLD_LENGTHS[word])
        if part.within(nullable):
            _extend(nulls, version, "0" if new else "-1")
    out: dict[str, Value] = {word: _by_version(lengths, here)}
    if nulls:
        out["null"] = _by_version(nulls, here)
    return out


def _extend(parts: list[tuple[Range, str]], version: int, value: str) -> None:
    """Adds a version to the last part, or begins one where the value is another."""
    if parts and parts[-1][1] == value and parts[-1][0].high == version - 1:
        parts[-1] = (Range(parts[-1][0].low, version), value)
    else:
        parts.append((Range(version, version), value))


def _by_version(parts: list[tuple[Range, str]], here: Range) -> Value:
    """The one value of all versions, or those by version."""
    if parts[0][0] == here:
        return Word(parts[0][1])
    last = parts[-1][0]
    words = {str(part): Word(value) for part, value in parts[:-1]}
    words[f"{last.low}+" if last.high == here.high else str(last)] = Word(parts[-1][1])
    return Mapped(dict(words), short=True)


def _in_order(entries: Mapped) -> Value:
    """The keys as a person writes them: what is nested comes last. A type alone is a bare word."""
    found = entries.entries
    if list(found) == ["type"]:
        return found["type"]
    nested = [key for key in ("array", "fields") if isinstance(found.get(key), Mapped)]
    order = [key for key in found if key not in nested] + nested
    return Mapped({key: found[key] for key in order}, short=entries.short)


def _part(here: Range, said: Range, around: Range) -> str:
    """A range inside another as the definition says it: open where it is open."""
    if here.high == around.high and said.high > here.high:
        return f"{here.low}+"
    if here.high == around.high and said.is_open:
        return f"{here.low}+"
    return str(here)


def _held_by_tags(message: Message) -> set[str]:
    """The structs that tagged fields hold which cannot be null: where these are left out, they have their defaults."""
    out: set[str] = set()
    new = {
        f.type.name
        for f in message.all_fields()
        if f.type.is_struct and not f.type.is_array and not f.tagged.empty and f.nullable.empty
    }
    fields = {f.type.name: f.fields for f in message.all_fields() if f.fields is not None}
    fields |= {struct.name: struct.fields for struct in message.structs}
    while new:
        out |= new
        held = [f for name in new for f in fields.get(name, ()) if f.type.is_struct]
        new = {f.type.name for f in held if not f.type.is_array} - out
    return out
