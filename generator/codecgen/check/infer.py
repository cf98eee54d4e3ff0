"""Types of expressions: what a path names, and whether two parts fit together."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.diagnostics import Diagnostic
from codecgen.schema.expression import Binary, EndOf, Expression, If, Node, Not, Null, Number, Path
from codecgen.schema.lookup import exists_in, field_spans, members
from codecgen.schema.model import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Field,
    Layout,
    Model,
    Reference,
    ScalarType,
    Since,
    Span,
    StructType,
)
from codecgen.spans import expression_span, hint


@dataclass(frozen=True, slots=True)
class Type:
    """``kind``: int, float, bool, enum, bytes, text, uuid, bits, array, layout, or null. ``nullable``: may be null."""

    kind: str
    enum: str | None = None
    nullable: bool = False

    def __str__(self) -> str:
        words = {
            "int": "a number",
            "float": "a number with a fraction",
            "bool": "true or false",
            "enum": f'a value of the enum "{self.enum}"',
            "text": "text",
            "uuid": "a uuid",
            "bits": "a set of bits",
            "array": "an array",
            "layout": "a layout",
        }
        return words.get(self.kind, self.kind)


INT, BOOL, NULL = Type("int"), Type("bool"), Type("null", nullable=True)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may name: the fields of ``layout`` in ``version``, as far as ``before`` (an index; None: all).

    ``owner`` is the name of the field that the expression belongs to, ``item`` the element layout in a derived
    value of an array (or the scalar type of its elements). ``since`` is when the owner began to exist. With ``built`` the expression is worked out by the builder,
    which knows all arrays from the start.
    """

    model: Model
    layout: Layout
    version: int | None
    before: int | None = None
    owner: str = ""
    item: Reference | ScalarType | None = None
    built: bool = False
    since: Since | None = None


class _Stop(Exception):
    """A part that has been reported: nothing more can be said about what is around it."""


class Infer:
    """Works out the type of one expression. Findings gather in ``found``, and in ``uses`` what it names that does
    not exist from the first release on: (name, since, path)."""

    def __init__(self, expression: Expression, scope: Scope) -> None:
        self.expression = expression
        self.scope = scope
        self.found: list[Diagnostic] = []
        self.uses: list[tuple[str, Since, Path]] = []

    def type(self, expected_enum: str | None = None) -> Type | None:
        """The type of the whole, or None after a finding."""
        try:
            return self.infer(self.expression.node, expected_enum)
        except _Stop:
            return None

    def span(self, path: Path | None = None) -> Span:
        if path is None:
            return expression_span(self.scope.model, self.expression)
        return expression_span(self.scope.model, self.expression, path.column, len(path.names[0]))

    def use(self, name: str, since: Since | None, path: Path) -> None:
        if since is not None and since.release is not None:
            self.uses.append((name, since, path))

    def fail(self, code: str, message: str, path: Path | None = None, help: str = "") -> _Stop:
        self.found.append(Diagnostic(code, message, self.span(path), help=help))
        return _Stop()

    # ------------------------------------------------------------ nodes

    def infer(self, node: Node, expected: str | None = None) -> Type:
        match node:
            case Number():
                return INT if expected is None else Type("enum", expected)
            case Null():
                return NULL
            case Path():
                if expected is not None and self.is_value(node, expected):
                    return Type("enum", expected)
                return self.path(node)
            case EndOf():
                return self.end_of(node)
            case Not(operand):
                self.condition(operand, "not")
                return BOOL
            case If(condition, then, otherwise):
                return self.branches(condition, then, otherwise, expected)
            case Binary(operator, left, right) if operator in ("and", "or"):
                self.condition(left, operator)
                if self.decided(left) is not (
                    operator == "or"
                ):  # else the right side is never looked at
                    self.condition(right, operator)
                return BOOL
            case Binary(operator, left, right) if operator in _COMPARISONS:
                return self.comparison(operator, left, right)
            case Binary(operator, left, right):
                for side in (left, right):
                    type_ = self.infer(side)
                    if type_.kind != "int":
                        path = side if isinstance(side, Path) else None
                        raise self.fail("C022", f'"{operator}" needs numbers, not {type_}', path)
                return INT

    def condition(self, node: Node, what: str) -> None:
        type_ = self.infer(node)
        if type_.kind != "bool":
            path = node if isinstance(node, Path) else None
            help = "compare it with something: `x != 0`" if type_.kind == "int" else ""
            raise self.fail("C022", f'"{what}" needs true or false, not {type_}', path, help)

    def branches(self, condition: Node, then: Node, otherwise: Node, expected: str | None) -> Type:
        self.condition(condition, "if")
        version = self.decided(condition)
        if version is not None:  # the other branch is about another version
            return self.infer(then if version else otherwise, expected)
        one, other = self.infer(then, expected), self.infer(otherwise, expected)
        return self.joined(one, other)

    def joined(self, one: Type, other: Type) -> Type:
        if one.kind == "null" or other.kind == "null":
            rest = other if one.kind == "null" else one
            return Type(rest.kind, rest.enum, True)
        if (one.kind, one.enum) != (other.kind, other.enum):
            message = f"one branch gives {one}, the other {other}"
            raise self.fail("C022", message)
        return Type(one.kind, one.enum, one.nullable or other.nullable)

    def comparison(self, operator: str, left: Node, right: Node) -> Type:
        for path, word in ((left, right), (right, left)):
            if isinstance(path, Path) and isinstance(word, Path) and len(word.names) == 1:
                enum = self.enum_of(path)
                if enum is not None and self.word(word, enum):
                    if operator not in ("==", "!="):
                        message = f'values of an enum have no order: "{operator}"'
                        raise self.fail("C022", message, word)
                    return BOOL
        one, other = self.infer(left), self.infer(right)
        paths = [side for side in (left, right) if isinstance(side, Path)]
        where = paths[0] if paths else None
        if other.kind == "null" or one.kind == "null":
            self.with_null(operator, one, other, where)
            return BOOL
        kinds = {one.kind, other.kind}
        same = one.kind == other.kind and one.enum == other.enum
        if not (same or kinds in ({"int", "float"}, {"int", "enum"})) or kinds & {
            "array",
            "layout",
            "bits",
        }:
            raise self.fail("C022", f"{one} cannot be compared with {other}", where)
        if operator not in ("==", "!=") and not kinds <= {"int", "float"}:
            wrong = one if one.kind not in ("int", "float") else other
            raise self.fail("C022", f'"{operator}" needs numbers, not {wrong}', where)
        return BOOL

    def with_null(self, operator: str, one: Type, other: Type, where: Path | None) -> None:
        if operator not in ("==", "!="):
            raise self.fail("C022", f'null has no order: "{operator}"', where)
        if one.kind == "null":
            raise self.fail("C022", "null stands on the right of a comparison", where)
        if not one.nullable:
            raise self.fail("C022", "it is never null: the comparison says nothing", where)

    # ------------------------------------------------------------ words of enums

    def is_value(self, path: Path, enum: str) -> bool:
        """Whether a single word is a value of an enum. A field of that name is meant only where it could be."""
        declared = self.scope.model.enums.get(enum)
        if declared is None or len(path.names) != 1:
            return False
        values = [value for value in declared.values if value.name == path.names[0]]
        field = next((f for f in self.scope.layout.fields if f.name == path.names[0]), None)
        if values and field is not None and _enum_of_field(field) == enum:
            message = f'"{path}" is a field and a value of the enum "{enum}"'
            raise self.fail(
                "C022", message, path, f"the field is at {field.span}; give one another name"
            )
        for value in values:
            self.use(value.name, value.since, path)
        return bool(values)

    def word(self, path: Path, enum: str) -> bool:
        """Whether a word beside a field with an enum is one of its values; a finding when it is nothing at all."""
        if self.is_value(path, enum):
            return True
        declared = self.scope.model.enums.get(enum)
        names = {f.name for f in self.scope.layout.fields} | {"item", "version"}
        if declared is None or path.names[0] in names:
            return False
        spans = {value.name: value.span for value in declared.values}
        message = f'"{path}" is neither a value of the enum "{enum}" nor a field'
        raise self.fail("C012", message, path, hint(path.names[0], spans))

    def enum_of(self, path: Path) -> str | None:
        """The enum of what a path names, without findings."""
        silent = Infer(self.expression, self.scope)
        try:
            return silent.path(path).enum
        except _Stop:
            return None

    # ------------------------------------------------------------ paths

    def path(self, path: Path) -> Type:
        name = path.names[0]
        scope = self.scope
        if name == "item":
            return self.item(path)
        index = next((i for i, f in enumerate(scope.layout.fields) if f.name == name), None)
        if index is None and path.names == ("version",) and scope.layout.version_is is not None:
            return INT
        if index is None:
            spans = field_spans(scope.layout)
            raise self.fail(
                "C014", f'"{scope.layout.name}" has no field "{name}"', path, hint(name, spans)
            )
        f = scope.layout.fields[index]
        early = scope.built and isinstance(f.type, ArrayType)
        if scope.before is not None and index >= scope.before and not early:
            message = f'"{name}" is not read yet: it lies after "{scope.owner}"'
            if name == scope.owner:
                message = f'"{name}" cannot depend on itself'
            raise self.fail("C016", message, path, f"it is declared at {f.span}")
        late = f.measures is not None or f.checksum is not None
        if late and scope.before is not None and name != scope.owner:
            message = (
                f'"{name}" is worked out when all fields are there: a builder does not have it here'
            )
            raise self.fail("C016", message, path, f"it is declared at {f.span}")
        if not exists_in(f, scope.version):
            message = f'"{name}" is not there in version {scope.version}'
            help = f"it is in versions {f.versions} ({f.span}); ask for the version first, or give `versions`"
            raise self.fail("C020", message, path, help)
        return self.inside(f, path.names[1:], scope.layout, scope.version, path)

    def inside(
        self, f: Field, names: tuple[str, ...], layout: Layout, version: int | None, path: Path
    ) -> Type:
        """The type of a field, or of what is in it."""
        self.use(f.name, f.since, path)
        nullable = f.when is not None
        match f.type:
            case BitsType() if names:
                return self.bit(f, names, version, path)
            case StructType(ref) if names:
                inner = self.field_in(ref, names, path)
                return Type(inner.kind, inner.enum, inner.nullable or nullable)
            case _ if names:
                raise self.fail("C014", f'there is nothing called "{names[0]}" in "{f.name}"', path)
            case ScalarType():
                return _scalar(f.type, nullable)
            case BitsType():
                return Type("bits", nullable=nullable)
            case BytesType():
                return Type(
                    "text" if f.type.text else "bytes", nullable=nullable or f.type.null is not None
                )
            case ArrayType():
                return Type("array", nullable=nullable)
            case StructType():
                return Type("layout", nullable=nullable)

    def bit(self, f: Field, names: tuple[str, ...], version: int | None, path: Path) -> Type:
        spans = {m.name: m.span for m in members(f)}
        found = [m for m in members(f) if m.name == names[0]]
        if not found or len(names) > 1:
            name = names[0] if not found else names[1]
            raise self.fail("C014", f'"{f.name}" has no member "{name}"', path, hint(name, spans))
        if not exists_in(found[0], version):
            message = f'"{f.name}.{names[0]}" is not there in version {version}'
            help = f"it is in versions {found[0].versions} ({found[0].span})"
            raise self.fail("C020", message, path, help)
        self.use(f"{f.name}.{names[0]}", found[0].since, path)
        return bit_type(found[0])

    def field_in(self, ref: Reference, names: tuple[str, ...], path: Path) -> Type:
        """What a path names in another layout, in any version that it can be there in."""
        layout = self.scope.model.layouts.get(ref.layout)
        if layout is None:
            raise _Stop
        f = next((f for f in layout.fields if f.name == names[0]), None)
        if f is None or (ref.version is not None and not exists_in(f, ref.version)):
            message = f'"{ref}" has no field "{names[0]}"'
            raise self.fail("C014", message, path, hint(names[0], field_spans(layout)))
        return self.inside(f, names[1:], layout, ref.version, path)

    def element(self, element: Reference | ScalarType, names: tuple[str, ...], path: Path) -> Type:
        if isinstance(element, Reference):
            if not names:
                return Type("layout")
            return self.field_in(element, names, path)
        if names:
            raise self.fail(
                "C014", f'the elements are {element.name}: they have no "{names[0]}"', path
            )
        return _scalar(element, False)

    def item(self, path: Path) -> Type:
        if self.scope.item is None:
            message = '"item" is an element of an array: it has a meaning in values derived for elements only'
            raise self.fail("C022", message, path)
        return self.element(self.scope.item, path.names[1:], path)

    def end_of(self, node: EndOf) -> Type:
        if node.end in ("max", "min"):
            message = f'"{node.end}" is about a column of the rows that are written'
            raise self.fail("C022", message, node.array)
        f = next((f for f in self.scope.layout.fields if f.name == node.array.names[0]), None)
        if self.path(node.array).kind != "array" or f is None or not isinstance(f.type, ArrayType):
            raise self.fail(
                "C022", f'"{node.end}" is about arrays, which "{node.array}" is not', node.array
            )
        names = node.path.names if node.path is not None else ()
        found = self.element(f.type.element, names, node.path or node.array)
        return Type(found.kind, found.enum, True)

    # ------------------------------------------------------------ versions

    def decided(self, node: Node) -> bool | None:
        """What a condition about the version says in this version; None for other conditions."""
        layout, version = self.scope.layout, self.scope.version
        if version is None or layout.version_is is None:
            return None
        match node:
            case Not(operand):
                inner = self.decided(operand)
                return None if inner is None else not inner
            case Binary("and" | "or" as operator, left, right):
                sides = (self.decided(left), self.decided(right))
                decisive = operator == "or"
                if decisive in sides:
                    return decisive
                return None if None in sides else not decisive
            case Binary(operator, Path(names), Number(number)) if names in (
                (layout.version_is,),
                ("version",),
            ):
                return {
                    "==": version == number,
                    "!=": version != number,
                    "<": version < number,
                    "<=": version <= number,
                    ">": version > number,
                    ">=": version >= number,
                }.get(operator)
        return None


def bit_type(m: BitMember) -> Type:
    """A single bit without an enum is true or false, several are a number."""
    if m.enum is not None:
        return Type("enum", m.enum)
    return BOOL if m.width == 1 and not m.reserved else INT


def _enum_of_field(f: Field) -> str | None:
    return f.type.enum if isinstance(f.type, ScalarType) else None


def _scalar(type_: ScalarType, nullable: bool) -> Type:
    if type_.enum is not None:
        return Type("enum", type_.enum, nullable)
    kind = {"f64": "float", "bool": "bool", "uuid": "uuid"}.get(type_.name, "int")
    return Type(kind, None, nullable)
