"""Codecs of fields as Python: the arguments of ``Field(...)`` in generated modules."""

from __future__ import annotations

from codecgen.plan import LayoutPlan
from codecgen.plan.nodes import Value
from codecgen.runtime.compression import CODECS
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import (
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

_FREEDOMS = {"bytes_after_none", "truncated_tail", "mixed_versions", "negative_null"}
"""The freedoms that are an array's own."""


class FieldCodecs:
    """Prints the codecs of fields for one generated module."""

    def __init__(self, scope: ModuleScope) -> None:
        self.scope = scope
        self.plan = scope.plan

    def codec(self, plan: LayoutPlan, index: int) -> Code:
        f = plan.fields[index].field
        accepts = f.accepts
        match f.type:
            case ScalarType(name, enum, only):
                base = self.scalar(name, f.endian, accepts)
                return base if enum is None else self.enum_field(base, enum, only)
            case BitsType(base_name, members):
                base = self.scalar(base_name, f.endian, accepts)
                bits = [self.bit(m, plan.fields[index].bit_defaults.get(m.name)) for m in members]
                return call(self.scope.use("Bits"), base, *bits)
            case BytesType():
                return self.bytes(f.type, f.endian, accepts)
            case PaddingType(multiple):
                return call(self.scope.use("Padding"), str(multiple))
            case StructType():
                return self.struct(f.type, plan, index, accepts)
            case ChoiceType():
                return self.chosen(f.type, plan, index, accepts)
            case ArrayType():
                return self.array(f.type, plan, index, accepts)
            case TagsType():
                return self.tags(plan, accepts)

    def scalar(self, name: str, endian: str, accepts: frozenset[str]) -> Code:
        order = string("little") if endian == "little" else None
        scalar = SCALARS[name]
        signed = None if scalar.signed else "False"
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
                    overlong="True" if "overlong_varints" in accepts else None,
                )
            case "float":
                return call(self.scope.use(f"Float{scalar.bits}"), endian=order)
            case "bool" | "uuid":
                return call(self.scope.use({"bool": "Boolean", "uuid": "Uuid"}[scalar.kind]))

    def members(self, enum: str, only: tuple[str, ...] | None) -> Code | None:
        if only is None:
            return None
        name = self.scope.refer(enum, class_name(enum))
        return Call("", tuple(("", f"{name}.{value.upper()}") for value in only))

    def enum_field(self, base: Code, enum: str, only: tuple[str, ...] | None) -> Code:
        keep = self.plan.model.enums[enum].keep_unknown
        return call(
            self.scope.use("EnumField"),
            base,
            self.scope.refer(enum, class_name(enum)),
            only=self.members(enum, only),
            keep_unknown="True" if keep else None,
        )

    def bit(self, m: BitMember, default: Value | None) -> Code:
        enum = m.enum
        keep = enum is not None and self.plan.model.enums[enum].keep_unknown
        return call(
            self.scope.use("Bit"),
            string(m.name),
            str(m.low),
            *([] if m.high == m.low else [str(m.high)]),
            enum=None if enum is None else self.scope.refer(enum, class_name(enum)),
            only=None if enum is None else self.members(enum, m.only),
            keep_unknown="True" if keep else None,
            reserved="True" if m.reserved else None,
            default=self.scope.function(default),
        )

    def length(self, name: str, endian: str, accepts: frozenset[str]) -> tuple[Code, str | None]:
        """The codec of a length or a count, and what the written number is larger by."""
        if name == "compact":
            return self.scalar("uvarint", endian, accepts), "1"
        return self.scalar(name, endian, accepts), None

    def bytes(self, type_: BytesType, endian: str, accepts: frozenset[str]) -> Code:
        plus: str | None = None
        if type_.prefix is not None:
            length, plus = self.length(type_.prefix, endian, accepts)
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

    def reference(self, ref: Reference, plan: LayoutPlan) -> Code:
        """The Python name of a layout that stands in another."""
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

    def chosen(
        self, type_: ChoiceType, plan: LayoutPlan, index: int, accepts: frozenset[str]
    ) -> Code:
        """The codec of one of the layouts of a choice."""
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
            else self.scalar(type_.length, fp.field.endian, accepts),
            null=None if type_.null is None else str(type_.null),
            any_negative="True" if negative else None,
            unknown="True" if type_.unknown else None,
        )

    def struct(
        self, type_: StructType, plan: LayoutPlan, index: int, accepts: frozenset[str]
    ) -> Code:
        """The codec of a layout in the place of a field, which may be null."""
        endian = plan.fields[index].field.endian
        if type_.version is None:
            layout = self.reference(type_.layout, plan)
        else:
            name = self.scope.refer(type_.layout.layout, symbol(type_.layout.layout))
            version = self.scope.function(plan.fields[index].held_version)
            layout = call(self.scope.use("Chosen"), f"lambda: {name}", version=version)
        if type_.present is None or type_.null is None:
            return layout
        return call(
            self.scope.use("Nullable"),
            layout,
            present=self.scalar(type_.present, endian, accepts),
            null=str(type_.null),
            any_negative="True" if "negative_null" in accepts and type_.null < 0 else None,
            any_present="True" if "any_present" in accepts else None,
        )

    def array(
        self, type_: ArrayType, plan: LayoutPlan, index: int, accepts: frozenset[str]
    ) -> Code:
        element = type_.element
        endian = plan.fields[index].field.endian
        inner: Code
        mixed = False
        if isinstance(element, Reference):
            inner = self.reference(element, plan)
            held = self.plan.model.layouts[element.layout]
            mixed = (
                held.name == plan.name and held.version_is is not None and element.version is None
            )
        elif isinstance(element, BytesType):
            inner = self.bytes(element, endian, accepts)
        elif isinstance(element, ChoiceType):
            inner = self.chosen(element, plan, index, accepts)
        else:
            inner = self.scalar(element.name, endian, accepts)
        count, plus = (None, None)
        if type_.count is not None:
            count, plus = self.length(type_.count, endian, accepts)
        freedoms = sorted(accepts & _FREEDOMS)
        if type_.null is None or type_.null >= 0:
            freedoms = [freedom for freedom in freedoms if freedom != "negative_null"]
        measured = any(f.measures is not None and f.measures.last is None for f in plan.fields)
        return call(
            self.scope.use("Array"),
            inner,
            count=count,
            plus=plus,
            counted_by=None if type_.counted_by is None else string(type_.counted_by),
            fixed=None if type_.fixed is None else str(type_.fixed),
            length=None if type_.length is None else self.scalar(type_.length, endian, accepts),
            compressed=self.compressed(type_.compression, plan, index)
            if type_.compression
            else None,
            closes="True" if measured and index == len(plan.fields) - 1 else None,
            nesting=None if type_.nesting is None else str(type_.nesting),
            until=self.until(type_, plan.fields[index].until),
            at_least=str(type_.at_least) if type_.at_least else None,
            null=None if type_.null is None else str(type_.null),
            version=str(plan.version) if mixed else None,
            accepts=call("frozenset", listing([string(f) for f in freedoms])) if freedoms else None,
        )

    def until(self, type_: ArrayType, value: Value | None) -> Code | None:
        """The condition for the last element."""
        if value is None:
            return None
        expressions = self.scope.expressions()
        text = expressions.text(value)
        self.scope.runtime |= expressions.helpers
        this = "this" if "this." in text else "_"
        return call(
            self.scope.use("Until"), string(str(type_.until)), f"lambda {this}, item: {text}"
        )

    def tags(self, plan: LayoutPlan, accepts: frozenset[str]) -> Code:
        """The codec of a section of tagged fields."""
        other = plan.other_tags
        return call(
            self.scope.use("Tags"),
            other=str(other) if other else None,
            overlong="True" if "overlong_varints" in accepts else None,
            loose="True" if "loose_tags" in accepts else None,
        )

    def compressed(self, c: Compression, plan: LayoutPlan, index: int) -> Code:
        by = plan.fields[index].codec
        enum = None if by is None else by.type.enum
        if enum is None:
            self.scope.refuse("what names a codec must be of an enum", plan.layout.span)
            return "None"
        name = self.scope.refer(enum, class_name(enum))
        codecs: list[tuple[str, Code]] = []
        for value in self.plan.model.enums[enum].values:
            if value.name in c.excluded:
                continue
            if value.name != "none" and value.name not in CODECS:
                known = ", ".join(sorted(CODECS))
                self.scope.refuse(
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
