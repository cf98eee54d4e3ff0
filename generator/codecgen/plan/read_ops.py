"""Operations of read programs: what a strict reader does for each field."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.layouts import FieldPlan, LayoutPlan
from codecgen.plan.nodes import Value
from codecgen.schema.types import ArrayType, BytesType, ChoiceType, ScalarType, Step, StructType


@dataclass(frozen=True, slots=True)
class Number:
    """Read a number, a boolean, a uuid, or a word of bits."""

    field: FieldPlan
    type: str


@dataclass(frozen=True, slots=True)
class Bytes:
    """Read bytes or text. ``after``: the bytes of fixed size that follow in the field range of what reaches to its end (None: they vary)."""

    field: FieldPlan
    type: BytesType
    after: int | None


@dataclass(frozen=True, slots=True)
class Padding:
    """Pass over zero bytes up to the next ``multiple``, counted from the start of the layout."""

    field: FieldPlan
    multiple: int


@dataclass(frozen=True, slots=True)
class Elements:
    """Read the elements of an array, one after the other (a loop). ``any_version``: each says which version it is of, and
    that may be another one than ``element``.
    """

    field: FieldPlan
    type: ArrayType
    element: LayoutPlan | ScalarType | BytesType | ChoiceType
    any_version: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """Read a layout in the place of a field."""

    field: FieldPlan
    layout: LayoutPlan


@dataclass(frozen=True, slots=True)
class Choose:
    """Read one of several layouts in the place of a field: by the number that ``given`` of the field gives or, without it, that
    the field ``by`` of a choice holds, in the version that ``held_version`` gives. ``cases`` has them by number (None: any), and
    ``steps`` has, of each, the choices among the cases that lead to it.
    """

    field: FieldPlan
    type: ChoiceType | StructType
    cases: tuple[tuple[int | None, LayoutPlan], ...]
    steps: tuple[tuple[Step, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Tags:
    """Read a section of tagged fields: their number, and tag, size and bytes of each; tags ascend. ``known`` has what reads
    each tagged field of the layout where it is there, by its tag; others are passed over, but those of ``other`` versions
    are refused.
    """

    field: FieldPlan
    known: tuple[tuple[FieldPlan, tuple[ReadOp, ...]], ...]
    other: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Open:
    """From here on bytes are those that ``length`` measures (less its own), up to ``last`` (None: the end of the layout). With ``when``
    the length may not be there; ``after`` is then what follows the last field.
    """

    length: FieldPlan
    first: FieldPlan
    last: str | None
    when: Value | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Close:
    """The bytes that ``length`` measures have been read, no more and no fewer."""

    length: FieldPlan
    at: FieldPlan


@dataclass(frozen=True, slots=True)
class Mark:
    """Bytes that a checksum covers begin (``end`` False) or end here."""

    checksum: FieldPlan
    end: bool


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare a checksum: over what was marked, or (``ahead``) over all from here to the end of the layout."""

    checksum: FieldPlan
    ahead: bool


@dataclass(frozen=True, slots=True)
class Require:
    """Refuse what does not meet a condition. ``why``: const, version, refuse, valid, enum, reserved."""

    field: FieldPlan
    condition: Value
    why: str


@dataclass(frozen=True, slots=True)
class When:
    """Read a field only where a condition holds (choose); otherwise it is null."""

    field: FieldPlan
    condition: Value
    then: tuple[ReadOp, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A field that is never there in this version."""

    field: FieldPlan


ReadOp = (
    Number
    | Bytes
    | Padding
    | Elements
    | Struct
    | Choose
    | Tags
    | Open
    | Close
    | Mark
    | Verify
    | Require
    | When
    | Absent
)  # fmt: skip


def fields_needed(ops: tuple[ReadOp, ...], *, checks: bool) -> set[str]:
    """Return the names of the layout's own fields whose values the operations use in conditions,
    lengths, end conditions, counts, codecs and discriminators. Add fields for values that structs
    and elements are given; values given to a choice are left out. If ``checks``, also return those
    that checksums and requirements compare.
    """
    out: set[str] = set()
    for op in ops:
        match op:
            case When(_, condition, then):
                out |= _own_names(condition) | fields_needed(then, checks=checks)
            case Tags(known=known):
                for _, inner in known:
                    out |= fields_needed(inner, checks=checks)
            case Open(length, when=when):
                out |= {length.name} | (set() if when is None else _own_names(when))
            case Verify(checksum) if checks:
                out.add(checksum.name)
            case Require(_, condition) if checks:
                out |= _own_names(condition)
            case Elements(field, type_):
                out |= set() if field.until is None else _own_names(field.until)
                if type_.counted_by is not None:
                    out.add(type_.counted_by)
                if field.codec is not None:
                    out |= _own_names(field.codec)
                out |= _names_of_discriminator(field)
                out |= names_given(field)
            case Choose(field):
                out |= _names_of_discriminator(field)
            case Struct(field):
                out |= names_given(field)
    return out


def names_given(field: FieldPlan) -> set[str]:
    """Return the names of the fields of the layout around ``field`` that are read for the values
    which ``field`` gives to the layout that it holds.
    """
    return {name for value in field.gives.values() for name in _own_names(value)}


def _names_of_discriminator(field: FieldPlan) -> set[str]:
    """Return the names of the fields that select the case or the version of ``field``."""
    out: set[str] = set()
    for value in (field.given, field.held_version):
        out |= set() if value is None else _own_names(value)
    return out


def _own_names(value: Value) -> set[str]:
    """Return the names of the layout's own fields that a value reads."""
    return {read.names[0] for read in nodes.fields_read(value) if read.owner == "own"}


__all__ = [
    "Absent",
    "Bytes",
    "Choose",
    "Close",
    "Elements",
    "Mark",
    "Number",
    "Open",
    "Padding",
    "ReadOp",
    "Require",
    "Struct",
    "Tags",
    "Verify",
    "When",
    "fields_needed",
    "names_given",
]
