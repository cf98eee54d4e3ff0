"""Convert a message to the YAML documents of its layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from codecgen.importers.kafka_defaults import implied_default, yaml_default
from codecgen.importers.kafka_definitions import Field, Message, Range, Struct
from codecgen.importers.kafka_names import Key, camel, field_names, layout_name, unused_name
from codecgen.importers.kafka_protocol import Protocol
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
TOLERANCES = ("overlong_varints", "negative_null", "any_present", "invalid_utf8", "loose_tags")
"""What Kafka's readers take, in the order in which it is listed."""


@dataclass(frozen=True, slots=True)
class Naming:
    """Names of the layouts and fields in the schema files.

    Attributes:
        structs: Names of the structs that have layouts of their own.
        spelling: How the format's documents spell names.
        record_types: For each message that is a key of a record: the field of the type, its enum, and the value.
        protocol: What requests, responses and headers are in the protocol.
    """

    structs: Mapping[Key, str]
    spelling: Literal["camel", "snake"]
    record_types: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)


@dataclass(slots=True)
class Missing:
    """Parts of a message that its layouts lack: keys with the number of fields that have them, and fields in no
    version.
    """

    keys: dict[str, int] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)

    def count(self, keys: Sequence[str]) -> None:
        """Add one to the count of each key."""
        for key in keys:
            self.keys[key] = self.keys.get(key, 0) + 1

    def add(self, other: Missing) -> None:
        """Add what another message lacks."""
        for key, n in other.keys.items():
            self.keys[key] = self.keys.get(key, 0) + n
        self.fields += other.fields


def needs_name(message: Message, struct: Struct | Field) -> bool:
    """Return whether a struct needs a layout of its own: a common struct always, and an inline one
    if a field of it is tagged in a version of the message.
    """
    if isinstance(struct, Struct):
        return True
    around = message.valid
    return any(not f.tagged.intersect(around).empty for f in struct.fields or ())


def layouts(message: Message, naming: Naming) -> tuple[list[Mapped], Missing]:
    """Return the documents of a message's layout and of those of its structs, and what of the
    definition they do not carry over. ``naming`` has the names for all messages. Raise KeyError for
    a coordinator key that ``naming.record_types`` lacks.
    """
    writer = _Writer(message, naming)
    return writer.documents(), writer.missing


@dataclass(slots=True)
class _Layout:
    """A layout being made: its versions, and the tolerances of lenient readers."""

    versions: Range
    tolerances: set[str] = field(default_factory=set)


class _Writer:
    """Converts one message."""

    def __init__(self, message: Message, naming: Naming) -> None:
        self.message = message
        self.naming = naming
        self.missing = Missing()
        self.inline = {f.type.name: f for f in message.all_fields() if f.fields is not None}
        self.uses: dict[str, Range] = {}
        self.left_out = _held_by_tags(message)

    def documents(self) -> list[Mapped]:
        """Return the layout of the message, then one for each struct, common or inline, to which the naming gives a
        name. A struct that no version uses gets no layout and is noted in ``missing``. Raise KeyError as
        :meth:`message_layout` does.
        """
        m = self.message
        self.missing.count(m.left_out)
        self.find_uses()
        out = [self.message_layout()]
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
            out.append(
                self.make_layout(called, self.uses[name], fields, head, comments, filled=filled)
            )
        return out

    def find_uses(self) -> None:
        """Record in ``uses`` the range of message versions in which each named struct is used, also
        through other structs. Gaps are filled; structs that no version uses get no entry. Structs
        must not hold themselves, which the checks of definitions refuse.
        """
        before: dict[str, Range] | None = None
        while before != self.uses:
            before = dict(self.uses)
            self.look_into(self.message.fields, self.message.valid, self.message.valid)

    def look_into(self, fields: Sequence[Field], around: Range, scope: Range) -> None:
        """Extend, in ``uses``, the version range of each named struct that ``fields`` hold,
        directly or nested, so that it contains the versions in which they hold it; gaps are filled.
        ``around`` has the versions of the struct with ``fields``, ``scope`` those of the layout in
        which it is written. A field in all versions ``around`` counts for all of ``scope``.
        Undeclared structs raise nothing. Structs must not hold themselves, which the checks of
        definitions refuse.
        """
        for one in fields:
            here = one.versions.intersect(around)
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

    def message_layout(self) -> Mapped:
        """Return the layout of the message itself. A coordinator key begins with a field for the
        record type, a coordinator value with one for the version. Raise KeyError for a coordinator
        key that ``naming.record_types`` lacks, such as one without apiKey.
        """
        m = self.message
        head, first = Mapped(), Mapped()
        if m.type in ("request", "response") and m.api_key is not None:
            head.entries["doc"] = f"The {m.type} with apiKey {m.api_key}."
        role = self.naming.protocol.entry(m)
        if role is not None:
            head.entries["message"] = role
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
            version = unused_name("version", names.values(), "value")
            doc = "Version of the value."
            first.entries[version] = Mapped(
                {"type": Word("i16"), "is": Word("version"), "doc": doc}, short=True
            )
        return self.make_layout(layout_name(m), m.valid, m.fields, head, m.comments, first)

    def make_layout(
        self,
        name: str,
        versions: Range,
        fields: Sequence[Field],
        head: Mapped,
        comments: Sequence[str],
        first: Mapped | None = None,
        filled: bool = False,
    ) -> Mapped:
        """Return the YAML of the layout ``name``. ``head`` has entries before its versions,
        ``comments`` stand above these, ``first`` has fields before the others; ``filled`` gives
        every untagged field whose type needs one a default (arrays, structs and uuids do not).
        Layouts of a coordinator key get no versions. If ``first`` is not None, the layout of a
        coordinator key or value accepts trailing bytes.
        """
        made = _Layout(versions)
        plain, tagged = self.make_fields(fields, versions, made, filled=filled)
        if first is not None:
            plain.entries = {**first.entries, **plain.entries}
        if self.message.type.startswith("coordinator-") and first is not None:
            made.tolerances.add("trailing_bytes")
        flexible = self.message.flexible.intersect(versions)
        if not flexible.empty:
            made.tolerances |= {"overlong_varints", "loose_tags"}
        out = Mapped({"layout": Word(name)})
        out.entries.update(head.entries)
        has_versions = self.message.type != "coordinator-key"
        if has_versions:
            out.entries["versions"] = Word(str(versions))
        out.entries["flexible"] = Word("never" if flexible.empty else f"{flexible.low}+")
        if comments:
            out.comments["versions" if has_versions else "flexible"] = comments
        tolerances = [word for word in (*TOLERANCES, "trailing_bytes") if word in made.tolerances]
        if tolerances:
            out.entries["accepts"] = words(tolerances)
        out.entries["fields"] = plain
        if tagged.entries:
            out.entries["tagged"] = tagged
        return out

    # ------------------------------------------------------------ fields

    def make_fields(
        self, fields: Sequence[Field], around: Range, made: _Layout, *, filled: bool
    ) -> tuple[Mapped, Mapped]:
        """Return (untagged fields, tagged fields) in order. A field that is tagged only in later
        versions is in both, as a tagged one with ``tagged_`` before its name. ``filled`` gives each
        untagged one a default, except arrays, structs and uuids. Fields in no version of ``around``
        are left out. They, and keys that YAML cannot express, are noted in ``missing``; ``made``
        gets the tolerances that the fields need.
        """
        plain, tagged = Mapped(), Mapped()
        names = field_names(fields)
        for one in fields:
            self.missing.count(one.left_out)
            here = one.versions.intersect(around)
            if here.empty:
                self.missing.fields.append(f"{self.message.name}.{one.name}")
                continue
            tags = one.tagged.intersect(here)
            untagged = here if tags.empty else Range(here.low, tags.low - 1)
            name = names[one.name]
            if not untagged.empty:
                default = implied_default(one, untagged) if filled else ""
                self.add_field(plain, name, one, untagged, around, made, default)
            if not tags.empty:
                twin = name if untagged.empty else unused_name(name, names.values(), "tagged")
                self.add_field(tagged, twin, one, tags, around, made)
        return plain, tagged

    def add_field(
        self,
        into: Mapped,
        name: str,
        one: Field,
        here: Range,
        around: Range,
        made: _Layout,
        default: str = "",
    ) -> None:
        """Add a field to ``into``, with its type, default, spelling (if the name alone does not
        give it), doc and comments, and with its versions ``here`` if they differ from ``around``,
        those of the layout. ``default`` is used only if the definition gives none that YAML can
        express. ``made`` gets the tolerances of Kafka's readers for the field.
        """
        entries = self.field_entries(
            one, here, around, made, is_tagged=not one.tagged.intersect(here).empty
        )
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

    def field_entries(
        self, one: Field, here: Range, around: Range, made: _Layout, *, is_tagged: bool
    ) -> Mapped:
        """Return the keys of a field in the versions ``here``: tag, type, ``versions`` if they
        differ from ``around``, ``none`` if it can be null and the type does not say so, and
        ``default``. A tagged struct that cannot be null gets the default ``{}``. A default that
        YAML cannot express is left out and counted in ``missing``.
        """
        out = Mapped(short=True)
        if is_tagged:
            out.entries["tag"] = Word(str(one.tag))
        nullable = one.nullable.intersect(here)
        self.add_type(out, one, here, nullable, made)
        if here != around:
            out.entries["versions"] = Word(_range_text(here, one.versions, around))
        if not nullable.empty:
            if "string" not in out.entries and "bytes" not in out.entries:
                versions = _range_text(nullable, one.nullable, around)
                out.entries["none"] = (
                    Word("true")
                    if nullable == here
                    else Mapped({versions: Word("true")}, short=True)
                )
            self.null_tolerances(one, nullable, made, is_tagged=is_tagged)
        default = yaml_default(one)
        is_left_out = is_tagged and one.type.is_struct and not one.type.is_array
        if is_left_out and nullable.empty:
            out.entries["default"] = Word("{}")
        elif default is None:
            self.missing.count((f"default of a {one.type}",))
        elif default:
            out.entries["default"] = Word(default)
        return out

    def null_tolerances(
        self, one: Field, nullable: Range, made: _Layout, *, is_tagged: bool
    ) -> None:
        """Add to ``made``, the layout around, the tolerances that Kafka's readers have for the null
        of a field. Structs get ``any_present``. Structs that are not tagged, and fields with a
        version in ``nullable`` whose lengths are not compact, get ``negative_null``. The caller
        checks that the field can be null.
        """
        flexible = self.message.flexible if one.flexible is None else one.flexible
        struct = one.type.is_struct and not one.type.is_array
        if struct:
            made.tolerances.add("any_present")
        if (struct and not is_tagged) or not nullable.is_within(flexible):
            made.tolerances.add("negative_null")

    def add_type(
        self, out: Mapped, one: Field, here: Range, nullable: Range, made: _Layout
    ) -> None:
        """Add to ``out`` the key for the type of a field in the versions ``here``: ``layout`` or
        ``array`` with a name, inline ``fields``, or ``type``. A string or bytes field whose
        flexible versions are not those of the message gets ``string`` or ``bytes`` with its lengths
        by version, and ``none`` with the null of the versions ``nullable``. Other fields ignore
        ``nullable``: the caller adds their ``none``. ``made``, the layout around, gets the
        tolerance for invalid UTF-8 of strings.
        """
        if one.type.name == "string":
            made.tolerances.add("invalid_utf8")
        if one.type.is_struct:
            key: str = "array" if one.type.is_array else "layout"
            name = self.naming.structs.get((self.message.name, one.type.name))
            if name is not None:
                out.entries[key] = Word(name)
                return
            filled = one.type.name in self.left_out
            inner, _ = self.make_fields(one.fields or (), here, made, filled=filled)
            out.short = False
            fields = Mapped({"fields": inner})
            out.entries.update({"array": fields} if one.type.is_array else fields.entries)
            return
        word = TYPES[one.type.name]
        if one.type.is_array:
            out.entries["array"] = Word(word)
        elif one.flexible is None or one.flexible.intersect(
            here
        ) == self.message.flexible.intersect(here):
            out.entries["type"] = Word(word)
        else:
            out.entries.update(_own_lengths(word, one.flexible, here, nullable))


def _own_lengths(word: str, flexible: Range, here: Range, nullable: Range) -> dict[str, Value]:
    """Return the key ``word`` (``string`` or ``bytes``) with the length type, and, if the field is
    ``nullable`` in a version, ``none`` with the number that stands for null, each by version. It is
    for fields whose flexible versions are not those of the message.
    """
    lengths: list[tuple[Range, str]] = []
    nulls: list[tuple[Range, str]] = []
    for version in range(here.low, here.high + 1):
        part = Range(version, version)
        new = part.is_within(flexible)
        _extend(lengths, version, "compact" if new else OLD_LENGTHS[word])
        if part.is_within(nullable):
            _extend(nulls, version, "0" if new else "-1")
    out: dict[str, Value] = {word: _by_version(lengths, here)}
    if nulls:
        out["none"] = _by_version(nulls, here)
    return out


def _extend(parts: list[tuple[Range, str]], version: int, value: str) -> None:
    """Add ``version`` with ``value`` to ``parts``: extend the last range if it has the same value
    and ends just before, else append a new range.
    """
    if parts and parts[-1][1] == value and parts[-1][0].high == version - 1:
        parts[-1] = (Range(parts[-1][0].low, version), value)
    else:
        parts.append((Range(version, version), value))


def _by_version(parts: list[tuple[Range, str]], here: Range) -> Value:
    """Return the value of ``parts`` alone if its range is all of ``here``, else a mapping of values
    by version range. The last range is open if it ends where ``here`` does. ``parts`` is not empty.
    """
    if parts[0][0] == here:
        return Word(parts[0][1])
    last = parts[-1][0]
    words = {str(part): Word(value) for part, value in parts[:-1]}
    words[f"{last.low}+" if last.high == here.high else str(last)] = Word(parts[-1][1])
    return Mapped(dict(words), short=True)


def _in_order(entries: Mapped) -> Value:
    """Return a copy of ``entries`` with ``array`` and ``fields`` last if they are mappings, and all
    other keys in their order. Return the value of ``type`` alone if it is the only key.
    """
    found = entries.entries
    if list(found) == ["type"]:
        return found["type"]
    nested = [key for key in ("array", "fields") if isinstance(found.get(key), Mapped)]
    order = [key for key in found if key not in nested] + nested
    return Mapped({key: found[key] for key in order}, short=entries.short)


def _range_text(here: Range, declared: Range, around: Range) -> str:
    """Return the range ``here`` as text: open (``1+``) if it ends where ``around`` ends and the
    definition (``declared``) goes on, else closed.
    """
    if here.high == around.high and declared.high > here.high:
        return f"{here.low}+"
    if here.high == around.high and declared.is_open:
        return f"{here.low}+"
    return str(here)


def _held_by_tags(message: Message) -> set[str]:
    """Return the names of the structs that tagged fields hold without array or null, and of structs
    inside these, also in fields that can be null, but not in arrays. If such a tagged field is
    omitted, the struct has its defaults.
    """
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
