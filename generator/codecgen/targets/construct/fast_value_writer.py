"""Prints how fast builders write single values: numbers, bits, bytes and text."""

from __future__ import annotations

from dataclasses import replace

from codecgen.plan import FieldPlan, Plan, nodes
from codecgen.plan.nodes import Value
from codecgen.schema.scalars import COMPACT, SCALARS, Scalar
from codecgen.schema.types import ZERO_TERMINATED, BitMember, BitsType, BytesType, ScalarType
from codecgen.targets.construct.fast_expressions import FieldExpressions
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import FastModule
from codecgen.targets.construct.fast_struct_runs import PackedRun, struct_code
from codecgen.targets.construct.homes import class_name
from codecgen.targets.python_source import string


class ValueWriter:
    """Prints the statements of a fast builder that write numbers, bytes and text from variables.
    Values of fixed size wait in ``run``. The function raises Irregular, or another exception such
    as struct.error, for values that it leaves to the field-by-field builder.
    """

    def __init__(
        self,
        plan: Plan,
        module: FastModule,
        source: FunctionSource,
        run: PackedRun,
        expressions: FieldExpressions,
    ) -> None:
        self.plan = plan
        self.module = module
        self.source = source
        self.run = run
        self.expressions = expressions

    # ------------------------------------------------------------ numbers

    def number(self, fp: FieldPlan, name: str, is_set: bool) -> None:
        """Print the writing of a number of the type ``name``, any scalar type but ``compact``, from
        the variable of its field; bits are written as one word. An enum takes members, numbers and
        names, of which names become numbers in the variable. ``is_set``: the function itself has
        set the variable, so that the type of an integer is not tested.
        """
        target, type_ = self.source.local(fp.name), fp.field.type
        if isinstance(type_, BitsType):
            self.bits(fp, type_, replace(SCALARS[name], signed=False))
            return
        if isinstance(type_, ScalarType) and type_.enum is not None and not is_set:
            codec = f"{self.source.field_codec(fp.name)}.codec"
            self.member(target, type_.enum, type_.only, f"{fp.name}_number", codec)
            self.scalar(target, SCALARS[name], fp.field.endian, checked=True)
            return
        self.scalar(target, SCALARS[name], fp.field.endian, checked=is_set)

    def member(
        self, target: str, enum: str, only: tuple[str, ...] | None, name: str, codec: str
    ) -> None:
        """Print that a variable keeps its value if that is a member of the enum, among ``only``
        unless that is None. Any other value is replaced by ``number(value)`` of ``codec``, the
        expression for the enum's codec, which takes numbers and names and raises BuildError for
        others. ``name`` is the end of the name of the constant that holds this method.
        """
        number = self.source.constant(name, f"{codec}.number")
        other = f"type({target}) is not {self.module.refer(enum, class_name(enum))}"
        if only is not None:
            other += f" or {target} not in {self.module.members(enum, only)}"
        self.source.emit(f"if {other}:", f"    {target} = {number}({target})")

    def default_text(self, default: Value | None, enum: str | None, missing: str) -> str:
        """Return the expression for a default that depends on no field: the member of ``enum``, if
        the default is one, otherwise its value. Without a default, return ``missing``, or the
        enum's member 0, if it has one and ``missing`` is ``"0"``. Raise Unsupported or TypeError if
        the default cannot be printed.
        """
        if enum is not None and (default is None or isinstance(default, nodes.Word)):
            value = 0 if default is None else default.value
            for one in self.plan.model.enums[enum].values:
                if one.value == value and (default is not None or missing == "0"):
                    return f"{self.module.refer(enum, class_name(enum))}.{one.name.upper()}"
        return missing if default is None else self.expressions.text(default)

    def scalar(self, target: str, scalar: Scalar, endian: str, checked: bool = False) -> None:
        """Print the writing of the scalar, of any type, in the variable ``target``. A varint or VLQ
        is written at once; other scalars join the pending run. The function raises Irregular unless
        the type is exactly that of the scalar (a float may be an int); ``checked`` leaves out this
        test for integers, varints and VLQs.
        """
        if scalar.is_variable:
            if not checked:
                self.source.emit_raise_if(f"type({target}) is not int")
            self.varint(target, scalar)
            return
        code = struct_code(scalar)
        if scalar.kind == "float":
            self.source.emit_raise_if(f"type({target}) is not float and type({target}) is not int")
            self.run.append(target, code, endian)
        elif scalar.kind == "bool":
            self.source.emit_raise_if(f"type({target}) is not bool")
            self.run.append(target, code, endian)
        elif scalar.kind == "uuid":
            self.module.standard.add("UUID")
            self.source.emit_raise_if(f"type({target}) is not UUID")
            self.run.append(f"{target}.bytes", code, endian)
        else:
            if not checked:
                self.run.require_int(target)
            self.run.append(self.fixed_text(target, scalar, endian), code, endian)

    def fixed_text(self, text: str, scalar: Scalar, endian: str) -> str:
        """Return the expression that :mod:`struct` packs for an integer of fixed size: ``text``
        itself, or a call of ``to_bytes`` if :mod:`struct` lacks its size. The call raises
        OverflowError for a number that does not fit. Callers pass no varints, VLQs and uuids.
        """
        if not struct_code(scalar).endswith("s"):
            return text
        signed = ", signed=True" if scalar.signed else ""
        return f'{text}.to_bytes({scalar.width}, "{endian}"{signed})'

    def varint(self, text: str, scalar: Scalar) -> None:
        """Print the pending run, and then the writing of the int in the variable ``text`` as a
        varint or VLQ, zigzag encoded if the type is signed (no VLQ is). The function raises
        Irregular for a number that does not fit the type.
        """
        if scalar.signed:
            self.source.emit(f"raw = {text} << 1 ^ {text} >> 63")
            text = "raw"
        self.unsigned_varint(text, scalar, positive=scalar.signed)

    def unsigned_varint(self, text: str, scalar: Scalar, positive: bool = True) -> None:
        """Print the pending run, and then the writing of the unsigned number in the variable
        ``text`` as a varint or VLQ, as ``scalar`` says: one byte at once, more by a function, which
        raises Irregular if the number is negative or too large. ``positive``: it cannot be
        negative, so that this is not tested for one byte.
        """
        self.run.flush()
        self.source.emit(
            f"if {text} < 128:" if positive else f"if 0 <= {text} < 128:",
            f"    {self.run.out}.append({text})",
            "else:",
            f"    {self.write_call(text, scalar)}",
        )

    def write_call(self, text: str, scalar: Scalar) -> str:
        """Return the call that writes an unsigned number as ``scalar``, a varint (``write_varint``)
        or VLQ (``write_vlq``), and import the function. The call raises Irregular if the number is
        negative or has more than ``bits`` bits.
        """
        mask = f"0x{(1 << scalar.bits) - 1:X}"
        if scalar.kind == "varint":
            return f"{self.module.use('write_varint')}({self.run.out}, {text}, {mask})"
        step = int(scalar.kind == "bijective_vlq")
        return f"{self.module.use('write_vlq')}({self.run.out}, {text}, {mask}, {step})"

    def length(self, name: str, endian: str, text: str) -> None:
        """Print the writing of the expression ``text``, a number that is not negative, as a length
        or count of the type ``name``; a compact one is written plus 1. A varint or VLQ is written
        at once; other types join the pending run. The function raises an exception for a number
        that the type cannot hold.
        """
        scalar = COMPACT if name == COMPACT.name else SCALARS[name]
        if not scalar.is_variable:
            self.run.append(self.fixed_text(text, scalar, endian), struct_code(scalar), endian)
            return
        if name == COMPACT.name:
            text = f"{text} + 1"
        elif scalar.signed:
            text = f"{text} << 1"
        if text != "size":
            self.source.emit(f"size = {text}")
        self.unsigned_varint("size", scalar)

    def null_length(self, name: str, endian: str, null: int) -> None:
        """Print the writing of the constant ``null``, the number that means null, in the type
        ``name``; a compact one is written without adding 1. A varint or VLQ is written at once;
        other types join the pending run.
        """
        scalar = COMPACT if name == COMPACT.name else SCALARS[name]
        if scalar.is_variable:
            raw = null << 1 ^ null >> 63 if scalar.signed else null
            self.run.flush()
            if 0 <= raw < 128:
                self.source.emit(f"{self.run.out}.append({raw})")
            else:
                self.source.emit(self.write_call(str(raw), scalar))
            return
        text = f"({null})" if struct_code(scalar).endswith("s") else str(null)
        self.run.append(self.fixed_text(text, scalar, endian), struct_code(scalar), endian)

    # ------------------------------------------------------------ bits

    def bits(self, fp: FieldPlan, type_: BitsType, scalar: Scalar) -> None:
        """Print the writing of a word of bits, in the pending run or at once as a varint or VLQ,
        from a mapping of their names in the variable of its field; None counts as an empty mapping.
        Missing bits get their defaults, or 0. The function raises Irregular for an unknown name, a
        value of another type or too large, and for set reserved bits; BuildError for an unknown
        member of an enum. Raise Unsupported or TypeError if a default cannot be printed.
        """
        word = self.source.local(fp.name)
        names = self.source.constant(
            f"{fp.name}_names",
            f"frozenset({self.source.field_codec(fp.name)}.codec.by_name)",
        )
        known = f"{self.module.use('getter')}({word}, {names})"
        self.source.emit(f"bits = {self.module.use('no_bits')} if {word} is None else {known}")
        parts = [self.bit(fp, m) for m in type_.members]
        text = " | ".join(part for part in parts if part)
        text = text or "0"
        if scalar.is_variable:
            self.source.emit(f"raw = {text}")
            self.unsigned_varint("raw", scalar)
            return
        if struct_code(scalar).endswith("s"):
            text = f"({text})"
        self.run.append(
            self.fixed_text(text, scalar, fp.field.endian), struct_code(scalar), fp.field.endian
        )

    def bit(self, fp: FieldPlan, m: BitMember) -> str:
        """Print the assignment of the given value or the default of one bit member to a variable,
        with its checks. Return the expression for the value shifted to the member's bits, or ``""``
        for reserved bits. Raise Unsupported or TypeError if the default cannot be printed.
        """
        target = self.source.temporary(f"{fp.name}_{m.name}")
        is_flag = m.width == 1 and m.enum is None and not m.reserved
        default = fp.bit_defaults.get(m.name)
        plain, name = "False" if is_flag else "0", string(m.name)
        if default is None or isinstance(default, nodes.Literal | nodes.Word):
            text = self.default_text(default, m.enum, plain)
            self.source.emit(f"{target} = bits({name}, {text})")
        else:
            word = self.source.local(fp.name)
            given = f"bits({name}) if {word} is not None and {name} in {word}"
            self.source.emit(f"{target} = {given} else {self.expressions.text(default)}")
        mask = (1 << m.width) - 1
        if m.reserved:
            self.source.emit_raise_if(f"type({target}) is not int or {target}")
            return ""
        if m.enum is not None:
            codec = f"{self.source.field_codec(fp.name)}.codec.by_name[{string(m.name)}].enum"
            self.member(target, m.enum, m.only, f"{fp.name}_{m.name}_number", codec)
            found = self.plan.model.enums[m.enum]
            if found.keep_unknown or any(not 0 <= v.value <= mask for v in found.values):
                self.source.emit_raise_if(f"not 0 <= {target} <= {mask}")
        elif is_flag:
            self.source.emit_raise_if(f"type({target}) is not bool")
        else:
            self.source.emit_raise_if(f"type({target}) is not int or not 0 <= {target} <= {mask}")
        return f"{target} << {m.low}" if m.low else target

    # ------------------------------------------------------------ bytes

    def data(self, target: str, type_: BytesType, endian: str) -> None:
        """Print the writing of bytes or text in a variable: behind a length, of fixed size (if
        padded, filled with zero bytes), up to a zero byte, or alone. None is written as the null
        length of ``type_``, if any. The function raises Irregular for another type, a wrong size, a
        zero byte that would end the value, and a length that means null.
        """
        null = type_.null if type_.prefix is not None else None
        if null is not None and type_.prefix is not None:
            self.run.flush()
            self.source.emit(f"if {target} is None:")
            self.source.indent += 1
            self.null_length(type_.prefix, endian, null)
            self.run.flush()
            self.source.indent -= 1
            self.source.emit("else:")
            self.source.indent += 1
        self.source.emit_raise_if(f"type({target}) is not {'str' if type_.text else 'bytes'}")
        text = target
        if type_.text:
            self.source.emit(f"content = {target}.encode()")
            text = "content"
        if isinstance(type_.length, int):
            if type_.padded:
                self.source.emit_raise_if(f'len({text}) > {type_.length} or {text}[-1:] == b"\\0"')
                self.run.flush()
                self.source.emit(f'{self.run.out} += {text}.ljust({type_.length}, b"\\0")')
            else:
                self.source.emit_raise_if(f"len({text}) != {type_.length}")
                self.run.flush()
                self.source.emit(f"{self.run.out} += {text}")
        else:
            if type_.length == ZERO_TERMINATED:
                self.source.emit_raise_if(f"0 in {text}")
            if type_.prefix is not None:
                plus = 1 if type_.prefix == COMPACT.name else 0
                if null is not None and null >= plus:
                    self.source.emit_raise_if(f"len({text}) == {null - plus}")
                self.length(type_.prefix, endian, f"len({text})")
            self.run.flush()
            self.source.emit(f"{self.run.out} += {text}")
            if type_.length == ZERO_TERMINATED:
                self.source.emit(f"{self.run.out}.append(0)")
        if null is not None:
            self.source.indent -= 1
