"""Resolve expressions: find what each name means and its type, or report a diagnostic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from codecgen.diagnostics import Diagnostic, Span
from codecgen.plan import nodes
from codecgen.plan.narrowing import Facts, decide, learn
from codecgen.plan.nodes import Value
from codecgen.plan.scope import Scope, can_be_null, element_kind, layout_containing
from codecgen.plan.types import BOOL, INT, NULL, Type, bit_type, bytes_type, held_type, scalar_type
from codecgen.schema import expression
from codecgen.schema.expression import (
    Binary,
    EndOf,
    Expression,
    If,
    LookUp,
    Node,
    Not,
    Null,
    Number,
    Path,
)
from codecgen.schema.lookup import exists_in, field_spans, members, value_of, with_reserved_bits
from codecgen.schema.model import Field
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    Element,
    PaddingType,
    Reference,
    ScalarType,
    Since,
)
from codecgen.spans import expression_span, hint

_ITEM = re.compile(r"\bitem\.")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Stop(Exception):
    """Raised after a diagnostic about an expression was recorded, to abandon the expression."""


class Resolver:
    """Resolves one expression: finds what each name means, and its type. Diagnostics collect in
    ``found``; the exception Stop, raised after one, abandons the expression.

    ``uses`` collects names that did not exist from the first release on: (name, since, path).
    """

    def __init__(self, expression: Expression, scope: Scope) -> None:
        self.expression = expression
        self.scope = scope
        self.found: list[Diagnostic] = []
        self.uses: list[tuple[str, Since, Path]] = []
        self.facts = Facts()
        for condition in scope.holds:
            self.facts = learn(self.facts, condition, True)

    def resolve(self, expected_enum: str | None = None) -> Value | None:
        """Return the resolved expression, or None if it is invalid; diagnostics are then in
        ``found``, unless an earlier one covers the cause. A single word is a value of
        ``expected_enum`` if the enum has it, and a field otherwise.
        """
        try:
            return self.resolve_node(self.expression.node, expected_enum)
        except Stop:
            return None

    def span_of(self, path: Path | None = None) -> Span:
        """Return the place of a path in the YAML, or of the whole expression if ``path`` is None."""
        if path is None:
            return expression_span(self.scope.model, self.expression)
        return expression_span(self.scope.model, self.expression, path.column, len(path.names[0]))

    def note_use(self, name: str, since: Since | None, path: Path) -> None:
        """Record in ``uses`` the use of a name at ``path`` that exists since a release; do nothing
        for a name without one.
        """
        if since is not None and since.release is not None:
            self.uses.append((name, since, path))

    def fail(self, code: str, message: str, path: Path | None = None, help: str = "") -> Stop:
        """Record a diagnostic at ``path`` (None: at the whole expression), and return the Stop for
        the caller to raise.
        """
        self.found.append(Diagnostic(code, message, self.span_of(path), help=help))
        return Stop()

    # ------------------------------------------------------------ nodes

    def resolve_node(self, node: Node, expected: str | None = None) -> Value:
        """Return the resolved node. With the enum ``expected``, a number, and a single word that
        the enum has, is its value, also as a branch of ``if``; any other word is a path, as all are
        without ``expected``. Raise Stop after a diagnostic about an unknown name, a wrong type, or
        a value that is also a field of that enum.
        """
        match node:
            case Number(value):
                return nodes.Literal(value, INT if expected is None else Type("enum", expected))
            case expression.Truth(value):
                return nodes.Literal(int(value), BOOL)
            case expression.Data(value):
                return nodes.Data(value)
            case Null():
                return nodes.NullValue()
            case Path():
                single = expected is not None and len(node.names) == 1
                word = self.require_enum_word(node, expected) if single else None  # type: ignore[arg-type]
                return self.resolve_path(node) if word is None else word
            case EndOf():
                return self.resolve_end(node)
            case LookUp():
                return self.resolve_look_up(node)
            case Not(operand):
                return nodes.Negation(self.resolve_condition(operand, "not"))
            case If(condition, then, otherwise):
                return self.resolve_branches(condition, then, otherwise, expected)
            case Binary("and" | "or" as operator, left, right):
                return self.resolve_logical(operator, left, right)
            case Binary(operator, left, right) if operator in _COMPARISONS:
                return self.resolve_comparison(operator, left, right)
            case Binary(operator, left, right):
                one, other = self.resolve_term(operator, left), self.resolve_term(operator, right)
                type_ = INT.or_null(one.type.nullable or other.type.nullable)
                return nodes.Sum(operator, one, other, type_)  # type: ignore[arg-type]

    def resolve_term(self, operator: str, node: Node) -> Value:
        """Return a resolved operand of ``+`` or ``-``. Raise Stop after a diagnostic if it is
        invalid or no integer.
        """
        value = self.resolve_node(node)
        if value.type.kind != "int":
            path = node if isinstance(node, Path) else None
            raise self.fail("C022", f'"{operator}" needs numbers, not {value.type}', path)
        return value

    def resolve_condition(self, node: Node, what: str) -> Value:
        """Return a resolved condition; ``what`` names the construct that needs it. Raise Stop after
        a diagnostic if it is invalid or not boolean.
        """
        value = self.resolve_node(node)
        if value.type.kind != "bool":
            path = node if isinstance(node, Path) else None
            help = "compare it with something: `x != 0`" if value.type.kind == "int" else ""
            raise self.fail("C022", f'"{what}" needs true or false, not {value.type}', path, help)
        return value

    def resolve_logical(self, operator: str, left: Node, right: Node) -> Value:
        """Return ``and`` or ``or`` of two conditions. The right side is resolved with what the left
        one implies. If the version alone makes the left side of ``and`` false or of ``or`` true,
        return the left side, and leave the right one unresolved. Raise Stop after a diagnostic if a
        side is no condition.
        """
        one = self.resolve_condition(left, operator)
        decisive = operator == "or"
        if decide(one) is decisive:  # the right side is never looked at
            return one
        outer = self.facts
        self.facts = learn(outer, one, not decisive)
        other = self.resolve_condition(right, operator)
        self.facts = outer
        return nodes.Logical(operator, one, other)  # type: ignore[arg-type]

    def resolve_branches(
        self, condition: Node, then: Node, otherwise: Node, expected: str | None
    ) -> Value:
        """Return ``if`` with its branches, each resolved with what the condition implies for it;
        single words and numbers there may be values of the enum ``expected``. If the version
        decides the condition, return that branch only, and leave the other one unresolved. Raise
        Stop after a diagnostic if a part is invalid, the condition is not boolean, or the types of
        the branches differ.
        """
        test = self.resolve_condition(condition, "if")
        known = decide(test)
        if known is not None:  # the other branch is about another version
            return self.resolve_node(then if known else otherwise, expected)
        outer = self.facts
        self.facts = learn(outer, test, True)
        one = self.resolve_node(then, expected)
        self.facts = learn(outer, test, False)
        other = self.resolve_node(otherwise, expected)
        self.facts = outer
        return nodes.Conditional(test, one, other, self.join_types(one.type, other.type))

    def join_types(self, one: Type, other: Type) -> Type:
        """Return the common type of two branches, nullable if one is null or nullable. Raise Stop
        after a diagnostic if they differ in kind or enum.
        """
        if one.kind == "null" or other.kind == "null":
            return (other if one.kind == "null" else one).or_null()
        if (one.kind, one.enum) != (other.kind, other.enum):
            raise self.fail("C022", f"one branch gives {one}, the other {other}")
        return one.or_null(other.nullable)

    def resolve_comparison(self, operator: str, left: Node, right: Node) -> Value:
        """Return a comparison with resolved sides. A single word beside a field with an enum is a
        value of that enum. Raise Stop after a diagnostic if the word is unknown, an order is asked
        of enum values, or the sides cannot be compared.
        """
        for path, word, first in ((left, right, True), (right, left, False)):
            if isinstance(path, Path) and isinstance(word, Path) and len(word.names) == 1:
                enum = self.find_enum(path)
                named = None if enum is None else self.require_enum_word(word, enum)
                if named is not None:
                    if operator not in ("==", "!="):
                        message = f'values of an enum have no order: "{operator}"'
                        raise self.fail("C022", message, word, "compare with == or !=")
                    value = self.resolve_path(path)
                    sides = (value, named) if first else (named, value)
                    return nodes.Comparison(operator, *sides)  # type: ignore[arg-type]
        one, other = self.resolve_node(left), self.resolve_node(right)
        paths = [side for side in (left, right) if isinstance(side, Path)]
        where = paths[0] if paths else None
        if NULL.kind in (one.type.kind, other.type.kind):
            self.check_null_comparison(operator, one.type, other.type, where)
        else:
            self.check_comparable(operator, one.type, other.type, where)
        return nodes.Comparison(operator, one, other)  # type: ignore[arg-type]

    def check_comparable(self, operator: str, one: Type, other: Type, where: Path | None) -> None:
        """Raise Stop after a diagnostic at ``where`` unless two types can be compared with
        ``operator``: equal kinds and enums, or a number with a float or enum; only numbers and
        floats with an order; never arrays, layouts or whole bit fields.
        """
        kinds = {one.kind, other.kind}
        same = one.kind == other.kind and one.enum == other.enum
        alike = same or kinds in ({"int", "float"}, {"int", "enum"})
        if not alike or kinds & {"array", "layout", "bits"}:
            help = ""
            if "bits" in kinds and where is not None:
                help = f"name one of its members: `{where}.NAME`"
            elif kinds == {"bool", "int"} and where is not None:
                help = f"write `{where}` or `not {where}` without a number"
            raise self.fail("C022", f"{one} cannot be compared with {other}", where, help)
        if operator not in ("==", "!=") and not kinds <= {"int", "float"}:
            wrong = one if one.kind not in ("int", "float") else other
            raise self.fail("C022", f'"{operator}" needs numbers, not {wrong}', where)

    def check_null_comparison(
        self, operator: str, one: Type, other: Type, where: Path | None
    ) -> None:
        """Raise Stop after a diagnostic at ``where`` if a comparison with null is not ``==`` or
        ``!=``, has null on the left (``one``), or has a left side that is never null.
        """
        if operator not in ("==", "!="):
            message = f'null has no order: "{operator}"'
            raise self.fail("C022", message, where, "compare null with == or !=")
        if one.kind == "null":
            message = "null is on the left of a comparison"
            written = "it on the right" if where is None else f"`{where} {operator} null`"
            raise self.fail("C022", message, where, f"write {written}")
        if not one.nullable:
            what = "the left side" if where is None else f'"{where}"'
            message = f"{what} is never null, so the comparison always has the same result"
            raise self.fail("C022", message, where, "take the comparison out")

    # ------------------------------------------------------------ words of enums

    def find_enum_word(self, path: Path, enum: str) -> nodes.Word | None:
        """Return a path of one word as a value of ``enum``, and record its use, or return None if
        it has more words, or the enum is unknown or has no such value. Raise Stop after a
        diagnostic if a field of the same enum has that name.
        """
        declared = self.scope.model.enums.get(enum)
        if declared is None or len(path.names) != 1:
            return None
        value = next((v for v in declared.values if v.name == path.names[0]), None)
        if value is None:
            return None
        f = value_of(self.scope.layout, path.names[0])
        if f is not None and isinstance(f.type, ScalarType) and f.type.enum == enum:
            message = f'"{path}" is a field and a value of the enum "{enum}"'
            help = f"the field is at {f.span}; give one another name"
            raise self.fail("C022", message, path, help)
        self.note_use(value.name, value.since, path)
        return nodes.Word(enum, value.name, value.value)

    def require_enum_word(self, path: Path, enum: str) -> nodes.Word | None:
        """Return a word that is compared with a field of ``enum`` as its value, or None if it names
        a field, ``item`` or ``version`` instead, or the enum is unknown. Raise Stop after a
        diagnostic if it is neither or ambiguous. Raise Stop alone if a diagnostic already covers
        the enum: the word may be a value of it.
        """
        word = self.find_enum_word(path, enum)
        if word is not None:
            return word
        declared = self.scope.model.enums.get(enum)
        names = {*field_spans(self.scope.layout), "item", "version"}
        if declared is None and path.names[0] not in names and self.scope.model.is_broken(enum):
            raise Stop
        if declared is None or path.names[0] in names:
            return None
        spans = {value.name: value.span for value in declared.values}
        message = f'"{path}" is neither a value of the enum "{enum}" nor a field'
        raise self.fail("C012", message, path, hint(path.names[0], spans))

    def find_enum(self, path: Path) -> str | None:
        """Return the name of the enum that a path has values of, or None if it has none or cannot
        be resolved. Record no diagnostics and no uses.
        """
        found, uses = list(self.found), list(self.uses)
        try:
            return self.resolve_path(path).type.enum
        except Stop:
            return None
        finally:
            self.found, self.uses = found, uses

    # ------------------------------------------------------------ paths

    def resolve_path(self, path: Path) -> Value:
        """Return the field, bit, element (``item``) or version (``version``, or the version field)
        that a path names. Raise Stop after a diagnostic if there is none, the version lacks it, or
        it is not known yet where the expression is evaluated.
        """
        name = path.names[0]
        scope = self.scope
        if name == "item":
            return self.resolve_item(path)
        layout = scope.layout
        index = next((i for i, f in enumerate(layout.fields) if f.name == name), None)
        if index is None and path.names == ("version",) and layout.version_is is not None:
            return nodes.VersionValue(scope.version, layout.version_is)
        given = next((f for f in layout.given if f.name == name), None)
        if given is not None:
            return self.resolve_field(given, path.names[1:], "own", (), {scope.version}, path)
        if index is None:
            raise self.fail_unknown(path)
        f = layout.fields[index]
        self.check_is_read(f, index, path)
        if not exists_in(f, scope.version):
            message = f'"{name}" is not there in version {scope.version}'
            help = f"it is in versions {f.versions} ({f.span}); ask for the version first, or give `versions`"
            raise self.fail("C020", message, path, help)
        if f.is_version and len(path.names) == 1:
            self.note_use(f.name, f.since, path)
            return nodes.VersionValue(scope.version, f.name)
        return self.resolve_field(f, path.names[1:], "own", (), {scope.version}, path)

    def fail_unknown(self, path: Path) -> Stop:
        """Record the diagnostic that the layout has no field, or the text or its repeated lines no
        value, of the first name of a path, and return the Stop to raise.
        """
        name, scope = path.names[0], self.scope
        message = f'"{scope.layout.name}" has no field "{name}"'
        what = "known here"
        if scope.values_of:
            message = f'"{name}" is not a value of "{scope.values_of}"'
        if scope.values_of not in ("", scope.layout.name):
            what = "expressions in repeated lines use values of the same line"
        return self.fail("C014", message, path, hint(name, field_spans(scope.layout), what))

    def check_is_read(self, f: Field, index: int, path: Path) -> None:
        """Raise Stop after a diagnostic if a field lies at or after the limit of the scope, or is a
        length or checksum that builders compute later. Scopes without a limit allow both. Builder
        expressions may use later arrays, and the rules of a length or checksum the field itself.
        """
        scope = self.scope
        early = scope.built and isinstance(f.type, ArrayType)
        if scope.before is not None and index >= scope.before and not early:
            message = f'"{f.name}" comes after "{scope.owner}", so its value is not known yet'
            if f.name == scope.owner:
                message = f'"{f.name}" cannot depend on itself'
            what = "value" if scope.values_of else "field"
            help = f'use a {what} before "{scope.owner}"; "{f.name}" is declared at {f.span}'
            raise self.fail("C016", message, path, help)
        late = f.measures is not None or f.checksum is not None
        if late and scope.before is not None and f.name != scope.owner:
            raise self.fail_late(f, path)

    def fail_late(self, f: Field, path: Path) -> Stop:
        """Record the diagnostic that a length or checksum field is computed too late for this
        expression, and return the Stop to raise.
        """
        late = "is computed from all fields, so a builder does not have it yet"
        help = f'use another field: `measures` or `checksum` gives "{f.name}" its value ({f.span})'
        return self.fail("C016", f'"{f.name}" {late}', path, help)

    def resolve_field(
        self,
        f: Field,
        names: tuple[str, ...],
        owner: nodes.Owner,
        holders: tuple[Field, ...],
        versions: Iterable[int | None],
        path: Path,
        nullable: bool = False,
    ) -> nodes.FieldValue | nodes.BitValue:
        """Return a field, or the bit or field inside it that ``names`` leads to, nullable if it or
        one of its ``holders`` (``nullable``) can be null and it is not known to be present.
        ``versions`` are those that the layout of ``f`` can have, ``owner`` says whose field it is.
        Raise Stop after a diagnostic if nothing has this name, a version lacks the bit, or the
        field is padding.
        """
        self.note_use(f.name, f.since, path)
        versions = tuple(versions)
        nullable = nullable or can_be_null(f, inside=bool(names))
        f = f.in_versions(versions)
        match f.type:
            case holder if names and (ref := layout_containing(holder, names[0])) is not None:
                inner = self.find_held_field(ref, names, path, owner)
                held = self.scope.versions_in(holder, ref)
                nullable = nullable or not all(exists_in(inner, v) for v in held)
                return self.resolve_field(
                    inner, names[1:], owner, (*holders, f), held, path, nullable
                )
            case BitsType():
                type_ = Type("bits")
            case ArrayType() if names:
                message = f'"{f.name}" is an array: "{names[0]}" is a name of its elements'
                help = f"name an element, such as first({f.name}), or list the array in `each` if this is a column of a view"
                raise self.fail("C014", message, path, help)
            case _ if names:
                message = f'there is nothing called "{names[0]}" in "{f.name}"'
                raise self.fail("C014", message, path)
            case ScalarType():
                type_ = scalar_type(f.type)
            case BytesType():
                type_ = bytes_type(f.type).not_null()
            case PaddingType():
                raise self.fail("C022", f'"{f.name}" is padding: it has no value', path)
            case _:
                type_ = held_type(f.type)
        value = nodes.FieldValue(f, type_, owner, holders)
        nullable = nullable and not self.facts.is_present(value)
        value = replace(value, type=type_.or_null(nullable))
        return self.resolve_bit(value, names, versions, path) if names else value

    def resolve_bit(
        self,
        word: nodes.FieldValue,
        names: tuple[str, ...],
        versions: Iterable[int | None],
        path: Path,
    ) -> nodes.BitValue:
        """Return the bit member that ``names``, one name, leads to, with its actual bits if it is
        reserved. Raise Stop after a diagnostic if there is no such member or one of ``versions``
        lacks it.
        """
        f = word.field
        spans = {m.name: m.span for m in members(f)}
        found = next((m for m in members(f) if m.name == names[0]), None)
        if found is None or len(names) > 1:
            name = names[0] if found is None else names[1]
            raise self.fail("C014", f'"{f.name}" has no member "{name}"', path, hint(name, spans))
        for version in versions:
            if not exists_in(found, version):
                message = f'"{f.name}.{names[0]}" is not there in version {version}'
                help = f"it is in versions {found.versions} ({found.span})"
                raise self.fail("C020", message, path, help)
        self.note_use(f"{f.name}.{names[0]}", found.since, path)
        if found.reserved and isinstance(f.type, BitsType):
            there = [m for m in f.type.members if all(exists_in(m, v) for v in versions)]
            found = next((m for m in with_reserved_bits(f.type.base, there) if m.reserved), found)
        return nodes.BitValue(word, found, bit_type(found).or_null(word.type.nullable))

    def find_held_field(
        self, ref: Reference, names: tuple[str, ...], path: Path, owner: nodes.Owner
    ) -> Field:
        """Return the field ``names[0]`` of another layout, in whatever version has it. Raise Stop
        after a diagnostic if the layout lacks it. Do so, too, for a length or checksum that
        builders compute later, unless the scope has no limit or ``owner`` is ``item``. Raise Stop
        alone if the layout is unknown.
        """
        layout = self.scope.model.layouts.get(ref.layout)
        if layout is None:
            raise Stop
        f = value_of(layout, names[0])
        if f is None or (ref.version is not None and not exists_in(f, ref.version)):
            message = f'"{ref}" has no field "{names[0]}"'
            raise self.fail("C014", message, path, hint(names[0], field_spans(layout)))
        late = self.scope.before is not None and owner != "item"  # an element is whole
        if late and (f.measures is not None or f.checksum is not None):
            raise self.fail_late(f, path)
        return f

    def resolve_element(
        self, element: Element, names: tuple[str, ...], owner: nodes.Owner, path: Path
    ) -> nodes.FieldValue | nodes.BitValue | nodes.ElementValue:
        """Return an element of an array, or the field in it that ``names`` leads to, nullable if a
        version of the element lacks it. ``owner`` marks it as the current element (``item``) or one
        at an end (``end``). Raise Stop after a diagnostic if nothing has this name.
        """
        if isinstance(element, Reference) and names:
            f = self.find_held_field(element, names, path, owner)
            versions = self.facts.filter_versions(owner, self.scope.versions_of(element))
            absent = not all(exists_in(f, v) for v in versions)
            there = [v for v in versions if exists_in(f, v)]
            return self.resolve_field(f, names[1:], owner, (), there, path, absent)
        if names:
            message = f'the elements are {element_kind(element)}: they have no "{names[0]}"'
            raise self.fail("C014", message, path)
        if isinstance(element, BytesType):
            return nodes.ElementValue(bytes_type(element), owner)
        if isinstance(element, ScalarType):
            return nodes.ElementValue(scalar_type(element), owner)
        return nodes.ElementValue(Type("layout"), owner)

    def resolve_item(self, path: Path) -> Value:
        """Return the current element, which ``item`` names, or the value inside it that the rest of
        the path names. Raise Stop after a diagnostic if the expression has no element or nothing
        has the name.
        """
        if self.scope.item is None:
            message = '"item" is only allowed in `until`, and in values derived for elements'
            raise self.fail("C022", message, path)
        return self.resolve_element(self.scope.item, path.names[1:], "item", path)

    def resolve_end(self, node: EndOf) -> Value:
        """Return the first, last, largest or smallest element of an array, or a field in it; null
        for an empty array unless the scope excludes it. Raise Stop after a diagnostic if it is no
        array or one from outside, or if ``max`` or ``min`` is not allowed here or not of numbers.
        """
        is_extreme = node.end in ("max", "min")
        if is_extreme and not self.scope.whole:
            message = f'"{node.end}" is only allowed in `rules`, `default` and `write`, where all elements are known'
            raise self.fail("C022", message, node.array)
        array = self.resolve_path(node.array)
        if not isinstance(array, nodes.FieldValue) or not isinstance(array.field.type, ArrayType):
            message = f'"{node.end}" needs an array, and "{node.array}" is not one'
            raise self.fail("C022", message, node.array)
        if array.field.is_given:
            message = f'"{node.array}" is from outside: its elements are looked up by their number'
            raise self.fail("C022", message, node.array, f"write `{node.array}[..]`")
        names = node.path.names if node.path is not None else ()
        value = self.resolve_element(
            array.field.type.element, names, "end", node.path or node.array
        )
        if is_extreme and value.type != INT:
            what = "numbers that may be null" if value.type.nullable else str(value.type)
            raise self.fail("C022", f'"{node.end}" needs numbers, not {what}', node.path)
        there = self.scope.array == array.field.name and not array.holders
        there = there or self.scope.ruled
        type_ = value.type.or_null(not there)
        return nodes.EndValue(node.end, array, value, type_)  # type: ignore[arg-type]

    def resolve_look_up(self, node: LookUp) -> Value:
        """Return the element of an array at a computed index, or a value in it, nullable if the
        array, the index or that value can be null. Raise Stop after a diagnostic if look-ups are
        not allowed here, it is no array, the index is no integer, or nothing has the name.
        """
        if not self.scope.looks_up:
            message = "elements are looked up by their number only in derived values and in columns of views"
            raise self.fail("C022", message, node.array)
        array = self.resolve_path(node.array)
        if not isinstance(array, nodes.FieldValue) or not isinstance(array.field.type, ArrayType):
            message = f'"[" needs an array in front of it, and "{node.array}" is not one'
            raise self.fail("C022", message, node.array)
        index = self.resolve_node(node.index)
        if index.type.kind != "int":
            path = node.index if isinstance(node.index, Path) else node.array
            message = (
                f'an element of "{node.array}" is looked up by its number, not by {index.type}'
            )
            raise self.fail("C022", message, path)
        names = node.path.names if node.path is not None else ()
        value = self.resolve_element(
            array.field.type.element, names, "end", node.path or node.array
        )
        nullable = value.type.nullable or array.type.nullable or index.type.nullable
        type_ = value.type.or_null(nullable)
        text = _ITEM.sub("", expression.source(node.index))
        return nodes.LookUpValue(array, index, value, type_, text)


def as_maximum(path: Expression) -> Expression:
    """Return the path ``array.field`` as ``max(array).field``, so that it is resolved as a field of
    each element. Any other expression is returned unchanged.
    """
    node = path.node
    if not isinstance(node, Path) or len(node.names) != 2:
        return path
    array = Path(node.names[:1], node.column)
    field = Path(node.names[1:], node.column + len(node.names[0]) + 1)
    return replace(path, node=EndOf("max", array, field))


def resolve_expression(
    expression: Expression, scope: Scope, expected_enum: str | None = None
) -> Value:
    """Return the resolved expression of a model that the checks accepted. ``scope`` has the names
    that it may use; a single word is a value of ``expected_enum`` if that has it. Raise ValueError,
    with place and reason, if the expression is invalid, or IndexError if the reason is elsewhere,
    such as an unknown layout.
    """
    resolver = Resolver(expression, scope)
    value = resolver.resolve(expected_enum)
    if value is None:
        raise ValueError(f"{resolver.found[0].span}: {resolver.found[0].message}")
    return value
