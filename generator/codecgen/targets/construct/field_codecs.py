"""Codecs of fields as Python: the arguments of ``Field(...)`` in generated modules."""

from __future__ import annotations

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.nodes import Value
from codecgen.runtime.compression import CODECS
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import (
    FROM_OUTSIDE,
    ZERO_TERMINATED,
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    ChoiceType,
    Compression,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)
from codecgen.targets.construct.homes import class_name, symbol
from codecgen.targets.construct.module_scope import ModuleScope
from codecgen.targets.python_source import (
    Call,
    Code,
    call,
    listing,
    mapping,
    string,
)

_TOLERANCES = {"bytes_after_none", "truncated_tail", "mixed_versions", "negative_null"}
"""The tolerances that are an array's own."""


class FieldCodecs:
    """Prints, for one generated module, the Python code that creates the codecs of fields. ``plan``
    and ``index`` tell the field: a layout version and the field's index in it; ``accepts`` has the
    tolerances of lenient readers that the schema declares for the field. C023 findings go to
    ``scope``.
    """

    def __init__(self, scope: ModuleScope) -> None:
        self.scope = scope
        self.plan = scope.plan

    def codec(self, plan: LayoutPlan, index: int) -> Code:
        """Return the code that creates the codec of the field at ``index`` of a layout, as its type
        requires: a number, enum, bits, bytes, padding, layout, choice, array, or section of tagged
        fields.
        """
        f = plan.fields[index].field
        accepts = f.accepts
        match f.type:
            case ScalarType(name, enum, only):
                base = self.scalar_codec(name, f.endian, accepts)
                return base if enum is None else self.enum_field(base, enum, only)
            case BitsType(base_name, members):
                base = self.scalar_codec(base_name, f.endian, accepts)
                bits = [
                    self.bit_call(m, plan.fields[index].bit_defaults.get(m.name)) for m in members
                ]
                return call(self.scope.use("Bits"), base, *bits)
            case BytesType():
                return self.bytes_codec(f.type, f.endian, accepts)
            case PaddingType(multiple):
                return call(self.scope.use("Padding"), str(multiple))
            case StructType():
                return self.struct_codec(f.type, plan, index, accepts)
            case ChoiceType():
                return self.choice_codec(f.type, plan, index, accepts)
            case ArrayType():
                return self.array_codec(f.type, plan, index, accepts)
            case TagsType():
                return self.tags_codec(plan, accepts)

    def scalar_codec(self, name: str, endian: str, accepts: frozenset[str]) -> Code:
        """Return the code that creates the codec of the scalar type ``name``: ``Integer``,
        ``Varint``, ``Vlq``, ``Float32``, ``Float64``, ``Boolean`` or ``Uuid``. ``endian`` applies
        to floats and to integers above one byte. Varints and VLQs may be overlong if ``accepts``
        contains ``overlong_varints``. Raise KeyError for another name, also for ``compact``.
        """
        order = string("little") if endian == "little" else None
        scalar = SCALARS[name]
        signed = None if scalar.signed else "False"
        overlong = "True" if "overlong_varints" in accepts else None
        match scalar.kind:
            case "integer":
                endian_of = order if scalar.width > 1 else None
                width = str(scalar.width)
                return call(self.scope.use("Integer"), width, signed=signed, endian=endian_of)
            case "varint":
                return call(
                    self.scope.use("Varint"),
                    str(scalar.bits),
                    signed=signed,
                    overlong=overlong,
                )
            case "vlq" | "bijective_vlq":
                return call(
                    self.scope.use("Vlq"),
                    str(scalar.bits),
                    overlong=overlong,
                    bijective="True" if scalar.kind == "bijective_vlq" else None,
                )
            case "float":
                return call(self.scope.use(f"Float{scalar.bits}"), endian=order)
            case "bool" | "uuid":
                return call(self.scope.use({"bool": "Boolean", "uuid": "Uuid"}[scalar.kind]))

    def given_codec(self, fp: FieldPlan) -> Code:
        """Return the code that creates the codec of ``fp``, a value that an outer layout gives: a
        scalar, an enum with all its members, or an array of scalars or bytes after its count. No
        tolerances apply. Raise AssertionError for other types.
        """
        type_ = fp.field.type
        if isinstance(type_, ArrayType):
            one = type_.element
            if isinstance(one, BytesType):
                inner = self.bytes_codec(one, fp.field.endian, frozenset())
            else:
                assert isinstance(one, ScalarType)
                inner = self.scalar_codec(one.name, fp.field.endian, frozenset())
            count = self.scalar_codec(str(type_.count), fp.field.endian, frozenset())
            return call(self.scope.use("Array"), inner, count=count)
        assert isinstance(type_, ScalarType)
        base = self.scalar_codec(type_.name, fp.field.endian, frozenset())
        return base if type_.enum is None else self.enum_field(base, type_.enum, None)

    def giving(self, layout: Code, fp: FieldPlan) -> Code:
        """Return the code for a layout that the field ``fp`` holds, with the values that the field gives it."""
        values = self.given_mapping(fp)
        return layout if values is None else call(self.scope.use("Giving"), layout, values)

    def given_mapping(self, fp: FieldPlan) -> Code | None:
        """Return the code for the values that a field gives to the layout it holds, by name; None if it gives none."""
        items = [(string(name), self.scope.function(value)) for name, value in fp.gives.items()]
        return mapping([(name, code or "None") for name, code in items]) if items else None

    def enum_members(self, enum: str, only: tuple[str, ...] | None) -> Code | None:
        """Return the code of a tuple of the members ``only`` of an enum, in that order, and import
        the enum's class unless this module defines it. Return None if ``only`` is None and every
        member is allowed. Raise KeyError for an unknown enum.
        """
        if only is None:
            return None
        name = self.scope.refer(enum, class_name(enum))
        return Call("", tuple(("", f"{name}.{value.upper()}") for value in only))

    def enum_field(self, base: Code, enum: str, only: tuple[str, ...] | None) -> Code:
        """Return the code that creates the codec of an enum around the number codec ``base``.
        ``only`` limits the members (None: all). Strict readers refuse other numbers, lenient ones
        note and keep them; an enum declared with ``unknown: keep`` takes every number, also members
        that are not in ``only``. Raise KeyError for an unknown enum.
        """
        keep = self.plan.model.enums[enum].keep_unknown
        return call(
            self.scope.use("EnumField"),
            base,
            self.scope.refer(enum, class_name(enum)),
            only=self.enum_members(enum, only),
            keep_unknown="True" if keep else None,
        )

    def bit_call(self, m: BitMember, default: Value | None) -> Code:
        """Return the ``Bit`` call for one member of a field of bits: its name, its lowest bit, its
        highest if it has several, its enum with the members that are allowed, whether unknown
        numbers are kept, whether it is reserved, and its default (None: no default).
        """
        enum = m.enum
        keep = enum is not None and self.plan.model.enums[enum].keep_unknown
        return call(
            self.scope.use("Bit"),
            string(m.name),
            str(m.low),
            *([] if m.high == m.low else [str(m.high)]),
            enum=None if enum is None else self.scope.refer(enum, class_name(enum)),
            only=None if enum is None else self.enum_members(enum, m.only),
            keep_unknown="True" if keep else None,
            reserved="True" if m.reserved else None,
            default=self.scope.function(default),
        )

    def length_codec(
        self, name: str, endian: str, accepts: frozenset[str]
    ) -> tuple[Code, str | None]:
        """Return the code of the codec of a length or count of the type ``name``, and the code of
        the number to subtract from what it reads: ``"1"`` for a compact length (read as an unsigned
        varint), None for others.
        """
        if name == "compact":
            return self.scalar_codec("uvarint", endian, accepts), "1"
        return self.scalar_codec(name, endian, accepts), None

    def bytes_codec(self, type_: BytesType, endian: str, accepts: frozenset[str]) -> Code:
        """Return the code that creates the codec of bytes or text: after a length, with a length
        from outside, of a fixed size, zero-padded, zero-terminated, or up to the end. With
        ``negative_null`` in ``accepts`` any negative length means null, if null is a negative
        length; with ``invalid_utf8`` text may be invalid UTF-8.
        """
        plus: str | None = None
        length: Code
        if type_.length == FROM_OUTSIDE:
            length = call(self.scope.use("OuterLength"), string(str(type_.sized_by)))
            plus = str(type_.plus) if type_.plus else None
        elif type_.prefix is not None:
            length, plus = self.length_codec(type_.prefix, endian, accepts)
        elif isinstance(type_.length, int) and not type_.padded:
            length = str(type_.length)
        else:
            length = "None"
        negative = "negative_null" in accepts and type_.null is not None and type_.null < 0
        content = call(
            self.scope.use("Text" if type_.text else "Bytes"),
            length,
            null=None if type_.null is None else str(type_.null),
            plus=plus,
            any_negative="True" if negative else None,
            lossy="True" if type_.text and "invalid_utf8" in accepts else None,
        )
        if type_.length == ZERO_TERMINATED:
            return call(self.scope.use("ZeroTerminated"), content)
        if type_.padded:
            return call(self.scope.use("ZeroFilled"), content, str(type_.length))
        return content

    def layout_reference(self, ref: Reference, plan: LayoutPlan) -> Code:
        """Return the Python name of the codec of the layout that ``ref`` names, of the version in
        ``ref``, else of the version of ``plan``, which holds it. If ``ref`` names none, it is the
        codec of all versions for a layout that encodes its own version, or if ``plan`` has no
        version. Return a ``Lazy`` call if this module has not defined the codec yet.
        """
        layout = self.plan.model.layouts[ref.layout]
        version = ref.version
        if version is None and layout.versions is not None and layout.version_is is None:
            version = plan.version
        name = self.scope.refer(
            ref.layout, symbol(ref.layout, version if layout.versions is not None else None)
        )
        if ref.layout not in self.scope.defined and self.scope.homes[ref.layout] == self.scope.home:
            return call(self.scope.use("Lazy"), f"lambda: {name}")
        return name

    def choice_codec(
        self, type_: ChoiceType, plan: LayoutPlan, index: int, accepts: frozenset[str]
    ) -> Code:
        """Return the ``Chosen`` call for a field that holds one of the layouts of a choice, with
        its discriminator, version, length, null, unknown cases and given values, each if declared.
        The version of ``plan`` is passed only if a case needs a version that neither its bytes nor
        a field gives. With ``negative_null`` in ``accepts`` any negative length means null, if null
        is a negative length.
        """
        fp = plan.fields[index]
        layouts = self.plan.model.layouts
        held = [layouts[ref.layout] for ref in type_.layouts if ref.version is None]
        outside = any(one.versions is not None and one.version_is is None for one in held)
        around = plan.version if outside and type_.version is None else None
        negative = "negative_null" in accepts and type_.null is not None and type_.null < 0
        return call(
            self.scope.use("Chosen"),
            f"lambda: {self.scope.refer(type_.choice, symbol(type_.choice))}",
            given=self.scope.function(fp.given),
            version=self.scope.function(fp.held_version),
            around=None if around is None else str(around),
            length=None
            if type_.length is None
            else self.scalar_codec(type_.length, fp.field.endian, accepts),
            null=None if type_.null is None else str(type_.null),
            any_negative="True" if negative else None,
            unknown="True" if type_.unknown else None,
            gives=self.given_mapping(fp)
            if any(layouts[ref.layout].given for ref in type_.layouts)
            else None,
        )

    def struct_codec(
        self, type_: StructType, plan: LayoutPlan, index: int, accepts: frozenset[str]
    ) -> Code:
        """Return the code for a field that holds a layout: its codec, or a ``Chosen`` call if
        another field gives the version. A ``Nullable`` call surrounds it if a presence number and
        its null are declared; only to this call ``negative_null`` and ``any_present`` in
        ``accepts`` apply.
        """
        endian = plan.fields[index].field.endian
        if type_.version is None:
            layout = self.layout_reference(type_.layout, plan)
            layout = self.giving(layout, plan.fields[index])
        else:
            name = self.scope.refer(type_.layout.layout, symbol(type_.layout.layout))
            version = self.scope.function(plan.fields[index].held_version)
            gives = self.given_mapping(plan.fields[index])
            layout = call(self.scope.use("Chosen"), f"lambda: {name}", version=version, gives=gives)
        if type_.present is None or type_.null is None:
            return layout
        return call(
            self.scope.use("Nullable"),
            layout,
            present=self.scalar_codec(type_.present, endian, accepts),
            null=str(type_.null),
            any_negative="True" if "negative_null" in accepts and type_.null < 0 else None,
            any_present="True" if "any_present" in accepts else None,
        )

    def array_codec(
        self, type_: ArrayType, plan: LayoutPlan, index: int, accepts: frozenset[str]
    ) -> Code:
        """Return the ``Array`` call for an array: its element codec, and its count, fixed number,
        length, compression, ``until`` condition, minimum, nesting limit and null, each if declared.
        The call gets the tolerances in ``accepts`` that concern arrays; the codec of elements that
        are no layouts gets all of ``accepts``. Raise TypeError if the condition has no Python
        expression.
        """
        element = type_.element
        endian = plan.fields[index].field.endian
        inner: Code
        mixed = False
        if isinstance(element, Reference):
            inner = self.giving(self.layout_reference(element, plan), plan.fields[index])
            held = self.plan.model.layouts[element.layout]
            mixed = (
                held.name == plan.name and held.version_is is not None and element.version is None
            )
        elif isinstance(element, BytesType):
            inner = self.bytes_codec(element, endian, accepts)
        elif isinstance(element, ChoiceType):
            inner = self.choice_codec(element, plan, index, accepts)
        else:
            inner = self.scalar_codec(element.name, endian, accepts)
        count, plus = (None, None)
        if type_.count is not None:
            count, plus = self.length_codec(type_.count, endian, accepts)
        elif type_.plus:
            plus = str(type_.plus)
        tolerances = sorted(accepts & _TOLERANCES)
        if type_.null is None or type_.null >= 0:
            tolerances = [tolerance for tolerance in tolerances if tolerance != "negative_null"]
        measured = any(
            f.measures is not None and f.measures.last is None and f.field.when is None
            for f in plan.fields
        )
        return call(
            self.scope.use("Array"),
            inner,
            count=count,
            plus=plus,
            counted_by=None if type_.counted_by is None else string(type_.counted_by),
            fixed=None if type_.fixed is None else str(type_.fixed),
            length=None
            if type_.length is None
            else self.scalar_codec(type_.length, endian, accepts),
            compressed=self.compression_call(type_.compression, plan, index)
            if type_.compression
            else None,
            closes="True" if measured and index == len(plan.fields) - 1 else None,
            nesting=None if type_.nesting is None else str(type_.nesting),
            until=self.until_condition(type_, plan.fields[index].until),
            at_least=str(type_.at_least) if type_.at_least else None,
            null=None if type_.null is None else str(type_.null),
            version=str(plan.version) if mixed else None,
            accepts=call("frozenset", listing([string(f) for f in tolerances]))
            if tolerances
            else None,
        )

    def until_condition(self, type_: ArrayType, value: Value | None) -> Code | None:
        """Return the ``Until`` call with the condition ``value``, tested after each element, at
        which an array ends; None if ``value`` is None. Import the runtime functions that it calls.
        Raise TypeError if the condition has no Python expression.
        """
        if value is None:
            return None
        expressions = self.scope.expressions()
        text = expressions.text(value)
        self.scope.runtime |= expressions.helpers
        this = "this" if "this." in text else "_"
        return call(
            self.scope.use("Until"), string(str(type_.until)), f"lambda {this}, item: {text}"
        )

    def tags_codec(self, plan: LayoutPlan, accepts: frozenset[str]) -> Code:
        """Return the ``Tags`` call for a section of tagged fields, with the tags that only other
        versions have. ``accepts`` may allow overlong varints (``overlong_varints``), and tags in
        any order, repeated or with a wrong size (``loose_tags``).
        """
        other = plan.other_tags
        return call(
            self.scope.use("Tags"),
            other=str(other) if other else None,
            overlong="True" if "overlong_varints" in accepts else None,
            loose="True" if "loose_tags" in accepts else None,
        )

    def compression_call(self, c: Compression, plan: LayoutPlan, index: int) -> Code:
        """Return the ``Compressed`` call of an array: the field that names the codec, the codecs by
        enum member (None for ``none``; excluded members are left out), the limit, and the variants
        of this version. For a codec that the runtime lacks, report C023 and include it all the
        same. If the field that names the codec has no enum, report C023 and return ``"None"``.
        """
        by = plan.fields[index].codec
        enum = None if by is None else by.type.enum
        if enum is None:
            self.scope.report_unsupported("what names a codec must be of an enum", plan.layout.span)
            return "None"
        name = self.scope.refer(enum, class_name(enum))
        codecs: list[tuple[str, Code]] = []
        for value in self.plan.model.enums[enum].values:
            if value.name in c.excluded:
                continue
            if value.name != "none" and value.name not in CODECS:
                known = ", ".join(sorted(CODECS))
                self.scope.report_unsupported(
                    f'no codec is called "{value.name}"', value.span, f"known: {known}"
                )
            codec = "None" if value.name == "none" else string(value.name)
            codecs.append((f"{name}.{value.name.upper()}", codec))
        variants: list[tuple[str, Code]] = []
        for codec_name, versions, write, read in c.variants:
            if versions is None or plan.version in versions:
                pair = Call("", (("", string(write)), ("", string(read))))
                variants.append((string(codec_name), pair))
        return call(
            self.scope.use("Compressed"),
            self.scope.function(by) or "None",
            mapping(codecs),
            limit=str(c.limit),
            variants=mapping(variants) if variants else None,
        )
