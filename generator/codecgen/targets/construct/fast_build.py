"""Fast builders of layouts: for each version one function that builds regular values, printed from its read program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from codecgen.plan import FieldPlan, LayoutPlan, nodes
from codecgen.plan.layouts import RulePlan
from codecgen.plan.nodes import FieldValue, Value
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
    FieldRange,
    Reference,
    ScalarType,
    StructType,
)
from codecgen.targets.construct.fast_function import EndOf
from codecgen.targets.construct.fast_module import (
    FastModule,
    Unsupported,
    builder_name,
    full_name,
    short_name,
)
from codecgen.targets.construct.fast_printer import struct_code
from codecgen.targets.construct.fast_writer import WritePrinter
from codecgen.targets.python_source import docstring, literal, string

if TYPE_CHECKING:
    from codecgen.targets.construct.fast_modules import FastModules

_FIELDS = Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
"""The operations that stand for a field: one for each field that is not tagged."""


class BuildFunction(WritePrinter):
    """Prints the Python source of the fast builder of one layout in one version. That function
    raises Irregular, or another exception such as KeyError for an unknown case, for values that it
    leaves to the field-by-field builder. Printing raises Unsupported for layouts that cannot have
    such a function.

    Attributes:
        ranges: The ranges that lengths measure and checksums cover.
        varint_lengths: The lengths of variable size.
        known: The fields that have their value: expressions cannot use others.
        built: The arrays whose elements are written.
        opened: The varints whose ranges are open, the innermost last, each with the variable of
            the bytes around its range.
    """

    def __init__(self, modules: FastModules, module: FastModule, layout: LayoutPlan) -> None:
        self.modules = modules
        self.program = read_program(modules.plan, layout)
        self.names_read = _names_read(layout)
        super().__init__(modules.plan, module, layout)
        self.ranges = tuple(self.iterate_ranges())
        self.varint_lengths = [
            m for m in layout.in_order if m.measures is not None and self.is_varint_length(m)
        ]

    def begin(self) -> None:
        """Discard the printed lines, variables and pending values, so that the function is printed
        anew. ``bits_used`` stays.
        """
        super().begin()
        self.known: set[str] = set()
        self.built: set[str] = set()
        self.opened: list[tuple[FieldPlan, str]] = []
        self.buffers: dict[str, str] = {}

    def text(self) -> str:
        """Return the source of the function. Raise Unsupported if the layout is given values, looks
        elements up by number, has a length with ``excess``, or has an operation that fast builders
        lack. Raise TypeError if it has an expression that they cannot print.
        """
        fields = (fp.field for fp in self.layout.fields)
        if self.layout.given or self.layout.look_ups or any(f.excess for f in fields):
            raise Unsupported
        for _ in range(2):  # the second time it is known which bits are used
            self.begin()
            self.body()
        name = builder_name(self.layout)
        head = f"def {name}(given: Any, out: bytearray, level: int | None) -> None:"
        title = f"Append ``{full_name(self.layout)}``. Raise an exception if the values are not regular."
        return "\n".join([head, docstring(title, indent=4), *_without_unused(self.lines)])

    def body(self) -> None:
        """Print the statements of the function: the check of names, the arrays, the fields with
        their ranges, the checksums and the rules. Raise Unsupported or TypeError if a part is not
        supported, also for padding together with a varint length.
        """
        names = self.module.constant(
            f"_{short_name(self.layout)}_names",
            f"frozenset({self.module.layout(self.layout)}.by_name)",
        )
        self.emit(f"get = {self.module.use('getter')}(given, {names})")
        self.check_ranges()
        if any(isinstance(op, Padding) for op in self.program.ops):
            if any(self.is_varint_length(fp) for fp in self.layout.fields):
                raise Unsupported
            self.emit("start = len(out)")
        for fp in self.layout.in_order:
            if isinstance(fp.field.type, ArrayType) and fp.when is None:
                self.take_array(fp)
        for fp in self.layout.in_order:
            self.fill_elements(fp)
        for op in self.program.ops:
            if isinstance(op, _FIELDS):
                self.begin_ranges(op.field)
                self.op(op)
                self.end_ranges(op.field)
            elif isinstance(op, Require):
                self.op(op)
        self.flush()
        self.checksums()
        self.rules()

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
                self.data(self.local(fp.name), type_, fp.field.endian)
            case Padding(fp, multiple):
                self.flush()
                self.refuse_if(f"get({string(fp.name)}) is not None")
                self.emit(f"{self.out} += bytes((start - len({self.out})) % {multiple})")
            case Require(fp, condition, why):
                self.require(fp, condition, why)
                return
            case When(fp):
                if self.is_computed(fp):
                    raise Unsupported
                self.conditional(op)
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
        if not self.is_computed(op.field):
            self.known.add(op.field.name)

    # ------------------------------------------------------------ what is given

    def take(self, fp: FieldPlan) -> None:
        """Print the assignment of the given value of a field to its variable; print nothing for a
        field in ``known``. A missing field gets its constant or default (``absent`` if that is
        null), or None; a given None stays None. The function raises Irregular for a value that is
        not the constant. Raise Unsupported or TypeError if the default cannot be printed.
        """
        target, name = self.local(fp.name), string(fp.name)
        const = self.constant_of(fp)
        if fp.name in self.known:
            return  # an array, or the base of elements
        if const is not None:
            text = literal(const)
            self.refuse_if(f"(get({name}, {text}) == {text}) is not True")
            self.emit(f"{target} = {text}")
        elif fp.default is None:
            self.emit(f"{target} = get({name})")
        elif isinstance(fp.default, nodes.Literal | nodes.Word | nodes.Data | nodes.NullValue):
            enum = fp.field.type.enum if isinstance(fp.field.type, ScalarType) else None
            default = None if isinstance(fp.default, nodes.NullValue) else fp.default
            self.emit(
                f"{target} = get({name}, {self.default_text(default, enum, str(fp.field.absent))})"
            )
        else:
            self.emit(
                f"{target} = get({name}) if {name} in given else {self.expression(fp.default)}"
            )
            if fp.field.absent is not None and fp.default.type.nullable:
                self.emit(
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
        self.emit(f"{self.local(fp.name)} = get({missing})")
        if fp.default is not None and not isinstance(fp.default, nodes.NullValue):
            raise Unsupported
        self.known.add(fp.name)

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
        if fp.name not in self.known:
            raise Unsupported
        items, bases = self.local(fp.name), []
        for fill in fills:
            base = self.layout.field(fill.base)
            if base is None or base.when is not None or base.field.tag is not None:
                raise Unsupported
            if base.default is not None and not isinstance(base.default, nodes.Literal):
                raise Unsupported
            target = self.local(fill.base)
            bases.append(target)
            if fill.base in self.known:
                continue
            default = "None" if base.default is None else self.expression(base.default)
            parts = f"given, {string(fill.base)}, {items}, {string(fill.given)}, {default}"
            self.emit(f"{target} = {self.module.use('find_base')}({parts})")
            self.known.add(fill.base)
        known = self.module.constant(
            f"_{short_name(self.layout)}_{fp.name}_fills", f"{self.field_of(fp)}.fills"
        )
        fill_all = self.module.use("fill_elements")
        self.emit(f"{items} = {fill_all}({items}, {known}, ({', '.join(bases)},))")

    def is_computed(self, fp: FieldPlan) -> bool:
        """Return whether a field is a length or a checksum, whose value is known last."""
        return fp.measures is not None or fp.field.checksum is not None

    def local_path(self, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the variable of the field or bit at the path ``names``, and ``()``. Raise
        Unsupported if the field is not in ``known``, and for a path into a layout, whose given
        values may lack those that a builder fills in.
        """
        if names[0] not in self.known:
            raise Unsupported
        start, rest = super().local_path(names)
        if rest:
            raise Unsupported
        return start, rest

    def check_end(self, array: FieldValue, inner: EndOf) -> None:
        """Raise Unsupported for an array inside a held layout, and for a field of the elements of
        an array in ``built``: given elements may lack what a builder fills in when it writes them.
        """
        if array.holders or (
            array.field.name in self.built and not isinstance(inner, nodes.ElementValue)
        ):
            raise Unsupported

    def is_number_of_all(self, array: FieldValue, inner: FieldValue) -> bool:
        """Return whether all elements of an array are of one layout that always has the field
        ``inner`` as an integer (of fixed size, varint or VLQ), which builders write as it is given.
        Return False for enums, and for numbers that builders set: constants, versions, counts,
        lengths and checksums.
        """
        f = inner.field
        plain = isinstance(f.type, ScalarType) and f.type.enum is None
        settled = f.const is not None or f.is_version or bool(f.counts)
        worked_out = settled or f.measures is not None or f.checksum is not None
        return plain and not worked_out and super().is_number_of_all(array, inner)

    def rule_of_codec(self, rule: RulePlan, array: FieldPlan) -> None:
        """Raise Unsupported: given elements may lack what a builder has filled in."""
        raise Unsupported

    # ------------------------------------------------------------ fields

    def number_field(self, fp: FieldPlan, name: str) -> None:
        """Print the writing of a number: zeros that a length or checksum overwrites later, the
        number of elements of an array, or a given value. The function ignores a given length or
        checksum. Print nothing for a varint length, which is written when its range ends. Raise
        Unsupported or TypeError if a count or default is not supported.
        """
        if fp.measures is not None or fp.field.checksum is not None:
            if not self.is_varint_length(fp):
                place = self.temporary(f"{fp.name}_at")
                self.buffers[place] = self.out
                self.mark(place)
                scalar = SCALARS[name]
                code = struct_code(scalar)
                empty = f"bytes({scalar.width})" if code.endswith("s") else "0"
                self.append_run(empty, code, fp.field.endian)
            return
        if fp.field.counts:
            self.count(fp)
        else:
            self.take(fp)
        settled = bool(fp.field.counts) or self.constant_of(fp) is not None
        self.number(fp, name, settled)

    def count(self, fp: FieldPlan) -> None:
        """Print the assignment of the number of elements of an array, plus its ``plus``, to the
        variable of its count; for null the number that means null. The function raises Irregular if
        several counted arrays differ in number, or a null array has another given count; other
        given counts are ignored. Raise Unsupported if the count has an enum, if an array is tagged
        or missing in this version, or if one of several can be null or absent.
        """
        arrays = [self.layout.field(array) for array in fp.field.counts]
        type_ = fp.field.type
        target = self.local(fp.name)
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
            items = self.local(counted.name)
            plus = f" + {array.plus}" if array.plus else ""
            if counted.name not in self.known:
                self.emit(f"{items} = get({string(counted.name)})")
                self.known.add(counted.name)
            if array.null is not None and counted.when is None:
                self.emit(
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
                self.emit(f"{target} = len({items}){plus}")
            else:
                self.refuse_if(f"len({items}){plus} != {target}")

    def require(self, fp: FieldPlan, condition: Value, why: str) -> None:
        """Print that the function raises Irregular if ``condition``, a ``valid`` or ``refuse`` rule
        of a field, does not hold. Print nothing for other reasons ``why`` (constants, versions,
        enums, reserved bits), which are tested where the value is taken or written, nor for lengths
        and checksums. Raise Unsupported or TypeError if the condition cannot be printed.
        """
        if why in ("refuse", "valid") and not self.is_computed(fp):
            self.refuse_if(self.expression(nodes.negate(condition)))

    def save(self) -> Callable[[], None]:
        """Return a function that takes back the lines, variables, imports and constants that are
        added from now on, drops pending values, and resets ``out``, ``known`` and the indentation.
        No value may be pending.
        """
        restore, out, known = super().save(), self.out, set(self.known)

        def undo() -> None:
            restore()
            self.run, self.integers, self.places = [], [], []
            self.out, self.known = out, known

        return undo

    def absent(self, fp: FieldPlan) -> None:
        """Print that the function raises Irregular if a value other than None is given for a field
        that is not there, and the assignment of None to it and to its bits that expressions use.
        """
        self.refuse_if(f"get({string(fp.name)}) is not None")
        self.emit(f"{self.local(fp.name)} = None")
        self.known.add(fp.name)
        for name, member in sorted(self.bits_used):
            if name == fp.name:
                self.emit(f"{self.local_path((name, member))[0]} = None")

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
        target, endian = self.local(fp.name), fp.field.endian
        if fp.name not in self.known:
            self.take_array(fp)
        self.flush()
        number = type_.count or type_.length
        plus = 1 if type_.count == COMPACT.name else 0
        if type_.null is not None:
            self.emit(f"if {target} is None:")
            self.indent += 1
            if type_.counted_by is None:
                assert number is not None
                self.null_length(number, endian, type_.null)
                self.flush()
            else:
                self.emit("pass")
            self.indent -= 1
            self.emit("else:")
            self.indent += 1
        self.refuse_if(f"type({target}) not in {self.module.use('SEQUENCES')}")
        if type_.fixed is not None:
            self.refuse_if(f"len({target}) != {type_.fixed}")
        if type_.at_least:
            self.refuse_if(f"len({target}) < {type_.at_least}")
        if type_.null is not None and type_.length is None and type_.null >= plus:
            self.refuse_if(f"len({target}) == {type_.null - plus}")
        if type_.count is not None:
            self.length(type_.count, endian, f"len({target})")
            self.flush()
        if type_.compression is None and type_.length is None:
            self.loop(target, op)
        else:
            around, self.out = self.out, self.temporary("section")
            self.emit(f"{self.out} = bytearray()")
            self.loop(target, op)
            if type_.compression is not None:
                self.pack_section(op, target)
            section, self.out = self.out, around
            if type_.length is not None:
                if type_.null is not None and type_.null >= 0:
                    self.refuse_if(f"len({section}) == {type_.null}")
                self.length(type_.length, endian, f"len({section})")
                self.flush()
            self.emit(f"{self.out} += {section}")
        if type_.null is not None:
            self.indent -= 1
        if self.linked(fp):
            self.emit(f"{self.module.use('refuse_linked')}({target})")
        self.built.add(fp.name)

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
        known = self.module.constant(
            f"_{short_name(self.layout)}_{fp.name}_compression",
            f"{self.field_of(fp)}.codec.compressed",
        )
        call = f"{self.module.use('pack_section')}({known}, {self.expression(fp.codec)}, {self.out}, level)"
        if op.type.has_count:
            self.emit(f"if {target}:", f"    {self.out} = {call}")
        else:
            self.emit(f"{self.out} = {call}")

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
                self.refuse_if(f"not {{int}}.issuperset(map(type, {target}))")
                self.module.standard.add("pack")
                order = "<" if endian == "little" else ">"
                self.emit(f'{self.out} += pack(f"{order}{{len({target})}}{code}", *{target})')
                return
        self.emit(f"for item in {target}:")
        self.indent += 1
        if isinstance(element, LayoutPlan):
            self.emit(f"{self.module.builder(element)}(item, {self.out}, level)")
        elif isinstance(element, ScalarType):
            if element.enum is not None:
                name, codec = f"{op.field.name}_number", f"{self.field_of(op.field)}.codec.element"
                self.member("item", element.enum, element.only, name, codec)
            self.scalar("item", SCALARS[element.name], endian, checked=element.enum is not None)
        elif isinstance(element, BytesType):
            self.data("item", element, endian)
        self.flush()
        self.indent -= 1

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
        self.flush()
        target, endian = self.local(fp.name), fp.field.endian
        if type_.present is None or type_.null is None:
            self.emit(f"{function}({target}, {self.out}, level)")
            return
        self.emit(f"if {target} is None:")
        self.indent += 1
        self.null_length(type_.present, endian, type_.null)
        self.flush()
        self.indent -= 1
        self.emit("else:")
        self.indent += 1
        self.null_length(type_.present, endian, 1)
        self.flush()
        self.emit(f"{function}({target}, {self.out}, level)")
        self.indent -= 1

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
            if self.modules.has_builder(held) and not self.is_chosen(references[number]):
                cases[key] = self.module.builder(held)
        if not cases:
            raise Unsupported
        known = self.module.table(f"_{short_name(self.layout)}_{fp.name}_builders", cases)
        key = self.expression(fp.given)
        if fp.held_version is not None:
            key = f"{key}, {self.expression(fp.held_version)}"
        self.take(fp)
        self.flush()
        target, endian = self.local(fp.name), fp.field.endian
        if type_.length is None:
            self.emit(f"{known}[{key}]({target}, {self.out}, level)")
            return
        if type_.null is not None:
            self.emit(f"if {target} is None:")
            self.indent += 1
            self.null_length(type_.length, endian, type_.null)
            self.flush()
            self.indent -= 1
            self.emit("else:")
            self.indent += 1
        section = self.temporary("section")
        self.emit(f"{section} = bytearray()", f"{known}[{key}]({target}, {section}, level)")
        if type_.null is not None and type_.null >= 0:
            self.refuse_if(f"len({section}) == {type_.null}")
        self.length(type_.length, endian, f"len({section})")
        self.flush()
        self.emit(f"{self.out} += {section}")
        if type_.null is not None:
            self.indent -= 1

    # ------------------------------------------------------------ tagged fields

    def tags(self, op: Tags) -> None:
        """Print the writing of a section of tagged fields: those that are given and do not hold
        their default, and unknown ones. The function raises Irregular if the unknown ones are no
        list or tuple, BuildError if their tags do not ascend or belong to fields. Raise Unsupported
        if a tagged field has a condition or constant, counts elements, or is not supported
        otherwise.
        """
        self.flush()
        section, target = string(op.field.name), self.local(op.field.name)
        around = self.out
        if op.known:
            self.emit("tags: dict[int, bytes] = {}")
        for fp, ops in op.known:
            if fp.when is not None or fp.field.counts or fp.field.const is not None:
                raise Unsupported
            self.out = self.temporary(f"{fp.name}_tag")
            self.emit(f"if {string(fp.name)} in given:")
            self.indent += 1
            self.emit(
                f"{self.local(fp.name)} = get({string(fp.name)})", f"{self.out} = bytearray()"
            )
            self.known.add(fp.name)
            self.op(ops[0])
            self.flush()
            default = self.module.constant(
                f"_{short_name(self.layout)}_{fp.name}_default_bytes",
                f"{self.module.use('default_of')}({self.field_of(fp)})",
            )
            self.emit(
                f"if {self.out} != {default}:", f"    tags[{fp.field.tag}] = bytes({self.out})"
            )
            self.indent -= 1
            if fp.name in self.names_read:
                default = f"{self.module.use('default_value')}({self.field_of(fp)})"
                self.emit("else:", f"    {self.local(fp.name)} = {default}")
        self.out = around
        for _, ops in op.known:
            for inner in ops[1:]:
                self.op(inner)
        codec = self.module.constant(
            f"_{short_name(self.layout)}_{op.field.name}_section",
            f"{self.field_of(op.field)}.codec",
        )
        known, fields = ("tags", "tags or ") if op.known else ("{}", "")
        related = f"{self.module.layout(self.layout)}.related"
        self.emit(f"{target} = get({section}, ())")
        self.refuse_if(f"type({target}) not in {self.module.use('SEQUENCES')}")
        self.emit(
            f"if {fields}{target}:",
            f"    {self.out} += {codec}.section_bytes({known}, {target}, {related})",
            "else:",
            f"    {self.out}.append(0)",
        )

    # ------------------------------------------------------------ ranges and checksums

    def is_varint_length(self, fp: FieldPlan) -> bool:
        """Return whether a field is a length of variable size."""
        type_ = fp.field.type
        varint = isinstance(type_, ScalarType) and SCALARS[type_.name].is_variable
        return varint and fp.measures is not None

    def check_ranges(self) -> None:
        """Raise Unsupported for a length or checksum that is tagged or no scalar, a range that
        begins or ends with a tagged field, a varint whose range does not begin right after it, a
        length that measures a varint length before it, and a checksum that counts bytes as zero or
        covers itself. Conditional ones are refused by :meth:`op`.
        """
        fields = self.layout.in_order
        for at, fp in enumerate(fields):
            if self.is_computed(fp) and not isinstance(fp.field.type, ScalarType):
                raise Unsupported
            if self.is_varint_length(fp) and fp.field.checksum is not None:
                raise Unsupported
            for part in (*fp.covers, *(() if fp.measures is None else (fp.measures,))):
                names = [one.name for one in fields]
                if part.first not in names or part.last not in (None, *names):
                    raise Unsupported
                first = names.index(part.first)
                if self.is_varint_length(fp) and first != at + 1:
                    raise Unsupported
                if fp.measures is part and any(map(self.is_varint_length, fields[first : at + 1])):
                    raise Unsupported
            zero = any(part.zero for part in fp.covers)
            if zero or (fp.covers and fp in self.layout.covered(fp)):
                raise Unsupported
        if any(self.is_computed(fp) for fp in self.layout.tagged):
            raise Unsupported

    def iterate_ranges(self) -> Iterator[tuple[FieldPlan, str, FieldRange]]:
        """Yield (length or checksum field, name of the range, range) for each range that a length
        measures or a checksum covers, in field order. Skip ranges of varint lengths. The name is
        that of the field, with ``_0``, ``_1`` and so on if a checksum covers several ranges.
        """
        for fp in self.layout.in_order:
            if fp.measures is not None and not self.is_varint_length(fp):
                yield fp, fp.name, fp.measures
            for i, part in enumerate(fp.covers):
                yield fp, f"{fp.name}_{i}" if len(fp.covers) > 1 else fp.name, part

    def begin_ranges(self, fp: FieldPlan) -> None:
        """Print the start of each range that begins with a field, if any: a new bytearray for the
        bytes that a varint measures, otherwise the assignment of the position to a variable.
        """
        for m in self.varint_lengths:
            if m.measures is not None and m.measures.first == fp.name:
                self.flush()
                self.opened.append((m, self.out))
                self.out = self.temporary(f"{m.name}_bytes")
                self.emit(f"{self.out} = bytearray()")
        for _, name, part in self.ranges:
            if part.first == fp.name:
                place = self.temporary(f"{name}_from")
                self.buffers[place] = self.out
                self.mark(place)

    def end_ranges(self, fp: FieldPlan) -> None:
        """Print the end of each range that ends with a field, if any: a length overwrites its
        zeros, a varint length is written with the bytes that it measures, the end of a checksum's
        range gets a variable. Raise Unsupported if only one end of a range lies in the bytes that a
        varint measures; ranges wholly inside or around these are fine.
        """
        end = self.layout.in_order[-1].name
        ending = [one for one in self.ranges if (one[2].last or end) == fp.name]
        while True:
            for one in reversed(ending):
                if self.buffers.get(self.temporary(f"{one[1]}_from")) == self.out:
                    self.end_range(*one)
                    ending = [other for other in ending if other is not one]
            if not self.opened:
                break
            m, around = self.opened[-1]
            assert m.measures is not None
            if (m.measures.last or end) != fp.name:
                break
            self.opened.pop()
            self.flush()
            measured, self.out = self.out, around
            self.emit(f"{self.local(m.name)} = len({measured})")
            assert isinstance(m.field.type, ScalarType)
            self.varint(self.local(m.name), SCALARS[m.field.type.name])
            self.emit(f"{self.out} += {measured}")
            self.known.add(m.name)
        if ending:
            raise Unsupported

    def end_range(self, fp: FieldPlan, name: str, part: FieldRange) -> None:
        """Print the end of a range: a length overwrites its zeros; for a checksum, the position
        after the range is assigned to a variable.
        """
        if fp.field.checksum is not None and part is not fp.measures:
            self.mark(self.temporary(f"{name}_to"))
            return
        self.flush()
        start = self.temporary(f"{name}_from")
        self.emit(f"{self.local(fp.name)} = len({self.out}) - {start}")
        self.fill_place(fp)

    def fill_place(self, fp: FieldPlan) -> None:
        """Print that the value of a length or checksum, from its variable, overwrites the zeros
        that were written for it, and add the field to ``known``.
        """
        assert isinstance(fp.field.type, ScalarType)
        scalar, endian = SCALARS[fp.field.type.name], fp.field.endian
        target, place = self.local(fp.name), self.temporary(f"{fp.name}_at")
        out, code = self.buffers[place], struct_code(scalar)
        if code.endswith("s"):
            text = self.fixed_text(target, scalar, endian)
            self.emit(f"{out}[{place} : {place} + {scalar.width}] = {text}")
        else:
            pack = self.module.packer(code, endian if scalar.width > 1 else "big", "pack_into")
            self.emit(f"{pack}({out}, {place}, {target})")
        self.known.add(fp.name)

    def checksums(self) -> None:
        """Print the computation of the checksums, inner ones first; each overwrites its zeros.
        Raise Unsupported if a checksum, or a range that it covers, is among the bytes that a varint
        measures.
        """
        for fp in self.layout.checksums():
            parts = []
            for one, name, part in self.ranges:
                if one is fp and part is not fp.measures:
                    start, to = self.temporary(f"{name}_from"), self.temporary(f"{name}_to")
                    if (
                        self.buffers[start] != "out"
                        or self.buffers[self.temporary(f"{fp.name}_at")] != "out"
                    ):
                        raise Unsupported
                    parts.append(f"out[{start}:{to}]")
            compute = self.module.constant(
                f"_{short_name(self.layout)}_{fp.name}",
                f"{self.module.use('checksum_of')}({self.field_of(fp)})",
            )
            covered = parts[0] if len(parts) == 1 else f'b"".join([{", ".join(parts)}])'
            self.emit(f"{self.local(fp.name)} = {compute}({covered})")
            self.fill_place(fp)


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
