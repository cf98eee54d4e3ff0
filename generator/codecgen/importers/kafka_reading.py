"""Read a message definition from a file, with findings about its keys and values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from codecgen.diagnostics import Diagnostic, Span, did_you_mean
from codecgen.importers import commented_json
from codecgen.importers.commented_json import Array, Member, Node, Object, Scalar
from codecgen.importers.kafka_definitions import (
    LENGTHY,
    MESSAGE_TYPES,
    NONE,
    SCALARS,
    Field,
    FieldType,
    Message,
    Range,
    Struct,
    range_of,
)

MESSAGE_KEYS = (
    "apiKey",
    "type",
    "listeners",
    "name",
    "validVersions",
    "deprecatedVersions",
    "flexibleVersions",
    "latestVersionUnstable",
    "fields",
    "commonStructs",
)
STRUCT_KEYS = ("name", "versions", "deprecatedVersions", "fields")
FIELD_KEYS = (
    "name",
    "type",
    "versions",
    "nullableVersions",
    "taggedVersions",
    "tag",
    "flexibleVersions",
    "default",
    "mapKey",
    "ignorable",
    "entityType",
    "about",
    "zeroCopy",
    "fields",
)
LISTENERS = ("zkBroker", "broker", "controller")
_NAME = re.compile("[A-Za-z][A-Za-z0-9]*")
_STRUCT_NAME = re.compile("[A-Z][A-Za-z0-9]*")
_WHOLE = re.compile(r"[+-]?\d{1,10}")


def read(file: str, data: bytes) -> tuple[Message | None, list[Diagnostic]]:
    """Return (message, findings) of a definition file. The message is None if the file cannot be
    parsed or holds no object, or if the message has no valid name or type, or no ``validVersions``.
    Fields and structs that are wrong are reported and left out; an invalid ``validVersions`` is
    reported and counts as ``none``.
    """
    node = commented_json.parse(file, data)
    if isinstance(node, Diagnostic):
        return None, [node]
    if not isinstance(node, Object):
        return None, [Diagnostic("", "the file holds no definition of a message", node.span)]
    reader = _Reader()
    return reader.message(file, node), reader.found


def field_type(text: str) -> FieldType | str:
    """Return the type that a text names (``int32``, ``[]Name``), or help as str if it is no known
    type, no struct name, or an array of arrays or of nothing.
    """
    text = text.strip()
    if text.startswith("[]"):
        element = text[2:].strip()
        if not element:
            return "the type of the elements is missing"
        if element.startswith("[]"):
            return "arrays of arrays are not possible; put the inner array into a struct"
        inner = field_type(element)
        return inner if isinstance(inner, str) else FieldType(inner.name, True)
    if text in SCALARS or text in LENGTHY or _STRUCT_NAME.fullmatch(text):
        return FieldType(text)
    return did_you_mean(text, (*SCALARS, *LENGTHY)) or f"known: {', '.join((*SCALARS, *LENGTHY))}"


@dataclass(slots=True)
class _Entry:
    """The keys of one object, without duplicates and nulls."""

    node: Object
    members: dict[str, Member] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def span_of(self, key: str) -> Span:
        """Return the place of a key, or of the object if it does not have the key."""
        return self.members[key].value.span if key in self.members else self.node.span

    def spans(self) -> Mapping[str, Span]:
        """Return the places of all keys."""
        return {key: member.value.span for key, member in self.members.items()}


@dataclass(slots=True)
class _Reader:
    """Reads one definition, and collects findings in ``found``."""

    found: list[Diagnostic] = field(default_factory=list)

    def report(self, message: str, span: Span, help: str = "") -> None:
        """Append a finding, a Diagnostic without an id, to ``found``."""
        self.found.append(Diagnostic("", message, span, help=help))

    def entry(self, node: Object, known: Collection[str], what: str) -> _Entry:
        """Return the members of an object by key, without those that are null. Report unknown keys
        and leave them out. Report keys that are given twice with different values, or with an object
        or array; the first value counts. ``what`` names the object in messages.
        """
        out = _Entry(node)
        for member in node.members:
            if member.key not in known:
                help = did_you_mean(member.key, known) or f"known: {', '.join(known)}"
                self.report(f'unknown key "{member.key}" of a {what}', member.span, help)
            elif member.key in out.members and not _same(member, out.members[member.key]):
                self.report(f'the key "{member.key}" is given twice', member.span)
            elif not (isinstance(member.value, Scalar) and member.value.is_null):
                out.members[member.key] = member
        return out

    # ------------------------------------------------------------ values

    def text(self, entry: _Entry, key: str) -> str:
        """Return the text of a key, also of a number or boolean, or ``""`` if it is missing. Report
        an object or array, and return ``""``.
        """
        if key not in entry:
            return ""
        value = entry.members[key].value
        if isinstance(value, Scalar):
            return value.text
        self.report(f'"{key}" is a text', value.span)
        return ""

    def boolean(self, entry: _Entry, key: str) -> bool:
        """Return whether the text of a key is ``true`` in any letter case; False if it is missing or
        blank. Report an object or array, and text other than ``true``, ``True``, ``TRUE`` and the
        same spellings of false.
        """
        text = self.text(entry, key).strip()
        if text not in ("", "true", "false", "True", "False", "TRUE", "FALSE"):
            self.report(f'"{key}" is true or false', entry.span_of(key))
        return text.lower() == "true"

    def integer(self, entry: _Entry, key: str, bits: int) -> int | None:
        """Return the number of a key, or None if it is missing. Report text that is no integer, or
        does not fit a signed integer of ``bits`` bits, and return None.
        """
        if key not in entry:
            return None
        text = self.text(entry, key).strip()
        number = int(text) if _WHOLE.fullmatch(text) else None
        if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
            self.report(f'"{key}" is a number of {bits} bits', entry.span_of(key))
            return None
        return number

    def range(self, entry: _Entry, key: str) -> Range | None:
        """Return the version range of a key, or None if it is missing or blank. Report invalid text
        and return the empty range :data:`NONE`. Report an object or array and return None.
        """
        text = self.text(entry, key)
        if not text.strip():
            return None
        found = range_of(text)
        if found is None:
            help = "write 2, 0-3, 1+ or none; versions are 0 to 32767"
            self.report(f'"{key}" is not a range of versions: {text}', entry.span_of(key), help)
            return NONE
        return found

    def items(self, entry: _Entry, key: str) -> tuple[Node, ...]:
        """Return the values that a key lists, or ``()`` if it is missing. A value without brackets
        counts as a list of one.
        """
        if key not in entry:
            return ()
        value = entry.members[key].value
        return value.items if isinstance(value, Array) else (value,)

    def objects(self, entry: _Entry, key: str) -> list[Object]:
        """Return the objects that a key lists, in order, or ``[]`` if it is missing. An object
        without brackets counts as a list of one. Report other values and leave them out.
        """
        out = []
        for item in self.items(entry, key):
            if isinstance(item, Object):
                out.append(item)
            else:
                self.report(f'what "{key}" lists are objects', item.span)
        return out

    def has_key(self, entry: _Entry, key: str, what: str) -> bool:
        """Return whether a required key has text that is not blank. Report it if not; ``what``
        names the object in the message.
        """
        if self.text(entry, key).strip():
            return True
        self.report(f'the {what} has no "{key}"', entry.node.span)
        return False

    # ------------------------------------------------------------ the parts

    def message(self, file: str, node: Object) -> Message | None:
        """Return the message of an object, without fields and structs that are wrong. Report what
        is missing or wrong. Return None if its name or type is missing or wrong, or
        ``validVersions`` is missing. Other wrong keys count as missing, invalid ranges as empty.
        """
        entry = self.entry(node, MESSAGE_KEYS, "message")
        named = self.has_key(entry, "name", "message")
        typed = self.has_key(entry, "type", "message")
        versioned = self.has_key(entry, "validVersions", "message")
        name, type_ = self.text(entry, "name"), self.text(entry, "type")
        if named and not _STRUCT_NAME.fullmatch(name):
            help = "letters and digits, a capital letter first"
            self.report(f'"{name}" is not a valid name of a message', entry.span_of("name"), help)
            named = False
        if typed and type_ not in MESSAGE_TYPES:
            help = did_you_mean(type_, MESSAGE_TYPES) or f"known: {', '.join(MESSAGE_TYPES)}"
            self.report(f'"{type_}" is not a type of a message', entry.span_of("type"), help)
            typed = False
        valid = self.range(entry, "validVersions") or NONE
        flexible = self.range(entry, "flexibleVersions")
        if flexible is None and versioned and not valid.empty:
            help = "write 0+ for a new message, none for one without tagged fields"
            self.report('the message has no "flexibleVersions"', node.span, help)
        self.range(entry, "deprecatedVersions")
        listeners: list[str] = []
        for item in self.items(entry, "listeners"):
            if isinstance(item, Scalar) and item.text in LISTENERS:
                listeners.append(item.text)
            else:
                self.report(f"a listener is one of {', '.join(LISTENERS)}", item.span)
        unstable = self.boolean(entry, "latestVersionUnstable")
        fields = tuple(filter(None, map(self.field, self.objects(entry, "fields"))))
        structs = tuple(filter(None, map(self.struct, self.objects(entry, "commonStructs"))))
        api_key = self.integer(entry, "apiKey", 16)
        if not (named and typed and versioned):
            return None
        return Message(
            name=name,
            type=type_,
            file=file,
            valid=valid,
            flexible=flexible or NONE,
            fields=fields,
            structs=structs,
            span=node.span,
            spans=entry.spans(),
            api_key=api_key,
            listeners=tuple(listeners),
            is_latest_unstable=bool(unstable),
            comments=_comments(entry),
            left_out=("deprecatedVersions",) if "deprecatedVersions" in entry else (),
        )

    def struct(self, node: Object) -> Struct | None:
        """Return a common struct, without fields that are wrong. Report a missing or invalid name
        and missing versions, and return None. Report invalid versions; they count as none.
        """
        entry = self.entry(node, STRUCT_KEYS, "common struct")
        named = self.has_key(entry, "name", "common struct")
        name = self.text(entry, "name")
        versions = self.range(entry, "versions")
        self.range(entry, "deprecatedVersions")
        if versions is None:
            self.report('the common struct has no "versions"', node.span)
        fields = tuple(filter(None, map(self.field, self.objects(entry, "fields"))))
        if named and not _STRUCT_NAME.fullmatch(name):
            help = "letters and digits, a capital letter first"
            self.report(f'"{name}" is not a valid name of a struct', entry.span_of("name"), help)
            named = False
        if not named or versions is None:
            return None
        return Struct(name, versions, fields, node.span, node.comments)

    def field(self, node: Object) -> Field | None:
        """Return a field, without inner fields that are wrong. Report what is missing or wrong in
        its own keys, and return None then; its inner fields are still reported. A field without
        ``versions`` exists in its tagged versions.
        """
        before = len(self.found)
        entry = self.entry(node, FIELD_KEYS, "field")
        named = self.has_key(entry, "name", "field")
        name = self.text(entry, "name")
        if named and not _NAME.fullmatch(name):
            help = "letters and digits, a letter first"
            self.report(f'"{name}" is not a valid name of a field', entry.span_of("name"), help)
        type_: FieldType | str = ""
        if self.has_key(entry, "type", "field"):
            text = self.text(entry, "type")
            type_ = field_type(text)
            if isinstance(type_, str):
                self.report(f'"{text}" is not a type', entry.span_of("type"), type_)
        tagged = self.range(entry, "taggedVersions") or NONE
        versions = self.range(entry, "versions")
        if versions is None and tagged.empty:
            self.report('the field has no "versions"', node.span)
        truths = {key: self.boolean(entry, key) for key in ("mapKey", "ignorable", "zeroCopy")}
        entity = self.text(entry, "entityType")
        nullable = self.range(entry, "nullableVersions") or NONE
        tag, flexible = self.integer(entry, "tag", 32), self.range(entry, "flexibleVersions")
        default, about = self.text(entry, "default"), self.text(entry, "about")
        is_sound = len(self.found) == before
        has_fields = isinstance(type_, FieldType) and type_.is_struct and "fields" in entry
        inner = tuple(filter(None, map(self.field, self.objects(entry, "fields"))))
        if not is_sound or isinstance(type_, str):
            return None
        return Field(
            name=name,
            type=type_,
            versions=tagged if versions is None else versions,
            span=node.span,
            spans=entry.spans(),
            nullable=nullable,
            tagged=tagged,
            tag=tag,
            flexible=flexible,
            default=default,
            about=about,
            fields=inner if has_fields or inner else None,
            comments=(*node.comments, *_comments(entry)),
            entity=entity,
            is_map_key=truths["mapKey"],
            is_zero_copy=truths["zeroCopy"],
            left_out=(
                *(key for key, is_true in truths.items() if is_true),
                *(("entityType",) if entity not in ("", "unknown") else ()),
            ),
        )


def _same(one: Member, other: Member) -> bool:
    """Return whether two members hold the same text or number; False if one is an object or array."""
    values = [m.value.text for m in (one, other) if isinstance(m.value, Scalar)]
    return len(values) == 2 and values[0] == values[1]


def _comments(entry: _Entry) -> tuple[str, ...]:
    """Return the lines of the comments at all keys of an object, in order."""
    return tuple(line for member in entry.members.values() for line in member.comments)
