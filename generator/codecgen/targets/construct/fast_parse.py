"""Fast parsers of layouts: for each version one function that parses regular bytes, printed from its read program."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.plan import FieldPlan, LayoutPlan, nodes
from codecgen.plan.nodes import FieldValue
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
from codecgen.plan.read_program import read_program
from codecgen.schema.scalars import COMPACT, SCALARS
from codecgen.schema.types import (
    ArrayType,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
)
from codecgen.targets.construct.fast_checksums import ChecksumVerifier
from codecgen.targets.construct.fast_expressions import EndOf, FieldExpressions
from codecgen.targets.construct.fast_function import RESERVED, FunctionSource
from codecgen.targets.construct.fast_layouts import (
    compressed_arrays,
    has_tags,
    is_tags,
    min_size,
    size_of_elements,
)
from codecgen.targets.construct.fast_links import ElementLinks
from codecgen.targets.construct.fast_module import (
    FastFunctions,
    FastModule,
    Unsupported,
    array_function_name,
    full_name,
    function_name,
)
from codecgen.targets.construct.fast_rules import RulePrinter, print_conditional
from codecgen.targets.construct.fast_struct_runs import UnpackedRun, struct_code
from codecgen.targets.construct.fast_value_reader import ValueReader, Windows, is_zigzag
from codecgen.targets.python_source import docstring, string

_RESERVED = RESERVED | {
    *["data", "pos", "end", "session", "raw", "more", "item", "index", "start", "stop", "tag"],
    *["count", "size", "numbers", "section", "within", "at", "tags"],
    *["items", "number"],
    *["link_elements", "read_varint", "read_vlq", "open_section", "default_value"],
    *["place", "set_place", "read_tags", "read_unknown_tags"],
    *["deque", "repeat", "starmap"],
}
"""Names that no field gets as its local variable: those of the printed statements, and of the
functions that they call.
"""


_FIELDS = Number | Bytes | Padding | Elements | Struct | Choose | Tags | When | Absent
"""The operations that read a field, in contrast to requirements, windows and checksums."""


class ParsedValues:
    """Says that expressions of a fast parser can use each value before them: it is read whole."""

    has_whole_elements = True

    def check_field(self, name: str, is_nested: bool) -> None:
        """Accept each field."""

    def check_end(self, array: FieldValue, inner: EndOf) -> None:
        """Accept each end and extreme of an array."""

    def has_number(self, inner: FieldValue) -> bool:
        """Return True."""
        return True


class ParseFunction:
    """Prints the Python source of the fast parser of one layout in one version. That function
    raises Irregular, or another exception such as KeyError for an unknown enum number, for bytes
    that it leaves to the field-by-field parser. The function of a layout that arrays hold parses
    several of them, so that no element needs a call. Printing raises Unsupported for layouts that
    cannot have such a function.

    Attributes:
        depth: How many layouts and arrays lie in each other, the layout itself included; known once
            the function is printed.
    """

    def __init__(self, functions: FastFunctions, module: FastModule, layout: LayoutPlan) -> None:
        self.functions = functions
        self.module = module
        self.layout = layout
        self.depth = 1

    def text(self) -> str:
        """Return the source of the function. For an element of arrays
        (:meth:`FastFunctions.is_element`), return a function that parses ``number`` values, and the
        assignment of one that calls it for a single value. Raise Unsupported if the layout is given
        arrays, looks elements up by number, or has an operation that fast parsers lack. Raise
        TypeError if it has an expression that they cannot print.
        """
        if self.layout.look_ups or self.layout.given_arrays:
            raise Unsupported
        is_element = self.functions.is_element(self.layout)
        bits_used: set[tuple[str, str]] = set()
        for _ in range(2):  # the second time it is known which bits are used
            body = ParseBody(self.functions, self.module, self.layout, bits_used)
            given = [body.source.local(fp.name) for fp in self.layout.given]
            if is_element:
                body.print_array()
            else:
                body.print_single()
        self.depth = body.depth
        parsed = self.module.parsed_class(self.layout)
        parameters = ["data: bytes, pos: int, end: int, session: Session"]
        for name, fp in zip(given, self.layout.given, strict=True):
            parameters.append(f"{name}: {_given_type(fp)}")
        name = function_name(self.layout)
        title = (
            f"Parse ``{full_name(self.layout)}``. Raise an exception if the bytes are not regular."
        )
        if not is_element:
            return _function_text(name, parameters, parsed, title, body.source.lines)
        title = title.replace("Parse", "Parse ``number`` values of")
        of_array, first_of = array_function_name(self.layout), self.module.use("first_of")
        if self.functions.is_linked(self.layout):
            parameters.append(f"place: {self.module.use('InArray')} | None = None")
        parameters.insert(0, "number: int")
        text = _function_text(of_array, parameters, f"list[{parsed}]", title, body.source.lines)
        return f"{text}\n\n\n{name} = {first_of}({of_array})"


class ParseBody:
    """Prints the statements of the fast parser of one layout version, once.

    Attributes:
        depth: How many layouts and arrays lie in each other, the layout itself included.
        decompressed: Variable with the bytes that sections decompressed to so far; None unless there are several.
    """

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
        self.depth = 1
        self.decompressed: str | None = None
        self.source = FunctionSource(module, layout, _RESERVED, ("parse_", "unpack_"), bits_used)
        self.run = UnpackedRun(self.source, module)
        self.windows = Windows()
        self.expressions = FieldExpressions(self.plan, module, layout, self.source, ParsedValues())
        self.values = ValueReader(self.plan, module, self.source, self.run, self.windows)
        self.checksums = ChecksumVerifier(module, layout, self.source, self.run, self.windows)
        self.links = ElementLinks(functions, module, layout, self.source)

    def print_single(self) -> None:
        """Print the statements of the function that parses one value."""
        self.body()
        self.source.emit(f"return {self.source.temporary('parsed')}, pos")

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
            out += f", {self.expressions.text(value)}"
        return out

    def print_array(self) -> None:
        """Print the statements of the function that parses an array: a loop over the elements. One
        call unpacks all elements if they have a fixed size and none has tagged fields. The function
        raises Irregular if they pass ``end``. Raise Unsupported or TypeError as :meth:`body` does.
        """
        size = size_of_elements(self.program)
        if size is None:
            self.parsing_loop()
            return
        self.source.emit(f"stop = pos + number * {size}")
        if not has_tags(self.program):
            self.source.emit_raise_if("stop > end")
            self.unpacking_loop()
            return
        last_bytes = f"data[pos + {size - 1} : stop : {size}]"
        self.source.emit(f"if stop <= end and {last_bytes}.count(0) == number:  # no tagged fields")
        self.source.indent += 1
        self.unpacking_loop()
        self.source.indent -= 1
        self.parsing_loop()

    def parsing_loop(self) -> None:
        """Print a loop that parses one element after another, and the return of all. Raise
        Unsupported or TypeError as :meth:`body` does.
        """
        source = self.source
        source.emit(f"items = {self.module.use('List')}()", "while number > 0:")
        source.indent += 1
        source.emit("number -= 1")
        self.body()
        source.emit(f"items.append({source.temporary('parsed')})")
        source.indent -= 1
        self.return_array("pos")

    def unpacking_loop(self) -> None:
        """Print a loop over elements of fixed size without tagged fields, from ``pos`` to ``stop``,
        and the return of all. The values are created before the loop, which only fills them: their
        number is known to fit the bytes.
        """
        source, list_ = self.source, self.module.use("List")
        self.module.standard |= {"repeat", "starmap"}
        create = "starmap({}, repeat((), number))"
        source.emit(f"items = {list_}({create.format(self.module.parsed_class(self.layout))})")
        at = len(source.lines)
        source.indent += 1
        self.run.is_unpacked = True
        self.body()
        self.run.is_unpacked = False
        source.indent -= 1
        values = self.run.unpacked
        codes = "".join(values.codes) + "x" * has_tags(self.program)
        unpack = self.module.unpacker(codes, values.endian, "iter_unpack")
        names = ", ".join(values.texts)
        targets = f"({names},)" if len(values.texts) == 1 else f"({names})"
        targets = f"{source.temporary('parsed')}, {targets}"
        iterators = f"items, {unpack}(data[pos:stop])"
        for fp in filter(is_tags, self.layout.in_order):
            targets += f", {source.local(fp.name)}"
            iterators += f", {create.format(list_)}"
        source.lines[at:at] = source.indented([f"for {targets} in zip({iterators}, strict=True):"])
        self.return_array("stop")

    def return_array(self, pos: str) -> None:
        """Print the return of the parsed elements and ``pos``, the position after them. Before it,
        link the elements to the outer value if the caller passes its ``place``.
        """
        if self.functions.is_linked(self.layout):
            self.module.standard |= {"deque", "repeat"}
            link_each = f"map({self.module.use('set_place')}, items, repeat(place))"
            self.source.emit("if place is not None:", f"    deque({link_each}, maxlen=0)")
        self.source.emit(f"return items, {pos}")

    def body(self) -> None:
        """Print the statements that parse the layout into the variable ``parsed``: the operations,
        the comparison of checksums, the rules and the value. Raise Unsupported if a length that
        measures a field range is conditional, or if a part is not supported. Raise TypeError for an
        expression that cannot be printed.
        """
        layout = self.layout
        if any(isinstance(op, Open) and op.when is not None for op in self.program.ops):
            raise Unsupported
        if any(isinstance(op, Padding) for op in self.program.ops):
            self.source.emit("start = pos")
        has_several = len(compressed_arrays(layout)) > 1
        self.decompressed = self.source.temporary("decompressed") if has_several else None
        if self.decompressed is not None:
            self.source.emit(f"{self.decompressed} = 0")
        self.links.begin(self.program)
        for op in self.program.ops:
            self.op(op)
        self.run.flush()
        is_closed = bool(self.program.ops) and isinstance(self.program.ops[-1], Close)
        if not self.run.is_unpacked and not is_closed:
            self.source.emit_raise_if("pos > end")
        self.checksums.finish()
        RulePrinter(self.source, self.expressions).print_rules()
        self.result()

    def result(self) -> None:
        """Print the statements that create the parsed value, and link the elements of arrays with
        derived values to it, except those that :meth:`loop` links. Raise Unsupported if fields
        follow the section of tagged fields, or as :meth:`ElementLinks.finish` does.
        """
        layout = self.layout
        names = [fp.name for fp in layout.given]
        names += [fp.name for fp in layout.in_order if not is_tags(fp)]
        for fp in layout.in_order:
            if is_tags(fp):
                names += [t.name for t in layout.fields if t.field.tag is not None]
                names.append(fp.name)
        in_order = {fp.name: fp for fp in layout.in_order}
        if [n for n in names if n in in_order] != [*in_order]:
            raise Unsupported  # fields follow the section of tagged fields
        value = self.source.temporary("parsed")
        if not self.links.places and not self.run.is_unpacked:
            parsed = self.module.parsed_class(layout)
            self.source.emit(f"{value} = {parsed}()")  # faster than a copy of a dict
        self.source.emit(
            *(f"{value}[{string(name)}] = {self.source.local(name)}" for name in names)
        )
        self.links.finish()

    def number_of_elements(self, element: LayoutPlan, pos: str, end: str) -> str | None:
        """Return the expression for the number of elements from ``pos`` to ``end``, and print that
        the function raises Irregular if bytes would remain, or ``end`` is passed already. Return
        None, and print nothing, if the elements vary in size, mix byte orders, or have a section of
        tagged fields.
        """
        program = read_program(self.plan, element)
        size = None if has_tags(program) else size_of_elements(program)
        if size is None:
            return None
        self.source.emit_raise_if(f"{pos} > {end} or ({end} - {pos}) % {size}")
        return f"({end} - {pos}) // {size}"

    # ------------------------------------------------------------ operations

    def op(self, op: ReadOp) -> None:
        """Print the statements for one operation of the read program, and note the positions where
        ranges of checksums begin or end. Enum and reserved-bit requirements and checksum operations
        print nothing here. Raise Unsupported if the operation is not supported, TypeError for an
        expression that cannot be printed.
        """
        if isinstance(op, _FIELDS):
            self.checksums.mark(op.field, after=False)
        match op:
            case Number(fp, name):
                self.values.number(fp, name)
            case Bytes(fp, type_, after):
                self.values.bytes_field(fp, type_, after)
            case Padding(fp, multiple):
                self.run.flush()
                self.source.emit(f"stop = pos + (start - pos) % {multiple}")
                self.source.emit_raise_if(f"stop > {self.windows.end} or any(data[pos:stop])")
                self.source.emit("pos = stop", f"{self.source.local(fp.name)} = None")
            case Require(_, condition, why):
                if why not in ("enum", "reserved"):
                    text = self.expressions.text(nodes.negate(condition))
                    self.run.emit_after(f"if {text}:", "    raise Irregular")
            case When():
                print_conditional(self, op)
            case Absent(fp):
                self.absent(fp)
            case Open(length, _, last):
                self.run.flush()
                self.open_window(length, last)
            case Close(length):
                self.run.flush()
                self.source.emit_raise_if(f"pos != {self.windows.ends.pop()}")
                self.windows.reaches_end.pop()
            case Mark() | Verify():
                pass  # self.checksums compares them
            case Elements():
                self.elements(op)
            case Struct(fp, held):
                self.struct(fp, held)
            case Choose():
                self.choose(op)
            case Tags():
                self.tags(op)
        if isinstance(op, _FIELDS):
            self.checksums.mark(op.field, after=True)

    def save(self) -> Callable[[], None]:
        """Return a function that takes back the lines, variables, imports and constants that are
        added from now on, drops pending values, and resets ``depth``, the windows and the
        indentation. No value may be pending.
        """
        restore, depth = self.source.save(), self.depth
        ends, reaches_end = list(self.windows.ends), list(self.windows.reaches_end)

        def undo() -> None:
            restore()
            self.run.clear()
            self.depth = depth
            self.windows.ends, self.windows.reaches_end = ends, reaches_end

        return undo

    def absent(self, fp: FieldPlan) -> None:
        """Print the assignment of None to a field and to its bits that expressions use, after the
        pending run of values.
        """
        variables = [self.source.local(fp.name), *self.source.bits_used_of(fp.name)]
        self.run.emit_after(*(f"{variable} = None" for variable in variables))

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
            one = self.functions.depth(op.element)
            if one is None:
                raise Unsupported
            self.depth = max(self.depth, 2 + one)
            if min_size(op.element) == 0:
                raise Unsupported
        else:
            self.depth = max(self.depth, 2)
            if isinstance(op.element, BytesType) and op.element.length in (0, "rest"):
                raise Unsupported
        target = self.source.local(fp.name)
        endian = fp.field.endian
        limit = "session.limits.elements"
        number: str | None = None
        null_test: str | None = None
        plus = 0
        is_negative_possible = True
        if type_.fixed is not None:
            self.run.flush()
            number = str(type_.fixed)
        elif type_.count is not None:
            number = "count"
            if is_zigzag(type_.count) and type_.null is None:
                self.values.unsigned_varint("count", SCALARS[type_.count])
                self.source.emit_raise_if("count & 1")
                self.source.emit("count >>= 1")
                is_negative_possible = False
            else:
                self.values.length(type_.count, endian, "count")
                self.run.flush()
            plus = 1 if type_.count == COMPACT.name else 0
            if type_.null is not None:
                null_test = f"count == {type_.null}"
        elif type_.counted_by is not None:
            self.run.flush()
            number = self.source.local(type_.counted_by)
            if type_.plus:
                self.source.emit(f"count = {number} - {type_.plus}")
                number = "count"
            if type_.null is not None:
                null_test = f"{number} == {type_.null}"
        else:
            self.run.flush()
        if type_.length is not None:
            if null_test is not None or number is not None:
                raise Unsupported
            self.values.length(type_.length, endian, "size")
            self.run.flush()
            if type_.null is not None:
                null_test = f"size == {type_.null}"
        if null_test is not None:
            self.source.emit(f"if {null_test}:", f"    {target} = None", "else:")
            self.source.indent += 1
        if plus:
            self.source.emit("count -= 1")
        check: str | None = None
        if type_.fixed is not None:
            check = f"{number} > {limit}" if type_.fixed > 63 else None
        elif number is not None and type_.compression is not None:
            check = f"{number} < {type_.at_least} or {number} > {limit}"
        elif number is not None:
            many = f"{number} > 63 and ({number} > {limit} or {number} > {self.windows.end} - pos)"
            check = f"{number} < {type_.at_least} or ({many})"
            if not is_negative_possible and not type_.at_least:
                check = many
        may_be_empty = type_.fixed is None and type_.at_least == 0 and type_.compression is None
        if check is not None and not may_be_empty:
            self.source.emit_raise_if(check)
            check = None
        if type_.length is not None:
            self.source.emit("within = pos + size")
            self.source.emit_raise_if(f"size < 0 or within > {self.windows.end}")
            self.windows.ends.append("within")
        if type_.compression is not None:
            self.compressed(op, target, number)
        else:
            self.loop(target, op, number, "data", "pos", self.windows.end, check)
        if number is None and type_.at_least:
            self.source.emit_raise_if(f"len({target}) < {type_.at_least}")
        if number is None:
            self.source.emit_raise_if(f"len({target}) > {limit}")
        if type_.length is not None:
            self.source.emit_raise_if("pos != within")
            self.windows.ends.pop()
        if null_test is not None:
            self.source.indent -= 1
        if type_.compression is not None and type_.length is None:
            self.source.emit_raise_if(
                f"pos != {self.windows.end}"
            )  # nothing follows a null or empty array

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
        known = self.source.constant(
            f"{fp.name}_compression",
            f"{self.source.field_codec(fp.name)}.codec.compressed",
        )
        if isinstance(fp.codec, nodes.BitValue | nodes.FieldValue):
            by = self.expressions.text(fp.codec)
        else:
            raise Unsupported
        if number is not None:
            self.source.emit(
                f"if {number} == 0:", f"    {target} = {self.module.use('List')}()", "else:"
            )
            self.source.indent += 1
        opened = self.module.use("open_section")
        arguments = f"{known}, {by}, data, pos, {self.windows.end}, session"
        if self.decompressed is not None:
            arguments += f", {self.decompressed}"
        self.source.emit(f"section, at, stop = {opened}({arguments})")
        if self.decompressed is not None:
            self.source.emit(f"{self.decompressed} += 0 if section is data else stop")
        self.loop(target, op, number, "section", "at", "stop")
        self.source.emit_raise_if("at != stop")
        self.source.emit(f"pos = {self.windows.end}")
        if number is not None:
            self.source.indent -= 1

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
        ``check`` holds. It links elements to the outer value here only if ``links.places`` has the array.
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
                self.source.emit_raise_if(check)
            self.module.standard.add("unpack_from")
            order = "<" if op.field.field.endian == "little" else ">"
            self.source.emit(
                f'{target} = {list_}(unpack_from(f"{order}{{{number}}}{struct_code(scalar)}", data, pos))',
                f"pos += {number} * {scalar.width}" if scalar.width > 1 else f"pos += {number}",
            )
            return
        place = self.links.places.get(op.field.name)
        if isinstance(element, LayoutPlan) and self.functions.is_element(element):
            if number is None and op.field.until is None:
                number = self.number_of_elements(element, pos, end)
            if number is not None:
                parse_each = self.module.array_function(element)
                arguments = ", ".join(
                    [number, data, pos, end, "session", *([place] if place else [])]
                )
                call = f"{target}, {pos} = {parse_each}({arguments})"
                if check is None:
                    self.source.emit(call)
                else:
                    self.source.emit(f"if {number}:", f"    if {check}:", "        raise Irregular")
                    self.source.emit(f"    {call}", "else:", f"    {target} = {list_}()")
                return
        given = self.given_arguments(op.field)
        item = self.source.temporary(f"{op.field.name}_item")
        self.source.emit(f"{target} = {list_}()")
        if check is not None:
            self.source.emit(f"if {number}:")
            self.source.indent += 1
            self.source.emit_raise_if(check)
        if op.field.until is not None:
            self.source.emit("while True:")
        elif number is None:
            self.source.emit(f"while {pos} < {end}:")
        else:
            self.source.emit(f"for _ in range({number}):")
        self.source.indent += 1
        self.windows.ends.append(end)
        if isinstance(element, LayoutPlan):
            function = self.module.function(element)
            self.source.emit(f"{item}, {pos} = {function}({data}, {pos}, {end}, session{given})")
            if place is not None:
                self.source.emit(f"{self.module.use('set_place')}({item}, {place})")
        elif data != "data":
            raise Unsupported
        elif isinstance(element, ScalarType):
            self.values.scalar(item, SCALARS[element.name], op.field.field.endian)
            self.run.flush()
            if element.enum is not None:
                self.source.emit(f"{item} = {self.values.member(item, element.enum, element.only)}")
        elif isinstance(element, BytesType):
            self.values.data(item, element, op.field.field.endian)
            self.run.flush()
        self.windows.ends.pop()
        self.source.emit(f"{target}.append({item})")
        if op.field.until is not None:
            self.source.emit(f"if {self.expressions.text(op.field.until, item=item)}:", "    break")
        self.source.indent -= 1
        if check is not None:
            self.source.indent -= 1

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
        self.depth = max(self.depth, 1 + (self.functions.depth(held) or 0))
        target = self.source.local(fp.name)
        given = self.given_arguments(fp)
        if type_.present is None or type_.null is None:
            self.run.flush()
            self.source.emit(
                f"{target}, pos = {function}(data, pos, {self.windows.end}, session{given})"
            )
            return
        self.values.scalar("size", SCALARS[type_.present], fp.field.endian)
        self.run.flush()
        self.source.emit(
            f"if size == {type_.null}:",
            f"    {target} = None",
            "elif size == 1:",
            f"    {target}, pos = {function}(data, pos, {self.windows.end}, session{given})",
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
            depth = self.functions.depth(held)
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
        known = self.source.table(f"{fp.name}_parsers", cases)
        key = self.expressions.text(fp.given)
        if fp.held_version is not None:
            key = f"{key}, {self.expressions.text(fp.held_version)}"
        target = self.source.local(fp.name)
        end = self.windows.end
        if type_.length is not None:
            self.values.length(type_.length, fp.field.endian)
            self.run.flush()
            if type_.null is not None:
                self.source.emit(f"if size == {type_.null}:", f"    {target} = None", "else:")
                self.source.indent += 1
            end = self.source.temporary("within")
            self.source.emit(f"{end} = pos + size")
            self.source.emit_raise_if(f"size < 0 or {end} > {self.windows.end}")
        self.run.flush()
        self.source.emit(f"{target}, pos = {known}[{key}](data, pos, {end}, session)")
        if type_.length is not None:
            self.source.emit_raise_if(f"pos != {end}")
            if type_.null is not None:
                self.source.indent -= 1

    # ------------------------------------------------------------ tagged fields

    def tags(self, op: Tags) -> None:
        """Print the reading of a section of tagged fields. Missing fields get their defaults;
        unknown tags are kept in the section as TaggedField. The function raises Irregular if a
        field leaves bytes of its tag unread or encodes its default; it does not test ``valid`` and
        ``refuse`` of tagged fields. Raise Unsupported if a tagged field is not supported.
        """
        section = self.source.local(op.field.name)
        if self.run.is_unpacked:
            return  # the loop over the elements assigns an empty list
        for fp, _ in op.known:
            self.default(fp)
        other = f", {op.other}" if op.other else ""
        list_ = self.module.use("List")
        count = self.source.temporary("tag_count")
        self.run.append(count, "B", "big")
        self.run.flush()
        if not op.known:
            read = self.module.use("read_unknown_tags")
            self.source.emit(
                f"if {count}:",
                f"    {section}, pos = {read}(data, pos - 1, {self.windows.end}{other})",
                "else:",
                f"    {section} = {list_}()",
            )
            return
        read = self.module.use("read_tags")
        within, begin = self.source.temporary("within_tag"), self.source.temporary("begin_tag")
        self.source.emit(f"{section} = {list_}()", f"if {count}:")
        self.source.indent += 1
        self.source.emit(
            f"tags, pos = {read}(data, pos - 1, {self.windows.end}{other})",
            f"for tag, {begin}, {within} in tags:",
        )
        self.source.indent += 1
        word = "if"
        for fp, ops in op.known:
            self.source.emit(f"{word} tag == {fp.field.tag}:")
            self.source.indent += 1
            self.source.emit(f"pos = {begin}")
            self.windows.ends.append(within)
            for inner in ops:
                if not isinstance(inner, Require):  # readers do not check them in tagged fields
                    self.op(inner)
            self.run.flush()
            self.windows.ends.pop()
            default = self.source.constant(
                f"{fp.name}_default_bytes",
                f"{self.module.use('default_of')}({self.source.field_codec(fp.name)})",
            )
            self.source.emit_raise_if(f"pos != {within} or data[{begin}:pos] == {default}")
            self.source.indent -= 1
            word = "elif"
        unknown = f'{{"tag": tag, "data": data[{begin}:{within}]}}'
        self.source.emit(
            "else:",
            f"    {section}.append({self.module.use('TaggedField')}({unknown}))",
            f"    pos = {within}",
        )
        self.source.indent -= 2

    def default(self, fp: FieldPlan) -> None:
        """Print the assignment of the value that a tagged field has if it is missing: without a
        declared default, an empty list for an array and None for a nullable layout. Defaults of
        scalars and bytes become constants of the module; others are computed by ``default_value``.
        """
        target, type_ = self.source.local(fp.name), fp.field.type
        plain = fp.default is None and not fp.field.filled
        if isinstance(type_, ArrayType) and plain:
            self.source.emit(f"{target} = {self.module.use('List')}()")
            return
        call = f"{self.module.use('default_value')}({self.source.field_codec(fp.name)})"
        if isinstance(type_, ScalarType | BytesType):
            self.source.emit(f"{target} = {self.source.constant(f'{fp.name}_default', call)}")
        elif isinstance(type_, StructType) and type_.null is not None and plain:
            self.source.emit(f"{target} = None")
        else:
            self.source.emit(f"{target} = {call}")

    # ------------------------------------------------------------ windows and checksums

    def open_window(self, length: FieldPlan, last: str | None) -> None:
        """Print the end of the field range that ``length`` measures, and make it the end of the
        innermost window. The function raises Irregular if the length is too small or exceeds the
        outer window. ``last`` is None if the range reaches the end of the layout. The caller prints
        the pending run before.
        """
        size, own = self.source.local(length.name), length.own_bytes or length.field.excess
        end = self.source.temporary(f"{length.name}_end")
        self.source.emit(f"{end} = pos + {size}{f' - {own}' if own else ''}")
        lowest = f"{size} < {own} or " if own or self.may_be_negative(length) else ""
        self.source.emit_raise_if(f"{lowest}{end} > {self.windows.end}")
        self.windows.ends.append(end)
        self.windows.reaches_end.append(last is None)

    def may_be_negative(self, length: FieldPlan) -> bool:
        """Return whether the variable of a length may hold a negative number: True for a signed
        type and for a length that is no scalar. Return False for a zigzag varint: :meth:`number`
        prints that the function raises Irregular if that is negative.
        """
        type_ = length.field.type
        if not isinstance(type_, ScalarType):
            return True
        return SCALARS[type_.name].signed and not is_zigzag(type_.name)


def _function_text(
    name: str, parameters: list[str], returned: str, title: str, lines: list[str]
) -> str:
    """Return the source of a function with the statements ``lines``. ``returned`` is the annotation
    of the value; the function also returns the position after it.
    """
    signature = ", ".join(parameters)
    head = f"def {name}({signature}) -> tuple[{returned}, int]:"
    if len(head) > 100:
        head = f"def {name}(\n    {signature}\n) -> tuple[{returned}, int]:"
    return "\n".join([head, docstring(title, indent=4), *lines])


def _given_type(fp: FieldPlan) -> str:
    """Return the annotation of a value that the layout is given."""
    type_ = fp.field.type
    assert isinstance(type_, ScalarType)
    return "bool" if type_.name == "bool" else "int"
