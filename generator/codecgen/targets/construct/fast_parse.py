"""Fast parsers of layouts: for each version one function that parses regular bytes, printed from its read program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from codecgen.plan import FieldPlan, LayoutPlan, nodes
from codecgen.plan.nodes import DerivedValue, Value, ends_read
from codecgen.plan.read_ops import (
    Absent,
    Bytes,
    Choose,
    Close,
    Elements,
    Mark,
    Number,
    Open,
    Padding,
    ReadOp,
    Require,
    Struct,
    Tags,
    Verify,
    When,
)
from codecgen.plan.read_program import ReadProgram, read_program
from codecgen.schema.scalars import COMPACT, SCALARS
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
    TagsType,
)
from codecgen.targets.construct.fast_module import (
    FastModule,
    Unsupported,
    array_function_name,
    full_name,
    function_name,
    short_name,
)
from codecgen.targets.construct.fast_printer import ReadPrinter, size_of_code, struct_code
from codecgen.targets.python_source import docstring, string

if TYPE_CHECKING:
    from codecgen.targets.construct.fast_modules import FastModules


class ParseFunction(ReadPrinter):
    """Prints the Python source of the fast parser of one layout in one version. That function
    raises Irregular, or another exception such as KeyError for an unknown enum number, for bytes
    that it leaves to the field-by-field parser. The function of a layout that arrays hold parses
    several of them, so that no element needs a call. Printing raises Unsupported for layouts that
    cannot have such a function.

    Attributes:
        depth: How many layouts and arrays lie in each other, the layout itself included.
        covered: Names of the first and last fields that each checksum covers.
        verified: Checksums that are compared before the bytes that they cover are read.
        decompressed: Variable with the bytes that sections decompressed to so far; None unless there are several.
    """

    def __init__(self, modules: FastModules, module: FastModule, layout: LayoutPlan) -> None:
        self.modules = modules
        self.depth = 1
        self.program = read_program(modules.plan, layout)
        super().__init__(modules.plan, module, layout)

    def text(self) -> str:
        """Return the source of the function. For an element of arrays
        (:meth:`FastModules.is_element`), return a function that parses ``number`` values, and the
        assignment of one that calls it for a single value. Raise Unsupported if the layout is given
        arrays, looks elements up by number, or has an operation that fast parsers lack. Raise
        TypeError if it has an expression that they cannot print.
        """
        if self.layout.look_ups or self.layout.given_arrays:
            raise Unsupported
        is_element = self.modules.is_element(self.layout)
        for _ in range(2):  # the second time it is known which bits are used
            self.begin()
            given = [self.local(fp.name) for fp in self.layout.given]
            if is_element:
                self.array_body()
            else:
                self.body()
                self.emit(f"return {self.temporary('parsed')}, pos")
        parsed = self.parsed_class()
        parameters = ["data: bytes, pos: int, end: int, session: Session"]
        for name, fp in zip(given, self.layout.given, strict=True):
            parameters.append(f"{name}: {self.given_type(fp)}")
        name = function_name(self.layout)
        title = (
            f"Parse ``{full_name(self.layout)}``. Raise an exception if the bytes are not regular."
        )
        if not is_element:
            return self.function_text(name, parameters, parsed, title)
        title = title.replace("Parse", "Parse ``number`` values of")
        of_array, first_of = array_function_name(self.layout), self.module.use("first_of")
        if self.modules.is_linked(self.layout):
            parameters.append(f"place: {self.module.use('InArray')} | None = None")
        text = self.function_text(of_array, ["number: int", *parameters], f"list[{parsed}]", title)
        return f"{text}\n\n\n{name} = {first_of}({of_array})"

    def function_text(self, name: str, parameters: list[str], returned: str, title: str) -> str:
        """Return the source of a function with the printed lines. ``returned`` is the annotation of
        the value; the function also returns the position after it.
        """
        signature = ", ".join(parameters)
        head = f"def {name}({signature}) -> tuple[{returned}, int]:"
        if len(head) > 100:
            head = f"def {name}(\n    {signature}\n) -> tuple[{returned}, int]:"
        return "\n".join([head, docstring(title, indent=4), *self.lines])

    def parsed_class(self) -> str:
        """Return the name of the class of parsed values, and import it."""
        layout = self.layout
        name = self.module.scope.classes[layout.name, layout.version]
        return self.module.refer(layout.name, name)

    def given_type(self, fp: FieldPlan) -> str:
        """Return the annotation of a value that the layout is given."""
        type_ = fp.field.type
        assert isinstance(type_, ScalarType)
        return "bool" if type_.name == "bool" else "int"

    def given_arguments(self, fp: FieldPlan) -> str:
        """Return the values that a field gives to the layout it holds as more arguments of its fast
        parser, each after ``", "``; ``""`` if there are none. Raise Unsupported if a value of an
        enum is neither a field nor bits (for example a constant), or if the layout lacks a field
        that a value needs. Raise TypeError for an expression that cannot be printed.
        """
        out = ""
        for value in fp.gives.values():
            if value.type.enum is not None and not isinstance(
                value, nodes.FieldValue | nodes.BitValue
            ):
                raise Unsupported
            out += f", {self.expression(value)}"
        return out

    def array_body(self) -> None:
        """Print the statements of the function that parses an array: a loop over the elements. One
        call unpacks all elements if they have a fixed size and none has tagged fields. The function
        raises Irregular if they pass ``end``. Raise Unsupported or TypeError as :meth:`body` does.
        """
        self.emit(f"items = {self.module.use('List')}()")
        size = size_of_elements(self.program)
        if size is None:
            self.element_loop("while number > 0:", "number -= 1")
            self.emit("return items, pos")
            return
        self.emit(f"stop = pos + number * {size}")
        if not _has_tags(self.program):
            self.refuse_if("stop > end")
            self.unpacking_loop()
            self.emit("return items, stop")
            return
        last_bytes = f"data[pos + {size - 1} : stop : {size}]"
        self.emit(f"if stop <= end and {last_bytes}.count(0) == number:  # no tagged fields")
        self.indent += 1
        self.unpacking_loop()
        self.emit("return items, stop")
        self.indent -= 1
        self.element_loop("while number > 0:", "number -= 1")
        self.emit("return items, pos")

    def element_loop(self, *head: str) -> None:
        """Print a loop that parses an element, links it to the outer value if the caller passes its
        ``place``, and appends it to ``items``. ``head`` are its first lines. Raise Unsupported or
        TypeError as :meth:`body` does.
        """
        self.emit(head[0])
        self.indent += 1
        self.emit(*head[1:])
        self.body()
        value = self.temporary("parsed")
        if self.modules.is_linked(self.layout):
            set_place = self.module.use("set_place")
            self.emit("if place is not None:", f"    {set_place}({value}, place)")
        self.emit(f"items.append({value})")
        self.indent -= 1

    def unpacking_loop(self) -> None:
        """Print the loop over elements of fixed size without tagged fields, from ``pos`` to
        ``stop``.
        """
        at = len(self.lines)
        self.is_unpacked = True
        self.element_loop("")
        self.is_unpacked = False
        codes = "".join(code for _, code in self.unpacked) + "x" * _has_tags(self.program)
        unpack = self.module.unpacker(codes, self.run_endian or "big", "iter_unpack")
        names = ", ".join(name for name, _ in self.unpacked)
        targets = f"({names},)" if len(self.unpacked) == 1 else names
        self.lines[at] = f"{'    ' * self.indent}for {targets} in {unpack}(data[pos:stop]):"

    def body(self) -> None:
        """Print the statements that parse the layout into the variable ``parsed``: the operations,
        the comparison of checksums, the rules and the value. Raise Unsupported if a length that
        measures a field range is conditional, or if a part is not supported. Raise TypeError for an
        expression that cannot be printed.
        """
        layout = self.layout
        if any(isinstance(op, Open) and op.when is not None for op in self.program.ops):
            raise Unsupported
        self.covered = self.checksum_places()
        if any(isinstance(op, Padding) for op in self.program.ops):
            self.emit("start = pos")
        has_several = len(compressed_arrays(layout)) > 1
        self.decompressed = self.temporary("decompressed") if has_several else None
        if self.decompressed is not None:
            self.emit(f"{self.decompressed} = 0")
        self.begin_links()
        for op in self.program.ops:
            self.op(op)
        self.flush()
        is_closed = bool(self.program.ops) and isinstance(self.program.ops[-1], Close)
        if not self.is_unpacked and not is_closed:
            self.refuse_if("pos > end")
        for fp in layout.fields:
            if fp.covers and fp.name not in self.verified:
                self.verify(fp, self.covered[fp.name])
        self.rules()
        self.result()

    def result(self) -> None:
        """Print the statements that create the parsed value, and link the elements of arrays with
        derived values to it, except arrays in ``places``, which :meth:`loop` links. Raise
        Unsupported if fields follow the section of tagged fields, or as :meth:`linked_arrays` does.
        """
        layout = self.layout
        names = [fp.name for fp in layout.given]
        names += [fp.name for fp in layout.in_order if not _is_tags(fp)]
        for fp in layout.in_order:
            if _is_tags(fp):
                names += [t.name for t in layout.fields if t.field.tag is not None]
                names.append(fp.name)
        in_order = {fp.name: fp for fp in layout.in_order}
        if [n for n in names if n in in_order] != [*in_order]:
            raise Unsupported  # fields follow the section of tagged fields
        value = self.temporary("parsed")
        if not self.places:
            self.emit(f"{value} = {self.parsed_class()}()")  # faster than a copy of a dict
        self.emit(*(f"{value}[{string(name)}] = {self.local(name)}" for name in names))
        for name in self.linked_arrays():
            if name not in self.places and name not in self.always_null:
                items, link_elements = self.local(name), self.module.use("link_elements")
                arguments = f"{items}, {value}, {self.values_of(name)}"
                self.emit(f"if {items}:", f"    {link_elements}({arguments})")

    def number_of_elements(self, element: LayoutPlan, pos: str, end: str) -> str | None:
        """Return the expression for the number of elements from ``pos`` to ``end``, and print that
        the function raises Irregular if bytes would remain, or ``end`` is passed already. Return
        None, and print nothing, if the elements vary in size, mix byte orders, or have a section of
        tagged fields.
        """
        program = read_program(self.plan, element)
        size = None if _has_tags(program) else size_of_elements(program)
        if size is None:
            return None
        self.refuse_if(f"{pos} > {end} or ({end} - {pos}) % {size}")
        return f"({end} - {pos}) // {size}"

    def begin_links(self) -> None:
        """Print the creation of the parsed value and, for each array whose function links its
        elements at once, of their place (``InArray``: the parsed value, and the values derived for
        each element); note the variables in ``places``. Print nothing if there is no such array.
        """
        self.places: dict[str, str] = {}
        for op in self.program.ops:
            if isinstance(op, Elements) and self.links_at_once(op):
                self.places[op.field.name] = self.temporary(f"{op.field.name}_place")
        value, in_array = self.temporary("parsed"), "InArray"
        if self.places:
            self.emit(f"{value} = {self.parsed_class()}()")
            self.module.use(in_array)
        for name, place in self.places.items():
            self.emit(f"{place} = {in_array}({value}, {self.values_of(name)})")

    def links_at_once(self, op: Elements) -> bool:
        """Return whether the function that parses an array links its elements to the outer value.
        Return True if one function parses the whole array, and its elements have derived values,
        none of which depends on other elements.
        """
        name, element = op.field.name, op.element
        if not isinstance(element, LayoutPlan) or not self.modules.is_element(element):
            return False
        derived = [value for value in self.layout.derived if value.derived.array == name]
        return bool(derived) and not any(map(_depends_on_others, derived))

    def values_of(self, array: str) -> str:
        """Define a constant with the values that are derived for each element of an array, and
        return its name.
        """
        return self.module.constant(
            f"_{short_name(self.layout)}_{array}_values",
            f"{self.module.layout(self.layout)}.by_name[{string(array)}].of_each",
        )

    def linked_arrays(self) -> list[str]:
        """Return the names of the arrays of this version whose elements have derived values, each
        once. Raise Unsupported if such a value depends on other elements and the array is not the
        last field.
        """
        out: dict[str, None] = {}
        for value in self.layout.derived:
            array = value.derived.array
            if array is None or self.layout.field(array) is None:
                continue
            out[array] = None
            if _depends_on_others(value) and self.layout.fields[-1].name != array:
                raise Unsupported
        return list(out)

    # ------------------------------------------------------------ operations

    def op(self, op: ReadOp) -> None:
        """Print the statements for one operation of the read program, and note the positions where
        ranges of checksums begin or end. Enum and reserved-bit requirements and checksum operations
        print nothing here. Raise Unsupported if the operation is not supported, TypeError for an
        expression that cannot be printed.
        """
        if isinstance(
            op, Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
        ):
            self.mark_place(op.field, False)
        match op:
            case Number(fp, name):
                self.number(fp, name)
            case Bytes(fp, type_, after):
                self.bytes_field(fp, type_, after)
            case Padding(fp, multiple):
                self.flush()
                self.emit(f"stop = pos + (start - pos) % {multiple}")
                self.refuse_if(f"stop > {self.end} or any(data[pos:stop])")
                self.emit("pos = stop", f"{self.local(fp.name)} = None")
            case Require(fp, condition, why):
                if why not in ("enum", "reserved"):
                    self.require(fp, condition)
            case When():
                self.conditional(op)
            case Absent(fp):
                self.absent(fp)
            case Open(length, _, last):
                self.flush()
                self.open_window(length, last)
            case Close(length):
                self.flush()
                self.refuse_if(f"pos != {self.ends.pop()}")
                self.reaches_end.pop()
            case Mark() | Verify():
                pass  # see :meth:`mark_place`
            case Elements():
                self.elements(op)
            case Struct(fp, held):
                self.struct(fp, held)
            case Choose():
                self.choose(op)
            case Tags():
                self.tags(op)
        if isinstance(
            op, Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
        ):
            self.mark_place(op.field, True)

    def require(self, fp: FieldPlan, condition: Value) -> None:
        """Print a requirement."""
        text = self.expression(nodes.negate(condition))
        self.later(f"if {text}:", "    raise Irregular")

    def save(self) -> Callable[[], None]:
        """Return a function that takes back the lines, variables, imports and constants that are
        added from now on, drops pending values, and resets ``depth``, the windows and the
        indentation. No value may be pending.
        """
        restore, depth, ends = super().save(), self.depth, list(self.ends)

        def undo() -> None:
            restore()
            self.run, self.checks = [], []
            self.depth, self.ends = depth, ends

        return undo

    def absent(self, fp: FieldPlan) -> None:
        """Print the assignment of None to a field and to its bits that expressions use, after the
        pending run of values.
        """
        self.later(f"{self.local(fp.name)} = None")
        for name, member in sorted(self.bits_used):
            if name == fp.name:
                self.later(f"{self.local_path((name, member))[0]} = None")

    # ------------------------------------------------------------ arrays

    def elements(self, op: Elements) -> None:
        """Print the reading of an array with its null test, count and length. The function raises
        Irregular for counts below ``at_least``, and for counts above 63 that exceed the session's
        limit or the bytes left. Raise Unsupported for elements that are choices, of any version,
        without a fast parser or perhaps empty, for limited nesting, and for a length together with
        a count or fixed number.
        """
        fp, type_ = op.field, op.type
        if op.any_version or type_.nesting is not None or isinstance(op.element, ChoiceType):
            raise Unsupported
        if isinstance(op.element, LayoutPlan):
            one = self.modules.depth(op.element)
            if one is None:
                raise Unsupported
            self.depth = max(self.depth, 2 + one)
            if _min_size(op.element) == 0:
                raise Unsupported
        else:
            self.depth = max(self.depth, 2)
            if isinstance(op.element, BytesType) and op.element.length in (0, "rest"):
                raise Unsupported
        target = self.local(fp.name)
        endian = fp.field.endian
        limit = "session.limits.elements"
        number: str | None = None
        null_test: str | None = None
        plus = 0
        is_negative_possible = True
        if type_.fixed is not None:
            self.flush()
            number = str(type_.fixed)
        elif type_.count is not None:
            number = "count"
            if self.is_zigzag(type_.count) and type_.null is None:
                self.unsigned_varint("count", SCALARS[type_.count])
                self.refuse_if("count & 1")
                self.emit("count >>= 1")
                is_negative_possible = False
            else:
                self.length(type_.count, endian, "count")
                self.flush()
            plus = 1 if type_.count == COMPACT.name else 0
            if type_.null is not None:
                null_test = f"count == {type_.null}"
        elif type_.counted_by is not None:
            self.flush()
            number = self.local(type_.counted_by)
            if type_.plus:
                self.emit(f"count = {number} - {type_.plus}")
                number = "count"
            if type_.null is not None:
                null_test = f"{number} == {type_.null}"
        else:
            self.flush()
        if type_.length is not None:
            if null_test is not None or number is not None:
                raise Unsupported
            self.length(type_.length, endian, "size")
            self.flush()
            if type_.null is not None:
                null_test = f"size == {type_.null}"
        if null_test is not None:
            self.emit(f"if {null_test}:", f"    {target} = None", "else:")
            self.indent += 1
        if plus:
            self.emit("count -= 1")
        check: str | None = None
        if type_.fixed is not None:
            check = f"{number} > {limit}" if type_.fixed > 63 else None
        elif number is not None and type_.compression is not None:
            check = f"{number} < {type_.at_least} or {number} > {limit}"
        elif number is not None:
            many = f"{number} > 63 and ({number} > {limit} or {number} > {self.end} - pos)"
            check = f"{number} < {type_.at_least} or ({many})"
            if not is_negative_possible and not type_.at_least:
                check = many
        may_be_empty = type_.fixed is None and type_.at_least == 0 and type_.compression is None
        if check is not None and not may_be_empty:
            self.refuse_if(check)
            check = None
        if type_.length is not None:
            self.emit("within = pos + size")
            self.refuse_if(f"size < 0 or within > {self.end}")
            self.ends.append("within")
        if type_.compression is not None:
            self.compressed(op, target, number)
        else:
            self.loop(target, op, number, "data", "pos", self.end, check)
        if number is None and type_.at_least:
            self.refuse_if(f"len({target}) < {type_.at_least}")
        if number is None:
            self.refuse_if(f"len({target}) > {limit}")
        if type_.length is not None:
            self.refuse_if("pos != within")
            self.ends.pop()
        if null_test is not None:
            self.indent -= 1
        if type_.compression is not None and type_.length is None:
            self.refuse_if(f"pos != {self.end}")  # nothing follows a null or empty array

    def compressed(self, op: Elements, target: str, number: str | None) -> None:
        """Print the reading of an array whose elements may be compressed, from ``pos`` to the end
        of the window, into ``target``. ``number`` is the variable of the element count; if it is 0,
        the array is empty. If ``number`` is None, elements are read to the end of the data. Raise
        Unsupported unless a field or bits of a field name the codec, and unless the elements are
        layouts with a fast parser.
        """
        fp = op.field
        if fp.codec is None:
            raise Unsupported
        known = self.module.constant(
            f"_{short_name(self.layout)}_{fp.name}_compression",
            f"{self.module.layout(self.layout)}.by_name[{string(fp.name)}].codec.compressed",
        )
        if isinstance(fp.codec, nodes.BitValue | nodes.FieldValue):
            by = self.expression(fp.codec)
        else:
            raise Unsupported
        if number is not None:
            self.emit(f"if {number} == 0:", f"    {target} = {self.module.use('List')}()", "else:")
            self.indent += 1
        opened = self.module.use("open_section")
        arguments = f"{known}, {by}, data, pos, {self.end}, session"
        if self.decompressed is not None:
            arguments += f", {self.decompressed}"
        self.emit(f"section, at, stop = {opened}({arguments})")
        if self.decompressed is not None:
            self.emit(f"{self.decompressed} += 0 if section is data else stop")
        self.loop(target, op, number, "section", "at", "stop")
        self.refuse_if("at != stop")
        self.emit(f"pos = {self.end}")
        if number is not None:
            self.indent -= 1

    def loop(
        self,
        target: str,
        op: Elements,
        number: str | None,
        data: str,
        pos: str,
        end: str,
        check: str | None = None,
    ) -> None:
        """Print the reading of elements from the variable ``data``, ``pos`` to ``end``, into the
        list ``target``: ``number`` elements, or up to ``end`` if it is None; an ``until`` condition
        ends the array itself. If the array has elements, the function raises Irregular when
        ``check`` holds. It links elements to the outer value here only if ``places`` has the array.
        Raise Unsupported for layouts without a fast parser, and for elements of a compressed
        section that are not layouts. :meth:`elements` refuses choices before.
        """
        element = op.element
        list_ = self.module.use("List")
        if (
            isinstance(element, ScalarType)
            and element.enum is None
            and number is not None
            and data == "data"
            and SCALARS[element.name].kind in ("integer", "float")
            and not struct_code(SCALARS[element.name]).endswith("s")
        ):
            scalar = SCALARS[element.name]
            if check is not None:
                self.refuse_if(check)
            self.module.standard.add("unpack_from")
            order = "<" if op.field.field.endian == "little" else ">"
            self.emit(
                f'{target} = {list_}(unpack_from(f"{order}{{{number}}}{struct_code(scalar)}", data, pos))',
                f"pos += {number} * {scalar.width}" if scalar.width > 1 else f"pos += {number}",
            )
            return
        place = self.places.get(op.field.name)
        if isinstance(element, LayoutPlan) and self.modules.is_element(element):
            if number is None and op.field.until is None:
                number = self.number_of_elements(element, pos, end)
            if number is not None:
                parse_each = self.module.array_function(element)
                arguments = ", ".join(
                    [number, data, pos, end, "session", *([place] if place else [])]
                )
                call = f"{target}, {pos} = {parse_each}({arguments})"
                if check is None:
                    self.emit(call)
                else:
                    self.emit(f"if {number}:", f"    if {check}:", "        raise Irregular")
                    self.emit(f"    {call}", "else:", f"    {target} = {list_}()")
                return
        given = self.given_arguments(op.field)
        item = self.temporary(f"{op.field.name}_item")
        self.emit(f"{target} = {list_}()")
        if check is not None:
            self.emit(f"if {number}:")
            self.indent += 1
            self.refuse_if(check)
        if op.field.until is not None:
            self.emit("while True:")
        elif number is None:
            self.emit(f"while {pos} < {end}:")
        else:
            self.emit(f"for _ in range({number}):")
        self.indent += 1
        self.ends.append(end)
        if isinstance(element, LayoutPlan):
            function = self.module.function(element)
            self.emit(f"{item}, {pos} = {function}({data}, {pos}, {end}, session{given})")
            if place is not None:
                self.emit(f"{self.module.use('set_place')}({item}, {place})")
        elif data != "data":
            raise Unsupported
        elif isinstance(element, ScalarType):
            self.scalar(item, SCALARS[element.name], op.field.field.endian)
            self.flush()
            if element.enum is not None:
                self.emit(f"{item} = {self.member(item, element.enum, element.only)}")
        elif isinstance(element, BytesType):
            self.data(item, element, op.field.field.endian)
            self.flush()
        self.ends.pop()
        self.emit(f"{target}.append({item})")
        if op.field.until is not None:
            self.emit(f"if {self.expression(op.field.until, item=item)}:", "    break")
        self.indent -= 1
        if check is not None:
            self.indent -= 1

    # ------------------------------------------------------------ layouts in layouts

    def struct(self, fp: FieldPlan, held: LayoutPlan) -> None:
        """Print the reading of a layout in the place of a field. If the type has a presence number
        with a null, read it first: null gives None, 1 the layout, and the function raises Irregular
        for others. Raise Unsupported if the layout has no fast parser or may be of several
        versions.
        """
        type_ = fp.field.type
        if not isinstance(type_, StructType) or len(self.plan.held(type_.layout, self.layout)) > 1:
            raise Unsupported
        function = self.module.function(held)
        self.depth = max(self.depth, 1 + (self.modules.depth(held) or 0))
        target = self.local(fp.name)
        given = self.given_arguments(fp)
        if type_.present is None or type_.null is None:
            self.flush()
            self.emit(f"{target}, pos = {function}(data, pos, {self.end}, session{given})")
            return
        self.scalar("size", SCALARS[type_.present], fp.field.endian)
        self.flush()
        self.emit(
            f"if size == {type_.null}:",
            f"    {target} = None",
            "elif size == 1:",
            f"    {target}, pos = {function}(data, pos, {self.end}, session{given})",
            "else:",
            "    raise Irregular",
        )

    def choose(self, op: Choose) -> None:
        """Print the reading of the layout that a discriminator selects from a table of fast
        parsers. The function raises KeyError for cases without a fast parser and for unknown ones,
        Irregular if the layout does not fill its length. Raise Unsupported if the field is no
        choice, if the discriminator is inside the cases, or if no case has a fast parser. Raise it
        also if cases are choices or are given values, or if a key is missing or ambiguous.
        """
        fp, type_ = op.field, op.type
        if not isinstance(type_, ChoiceType) or fp.given is None or any(op.steps):
            raise Unsupported
        cases: dict[str, str] = {}
        for number, held in op.cases:
            depth = self.modules.depth(held)
            if held.given:
                raise Unsupported
            if fp.held_version is not None and held.version is None:
                continue
            key = str(number) if fp.held_version is None else f"({number}, {held.version})"
            if key in cases or number is None:
                raise Unsupported
            if depth is not None:
                cases[key] = self.module.function(held)
                self.depth = max(self.depth, 1 + depth)
        if not cases:
            raise Unsupported
        known = self.module.table(f"_{short_name(self.layout)}_{fp.name}_parsers", cases)
        key = self.expression(fp.given)
        if fp.held_version is not None:
            key = f"{key}, {self.expression(fp.held_version)}"
        target = self.local(fp.name)
        end = self.end
        if type_.length is not None:
            self.length(type_.length, fp.field.endian)
            self.flush()
            if type_.null is not None:
                self.emit(f"if size == {type_.null}:", f"    {target} = None", "else:")
                self.indent += 1
            end = self.temporary("within")
            self.emit(f"{end} = pos + size")
            self.refuse_if(f"size < 0 or {end} > {self.end}")
        self.flush()
        self.emit(f"{target}, pos = {known}[{key}](data, pos, {end}, session)")
        if type_.length is not None:
            self.refuse_if(f"pos != {end}")
            if type_.null is not None:
                self.indent -= 1

    # ------------------------------------------------------------ tagged fields

    def tags(self, op: Tags) -> None:
        """Print the reading of a section of tagged fields. Missing fields get their defaults;
        unknown tags are kept in the section as TaggedField. The function raises Irregular if a
        field leaves bytes of its tag unread or encodes its default; it does not test ``valid`` and
        ``refuse`` of tagged fields. Raise Unsupported if a tagged field is not supported.
        """
        section = self.local(op.field.name)
        if self.is_unpacked:
            self.later(f"{section} = {self.module.use('List')}()")
            return
        for fp, _ in op.known:
            self.default(fp)
        other = f", {op.other}" if op.other else ""
        list_ = self.module.use("List")
        count = self.temporary("tag_count")
        self.append_run(count, "B", "big")
        self.flush()
        if not op.known:
            read = self.module.use("read_unknown_tags")
            self.emit(
                f"if {count}:",
                f"    {section}, pos = {read}(data, pos - 1, {self.end}{other})",
                "else:",
                f"    {section} = {list_}()",
            )
            return
        read = self.module.use("read_tags")
        within, begin = self.temporary("within_tag"), self.temporary("begin_tag")
        self.emit(f"{section} = {list_}()", f"if {count}:")
        self.indent += 1
        self.emit(
            f"tags, pos = {read}(data, pos - 1, {self.end}{other})",
            f"for tag, {begin}, {within} in tags:",
        )
        self.indent += 1
        word = "if"
        for fp, ops in op.known:
            self.emit(f"{word} tag == {fp.field.tag}:")
            self.indent += 1
            self.emit(f"pos = {begin}")
            self.ends.append(within)
            for inner in ops:
                if not isinstance(inner, Require):  # readers do not check them in tagged fields
                    self.op(inner)
            self.flush()
            self.ends.pop()
            default = self.module.constant(
                f"_{short_name(self.layout)}_{fp.name}_default_bytes",
                f"{self.module.use('default_of')}({self.field_of(fp)})",
            )
            self.refuse_if(f"pos != {within} or data[{begin}:pos] == {default}")
            self.indent -= 1
            word = "elif"
        unknown = f'{{"tag": tag, "data": data[{begin}:{within}]}}'
        self.emit(
            "else:",
            f"    {section}.append({self.module.use('TaggedField')}({unknown}))",
            f"    pos = {within}",
        )
        self.indent -= 2

    def field_of(self, fp: FieldPlan) -> str:
        """Return the expression for a field of the codec."""
        return f"{self.module.layout(self.layout)}.by_name[{string(fp.name)}]"

    def default(self, fp: FieldPlan) -> None:
        """Print the assignment of the value that a tagged field has if it is missing: without a
        declared default, an empty list for an array and None for a nullable layout. Defaults of
        scalars and bytes become constants of the module; others are computed by ``default_value``.
        """
        target, type_ = self.local(fp.name), fp.field.type
        plain = fp.default is None and not fp.field.filled
        if isinstance(type_, ArrayType) and plain:
            self.emit(f"{target} = {self.module.use('List')}()")
            return
        call = f"{self.module.use('default_value')}({self.field_of(fp)})"
        if isinstance(type_, ScalarType | BytesType):
            self.emit(
                f"{target} = {self.module.constant(f'_{short_name(self.layout)}_{fp.name}_default', call)}"
            )
        elif isinstance(type_, StructType) and type_.null is not None and plain:
            self.emit(f"{target} = None")
        else:
            self.emit(f"{target} = {call}")

    # ------------------------------------------------------------ windows and checksums

    def open_window(self, length: FieldPlan, last: str | None) -> None:
        """Print the end of the field range that ``length`` measures, and make it the end of the
        innermost window. The function raises Irregular if the length is too small or exceeds the
        outer window. ``last`` is None if the range reaches the end of the layout. The caller prints
        the pending run before.
        """
        size, own = self.local(length.name), length.own_bytes or length.field.excess
        end = self.temporary(f"{length.name}_end")
        self.emit(f"{end} = pos + {size}{f' - {own}' if own else ''}")
        lowest = f"{size} < {own} or " if own or self.may_be_negative(length) else ""
        self.refuse_if(f"{lowest}{end} > {self.end}")
        self.ends.append(end)
        self.reaches_end.append(last is None)

    def may_be_negative(self, length: FieldPlan) -> bool:
        """Return whether the variable of a length may hold a negative number: True for a signed
        type and for a length that is no scalar. Return False for a zigzag varint: :meth:`number`
        prints that the function raises Irregular if that is negative.
        """
        type_ = length.field.type
        if not isinstance(type_, ScalarType):
            return True
        return SCALARS[type_.name].signed and not self.is_zigzag(type_.name)

    def checksum_places(self) -> dict[str, list[tuple[str, str]]]:
        """Return, for each checksum, the names of the first and last field (inclusive) of each
        range that it covers. An open range ends with the last field of the layout. Raise
        Unsupported if a checksum reads some bytes as zero.
        """
        out: dict[str, list[tuple[str, str]]] = {}
        last = self.layout.in_order[-1].name if self.layout.in_order else ""
        for fp in self.layout.fields:
            if not fp.covers:
                continue
            if any(part.zero for part in fp.covers) or fp.field.zero:
                raise Unsupported
            out[fp.name] = [(part.first, part.last or last) for part in fp.covers]
        return out

    def mark_place(self, fp: FieldPlan, after: bool) -> None:
        """Print the pending run and the assignment of the position before a field (or, with
        ``after``, behind it) to a variable if a checksum covers bytes from (or to) there. If the
        checksum can be compared before these bytes are read, print the comparison instead.
        Otherwise print nothing.
        """
        for name, parts in self.covered.items():
            for i, (first, last) in enumerate(parts):
                if fp.name == (last if after else first):
                    self.flush()
                    if self.is_verified_ahead(name, after):
                        self.verify_ranges(name, [f"data[pos:{self.end}]"])
                        self.verified.add(name)
                        continue
                    if name in self.verified:
                        continue
                    place = self.temporary(f"{name}_{'to' if after else 'from'}_{i}")
                    self.emit(f"{place} = pos")

    def is_verified_ahead(self, name: str, after: bool) -> bool:
        """Return whether the checksum ``name`` can be compared before the bytes that it covers are
        read: it stands before them, covers one range to the end of the layout, and the innermost
        window ends there. Return False with ``after``.
        """
        parts = self.covered[name]
        fields = [fp.name for fp in self.layout.in_order]
        to_end = len(parts) == 1 and parts[0][1] == fields[-1]
        known = to_end and bool(self.reaches_end) and self.reaches_end[-1]
        return known and not after and fields.index(name) < fields.index(parts[0][0])

    def verify_ranges(self, name: str, ranges: list[str]) -> None:
        """Print that the function raises Irregular if the checksum of ``ranges`` (expressions for
        bytes, joined in order) differs from the value of the field ``name``. A conditional checksum
        field is not compared if it is None.
        """
        compute = self.module.constant(
            f"_{short_name(self.layout)}_{name}",
            f"{self.module.use('checksum_of')}({self.module.layout(self.layout)}.by_name[{string(name)}])",
        )
        stored = self.local(name)
        covered = ranges[0] if len(ranges) == 1 else f'b"".join([{", ".join(ranges)}])'
        fp = self.layout.field(name)
        there = f"{stored} is not None and " if fp is not None and fp.when is not None else ""
        self.refuse_if(f"{there}{compute}({covered}) != {stored}")

    def verify(self, fp: FieldPlan, parts: list[tuple[str, str]]) -> None:
        """Print that the function raises Irregular if the checksum field ``fp`` differs from the
        checksum of the bytes between the positions that :meth:`mark_place` assigned, one range for
        each of ``parts``.
        """
        ranges = [
            f"data[{self.temporary(f'{fp.name}_from_{i}')}:{self.temporary(f'{fp.name}_to_{i}')}]"
            for i in range(len(parts))
        ]
        self.verify_ranges(fp.name, ranges)


def _has_tags(program: ReadProgram) -> bool:
    """Return whether a layout has a section of tagged fields."""
    return any(isinstance(op, Tags) for op in program.ops)


def size_of_elements(program: ReadProgram) -> int | None:
    """Return the size in bytes of a layout whose fields one :mod:`struct` format can unpack:
    scalars and bits in one byte order, and bytes or text of fixed size. A section of tagged fields
    without known tags, behind other fields, counts as 1 byte, as if it were empty. Return None for
    other layouts (varints, VLQs, conditional fields) and those without bytes.
    """
    size, endians = 0, set()
    for op in program.ops:
        match op:
            case Number(fp, name) if not SCALARS[name].is_variable:
                code = struct_code(SCALARS[name])
                size += size_of_code(code)
                if size_of_code(code) > 1 and not code.endswith("s"):
                    endians.add(fp.field.endian)
            case Bytes(_, BytesType(length=int() as length)):
                size += length
            case Tags(_, ()) if size:
                size += 1
            case Require() | Absent():
                pass
            case _:
                return None
    return size if size and len(endians) < 2 else None


def _is_tags(fp: FieldPlan) -> bool:
    """Return whether a field is a section of tagged fields."""
    return isinstance(fp.field.type, TagsType)


def compressed_arrays(layout: LayoutPlan) -> list[FieldPlan]:
    """Return the arrays of a layout itself that may be compressed, in order; ``[]`` if there are
    none. Tagged arrays and arrays of held layouts are left out.
    """
    return [
        fp
        for fp in layout.in_order
        if isinstance(fp.field.type, ArrayType) and fp.field.type.compression is not None
    ]


def _min_size(layout: LayoutPlan) -> int:
    """Return 1 if every value of the layout certainly has at least one byte, otherwise 0. One of
    these fields without a condition makes certain: a scalar, bits, a section of tagged fields, an
    array with a count, bytes of nonzero fixed size or with a length or terminator.
    """
    for fp in layout.in_order:
        if fp.when is not None:
            continue
        type_ = fp.field.type
        if isinstance(type_, ScalarType | BitsType) or _is_tags(fp):
            return 1
        if isinstance(type_, BytesType) and type_.length not in (0, "rest"):
            return 1
        if isinstance(type_, ArrayType) and type_.count is not None:
            return 1
    return 0


def _depends_on_others(value: DerivedValue) -> bool:
    """Return whether a value that is derived for an element depends on other elements of the array."""
    array = value.derived.array
    return any(end.array.field.name == array for end in ends_read(value.value))
