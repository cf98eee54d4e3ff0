"""Prints what fast parsers and fast builders have in common: local variables, expressions and rules."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable

from codecgen.plan import FieldPlan, LayoutPlan, Plan, nodes
from codecgen.plan.layouts import RulePlan
from codecgen.plan.nodes import FieldValue, Value
from codecgen.plan.read_ops import ReadOp, When
from codecgen.schema.scalars import is_integer, is_varint
from codecgen.schema.types import ArrayType, BitsType, ScalarType
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.fast_module import FastModule, Unsupported
from codecgen.targets.python_source import Code, string

RESERVED = frozenset(
    [
        *keyword.kwlist,
        *dir(builtins),
        *["end_of", "look_up", "max_of", "min_of", "minus", "ordered", "plus"],
        *["value_at", "wrap"],
    ]
)
"""Names that no field of a layout gets as its local variable."""


EndOf = FieldValue | nodes.BitValue | nodes.ElementValue
"""What an end or an extreme of an array is taken of."""


class LocalExpressions(PythonExpressions):
    """Prints values of schema expressions as Python expressions on the local variables of a fast
    parser or builder.
    """

    def __init__(
        self, function: FunctionPrinter, *, bits: int | None, full: str | None, item: str
    ) -> None:
        super().__init__(lambda enum: enum, bits=bits)
        self.item = item
        self.function_of = function
        self.full = full
        """The array that is known to have elements."""

    def text(self, value: Value) -> str:
        """Return the Python expression for a value from local variables. Enum values become
        numbers. The first, last, largest or smallest number of an array that has elements is read
        directly. Raise TypeError for nodes without an expression, Unsupported for a field that the
        layout lacks or the function cannot use yet, and for array ends that ``check_end`` refuses.
        """
        match value:
            case nodes.Word(_, _, number):
                return str(number)
            case nodes.ElementValue():
                return self.item
            case nodes.VersionValue(_, field):
                return self.function_of.local(field)
            case nodes.EndValue(end, array, inner):
                if self.is_simple_end(array, inner):
                    return self.function_of.end_text(end, array.field.name, inner.names)  # type: ignore[union-attr]
                self.function_of.check_end(array, inner)
        return super().text(value)

    def code(self, value: Value) -> Code:
        """Return the expression for a value as text or Code. If ``bits`` is set, a sum that cannot
        be null is wrapped by inline arithmetic, a nullable sum by a call of ``wrap``; any other
        value becomes its expression. Raise TypeError or Unsupported if ``text`` does not support a
        part of the value.
        """
        if not isinstance(value, nodes.Sum) or self.bits is None or value.type.nullable:
            return super().code(value)
        bits, self.bits = self.bits, None
        inner = self.sum_text(value)
        self.bits = bits
        half = 1 << (bits - 1)
        return f"(({inner} + {half:#x} & {(1 << bits) - 1:#x}) - {half:#x})"

    def is_simple_end(self, array: FieldValue, inner: EndOf) -> bool:
        """Return whether ``array`` is the layout's own array ``full``, which has elements, and
        ``inner`` is a field that is an integer (of fixed size, varint or VLQ) in every element and
        never absent.
        """
        if array.owner != "own" or array.holders or array.field.name != self.full:
            return False
        return isinstance(inner, FieldValue) and self.function_of.is_number_of_all(array, inner)

    def path_text(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        """Return the expression for a field: the variable of the element or of the layout's field,
        with the other names as subscripts. With ``may_end`` and other names, return a call of
        ``value_at``, which gives None if an outer field is None. Raise Unsupported if the layout
        lacks the field or the function cannot use it yet; fields of elements are not checked.
        """
        if owner == "item":
            start, rest = self.item, names
        else:
            start, rest = self.function_of.local_path(names)
        if may_end and rest:
            return f"{self.use_helper('value_at')}({', '.join((start, *map(string, rest)))})"
        return start + "".join(f"[{string(name)}]" for name in rest)


class FunctionPrinter:
    """Prints what fast parsers and fast builders have in common: local variables, expressions and
    the rules of a layout. The printed Python function raises Irregular, or any other exception, for
    what it leaves to the field-by-field codec.

    Attributes:
        lines: The lines so far.
        locals: The local variables by field; those that hold no field have a key with a blank.
        taken: The names of local variables so far, and those that none may have.
        always_null: Fields that the function handles only if they are null.
        bits_used: Names of words and of their bits that expressions use.
    """

    reserved: frozenset[str]
    """Names that the fields of a layout do not get as local variables."""
    prefixes: tuple[str, ...]
    """What the names of the functions and constants of the module begin with."""

    def __init__(self, plan: Plan, module: FastModule, layout: LayoutPlan) -> None:
        self.plan = plan
        self.module = module
        self.layout = layout
        self.field_names = frozenset(fp.name for fp in layout.values)
        self.bits_used: set[tuple[str, str]] = set()
        self.begin()

    def begin(self) -> None:
        """Discard the printed lines and variables, so that the function is printed anew.
        ``bits_used`` stays.
        """
        self.lines: list[str] = []
        self.indent = 1
        self.locals: dict[str, str] = {}
        self.taken = set(self.reserved)
        self.always_null: set[str] = set()
        self.maxima: dict[tuple[str, str, str], str] = {}

    # ------------------------------------------------------------ printing

    def emit(self, *lines: str) -> None:
        """Append lines."""
        self.lines += [f"{'    ' * self.indent}{line}" for line in lines]

    def refuse_if(self, condition: str) -> None:
        """Print that the function gives up under a condition."""
        self.emit(f"if {condition}:", "    raise Irregular")

    def local(self, name: str) -> str:
        """Return the local variable of a field, the same for each call. It is the field's name,
        after ``field_`` if it begins with one of ``prefixes``, with underscores appended until it
        is unique.
        """
        if name not in self.locals:
            wanted = f"field_{name}" if name.startswith(self.prefixes) else name
            while wanted in self.taken:
                wanted += "_"
            self.locals[name] = wanted
            self.taken.add(wanted)
        return self.locals[name]

    def temporary(self, name: str) -> str:
        """Return the local variable of a value that is no field, the same for each call: ``name``,
        with underscores appended until no variable, field or reserved word has it.
        """
        key = f" {name}"
        if key not in self.locals:
            while name in self.taken or name in self.field_names:
                name += "_"
            self.locals[key] = name
            self.taken.add(name)
        return self.locals[key]

    def local_path(self, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the variable that holds the field ``names[0]``, and the names after it. For a path
        of two names to a bit, return the bit's own variable and ``()``, and note the bit in
        ``bits_used``. Raise Unsupported if the layout lacks the field.
        """
        fp = self.layout.value(names[0])
        if fp is None:
            raise Unsupported
        if isinstance(fp.field.type, BitsType) and len(names) == 2:
            self.bits_used.add((names[0], names[1]))
            return self.temporary(f"{names[0]}_{names[1]}"), ()
        return self.local(names[0]), names[1:]

    def expression(
        self, value: Value, bits: int | None = None, full: str | None = None, item: str = "item"
    ) -> str:
        """Return the Python expression for a value, and import the runtime functions that it calls.
        Sums wrap in ``bits`` bits (None: not at all). ``full`` names an array that is known to have
        elements; ``item`` is the variable of an element. Raise TypeError or Unsupported if a part
        is not supported.
        """
        printer = LocalExpressions(self, bits=bits, full=full, item=item)
        text = printer.text(value)
        self.module.scope.runtime |= printer.helpers
        return text

    def is_number_of_all(self, array: FieldValue, inner: FieldValue) -> bool:
        """Return whether the array can hold only one layout in one version (also as the only case
        of a choice), and ``inner`` is a number directly in it, untagged and without a condition.
        The number is an integer of fixed size, a varint or a VLQ, perhaps with an enum. Return
        False if several layouts or versions are possible, or if the array or the field is missing.
        """
        fp = self.layout.field(array.field.name)
        type_ = None if fp is None else fp.field.type
        if inner.holders or not isinstance(type_, ArrayType) or fp is None:
            return False
        held = self.plan.held_by(type_, self.layout)
        found = held[0].field(inner.field.name) if len(held) == 1 else None
        if found is None or found.when is not None or found.field.tag is not None:
            return False
        if not isinstance(found.field.type, ScalarType):
            return False
        return is_integer(found.field.type.name) or is_varint(found.field.type.name)

    def check_end(self, array: FieldValue, inner: EndOf) -> None:
        """Raise Unsupported if the function cannot take an end or extreme of an array of which it
        is not known that it has elements, each with the number ``inner``.
        """

    def end_text(self, end: str, array: str, names: tuple[str, ...]) -> str:
        """Return the expression for the number ``names[0]`` of the first or last element of
        ``array`` (``end``), which must have elements. For ``max`` and ``min``, return a variable
        and note in ``maxima`` that it is to be assigned before.
        """
        items = self.local(array)
        if end in ("first", "last"):
            return f"{items}[{0 if end == 'first' else -1}][{string(names[0])}]"
        return self.maxima.setdefault(
            (end, array, names[0]), self.temporary(f"{end}_{array}_{names[0]}")
        )

    # ------------------------------------------------------------ conditional fields

    def op(self, op: ReadOp) -> None:
        """Print an operation. Raise Unsupported if such functions lack it."""
        raise NotImplementedError

    def flush(self) -> None:
        """Print the pending values."""
        raise NotImplementedError

    def absent(self, fp: FieldPlan) -> None:
        """Print that a field is not there."""
        raise NotImplementedError

    def save(self) -> Callable[[], None]:
        """Return a function that takes back the lines, variables, imports and constants that are
        added from now on, and resets the indentation. ``bits_used`` and ``always_null`` stay.
        """
        module, count = self.module.snapshot(), len(self.lines)
        variables, taken, indent = dict(self.locals), set(self.taken), self.indent

        def undo() -> None:
            self.module.restore(module)
            del self.lines[count:]
            self.locals, self.taken, self.indent = variables, taken, indent

        return undo

    def conditional(self, op: When) -> None:
        """Print the pending values, then a conditional field, and that it is not there if the
        condition is false. If printing the field raises Unsupported, print that the function raises
        Irregular when the condition holds, and add the field to ``always_null``. Raise Unsupported
        if the condition is not supported, TypeError if the condition or the field has an expression
        that cannot be printed.
        """
        self.flush()
        condition = self.expression(op.condition)
        undo = self.save()
        self.emit(f"if {condition}:")
        self.indent += 1
        try:
            for inner in op.then:
                self.op(inner)
            self.flush()
        except Unsupported:
            undo()
            self.refuse_if(condition)
            self.absent(op.field)
            self.always_null.add(op.field.name)
            return
        self.indent -= 1
        self.emit("else:")
        self.indent += 1
        self.absent(op.field)
        self.indent -= 1

    # ------------------------------------------------------------ rules

    def rules(self) -> None:
        """Print the checks of the layout's rules in order; the function raises Irregular if one is
        broken. Rules about the elements of an array are checked only if it has elements, and not
        printed if the function reads it only as null. Raise Unsupported or TypeError if a rule is
        not supported.
        """
        around: str | None = None
        position = 0
        for rule in self.layout.rules:
            array = rule.elements_of
            if array in self.always_null:
                continue
            if array != around:
                if around is not None:
                    self.insert_maxima(position)
                    self.indent -= 1
                around = array
                if array is not None:
                    self.emit(f"if {self.local(array)}:")
                    self.indent += 1
                    position = len(self.lines)
                    self.maxima = {}
            self.emit(f"# rule {rule.name}")
            if rule.condition is not None:
                text = self.expression(nodes.Negation(rule.condition), bits=64, full=array)
                self.refuse_if(text)
            elif rule.ascending is not None and rule.array is not None:
                fp = rule.array
                value = FieldValue(fp.field, rule.ascending.type)
                if not self.is_number_of_all(value, rule.ascending):
                    self.rule_of_codec(rule, fp)
                    continue
                name = rule.ascending.field.name
                self.emit(f"numbers = [item[{string(name)}] for item in {self.local(fp.name)}]")
                self.refuse_if("sorted(set(numbers)) != numbers")
        if around is not None:
            self.insert_maxima(position)
            self.indent -= 1

    def rule_of_codec(self, rule: RulePlan, array: FieldPlan) -> None:
        """Print that the function raises Irregular if the elements of ``array`` break ``rule``,
        which it tests by the codec's own rule. Raise StopIteration unless ``rule`` is one of the
        layout's rules, the same object.
        """
        position = next(i for i, r in enumerate(self.layout.rules) if r is rule)
        rules = f"{self.module.layout(self.layout)}.related.rules"
        items = f"{{{string(array.name)}: {self.local(array.name)}}}"
        self.refuse_if(f"{rules}[{position}].find_breach({items}) is not None")

    def insert_maxima(self, position: int) -> None:
        """Insert, at index ``position`` of the lines, the assignments of the largest and smallest
        element numbers in ``maxima``, and clear ``maxima``.
        """
        lines = [
            f"{local} = {end}([item[{string(name)}] for item in {self.local(array)}])"
            for (end, array, name), local in self.maxima.items()
        ]
        self.lines[position:position] = [f"{'    ' * self.indent}{line}" for line in lines]
        self.maxima = {}
