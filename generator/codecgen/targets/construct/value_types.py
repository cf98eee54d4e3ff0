"""Types of the values to which fields are parsed, and the imports of a stub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.identity_cache import cached_by_identity
from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.layouts import FieldPlan
from codecgen.plan.nodes import DerivedValue
from codecgen.schema.scalars import SCALARS, is_float
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
from codecgen.targets.construct.class_names import Classes, cases, merge_versions
from codecgen.targets.construct.homes import Aliases, Home, class_name, import_line, symbols

ENTRIES = "codecgen.runtime.construct"
PARSED = "codecgen.runtime.parsed"
LARGEST = (1 << 62) - 1
"""The largest constant that is a type: mypy does not read all of 64 bits."""
STANDARD = ("builtins", "collections.abc", "typing", "uuid")


class ValueTypes:
    """Type annotations of parsed fields, as text for one stub, and the imports that they need.
    ``plan`` is the layout version that has the field ``fp``. Names that the stub uses are imported
    by the methods that return them.

    ``names`` has the names of the classes. Imports get an alias if the directory declares a thing or a field of
    that name.
    """

    def __init__(self, plan: Plan, home: Home, homes: Mapping[str, Home], names: Classes) -> None:
        self.plan = plan
        self.home = home
        self.homes = homes
        self.names = names
        self.aliases = Aliases(plan.model, names.own.reserved_names)
        self.imports: dict[str, set[str]] = {}
        self.inside: dict[tuple[str, str], str] = {}
        self.given = _declared_names(plan)

    # ------------------------------------------------------------ names

    def use(self, module: str, name: str) -> str:
        """Import a name from a module, and return the name by which the stub knows it."""
        known = name if name not in self.given else f"_{name}"
        self.imports.setdefault(module, set()).add(name if known == name else f"{name} as {known}")
        return known

    def builtin(self, name: str) -> str:
        """Return the name of a builtin; it is imported under an alias if a field or declaration hides it."""
        return self.use("builtins", name) if name in self.given else name

    def refer(self, thing: str, name: str) -> str:
        """Return the name by which the stub knows ``name`` of the declaration ``thing``: itself, or
        a unique alias if another schema directory declares it. Import it unless this module defines
        it. Raise KeyError for an unknown declaration.
        """
        alias = self.aliases.name(thing, name)
        home = self.homes[thing]
        if home != self.home:
            imported = name if alias == name else f"{name} as {alias}"
            self.imports.setdefault(".".join(home), set()).add(imported)
        return alias

    def class_of(self, name: str, version: int | None = None) -> str:
        """Return the class of a layout in a version, or the union of a choice or of all versions."""
        return self.refer(name, self.names[name, version])

    def inner_class(self, name: str, field: str) -> str:
        """Return the name of the class of the value of ``field`` in the class ``name``, such as
        ``ReadingFlags``, with underscores appended until it is unique in the package; the class
        exists in stubs only. Repeated calls return the same name.
        """
        key = (name, field)
        if key not in self.inside:
            self.inside[key] = self.names.own.reserve(name + class_name(field))
        return self.inside[key]

    # ------------------------------------------------------------ types

    def optional(self, type_: str, nullable: bool) -> str:
        """Return ``type_ | None`` if ``nullable``, else ``type_``."""
        return f"{type_} | None" if nullable and type_ != "None" else type_

    def field_type(self, plan: LayoutPlan, fp: FieldPlan) -> str:
        """Return the type to which a field is parsed, with ``None`` if the field is conditional or
        may be null. For a version, or a constant of an integer or bool without an enum, it is a
        ``Literal``, unless the number exceeds 62 bits.
        """
        f = fp.field
        constant = plan.version if f.is_version else f.const
        number = isinstance(f.type, ScalarType) and not f.type.enum and not is_float(f.type.name)
        if number and isinstance(constant, int) and abs(constant) <= LARGEST:
            shown = bool(constant) if f.type == ScalarType("bool") else int(constant)
            type_ = f"{self.use('typing', 'Literal')}[{shown}]"
            return self.optional(type_, fp.when is not None)
        return self.optional(self.value_type(plan, fp, f.type), self.may_be_null(fp))

    def may_be_null(self, fp: FieldPlan) -> bool:
        """Return whether a field may be absent or null."""
        return fp.when is not None or getattr(fp.field.type, "null", None) is not None

    def value_type(self, plan: LayoutPlan, fp: FieldPlan, type_: FieldType) -> str:
        """Return the type of the non-null values of a field of the type ``type_``: a Python type,
        enum class (``| int`` if it keeps unknown numbers), class of bits, or union of layout
        classes (``| bytes`` for a choice that keeps unknown cases). Arrays and tagged fields are a
        ``Sequence``; elements that may be null include ``None``. Padding gives ``"None"``.
        """
        match type_:
            case ScalarType():
                return self.scalar_type(type_)
            case BitsType():
                return self.inner_class(self.class_of(plan.name, plan.version), fp.name)
            case BytesType(text=text):
                return self.builtin("str" if text else "bytes")
            case PaddingType():
                return "None"
            case TagsType():
                one = self.use(PARSED, "TaggedField")
                return f"{self.use('collections.abc', 'Sequence')}[{one}]"
            case StructType() | ChoiceType():
                return self.held_type(plan, fp)
            case ArrayType(element):
                one = self.element_type(plan, fp, element)
                return f"{self.use('collections.abc', 'Sequence')}[{one}]"

    def element_type(self, plan: LayoutPlan, fp: FieldPlan, element: object) -> str:
        """Return the type of the elements of an array: of a scalar, ``str`` or ``bytes``, or of the
        layouts that it holds. Bytes, text and choices that may be null include ``None``.
        """
        if isinstance(element, ScalarType):
            return self.scalar_type(element)
        if isinstance(element, BytesType):
            word = self.builtin("str" if element.text else "bytes")
            return self.optional(word, element.null is not None)
        nullable = isinstance(element, ChoiceType) and element.null is not None
        return self.optional(self.held_type(plan, fp), nullable)

    def scalar_type(self, type_: ScalarType) -> str:
        """Return the type of a scalar: the class of its enum (with ``int`` if it keeps unknown
        numbers), or a Python type.
        """
        if type_.enum is not None:
            return self.enum_type(type_.enum)
        python = SCALARS[type_.name].python
        return self.use("uuid", "UUID") if python == "UUID" else self.builtin(python)

    def enum_type(self, enum: str) -> str:
        """Return the class of an enum, with ``int`` if the enum keeps unknown numbers."""
        name = self.refer(enum, class_name(enum))
        keep = self.plan.model.enums[enum].keep_unknown
        return f"{name} | {self.builtin('int')}" if keep else name

    def bit_type(self, m: BitMember) -> str:
        """Return the type of a member of a field of bits."""
        if m.enum is not None:
            return self.enum_type(m.enum)
        return self.builtin("bool" if m.width == 1 and not m.reserved else "int")

    # ------------------------------------------------------------ layouts in layouts

    def held_layouts(self, plan: LayoutPlan, type_: FieldType) -> tuple[LayoutPlan, ...]:
        """Return the layout versions that a field of ``plan``, or an element of it, may hold, each
        once; ``()`` if it holds none. For an array of the layout ``plan`` itself, without a named
        version, return only the version of ``plan``.
        """
        found = self.plan.held_by(type_, plan)
        element = type_.element if isinstance(type_, ArrayType) else None
        own = [p for p in found if (p.name, p.version) == (plan.name, plan.version)]
        if isinstance(element, Reference) and element.version is None and own:
            return tuple(own)  # elements that are of the layout itself are of its version
        return tuple({(p.name, p.version): p for p in found}.values())

    def held_type(self, plan: LayoutPlan, fp: FieldPlan) -> str:
        """Return the union of the parsed classes of the layouts that a field, or an element of it,
        may hold. Elements with derived values have classes of their own. A choice that keeps
        unknown cases includes ``bytes``.
        """
        type_ = fp.field.type
        inner = type_.element if isinstance(type_, ArrayType) else type_
        held = self.held_layouts(plan, type_)
        if any(self.element_derived(plan, fp.name, one) for one in held):
            types = [self.element_class(plan, fp, one) for one in held]
        else:
            types = self.union_types(inner, held)
        if isinstance(inner, ChoiceType) and inner.unknown:
            types = [*types, self.builtin("bytes")]
        return " | ".join(types)

    def union_types(self, inner: object, held: Sequence[LayoutPlan]) -> list[str]:
        """Return the names of the classes of the layouts ``held`` in a field of the type ``inner``.
        If they are all cases of its choice, and more than one, return only the choice's union name;
        all versions of a layout become that layout's union name.
        """
        keys = [(p.name, p.version) for p in held]
        choice = isinstance(inner, ChoiceType) and self.plan.model.choices[inner.choice]
        if choice and len(keys) > 1 and set(keys) == set(cases(self.plan, choice)):
            return [self.class_of(choice.name)]
        return [self.class_of(*key) for key in merge_versions(self.plan, keys)]

    def codec_type(self, ref: Reference, union: str, values: str) -> str:
        """Return the type of the codec of a layout: ``Layout`` for one version or a layout without
        versions, otherwise ``VersionedLayout`` if its bytes contain the version, or
        ``LayoutVersions``. Its arguments are the type ``union`` of parsed values, and the types
        ``values`` of values to build.

        ``union`` is the type of parsed values, ``values`` the type that its builder takes.
        """
        layout = self.plan.model.layouts[ref.layout]
        entry = "Layout"
        if layout.versions is not None and ref.version is None:
            entry = "LayoutVersions" if layout.version_is is None else "VersionedLayout"
        return f"{self.use(ENTRIES, entry)}[{union}, {values} | {union}]"

    # ------------------------------------------------------------ values that are derived for elements

    def element_derived(
        self, plan: LayoutPlan, array: str, element: LayoutPlan
    ) -> list[tuple[str, str]]:
        """Return the names and types (``int``, ``str`` or ``bytes``, with ``None`` if it can be
        null) of the values that a layout derives for elements of ``array``, in the order of
        declaration. Values with the name of a field or derived value of the element are left out.
        """
        known = {fp.name for fp in element.values}
        known |= {v.derived.name for v in element.derived if v.derived.array is None}
        return [
            (v.derived.name, self.derived_type(v))
            for v in plan.derived
            if v.derived.array == array and v.derived.name not in known
        ]

    def derived_type(self, value: DerivedValue) -> str:
        """Return the type of a derived value, with ``None`` if it can be null."""
        return self.optional(self.builtin(value.derived.python), value.type.nullable)

    def element_class(self, plan: LayoutPlan, fp: FieldPlan, element: LayoutPlan) -> str:
        """Return the class of an element of an array: the class of its layout, or a class of its
        own, named after the field, if the outer layout derives values for the elements.
        """
        if not self.element_derived(plan, fp.name, element):
            return self.class_of(element.name, element.version)
        name = self.class_of(plan.name, plan.version)
        if len(self.held_layouts(plan, fp.field.type)) == 1:
            return self.inner_class(name, fp.name)
        version = "" if element.version is None else f"_v{element.version}"
        return self.inner_class(name, f"{fp.name}_{element.name.replace('.', '_')}{version}")

    # ------------------------------------------------------------ what a stub imports

    def import_lines(self) -> list[str]:
        """Return the import statements of the stub: modules of the standard library, an empty line,
        and the other modules. The empty line is missing if one group is empty.
        """
        lines = [import_line(name, self.imports[name]) for name in STANDARD if name in self.imports]
        others = [
            import_line(name, self.imports[name])
            for name in sorted(self.imports)
            if name not in STANDARD
        ]
        return [*lines, "", *others] if lines and others else lines + others


@cached_by_identity
def _declared_names(plan: Plan) -> frozenset[str]:
    """Return the names that a directory declares and imports must not hide: enum classes, codecs,
    layouts, fields, bits, derived values (also as ``array_value``), and lines and values of texts.
    """
    out = set(symbols(plan.model))
    for plans in plan.versions.values():
        for one in plans:
            out |= {one.name, *(v.derived.name for v in one.derived)}
            out |= {f"{v.derived.array}_{v.derived.name}" for v in one.derived if v.derived.array}
            for fp in one.values:
                out.add(fp.name)
                if isinstance(fp.field.type, BitsType):
                    out |= {m.name for m in fp.field.type.members}
    for text in plan.model.texts.values():
        out |= {part for path, _ in text.values() for part in path.split(".")}
        out |= {line.name for line in text.lines}
    return frozenset(out)
