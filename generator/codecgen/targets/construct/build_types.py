"""The types of the values that builders take, in a stub: a TypedDict for each version of a layout."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.plan import LayoutPlan
from codecgen.plan.layouts import FieldPlan
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    FieldType,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)
from codecgen.targets.construct.class_names import Key
from codecgen.targets.construct.value_types import ValueTypes


class BuildTypes:
    """Type annotations, as text for a stub, of the values that builders take for fields: TypedDicts
    and other Python types. Builders take parsed values too. ``plan`` is the layout version that has
    the field ``fp``.
    """

    def __init__(self, types: ValueTypes) -> None:
        self.types = types
        self.plan = types.plan

    def values_of(self, keys: Iterable[Key]) -> str:
        """Return the union (``A | B``) of the names of the TypedDicts that builders take for
        ``keys``, pairs of a layout and a version, in their order and with repetitions; ``""`` if
        there are none. Add imports to the stub for names that other modules declare. Raise KeyError
        for an unknown pair.

        The union gets no name of its own: the name would be missing when a program runs.
        """
        return " | ".join(self.types.refer(key[0], self.types.names.values(key)) for key in keys)

    def built_fields(self, plan: LayoutPlan) -> list[tuple[str, str]]:
        """Return the names and types of the fields that a caller may give to the builder of a
        layout, without padding: values that an outer layout gives first, then in layout order. A
        field that the builder needs from the caller has the type ``Required[...]``, unless an outer
        layout gives it or fills it in.
        """
        out = []
        filled = self.filled_by_others(plan)
        for fp in plan.values:
            if isinstance(fp.field.type, PaddingType):
                continue
            type_ = self.built_type(plan, fp)
            if not fp.field.is_given and self.is_needed(fp) and fp.name not in filled:
                type_ = f"{self.types.use('typing', 'Required')}[{type_}]"
            out.append((fp.name, type_))
        return out

    def filled_by_others(self, plan: LayoutPlan) -> set[str]:
        """Return the names of the fields of a layout that the builder of some other layout fills in
        when it holds this layout, in whatever version, as an array element; the empty set if there
        are none.
        """
        return {
            fill.target
            for plans in self.plan.versions.values()
            for around in plans
            if around.layout.fills  # few have any, and each layout asks all of them
            for fp in around.fields
            for fill in around.layout.fills_of(fp.name, around.version)
            if any(
                held.name == plan.name for held in self.types.held_layouts(around, fp.field.type)
            )
        }

    def is_needed(self, fp: FieldPlan) -> bool:
        """Return whether a builder refuses values without the field. Return False for lengths,
        counts and checksums, for fields with a constant, default or tag, for the version, and for
        fields that are conditional, nullable, bits, arrays, padding or the section of tagged
        fields.
        """
        f = fp.field
        worked_out = f.measures is not None or bool(f.counts) or f.checksum is not None
        has_value = (
            f.const is not None or f.is_version or f.default is not None or f.tag is not None
        )
        empty = isinstance(f.type, BitsType | ArrayType | TagsType | PaddingType)
        return not (
            worked_out or has_value or empty or fp.when is not None or self.types.may_be_null(fp)
        )

    def built_type(self, plan: LayoutPlan, fp: FieldPlan) -> str:
        """Return the type of the values that a builder takes for a field, with ``None`` if the field may be null."""
        return self.types.optional(
            self.accepted_type(plan, fp, fp.field.type), self.types.may_be_null(fp)
        )

    def accepted_type(self, plan: LayoutPlan, fp: FieldPlan, type_: FieldType) -> str:
        """Return the type of the non-null values that a builder takes for a field of the type
        ``type_``. Enums also allow ``int`` and ``str``, bits and layouts a TypedDict or the parsed
        class; arrays and tagged fields are a ``Sequence``. Bytes, padding and arrays of bytes have
        the type of parsed values.
        """
        match type_:
            case ScalarType():
                return self.accepted_scalar(type_)
            case BitsType():
                parsed = self.types.inner_class(
                    self.types.class_of(plan.name, plan.version), fp.name
                )
                return f"{self.built_bits(plan, fp)} | {parsed}"
            case TagsType():
                return f"{self.sequence()}[{self.types.use('typing', 'Any')}]"
            case ArrayType(element=ScalarType() as one):
                return f"{self.sequence()}[{self.accepted_scalar(one)}]"
            case ArrayType(element=BytesType()):
                return self.types.value_type(plan, fp, type_)
            case ArrayType(element):
                nullable = isinstance(element, ChoiceType) and element.null is not None
                return f"{self.sequence()}[{self.types.optional(self.accepted_layouts(plan, fp), nullable)}]"
            case StructType() | ChoiceType():
                return self.accepted_layouts(plan, fp)
        return self.types.value_type(plan, fp, type_)

    def sequence(self) -> str:
        """Return the name of ``Sequence`` in the module, which imports it from then on."""
        return self.types.use("collections.abc", "Sequence")

    def accepted_scalar(self, type_: ScalarType) -> str:
        """Return the type of a scalar that builders take: for an enum its members, numbers and names."""
        if type_.enum is None:
            return self.types.scalar_type(type_)
        return self.accepted_enum(type_.enum)

    def accepted_enum(self, enum: str) -> str:
        """Return the union of the types that builders take for an enum: its class, ``int`` and
        ``str``, each once.
        """
        members = self.types.enum_type(enum).split(" | ")
        return " | ".join(
            dict.fromkeys([*members, self.types.builtin("int"), self.types.builtin("str")])
        )

    def accepted_bit(self, m: BitMember) -> str:
        """Return the type of the values that builders take for a member of a field of bits."""
        return self.types.bit_type(m) if m.enum is None else self.accepted_enum(m.enum)

    def built_bits(self, plan: LayoutPlan, fp: FieldPlan) -> str:
        """Return the type of the members of bits."""
        return self.types.inner_class(
            self.types.class_of(plan.name, plan.version), f"{fp.name}_values"
        )

    def accepted_layouts(self, plan: LayoutPlan, fp: FieldPlan) -> str:
        """Return the union of types, as text, that builders take for the layouts that a field, or
        an element of it, may hold: TypedDicts, parsed classes, and ``bytes`` for a choice that
        keeps unknown cases. If the outer layout fills fields of the elements, and they are of one
        layout, the TypedDict is one with the names that a caller gives instead.
        """
        type_ = fp.field.type
        inner = type_.element if isinstance(type_, ArrayType) else type_
        held = self.types.held_layouts(plan, type_)
        if isinstance(inner, Reference) and len(held) == 1 and self.given_names(plan, fp.name):
            values = self.built_element(plan, fp)
        else:
            values = self.values_of((p.name, p.version) for p in held)
        return f"{values} | {self.types.held_type(plan, fp)}"

    def given_names(self, plan: LayoutPlan, array: str) -> dict[str, str]:
        """Return the names that a caller may give in elements of an array instead of the fields that are filled in."""
        return {fill.target: fill.given for fill in plan.layout.fills_of(array, plan.version)}

    def built_element(self, plan: LayoutPlan, fp: FieldPlan) -> str:
        """Return the type of the elements of an array in which a caller may give other names."""
        return self.types.inner_class(
            self.types.class_of(plan.name, plan.version), f"{fp.name}_values"
        )
