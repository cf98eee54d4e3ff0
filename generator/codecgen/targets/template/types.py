"""Types, expressions and dates of the plan as templates see them."""

from __future__ import annotations

from dataclasses import replace

from codecgen.plan import LayoutPlan, Plan
from codecgen.schema import types as field_types
from codecgen.schema.expression import Expression, source
from codecgen.schema.scalars import COMPACT, find_scalar, is_varint
from codecgen.targets.template import view_types as view
from codecgen.targets.template.schema_text import Words

_NOTHING = view.Type(
    kind="",
    name=None,
    size=None,
    signed=False,
    max_size=None,
    enum=None,
    only=None,
    bits=(),
    length=None,
    count=None,
    counted_by=None,
    sized_by=None,
    plus=0,
    fixed=None,
    until=None,
    compact=False,
    present=None,
    null=None,
    rest=False,
    zero_terminated=False,
    padded=False,
    multiple=None,
    element=None,
    layout=None,
    choice=None,
    given=None,
    version=None,
    unknown=False,
    versions=(),
    at_least=0,
    nesting=None,
    compression=None,
)


def type_of(plan: Plan, around: LayoutPlan, type_: field_types.FieldType) -> view.Type:
    """Return the view.Type of a field's type, elements of arrays included; its ``kind`` says which
    attributes are set. ``around`` is the layout version of the field, which determines the version
    of held layouts. All kinds of types are covered; raise AssertionError for an unknown scalar
    name.
    """
    match type_:
        case field_types.ScalarType(name, enum, only):
            return replace(number(name), enum=enum, only=only)
        case field_types.BitsType(base, members):
            return replace(number(base), kind="bits", bits=bits_of(plan, members))
        case field_types.BytesType(length, text, null):
            return replace(
                _NOTHING,
                kind="string" if text else "bytes",
                size=length if isinstance(length, int) else None,
                rest=length == "rest" and type_.sized_by is None,
                sized_by=type_.sized_by,
                plus=type_.plus,
                length=None if type_.prefix is None else number(type_.prefix),
                null=null,
                zero_terminated=length == field_types.ZERO_TERMINATED,
                padded=type_.padded,
            )
        case field_types.PaddingType(multiple):
            return replace(_NOTHING, kind="padding", multiple=multiple)
        case field_types.ArrayType():
            return _array(plan, around, type_)
        case field_types.TagsType():
            return replace(_NOTHING, kind="tags", count=number("uvarint"))
        case field_types.StructType(ref, present, null):
            before = number(present) if present is not None else None
            names = tuple(version_name(p) for p in plan.held_by(type_, around))
            held = replace(_layout(plan, around, ref), present=before, null=null, versions=names)
            return replace(held, version=expression(type_.version))
        case field_types.ChoiceType() as choice:
            return replace(
                _NOTHING,
                kind="choice",
                choice=choice.choice,
                given=expression(choice.given),
                version=expression(choice.version),
                length=number(choice.length) if choice.length is not None else None,
                null=choice.null,
                rest=choice.length is None and choice.unknown,
                unknown=choice.unknown,
            )


def _array(plan: Plan, around: LayoutPlan, array: field_types.ArrayType) -> view.Type:
    """Return the view.Type of an array, of kind ``array``: its element type, how its end or number
    of elements is known, null, and compression.
    """
    element = array.element
    return replace(
        _NOTHING,
        kind="array",
        count=number(array.count) if array.count is not None else None,
        counted_by=array.counted_by,
        plus=array.plus,
        fixed=array.fixed,
        until=expression(array.until),
        length=number(array.length) if array.length is not None else None,
        rest=array.to_the_end,
        element=_layout(plan, around, element)
        if isinstance(element, field_types.Reference)
        else type_of(plan, around, element),
        at_least=array.at_least,
        null=array.null,
        nesting=array.nesting,
        compression=_compression(plan, around, array.compression),
    )


def _layout(plan: Plan, around: LayoutPlan, ref: field_types.Reference) -> view.Type:
    """Return the description of a layout that a field holds."""
    names = tuple(version_name(p) for p in plan.held(ref, around))
    return replace(_NOTHING, kind="layout", layout=ref.layout, versions=names)


def version_name(plan: LayoutPlan) -> str:
    """Return the name of a version of a layout: ``record_batch``, ``message_v0``."""
    return plan.name if plan.version is None else f"{plan.name}_v{plan.version}"


def number(name: str) -> view.Type:
    """Return the view.Type of the scalar type ``name``: its kind, whether it is signed, and a fixed
    ``size`` in bytes, or for a varint ``max_size`` and whether it is compact (a length plus 1).
    Raise AssertionError for an unknown name.
    """
    scalar = find_scalar(name)
    assert scalar is not None
    found = replace(_NOTHING, kind=scalar.kind, name=name, signed=scalar.signed)
    if is_varint(name) or scalar is COMPACT:  # a compact length is an unsigned one of one more
        return replace(found, max_size=scalar.max_size, compact=scalar is COMPACT)
    return replace(found, size=scalar.width)


def bits_of(plan: Plan, members: tuple[field_types.BitMember, ...]) -> tuple[view.Bit, ...]:
    """Return a view.Bit for each member of a field of bits, lowest bit first, with its mask in the
    whole number.
    """
    return tuple(
        view.Bit(
            name=m.name,
            low=m.low,
            high=m.high,
            width=m.width,
            mask=((1 << m.width) - 1) << m.low,
            enum=m.enum,
            only=m.only,
            reserved=m.reserved,
            spelled=Words(plan.spelling(m.name, m.spelled)),
            doc=Words(m.doc),
            since=since(plan, m.since),
        )
        for m in sorted(members, key=lambda m: m.low)
    )


def _compression(
    plan: Plan, around: LayoutPlan, c: field_types.Compression | None
) -> view.Compression | None:
    """Return the view.Compression of an array: the expression that names the codec, the allowed
    codecs, the variants that apply to the version of ``around``, and the limit in bytes. Return
    None if ``c`` is None.
    """
    by = expression(c.by) if c is not None else None
    if c is None or by is None:
        return None
    names = [v.name for v in plan.model.enums[c.enum].values]
    codecs = tuple(name for name in names if name not in c.excluded)
    variants = tuple(
        view.Variant(codec, read, written)
        for codec, versions, written, read in c.variants
        if versions is None or around.version in versions
    )
    return view.Compression(by, c.enum, codecs, variants, c.limit)


def expression(found: Expression | None) -> view.Expression | None:
    """Return the view.Expression of an expression: its text in the schema language, and the paths
    of fields in it, each once. Return None if ``found`` is None.
    """
    if found is None:
        return None
    names = tuple(dict.fromkeys(str(path) for path in found.paths()))
    return view.Expression(source(found.node), names)


def since(plan: Plan, found: field_types.Since | None) -> view.Since | None:
    """Return the view.Since of a ``since``: its release (None if it names documents only), and its
    documents with labels such as ``KIP-98``, and web addresses if the manifest has them. Return
    None if ``found`` is None.
    """
    if found is None:
        return None
    links = plan.manifest.links
    return view.Since(
        found.release,
        tuple(
            view.Source(
                kind,
                n,
                f"{kind.upper()}-{n}",
                Words(links[kind].replace("{}", str(n))) if kind in links else None,
            )
            for kind, numbers in found.references
            for n in numbers
        ),
    )
