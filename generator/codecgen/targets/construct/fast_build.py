"""Fast builders of layouts: for each version one function that builds regular values, printed from its read program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from codecgen.plan import FieldPlan, LayoutPlan, nodes
from codecgen.plan.nodes import Value
from codecgen.plan.read_ops import (
    Absent,
    Bytes,
    Choose,
    Elements,
    Number,
    Padding,
    ReadOp,
    Require,
    Struct,
    Tags,
    When,
)
from codecgen.plan.read_program import read_program
from codecgen.schema.scalars import COMPACT, SCALARS
from codecgen.schema.types import (
    ArrayType,
    BytesType,
    ChoiceType,
    Reference,
    ScalarType,
    StructType,
)
from codecgen.targets.construct.fast_expressions import FieldExpressions
from codecgen.targets.construct.fast_function import RESERVED, FunctionSource
from codecgen.targets.construct.fast_given_values import GivenValues
from codecgen.targets.construct.fast_module import (
    FastFunctions,
    FastModule,
    Unsupported,
    builder_name,
    full_name,
)
from codecgen.targets.construct.fast_ranges import RangeWriter, is_computed, is_varint_length
from codecgen.targets.construct.fast_rules import RulePrinter, print_conditional
from codecgen.targets.construct.fast_struct_runs import PackedRun, struct_code
from codecgen.targets.construct.fast_value_writer import ValueWriter
from codecgen.targets.python_source import docstring, literal, string

_FIELDS = Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
"""The operations that stand for a field: one for each field that is not tagged."""

_RESERVED = RESERVED | {
    *["given", "get", "out", "level", "raw", "item", "size", "numbers", "bits"],
    *["content", "tags", "start", "pack"],
    *["write_varint", "write_vlq", "pack_section", "find_base", "fill_elements"],
    *["refuse_linked", "getter", "no_bits"],
}
"""Names that no field gets as its local variable: those of the printed statements, and of the
functions that they call.
"""
_PREFIXES = ("build_", "pack_", "parse_", "unpack_")
"""What the names of functions and constants of the module begin with."""


class BuildFunction:
    """Prints the Python source of the fast builder of one layout in one version. That function
    raises Irregular, or another exception such as KeyError for an unknown case, for values that it
    leaves to the field-by-field builder. Printing raises Unsupported for layouts that cannot have
    such a function.
    """

    def __init__(self, functions: FastFunctions, module: FastModule, layout: LayoutPlan) -> None:
        self.functions = functions
        self.module = module
        self.layout = layout

    def text(self) -> str:
        """Return the source of the function. Raise Unsupported if the layout is given values, looks
        elements up by number, has a length with ``excess``, or has an operation that fast builders
        lack. Raise TypeError if it has an expression that they cannot print.
        """
        layout = self.layout
        if layout.given or layout.look_ups or any(fp.field.excess for fp in layout.fields):
            raise Unsupported
        bits_used: set[tuple[str, str]] = set()
        for _ in range(2):  # the second time it is known which bits are used
            body = BuildBody(self.functions, self.module, layout, bits_used)
            body.print()
        head = f"def {builder_name(layout)}(given: Any, out: bytearray, level: int | None) -> None:"
        title = f"Append ``{full_name(layout)}``. Raise an exception if the values are not regular."
        return "\n".join([head, docstring(title, indent=4), *_without_unused(body.source.lines)])


class BuildBody:
    """Prints the statements of the fast builder of one layout version, once."""

    def __init__(
        self,
        functions: FastFunctions,
        module: FastModule,
        layout: LayoutPlan,
        bits_used: set[tuple[str, str]],
    ) -> None:
        self.functions = functions
        self.plan = functions.plan
        self.module = module
        self.layout = layout
        self.program = read_program(functions.plan, layout)
        self.names_read = _names_read(layout)
        self.given = GivenValues()
        self.source = FunctionSource(module, layout, _RESERVED, _PREFIXES, bits_used)
        self.run = PackedRun(self.source, module)
        self.expressions = FieldExpressions(self.plan, module, layout, self.source, self.given)
        self.values = ValueWriter(self.plan, module, self.source, self.run, self.expressions)
        self.ranges = RangeWriter(layout, self.given, self.values)

    def print(self) -> None:
        """Print the statements of the function: the check of names, the arrays, the fields with
        their ranges, the checksums and the rules. Raise Unsupported or TypeError if a part is not
        supported, also for padding together with a varint length.
        """
        codec = self.module.layout(self.layout)
        names = self.source.constant("names", f"frozenset({codec}.by_name)")
        self.source.emit(f"get = {self.module.use('getter')}(given, {names})")
        self.ranges.check()
        if any(isinstance(op, Padding) for op in self.program.ops):
            if any(map(is_varint_length, self.layout.fields)):
                raise Unsupported
            self.source.emit("start = len(out)")
        for fp in self.layout.in_order:
            if isinstance(fp.field.type, ArrayType) and fp.when is None:
                self.take_array(fp)
        for fp in self.layout.in_order:
            self.fill_elements(fp)
        for op in self.program.ops:
            if isinstance(op, _FIELDS):
                self.ranges.begin(op.field)
                self.op(op)
                self.ranges.end(op.field)
            elif isinstance(op, Require):
                self.op(op)
        self.run.flush()
        self.ranges.finish()
        RulePrinter(self.source, self.expressions).print_rules()

    def op(self, op: ReadOp) -> None:
        """Print the statements for one field or requirement, and add the field to ``known`` unless
        it is a length or a checksum. Raise Unsupported if the operation is not supported, or is a
        length or checksum with a condition. Raise TypeError for an expression that cannot be
        printed.
        """
        match op:
            case Number(fp, name):
                self.number_field(fp, name)
            case Bytes(fp, type_):
                self.take(fp)
                self.values.data(self.source.local(fp.name), type_, fp.field.endian)
            case Padding(fp, multiple):
                self.run.flush()
                self.source.emit_raise_if(f"get({string(fp.name)}) is not None")
                self.source.emit(
                    f"{self.run.out} += bytes((start - len({self.run.out})) % {multiple})"
                )
            case Require(fp, condition, why):
                self.require(fp, condition, why)
                return
            case When(fp):
                if is_computed(fp):
                    raise Unsupported
                print_conditional(self, op)
            case Absent(fp):
                self.absent(fp)
            case Elements():
                self.elements(op)
            case Struct(fp, held):
                self.struct(fp, held)
            case Choose():
                self.choose(op)
            case Tags():
                self.tags(op)
            case _:
                raise Unsupported
        if not is_computed(op.field):
            self.given.known.add(op.field.name)

    # ------------------------------------------------------------ what is given

    def take(self, fp: FieldPlan) -> None:
        """Print the assignment of the given value of a field to its variable; print nothing for a
        field in ``known``. A missing field gets its constant or default (``absent`` if that is
        null), or None; a given None stays None. The function raises Irregular for a value that is
        not the constant. Raise Unsupported or TypeError if the default cannot be printed.
        """
        target, name = self.source.local(fp.name), string(fp.name)
        const = self.constant_of(fp)
        if fp.name in self.given.known:
            return  # an array, or the base of elements
        if const is not None:
            text = literal(const)
            self.source.emit_raise_if(f"(get({name}, {text}) == {text}) is not True")
            self.source.emit(f"{target} = {text}")
        elif fp.default is None:
            self.source.emit(f"{target} = get({name})")
        elif isinstance(fp.default, nodes.Literal | nodes.Word | nodes.Data | nodes.NullValue):
            enum = fp.field.type.enum if isinstance(fp.field.type, ScalarType) else None
            default = None if isinstance(fp.default, nodes.NullValue) else fp.default
            self.source.emit(
                f"{target} = get({name}, {self.values.default_text(default, enum, str(fp.field.absent))})"
            )
        else:
            self.source.emit(
                f"{target} = get({name}) if {name} in given else {self.expressions.text(fp.default)}"
            )
            if fp.field.absent is not None and fp.default.type.nullable:
                self.source.emit(
                    f"if {target} is None and {name} not in given:",
                    f"    {target} = {fp.field.absent}",
                )

    def constant_of(self, fp: FieldPlan) -> int | str | bytes | None:
        """Return the only value of a field, or None if it can have others."""
        return self.layout.version if fp.field.is_version else fp.field.const

    def take_array(self, fp: FieldPlan) -> None:
        """Print the assignment of a given array to its variable, and add it to ``known``. A missing
        array becomes empty, or None if its default is null. Raise Unsupported for another default.
        """
        name = string(fp.name)
        missing = f"{name}, ()" if fp.default is None else name
        self.source.emit(f"{self.source.local(fp.name)} = get({missing})")
        if fp.default is not None and not isinstance(fp.default, nodes.NullValue):
            raise Unsupported
        self.given.known.add(fp.name)

    def fill_elements(self, fp: FieldPlan) -> None:
        """Print the replacement of the elements of an array by copies with the numbers that
        builders compute, such as offset deltas, and the assignment of the fields relative to which
        these numbers are stored. Print nothing for an array without such numbers. The function
        raises an exception if given numbers contradict each other, or such a field is not known.
        Raise Unsupported if the value of the array was not printed before, or such a field is
        tagged, conditional, or has a default that is no constant.
        """
        fills = self.layout.layout.fills_of(fp.name, self.layout.version)
        if not fills:
            return
        if fp.name not in self.given.known:
            raise Unsupported
        items, bases = self.source.local(fp.name), []
        for fill in fills:
            base = self.layout.field(fill.base)
            if base is None or base.when is not None or base.field.tag is not None:
                raise Unsupported
            if base.default is not None and not isinstance(base.default, nodes.Literal):
                raise Unsupported
            target = self.source.local(fill.base)
            bases.append(target)
            if fill.base in self.given.known:
                continue
            default = "None" if base.default is None else self.expressions.text(base.default)
            parts = f"given, {string(fill.base)}, {items}, {string(fill.given)}, {default}"
            self.source.emit(f"{target} = {self.module.use('find_base')}({parts})")
            self.given.known.add(fill.base)
        known = self.source.constant(
            f"{fp.name}_fills", f"{self.source.field_codec(fp.name)}.fills"
        )
        fill_all = self.module.use("fill_elements")
        self.source.emit(f"{items} = {fill_all}({items}, {known}, ({', '.join(bases)},))")

    # ------------------------------------------------------------ fields

    def number_field(self, fp: FieldPlan, name: str) -> None:
        """Print the writing of a number: zeros that a length or checksum overwrites later, the
        number of elements of an array, or a given value. The function ignores a given length or
        checksum. Print nothing for a varint length, which is written when its range ends. Raise
        Unsupported or TypeError if a count or default is not supported.
        """
        if is_computed(fp):
            self.ranges.reserve(fp, name)
            return
        if fp.field.counts:
            self.count(fp)
        else:
            self.take(fp)
        is_set = bool(fp.field.counts) or self.constant_of(fp) is not None
        self.values.number(fp, name, is_set)

    def count(self, fp: FieldPlan) -> None:
        """Print the assignment of the number of elements of an array, plus its ``plus``, to the
        variable of its count; for null the number that means null. The function raises Irregular if
        several counted arrays differ in number, or a null array has another given count; other
        given counts are ignored. Raise Unsupported if the count has an enum, if an array is tagged
        or missing in this version, or if one of several can be null or absent.
        """
        arrays = [self.layout.field(array) for array in fp.field.counts]
        type_ = fp.field.type
        target = self.source.local(fp.name)
        for i, counted in enumerate(arrays):
            if counted is None or counted.field.tag is not None:
                raise Unsupported
            array = counted.field.type
            if not isinstance(type_, ScalarType) or not isinstance(array, ArrayType):
                raise Unsupported
            if type_.enum is not None:
                raise Unsupported
            if len(arrays) > 1 and (array.null is not None or counted.when is not None):
                raise Unsupported
            items = self.source.local(counted.name)
            plus = f" + {array.plus}" if array.plus else ""
            if counted.name not in self.given.known:
                self.source.emit(f"{items} = get({string(counted.name)})")
                self.given.known.add(counted.name)
            if array.null is not None and counted.when is None:
                self.source.emit(
                    f"if {items} is None:",
                    f"    {target} = get({string(fp.name)})",
                    f"    if {target} is None:",
                    f"        {target} = {array.null}",
                    f"    if type({target}) is not int or {target} != {array.null}:",
                    "        raise Irregular",
                    "else:",
                    f"    {target} = len({items})",
                )
            elif i == 0:
                self.source.emit(f"{target} = len({items}){plus}")
            else:
                self.source.emit_raise_if(f"len({items}){plus} != {target}")

    def require(self, fp: FieldPlan, condition: Value, why: str) -> None:
        """Print that the function raises Irregular if ``condition``, a ``valid`` or ``refuse`` rule
        of a field, does not hold. Print nothing for other reasons ``why`` (constants, versions,
        enums, reserved bits), which are tested where the value is taken or written, nor for lengths
        and checksums. Raise Unsupported or TypeError if the condition cannot be printed.
        """
        if why in ("refuse", "valid") and not is_computed(fp):
            self.source.emit_raise_if(self.expressions.text(nodes.negate(condition)))

    def save(self) -> Callable[[], None]:
        """Return a function that takes back the lines, variables, imports and constants that are
        added from now on, drops pending values, and resets ``out``, ``known`` and the indentation.
        No value may be pending.
        """
        restore, out, known = self.source.save(), self.run.out, set(self.given.known)

        def undo() -> None:
            restore()
            self.run.clear()
            self.run.out, self.given.known = out, known

        return undo

    def absent(self, fp: FieldPlan) -> None:
        """Print that the function raises Irregular if a value other than None is given for a field
        that is not there, and the assignment of None to it and to its bits that expressions use.
        """
        self.source.emit_raise_if(f"get({string(fp.name)}) is not None")
        self.source.emit(f"{self.source.local(fp.name)} = None")
        self.given.known.add(fp.name)
        self.source.emit(*(f"{bit} = None" for bit in self.source.bits_used_of(fp.name)))

    # ------------------------------------------------------------ arrays

    def elements(self, op: Elements) -> None:
        """Print the writing of an array, with its null, count, length and compression. The function
        raises Irregular for a value that is no list or tuple, a wrong or too small number of
        elements, and a number or length that means null. Raise Unsupported for elements that are
        choices, of any version, choose their version themselves, or lack a fast builder. Raise it
        also for limited nesting, ``until``, a count from outside, a default other than null, and a
        codec that no field names.
        """
        fp, type_ = op.field, op.type
        element = type_.element
        if op.any_version or type_.nesting is not None or isinstance(op.element, ChoiceType):
            raise Unsupported
        if fp.until is not None or (isinstance(element, Reference) and self.is_chosen(element)):
            raise Unsupported
        if type_.counted_by in [one.name for one in self.layout.given]:
            raise Unsupported
        target, endian = self.source.local(fp.name), fp.field.endian
        if fp.name not in self.given.known:
            self.take_array(fp)
        self.run.flush()
        number = type_.count or type_.length
        plus = 1 if type_.count == COMPACT.name else 0
        if type_.null is not None:
            self.source.emit(f"if {target} is None:")
            self.source.indent += 1
            if type_.counted_by is None:
                assert number is not None
                self.values.null_length(number, endian, type_.null)
                self.run.flush()
            else:
                self.source.emit("pass")
            self.source.indent -= 1
            self.source.emit("else:")
            self.source.indent += 1
        self.source.emit_raise_if(f"type({target}) not in {self.module.use('SEQUENCES')}")
        if type_.fixed is not None:
            self.source.emit_raise_if(f"len({target}) != {type_.fixed}")
        if type_.at_least:
            self.source.emit_raise_if(f"len({target}) < {type_.at_least}")
        if type_.null is not None and type_.length is None and type_.null >= plus:
            self.source.emit_raise_if(f"len({target}) == {type_.null - plus}")
        if type_.count is not None:
            self.values.length(type_.count, endian, f"len({target})")
            self.run.flush()
        if type_.compression is None and type_.length is None:
            self.loop(target, op)
        else:
            around, self.run.out = self.run.out, self.source.temporary("section")
            self.source.emit(f"{self.run.out} = bytearray()")
            self.loop(target, op)
            if type_.compression is not None:
                self.pack_section(op, target)
            section, self.run.out = self.run.out, around
            if type_.length is not None:
                if type_.null is not None and type_.null >= 0:
                    self.source.emit_raise_if(f"len({section}) == {type_.null}")
                self.values.length(type_.length, endian, f"len({section})")
                self.run.flush()
            self.source.emit(f"{self.run.out} += {section}")
        if type_.null is not None:
            self.source.indent -= 1
        if self.linked(fp):
            self.source.emit(f"{self.module.use('refuse_linked')}({target})")
        self.given.built.add(fp.name)

    def linked(self, fp: FieldPlan) -> bool:
        """Return whether a value is derived for the elements of an array that depends on other
        elements, so that builders compare it with the one that a parsed element had.
        """
        return any(
            value.derived.array == fp.name
            and any(end.array.field.name == fp.name for end in nodes.ends_read(value.value))
            for value in self.layout.derived
        )

    def pack_section(self, op: Elements, target: str) -> None:
        """Print the compression of the bytes of an array by the codec that a field names. The
        function compresses nothing for an empty array whose number of elements is stored or fixed,
        and raises KeyError for an unknown codec. Raise Unsupported unless a field in ``known``, or
        bits of it, name the codec.
        """
        fp = op.field
        if not isinstance(fp.codec, nodes.BitValue | nodes.FieldValue):
            raise Unsupported
        known = self.source.constant(
            f"{fp.name}_compression",
            f"{self.source.field_codec(fp.name)}.codec.compressed",
        )
        call = f"{self.module.use('pack_section')}({known}, {self.expressions.text(fp.codec)}, {self.run.out}, level)"
        if op.type.has_count:
            self.source.emit(f"if {target}:", f"    {self.run.out} = {call}")
        else:
            self.source.emit(f"{self.run.out} = {call}")

    def loop(self, target: str, op: Elements) -> None:
        """Print the writing of the elements in the variable ``target``, one after another, to
        ``out``. Integers that :mod:`struct` has are packed at once; the function raises Irregular
        unless the type of each is int. Raise Unsupported for layouts without a fast builder.
        Choices are not supported: :meth:`elements` refuses them before.
        """
        element, endian = op.element, op.field.field.endian
        if isinstance(element, ScalarType) and element.enum is None:
            scalar = SCALARS[element.name]
            code = struct_code(scalar)
            if scalar.kind == "integer" and not code.endswith("s"):
                self.source.emit_raise_if(f"not {{int}}.issuperset(map(type, {target}))")
                self.module.standard.add("pack")
                order = "<" if endian == "little" else ">"
                self.source.emit(
                    f'{self.run.out} += pack(f"{order}{{len({target})}}{code}", *{target})'
                )
                return
        self.source.emit(f"for item in {target}:")
        self.source.indent += 1
        if isinstance(element, LayoutPlan):
            self.source.emit(f"{self.module.builder(element)}(item, {self.run.out}, level)")
        elif isinstance(element, ScalarType):
            if element.enum is not None:
                name, codec = (
                    f"{op.field.name}_number",
                    f"{self.source.field_codec(op.field.name)}.codec.element",
                )
                self.values.member("item", element.enum, element.only, name, codec)
            self.values.scalar(
                "item", SCALARS[element.name], endian, checked=element.enum is not None
            )
        elif isinstance(element, BytesType):
            self.values.data("item", element, endian)
        self.run.flush()
        self.source.indent -= 1

    # ------------------------------------------------------------ layouts in layouts

    def is_chosen(self, ref: Reference) -> bool:
        """Return whether a given value itself chooses in which version it is written."""
        layout = self.plan.model.layouts[ref.layout]
        return ref.version is None and layout.version_is is not None

    def struct(self, fp: FieldPlan, held: LayoutPlan) -> None:
        """Print the writing of a layout in the place of a field, behind its presence number if it
        has one (null for None, else 1). Raise Unsupported if the layout has no fast builder, may be
        of several versions or chooses its version itself, or if the field has a default.
        """
        type_ = fp.field.type
        if not isinstance(type_, StructType) or len(self.plan.held(type_.layout, self.layout)) > 1:
            raise Unsupported
        if self.is_chosen(type_.layout) or fp.default is not None:
            raise Unsupported
        function = self.module.builder(held)
        self.take(fp)
        self.run.flush()
        target, endian = self.source.local(fp.name), fp.field.endian
        if type_.present is None or type_.null is None:
            self.source.emit(f"{function}({target}, {self.run.out}, level)")
            return
        self.source.emit(f"if {target} is None:")
        self.source.indent += 1
        self.values.null_length(type_.present, endian, type_.null)
        self.run.flush()
        self.source.indent -= 1
        self.source.emit("else:")
        self.source.indent += 1
        self.values.null_length(type_.present, endian, 1)
        self.run.flush()
        self.source.emit(f"{function}({target}, {self.run.out}, level)")
        self.source.indent -= 1

    def choose(self, op: Choose) -> None:
        """Print the writing of the layout that a discriminator selects from a table of fast
        builders. The table lacks cases without a fast builder, and those that choose their version
        themselves: the function raises KeyError for them. Raise Unsupported if the field is no
        choice or has a default, if the discriminator is inside the cases, or if the table is empty.
        Raise it also if cases are choices, or if a key is missing or ambiguous.
        """
        fp, type_ = op.field, op.type
        if not isinstance(type_, ChoiceType) or fp.given is None or any(op.steps):
            raise Unsupported
        if fp.default is not None:
            raise Unsupported
        cases: dict[str, str] = {}
        references = dict(type_.cases)
        for number, held in op.cases:
            if number is None:
                raise Unsupported
            if fp.held_version is not None and held.version is None:
                continue
            key = str(number) if fp.held_version is None else f"({number}, {held.version})"
            if key in cases:
                raise Unsupported
            if self.functions.has_builder(held) and not self.is_chosen(references[number]):
                cases[key] = self.module.builder(held)
        if not cases:
            raise Unsupported
        known = self.source.table(f"{fp.name}_builders", cases)
        key = self.expressions.text(fp.given)
        if fp.held_version is not None:
            key = f"{key}, {self.expressions.text(fp.held_version)}"
        self.take(fp)
        self.run.flush()
        target, endian = self.source.local(fp.name), fp.field.endian
        if type_.length is None:
            self.source.emit(f"{known}[{key}]({target}, {self.run.out}, level)")
            return
        if type_.null is not None:
            self.source.emit(f"if {target} is None:")
            self.source.indent += 1
            self.values.null_length(type_.length, endian, type_.null)
            self.run.flush()
            self.source.indent -= 1
            self.source.emit("else:")
            self.source.indent += 1
        section = self.source.temporary("section")
        self.source.emit(f"{section} = bytearray()", f"{known}[{key}]({target}, {section}, level)")
        if type_.null is not None and type_.null >= 0:
            self.source.emit_raise_if(f"len({section}) == {type_.null}")
        self.values.length(type_.length, endian, f"len({section})")
        self.run.flush()
        self.source.emit(f"{self.run.out} += {section}")
        if type_.null is not None:
            self.source.indent -= 1

    # ------------------------------------------------------------ tagged fields

    def tags(self, op: Tags) -> None:
        """Print the writing of a section of tagged fields: those that are given and do not hold
        their default, and unknown ones. The function raises Irregular if the unknown ones are no
        list or tuple, BuildError if their tags do not ascend or belong to fields. Raise Unsupported
        if a tagged field has a condition or constant, counts elements, or is not supported
        otherwise.
        """
        self.run.flush()
        section, target = string(op.field.name), self.source.local(op.field.name)
        around = self.run.out
        if op.known:
            self.source.emit("tags: dict[int, bytes] = {}")
        for fp, ops in op.known:
            if fp.when is not None or fp.field.counts or fp.field.const is not None:
                raise Unsupported
            self.run.out = self.source.temporary(f"{fp.name}_tag")
            self.source.emit(f"if {string(fp.name)} in given:")
            self.source.indent += 1
            self.source.emit(
                f"{self.source.local(fp.name)} = get({string(fp.name)})",
                f"{self.run.out} = bytearray()",
            )
            self.given.known.add(fp.name)
            self.op(ops[0])
            self.run.flush()
            default = self.source.constant(
                f"{fp.name}_default_bytes",
                f"{self.module.use('default_of')}({self.source.field_codec(fp.name)})",
            )
            self.source.emit(
                f"if {self.run.out} != {default}:",
                f"    tags[{fp.field.tag}] = bytes({self.run.out})",
            )
            self.source.indent -= 1
            if fp.name in self.names_read:
                default = f"{self.module.use('default_value')}({self.source.field_codec(fp.name)})"
                self.source.emit("else:", f"    {self.source.local(fp.name)} = {default}")
        self.run.out = around
        for _, ops in op.known:
            for inner in ops[1:]:
                self.op(inner)
        codec = self.source.constant(
            f"{op.field.name}_section",
            f"{self.source.field_codec(op.field.name)}.codec",
        )
        known, fields = ("tags", "tags or ") if op.known else ("{}", "")
        related = f"{self.module.layout(self.layout)}.related"
        self.source.emit(f"{target} = get({section}, ())")
        self.source.emit_raise_if(f"type({target}) not in {self.module.use('SEQUENCES')}")
        self.source.emit(
            f"if {fields}{target}:",
            f"    {self.run.out} += {codec}.section_bytes({known}, {target}, {related})",
            "else:",
            f"    {self.run.out}.append(0)",
        )


def _without_unused(lines: Sequence[str]) -> list[str]:
    """Return the lines without assignments of None to variables that occur on no other line."""
    whole = Counter(re.findall(r'(?<!["\w])\w+(?!["\w])', "\n".join(lines)))
    nones = [re.fullmatch(r" *(\w+) = None", line) for line in lines]
    return [line for line, none in zip(lines, nones, strict=True) if not none or whole[none[1]] > 1]


def _names_read(layout: LayoutPlan) -> set[str]:
    """Return the names of the layout's fields that its conditions, rule conditions, defaults (also
    of bits), compression codecs, discriminators and given versions read. An ``until`` condition, an
    ``ascending`` rule and the values that a held layout is given do not count.
    """
    values = [rule.condition for rule in layout.rules]
    for fp in layout.fields:
        values += [fp.when, fp.valid, fp.refuse, fp.default, fp.codec, fp.given, fp.held_version]
        values += fp.bit_defaults.values()
    return {
        read.names[0] for value in values if value is not None for read in nodes.fields_read(value)
    }
