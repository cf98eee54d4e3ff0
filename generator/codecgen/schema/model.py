"""The model of a schema directory: frozen dataclasses that keep the place in the YAML of what they hold.

``span`` is where a thing's name stands, ``places`` where the values of its keys do: ``enum``, ``only.1``, ``compressed.limit``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from codecgen.diagnostics import Span
from codecgen.runtime.checksums import Mask
from codecgen.runtime.sensitive import Sensitive
from codecgen.schema.expression import Expression
from codecgen.schema.texts import Text
from codecgen.schema.types import (
    FieldRange,
    FieldType,
    Formerly,
    Misprint,
    Reference,
    Since,
    Versions,
    held_layouts,
)

TOLERANCES: Mapping[str, str] = {
    "overlong_varints": "varints in more bytes than they need, and with unused bits set in the last byte",
    "negative_null": "any negative length for null",
    "any_present": "any number but those of null for a layout that is there",
    "invalid_utf8": "text that is not UTF-8; what is wrong in it reads as U+FFFD",
    "trailing_bytes": "bytes after the last field, which are passed over",
    "bytes_after_none": "bytes where the count says that there are no elements",
    "truncated_tail": "a last element that is cut off, which is passed over",
    "mixed_versions": "elements of another version than that of the layout around them",
    "unchecked_elements": "elements whose own checksum is wrong",
    "loose_tags": "tagged fields in any order, twice (the last one counts), or with a wrong size",
}
"""What lenient readers take and strict ones refuse: name -> what it is. Writers never write any of it."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a layout, in the order of the bytes.

    ``tag`` is the number of a tagged field: such fields come after all others, and their bytes lie in the section of them.
    ``filled``: the default of such a layout is the one whose fields all hold their defaults.

    ``types`` has the type in each range of versions where it is not always the same (``type`` is then the last of them),
    ``ranges`` how YAML says so, by key. ``gives`` has the values that the layout which the field holds is given, by name.
    ``excess`` is by how much a length is larger than the bytes that it ``measures``.
    With ``is_given`` it is such a value, and no field: it has no bytes.
    """

    name: str
    type: FieldType
    span: Span
    endian: Literal["big", "little"] = "big"
    doc: str = ""
    versions: Versions | None = None
    since: Since | None = None
    when: Expression | None = None
    default: Expression | None = None
    absent: int | None = None
    const: int | str | bytes | None = None
    is_version: bool = False
    measures: FieldRange | None = None
    excess: int = 0
    counts: tuple[str, ...] = ()
    checksum: str | None = None
    covers: tuple[FieldRange, ...] = ()
    mask: Mask | None = None
    valid: Expression | None = None
    refuse: Expression | None = None
    accepts: frozenset[str] = frozenset()
    unit: str | None = None
    spelled: str | None = None
    formerly: Formerly | None = None
    misprint: Misprint | None = None
    hidden: bool = False
    sensitive: Sensitive | None = None
    tag: int | None = None
    filled: bool = False
    is_given: bool = False
    gives: tuple[tuple[str, Expression], ...] = ()
    types: tuple[tuple[Versions, FieldType], ...] = ()
    ranges: Mapping[str, tuple[tuple[Versions, Span], ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def nullable(self) -> bool:
        """Return whether the encoding can express null in at least one version."""
        return any(getattr(type_, "null", None) is not None for type_ in self.all_types())

    def all_types(self) -> tuple[FieldType, ...]:
        """Return the types of the field: several if they differ between versions."""
        return tuple(type_ for _, type_ in self.types) or (self.type,)

    @property
    def zero(self) -> tuple[str, ...]:
        """Return the fields that count as zero bytes for this checksum."""
        return tuple(name for part in self.covers for name in part.zero)

    def variants(self) -> tuple[Field, ...]:
        """Return the field once with each of its types."""
        if not self.types:
            return (self,)
        return tuple(replace(self, type=type_, types=()) for _, type_ in self.types)

    def in_versions(self, versions: Iterable[int | None]) -> Field:
        """Return the field with the types that it has in ``versions``; ``type`` is the last of
        them. A version of None stands for any. All types are kept if none matches. A field of one
        type is returned unchanged.
        """
        if not self.types:
            return self
        wanted = tuple(versions)
        types = (
            tuple((v, t) for v, t in self.types if any(one in v for one in wanted)) or self.types
        )
        is_same = all(type_ == types[0][1] for _, type_ in types)
        return replace(self, type=types[-1][1], types=() if is_same else types)

    def with_types(self, **changes: Any) -> Field:
        """Return the field with attributes changed in each of its types. Raise TypeError if one of
        the types has no such attribute.
        """
        types = tuple((versions, replace(type_, **changes)) for versions, type_ in self.types)
        return replace(self, type=replace(self.type, **changes), types=types)


@dataclass(frozen=True, slots=True)
class Derived:
    """A value worked out from fields; of the layout, or of every element of one of its arrays (``item``). It is an integer in
    which sums wrap, or text or bytes that are looked up.
    """

    name: str
    type: str
    value: Expression
    span: Span
    array: str | None = None
    doc: str = ""
    unit: str | None = None
    versions: Versions | None = None
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def python(self) -> str:
        """Return the Python type of the value: ``int``, ``str`` or ``bytes``."""
        return {"string": "str", "bytes": "bytes"}.get(self.type, "int")


@dataclass(frozen=True, slots=True)
class Rule:
    """What all fields of a layout together have to meet: strict readers and builders refuse the rest, lenient readers do not
    look. ``about`` is the field that errors name. Either ``condition`` has to hold, or each element of an array has a larger
    number than the element before it (``ascending``: the path ``array.field``).
    """

    name: str
    about: str
    span: Span
    condition: Expression | None = None
    ascending: Expression | None = None
    doc: str = ""
    versions: Versions | None = None
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def text(self) -> str:
        """Return the rule on one line, as in the YAML."""
        return str(self.condition) if self.condition is not None else f"{self.ascending} ascends"


@dataclass(frozen=True, slots=True)
class Fill:
    """What builders put into the field ``target`` of the elements of an ``array``: the value that the element has under the name
    ``given``, less the field ``base`` of the layout. An element with neither gets ``otherwise`` (None: its index). Without a
    ``base`` it is what the first element has under ``given``, or else its default.
    """

    array: str
    target: str
    given: str
    base: str
    otherwise: int | None
    span: Span
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Example:
    """Bytes beside what they mean. ``data`` None: the bytes are what the builder makes of ``value``."""

    name: str
    doc: str
    data: bytes | None
    value: object
    version: int | None
    span: Span
    since: Since | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OverheadOf:
    """One column of an overhead table: a layout around messages whose keys and values have given sizes.

    ``array`` None: each message is one ``layout``; otherwise the layout holds them all in that array.
    ``sizes`` has the bytes-like fields with their sizes, ``number`` the field that counts from 0.
    """

    title: str
    layout: Reference
    sizes: Mapping[str, int]
    array: str | None = None
    number: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Overhead:
    """A table of the bytes that layouts add to what they carry."""

    doc: str
    batch_sizes: tuple[int, ...]
    columns: tuple[OverheadOf, ...]
    notes: str
    span: Span


@dataclass(frozen=True, slots=True)
class Message:
    """What a layout is in a protocol of requests and responses.

    Attributes:
        key: The number of the message; None for a header.
        headers: The layout in front of the message, by range of versions.
        key_field: The field of a header that holds the key of the message.
        version_field: The field of a header that holds the version of the message.
        unstable: The versions that may still change.
        facts: What the format says about the message and not about its bytes.
    """

    role: Literal["request", "response", "header"]
    key: int | None
    span: Span
    headers: tuple[tuple[Versions, Reference], ...] = ()
    key_field: str | None = None
    version_field: str | None = None
    unstable: Versions | None = None
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def header_of(self, version: int | None) -> Reference | None:
        """Return the header in front of a version, or None if there is none. A version of None
        gives the first header.
        """
        return next((ref for versions, ref in self.headers if version in versions), None)


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a structure, in the order of the bytes."""

    name: str
    doc: str
    span: Span
    fields: tuple[Field, ...]
    endian: Literal["big", "little"] = "big"
    versions: Versions | None = None
    version_notes: Mapping[int, tuple[Since | None, Since | None]] = field(default_factory=dict)
    since: Since | None = None
    draft: Since | None = None
    accepts: frozenset[str] = frozenset()
    flexible: Versions | Literal["never"] | None = None
    """The versions with compact lengths and a section of tagged fields; None for a layout whose fields all say their lengths."""
    derived: tuple[Derived, ...] = ()
    rules: tuple[Rule, ...] = ()
    fills: tuple[Fill, ...] = ()
    examples: tuple[Example, ...] = ()
    overhead: Overhead | None = None
    message: Message | None = None
    given: tuple[Field, ...] = ()
    """The values that whoever holds the layout gives it. They have no bytes."""
    is_local: bool = False
    """Whether it is written in the place of a field."""
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def version_is(self) -> str | None:
        """Return the name of the field that holds the version, or None if the caller must know the version."""
        return next((f.name for f in self.fields if f.is_version), None)

    def fields_of(self, version: int | None) -> tuple[Field, ...]:
        """Return the fields that exist in a version, in order, each with the type that it has
        there. A version of None gives all fields with all their types.
        """
        there = (f for f in self.fields if f.versions is None or version in f.versions)
        return tuple(f.in_versions((version,)) for f in there)

    @property
    def looked_up(self) -> tuple[Derived, ...]:
        """Return the values derived for the layout itself, not for elements of its arrays, that look elements up."""
        return tuple(d for d in self.derived if d.array is None and d.value.looks_up)

    def fills_of(self, array: str, version: int | None) -> tuple[Fill, ...]:
        """Return the values that builders write into elements of ``array`` in a version: those
        whose base field it has.
        """
        found = [fill for fill in self.fills if fill.array == array]
        there = {f.name for f in self.fields_of(version)} if found else set()
        return tuple(fill for fill in found if fill.base in there)

    def all_versions(self) -> tuple[int | None, ...]:
        """Return every version, ascending; ``(None,)`` for a layout whose versions have no end, or
        that has none.
        """
        if self.versions is None or self.versions.high is None:
            return (None,)
        return tuple(range(self.versions.low, self.versions.high + 1))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several layouts: by a field that lies at the same byte in all (``by``), or by a value that the caller has: of an
    enum (``given``), or of a type (``given_type``). ``named`` has the cases as written: choices, too. ``outer`` are the values
    that whoever holds the choice gives it, and ``decider`` the name of the one that decides.
    """

    name: str
    doc: str
    span: Span
    by: str | None
    given: str | None
    cases: tuple[tuple[int | str, Reference], ...]
    given_type: str | None = None
    outer: tuple[Field, ...] = ()
    decider: str | None = None
    since: Since | None = None
    named: tuple[tuple[int | str, Reference], ...] = ()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A value of an enum: its number, name and first release."""

    name: str
    value: int
    span: Span
    doc: str = ""
    since: Since | None = None
    spelled: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Enum:
    """Names for numbers. ``keep_unknown``: a number without a name is a value too."""

    name: str
    doc: str
    span: Span
    values: tuple[EnumValue, ...]
    keep_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view: values of a type, structs of ``members``, or lists, of such structs or of ``element``."""

    name: str
    type: str
    span: Span
    members: tuple[Column, ...] = ()
    element: Column | None = None
    nullable: bool = False
    on_request: bool = False
    unit: str | None = None
    doc: str = ""
    default: Expression | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def parts(self) -> tuple[Column, ...]:
        """Return the columns inside a struct or a list of structs, the one of the elements of
        another list, or ``()`` for other columns.
        """
        return self.members if self.element is None else (self.element,)


@dataclass(frozen=True, slots=True)
class Write:
    """How rows are written: expressions for the fields of the ``entry`` and of the ``item``, by name (bits as
    ``attributes.codec``), in terms of the columns.
    """

    entry: Mapping[str, Expression]
    item: Mapping[str, Expression]
    span: Span
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rows:
    """What of a layout becomes rows: the elements of the array ``each``, or (None) the layout itself.

    With ``header_only`` the row is made of the fields at fixed places of the layout, and nothing else is looked at.
    ``values`` has an expression for each column that has values here. Where ``full_check`` holds, a strict reader looks
    at more than the columns show. ``parts`` has the layouts of those of payloads; ``each`` is ``part.array`` then.
    ``other_arrays`` of the layout have as many elements: a row is made of one element of each array.
    """

    layout: str
    each: str | None
    values: Mapping[str, Expression]
    span: Span
    other_arrays: tuple[str, ...] = ()
    when: Expression | None = None
    full_check: Expression | None = None
    header_only: bool = False
    write: Write | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class View:
    """How layouts that stand one after the other, or the ``parts`` of payloads (without ``of``), become the rows of one table.

    ``kernels`` is True if a view into payloads asks for compiled kernels; views of entries have them without asking.
    """

    name: str
    doc: str
    span: Span
    of: str
    columns: tuple[Column, ...]
    rows: tuple[Rows, ...]
    parts: Mapping[str, str] = field(default_factory=dict)
    kernels: bool = False
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AcceptedBreak:
    """A breaking change that the authors of a directory accept: the rule, the path of what changes, and the reason."""

    rule: str
    at: str
    reason: str
    span: Span


@dataclass(frozen=True, slots=True)
class Manifest:
    """Settings of a schema directory as a whole (``codecgen.yaml``).

    ``as_of`` has the releases that get documents of their own. ``as_of_folders`` limits the Markdown pages of these
    releases to some folders of schemas; it is empty if every folder gets them.
    """

    package: str
    title: str
    doc: str
    span: Span
    spelling: Literal["camel", "snake"] = "snake"
    release_line: str | None = None
    releases: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    as_of: tuple[str, ...] = ()
    as_of_folders: tuple[str, ...] = ()
    pages_at: str = ""
    uses: Mapping[str, str] = field(default_factory=dict)
    accepted_breaks: tuple[AcceptedBreak, ...] = ()
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)


Declared = Enum | Layout | Text | Choice
"""What a YAML file declares for codecs."""


@dataclass(frozen=True, slots=True)
class Model:
    """Everything in a schema directory. ``broken`` has the names that are left out: those whose declaration does not fit its
    form, and those that a file may declare which cannot be read. ``uses`` has the directories whose declarations it uses, by
    the names before the dots; the declarations are then :class:`~codecgen.schema.declarations.Declarations`.
    """

    manifest: Manifest
    layouts: Mapping[str, Layout]
    enums: Mapping[str, Enum]
    choices: Mapping[str, Choice]
    files: Mapping[str, str] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    views: Mapping[str, View] = field(default_factory=dict)
    uses: Mapping[str, UsedDirectory] = field(default_factory=dict)
    texts: Mapping[str, Text] = field(default_factory=dict)

    def is_broken(self, name: str) -> bool:
        """Return whether a diagnostic already covers a name, or the directory that declares it."""
        directory, dot, _ = name.partition(".")
        return name in self.broken or directory + dot in self.broken

    @property
    def has_examples(self) -> bool:
        """Return whether any layout or text of the directory itself has examples."""
        layouts = any(layout.examples for layout in self.layouts.values())
        return layouts or any(text.examples for text in self.texts.values())

    def modules(self) -> Mapping[str, tuple[Declared, ...]]:
        """Return the declarations (not views) of each YAML file in file order, by file name; file
        names are sorted. Leave out files without declarations, and used directories.
        """
        out: dict[str, list[Declared]] = {}
        things: list[Declared] = [*self.enums.values(), *self.layouts.values()]
        things += [*self.texts.values(), *self.choices.values()]
        for thing in sorted(things, key=lambda one: (one.span.line, one.span.column)):
            out.setdefault(thing.span.file, []).append(thing)
        return {file: tuple(out[file]) for file in sorted(out)}

    def references(self, layout: Layout) -> Iterator[Reference]:
        """Yield the references of a layout's fields to layouts, in order, repeats included: held
        layouts, array elements, and each case of a choice once. Of a field whose type differs by
        version, only the last type counts.
        """
        return (ref for f in layout.fields for ref in held_layouts(f.type))


@dataclass(frozen=True, slots=True)
class UsedDirectory:
    """A schema directory that another one uses. ``path`` is where it is; ``place`` is what stands before the names of its
    files: ``../weather/``, or ``weather_codecs:`` for that of an installed package.
    """

    model: Model
    path: str
    place: str

    @property
    def package(self) -> str:
        """Return the name of the Python package that is generated from the directory."""
        return self.model.manifest.package
