"""One module of target construct: the declarations of one YAML file as Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import DerivedValue, Value, ends_read, fields_read, look_ups_in
from codecgen.runtime.checksums import Mask
from codecgen.schema.expression import Expression
from codecgen.schema.model import Choice, Declared, Derived, Enum, Layout
from codecgen.schema.nested_choices import list_cases
from codecgen.schema.texts import Text
from codecgen.schema.types import FieldRange
from codecgen.targets.construct.class_names import Classes, Key, cases, merge_versions, union_alias
from codecgen.targets.construct.field_codecs import FieldCodecs
from codecgen.targets.construct.homes import Home, class_name, import_line, symbol
from codecgen.targets.construct.module_scope import RUNTIME, ModuleScope
from codecgen.targets.construct.text_codecs import TextCodecs
from codecgen.targets.python_source import (
    WIDTH,
    Call,
    Code,
    assign,
    call,
    comment,
    docstring,
    listing,
    literal,
    mapping,
    render,
    sensitive_code,
    string,
    tuple_of,
)


class Module:
    """Collects the declarations of one YAML file as the parts of a Python module."""

    def __init__(
        self, plan: Plan, file: str, home: Home, homes: Mapping[str, Home], classes: Classes
    ) -> None:
        self.plan = plan
        self.file = file
        self.scope = ModuleScope(plan, file, home, homes, classes)
        self.fields = FieldCodecs(self.scope)
        self.texts = TextCodecs(self.scope)
        self.parts: list[tuple[str, bool]] = []
        self.std: set[str] = set()
        self.functions: dict[str, Derived] = {}

    def append_part(self, text: str, *, apart: bool = False) -> None:
        """Append a part of the module; ``apart`` surrounds it with two empty lines, as classes and functions have."""
        self.parts.append((text, apart))

    # ------------------------------------------------------------ the whole

    def text(self, header: str) -> str:
        """Return the source of the module: ``header`` as its docstring, its imports, and its parts
        in the order in which they were added.
        """
        groups = [docstring(header), "from __future__ import annotations"]
        if self.std:
            groups.append(import_line("construct", self.std))
        first = [import_line(RUNTIME, self.scope.runtime)] if self.scope.runtime else []
        for home in sorted(self.scope.imports):
            first.append(import_line(".".join(home), self.scope.imports[home]))
        if first:
            groups.append("\n".join(first))
        text = "\n\n".join(groups)
        after_apart = False
        for part, apart in self.parts:
            text += ("\n\n\n" if apart or after_apart else "\n\n") + part
            after_apart = apart
        return text + "\n"

    def add(self, thing: Declared) -> None:
        """Append the code of a declaration: an enum, a layout with all its versions, a text, or a
        choice.
        """
        if isinstance(thing, Enum):
            self.add_enum(thing)
        elif isinstance(thing, Layout):
            self.add_layout(thing)
        elif isinstance(thing, Text):
            self.add_text_file(thing)
        else:
            self.add_choice(thing)

    # ------------------------------------------------------------ enums

    def add_enum(self, enum: Enum) -> None:
        """Append and export the class of an enum with its members and their comments. Add a static
        method ``LABELS``, which returns the other spellings by member name, if a value has one.
        """
        name = class_name(enum.name)
        self.scope.exported.append(name)
        lines = [
            f"class {name}({self.scope.use('Enumeration')}):",
            docstring(enum.doc, indent=4),
            "",
        ]
        labels: list[tuple[str, Code]] = []
        for value in enum.values:
            if value.doc:
                lines.append(comment(value.doc, 4))
            lines.append(f"    {value.name.upper()} = {value.value}")
            if value.spelled is not None:
                labels.append((string(value.name.upper()), string(value.spelled)))
        if labels:
            lines += ["", "    @staticmethod", "    def LABELS() -> dict[str, str]:"]
            lines.append(f"        return {render(mapping(labels), 8, 15)}")
        self.append_part("\n".join(lines), apart=True)

    # ------------------------------------------------------------ layouts

    def add_layout(self, layout: Layout) -> None:
        """Append the codecs of all versions of a layout, the functions of its derived values, and
        its rules. A layout with versions also gets a codec for all versions and the union of their
        parsed classes. Report C023 for a derived value whose name another layout of the file
        derives too.
        """
        plans = self.plan.versions[layout.name]
        if layout.doc:
            self.append_part(comment(layout.doc) + "\n" + self.layout_version(plans[0]))
        else:
            self.append_part(self.layout_version(plans[0]))
        for plan in plans[1:]:
            self.append_part(self.layout_version(plan))
        if layout.versions is not None:
            cases = [(str(plan.version), symbol(layout.name, plan.version)) for plan in plans]
            name = symbol(layout.name)
            self.scope.exported.append(name)
            if layout.version_is is not None:
                code: Code = call(
                    self.scope.use("VersionedLayout"),
                    string(layout.name),
                    by=string(layout.version_is),
                    cases=mapping([(k, v) for k, v in cases]),
                    source=string(self.file),
                )
            else:
                code = call(self.scope.use("LayoutVersions"), *(v for _, v in cases))
            self.append_part(
                f"{assign(name, code)}\n{self.union_class(layout.name, [(p.name, p.version) for p in plans])}"
            )
        self.scope.defined.add(layout.name)
        for value in self.plan.derived[layout.name]:
            self.add_derived_function(layout, value)
        for plan in plans:
            self.add_derived_values(plan)
            self.add_rules(plan)

    def add_derived_values(self, plan: LayoutPlan) -> None:
        """Append the call that attaches the derived values of a layout version to its codec, so
        that parsed values have them. Append nothing if there are none.
        """
        items: list[Code] = []
        for value in plan.derived:
            d = value.derived
            items.append(
                call(
                    self.scope.use("Derived"),
                    string(d.name),
                    d.name if d.array is None else f"{d.array}_{d.name}",
                    each=None if d.array is None else string(d.array),
                    unit=None if d.unit is None else string(d.unit),
                    depends_on=_names_around(value),
                    looks_up=_number_field(plan, value),
                )
            )
        if items:
            name = symbol(plan.name, plan.version)
            self.append_part(render(call(f"{name}.derives", *items)), apart=True)

    def add_rules(self, plan: LayoutPlan) -> None:
        """Append the call that attaches the rules of a layout version to its codec. Append nothing
        if there are none.
        """
        items: list[Code] = []
        for found in plan.rules:
            rule = found.rule
            holds: Code | None = None
            if found.condition is not None:
                holds = self.scope.condition(found.condition, bits=64)
            items.append(
                call(
                    self.scope.use("LayoutRule"),
                    string(rule.name),
                    string(rule.about),
                    string(rule.text),
                    line=str(rule.span.line),
                    doc=None if not rule.doc else string(rule.doc),
                    holds=holds,
                    ascending=None
                    if found.ascending is None
                    else string(found.ascending.field.name),
                    array=None if found.elements_of is None else string(found.elements_of),
                )
            )
        if items:
            name = symbol(plan.name, plan.version)
            text = render(call(f"{name}.requires", *items))
            if any(len(line) > WIDTH for line in text.splitlines()):
                text += "  # fmt: skip"
            self.append_part(text, apart=True)

    def layout_version(self, plan: LayoutPlan) -> str:
        """Return the assignments of the codec of one version of a layout, and of the class of its
        parsed values. Add both names to the exported names.
        """
        name = symbol(plan.name, plan.version)
        self.scope.exported.append(name)
        items: list[tuple[str, Code]] = [("", string(plan.name))]
        items += [("", self.field_call(plan, i)) for i in range(len(plan.fields))]
        items.append(("source=", string(self.file)))
        if plan.version is not None:
            items.append(("version=", str(plan.version)))
        if "trailing_bytes" in plan.layout.accepts:
            items.append(("trailing=", "True"))
        if plan.given:
            items.append(("given=", self.given_calls(plan)))
        code = assign(name, Call(self.scope.use("Layout"), tuple(items)))
        return f"{code}\n{self.parsed_class(plan.name, plan.version)}"

    def field_call(self, plan: LayoutPlan, index: int) -> Call:
        """Return the ``Field`` call for the field at ``index`` of a layout: its name, codec and
        source line, and each property that the schema declares; others are omitted.
        """
        fp = plan.fields[index]
        f = fp.field
        return call(
            self.scope.use("Field"),
            string(f.name),
            self.fields.codec(plan, index),
            line=str(f.span.line),
            when=self.scope.function(fp.when),
            default=self.scope.function(fp.default) or ("lambda _: {}" if f.filled else None),
            const=None if f.const is None else literal(f.const),
            version=str(plan.version) if f.is_version else None,
            measures=_field_range(fp.measures, plan),
            excess=str(f.excess) if f.excess else None,
            counts=_counted_arrays(f.counts),
            checksum=None if f.checksum is None else string(f.checksum),
            covers=_covered_ranges(fp, plan),
            zero=listing([string(name) for name in f.zero]) if f.zero else None,
            mask=None if f.mask is None else self.mask_call(f.mask),
            valid=self.rule_call(f.valid, fp.valid),
            refuse=self.rule_call(f.refuse, fp.refuse),
            spelled=self.other_spelling(f.name, f.spelled),
            hidden="True" if f.hidden else None,
            tag=None if f.tag is None else str(f.tag),
            absent=None if f.absent is None else str(f.absent),
            unit=None if f.unit is None else string(f.unit),
            fills=self.fill_calls(plan, f.name),
            sensitive=None
            if f.sensitive is None
            else sensitive_code(self.scope.use("Sensitive"), f.sensitive),
        )

    def given_calls(self, plan: LayoutPlan) -> Code:
        """Return the values that a layout is given."""
        given = self.scope.use("Given")
        codecs = ((fp.name, self.fields.given_codec(fp)) for fp in plan.given)
        return Call("", tuple(("", call(given, string(name), codec)) for name, codec in codecs))

    def fill_calls(self, plan: LayoutPlan, array: str) -> Code | None:
        """Return the code of a tuple of ``Fill`` calls, one for each field of the elements of
        ``array`` that builders fill in, in this version. Return None if there are none.
        """
        items: list[tuple[str, Code]] = []
        for fill in plan.layout.fills_of(array, plan.version):
            names = map(string, (fill.target, fill.given, fill.base))
            otherwise = None if fill.otherwise is None else str(fill.otherwise)
            items.append(("", call(self.scope.use("Fill"), *names, otherwise=otherwise)))
        return Call("", tuple(items)) if items else None

    def other_spelling(self, name: str, spelled: str | None) -> str | None:
        """Return the name that the format's own documents use as a literal, or None if it is ``name``."""
        other = self.plan.spelling(name, spelled)
        return None if other == name else string(other)

    def mask_call(self, mask: Mask) -> Code:
        """Return the ``Mask`` call for the change of a checksum before it is stored: bits that are
        kept, rotation to the right, and number that is added, each if declared.
        """
        return call(
            self.scope.use("Mask"),
            keep=None if mask.keep is None else f"{mask.keep:#x}",
            rotate_right=str(mask.rotate_right) if mask.rotate_right else None,
            add=f"{mask.add:#x}" if mask.add else None,
        )

    def rule_call(self, code: Expression | None, value: Value | None) -> Code | None:
        """Return the call that makes a rule of a field, or None if there is no rule."""
        if code is None or value is None:
            return None
        return call(self.scope.use("Rule"), string(str(code)), self.scope.condition(value))

    # ------------------------------------------------------------ derived values and choices

    def add_derived_function(self, layout: Layout, derived: DerivedValue) -> None:
        """Append the function that computes a derived value. If a function of that name exists,
        report C023 and append nothing: another layout of the file derives the same name.
        """
        d = derived.derived
        name = d.name if d.array is None else f"{d.array}_{d.name}"
        if name in self.functions:
            self.scope.report_unsupported(
                f'two layouts of this file derive "{name}"',
                d.span,
                "put them into files of their own",
            )
            return
        self.functions[name] = d
        self.std.add("Container")
        bits = derived.bits
        expressions = self.scope.expressions(layout.name, bits)
        body = expressions.body(derived.value)
        self.scope.runtime |= expressions.helpers
        parameters = f"{layout.name}: Container"
        if d.array is not None:
            parameters += ", item: Container"
        result = f"{d.python} | None" if derived.type.nullable else d.python
        unit = f", in {d.unit}" if d.unit else ""
        kind = f"int{bits}{unit}; sums wrap" if d.python == "int" else d.type.capitalize()
        note = f"{kind}. From {self.file}:{d.span.line}."
        if d.versions is not None:
            note = f"Versions {d.versions}. {note}"
        lines = [f"def {name}({parameters}) -> {result}:", docstring(d.doc, note, indent=4)]
        self.append_part("\n".join([*lines, *body]), apart=True)

    def add_choice(self, choice: Choice) -> None:
        """Append the codec of a choice, and the union of the parsed classes of its cases. The codec
        is a ``Choice`` if a field of the cases selects them; otherwise a dict of codecs by enum
        member or number.
        """
        name = symbol(choice.name)
        self.scope.exported.append(name)
        codecs: list[tuple[str, Code]] = []
        for key, ref, inner in list_cases(choice):
            layout = self.plan.model.layouts[ref.layout]
            version = ref.version if layout.versions is not None and inner is None else None
            named = inner or ref.layout
            target = self.scope.refer(named, symbol(named, version))
            if choice.given is not None:
                enum = self.scope.refer(choice.given, class_name(choice.given))
                codecs.append((f"{enum}.{str(key).upper()}", target))
            else:
                codecs.append((str(key), target))
        if choice.by is not None:
            code: Code = call(
                self.scope.use("Choice"),
                string(choice.name),
                by=string(choice.by),
                cases=mapping(codecs),
                source=string(self.file),
            )
        else:
            code = mapping(codecs)
        whole = self.union_class(choice.name, merge_versions(self.plan, cases(self.plan, choice)))
        self.append_part(f"{comment(choice.doc)}\n{assign(name, code)}\n{whole}")

    def add_text_file(self, text: Text) -> None:
        """Append the codec of a text file and the class of its parsed values, after its description
        as a comment if it has one.
        """
        name = symbol(text.name)
        self.scope.exported.append(name)
        code = f"{assign(name, self.texts.text_file(text))}\n{self.parsed_class(text.name)}"
        self.append_part(comment(text.doc) + "\n" + code if text.doc else code)

    def parsed_class(self, name: str, version: int | None = None) -> str:
        """Return the assignment that names the class of parsed values of a layout or text, broken
        into lines above 100 characters. Add the name to the exported names.
        """
        known = self.scope.classes[name, version]
        self.scope.exported.append(known)
        value = f"{symbol(name, version)}.parsed_class"
        one = f"{known} = {value}"
        return one if len(one) <= WIDTH else f"{known} = (\n    {value}\n)"

    def union_class(self, name: str, keys: Sequence[Key]) -> str:
        """Return the assignment of the union of the parsed classes of ``keys``, pairs of a layout
        and a version, to the class name of ``name``, a choice or a layout with versions. Add the
        class name to the exported names.
        """
        known = self.scope.classes[name, None]
        self.scope.exported.append(known)
        return union_alias(
            known, [self.scope.refer(key[0], self.scope.classes[key]) for key in keys]
        )


def _counted_arrays(names: tuple[str, ...]) -> Code | None:
    """Return the code of the arrays that a field counts: the name of one, or a tuple of several.
    Return None if there are none.
    """
    if len(names) == 1:
        return string(names[0])
    return tuple_of([string(name) for name in names]) if names else None


def _field_range(field_range: FieldRange | None, plan: LayoutPlan) -> Code | None:
    """Return the code of a tuple of the first and the last field of a range; the last is ``None``
    if the range goes to the end of the layout. Return None if ``field_range`` is None.
    """
    if field_range is None:
        return None
    last = (
        None
        if field_range.last is None or field_range.last == plan.fields[-1].name
        else field_range.last
    )
    return Call(
        "", (("", string(field_range.first)), ("", "None" if last is None else string(last)))
    )


def _covered_ranges(fp: FieldPlan, plan: LayoutPlan) -> Code | None:
    """Return the range that a checksum covers, a list if there are several, or None if there is none."""
    parts = [run for part in fp.covers if (run := _field_range(part, plan)) is not None]
    return listing(parts) if len(parts) > 1 else parts[0] if parts else None


def _number_field(plan: LayoutPlan, value: DerivedValue) -> Code | None:
    """Return the code of the field name that errors of a look-up mention: the first field that the
    number is computed from, of the element for a value of elements; ``""`` if there is none. Values
    that the layout is given do not count. Return None for a value that looks nothing up.
    """
    look_ups = list(look_ups_in(value.value))
    if not look_ups:
        return None
    owner = "own" if value.derived.array is None else "item"
    for look_up in look_ups:
        for f in fields_read(look_up.index):
            if f.owner == owner and not (owner == "own" and plan.field(f.names[0]) is None):
                return string(f.names[0])
    return string("")


def _names_around(value: DerivedValue) -> Code | None:
    """Return the code of a list of the layout's own fields that a value derived for an array element
    depends on, a field of a held layout as the field that holds it; without the array itself, the
    element's fields and given values. Return None if the value does not depend on other elements of
    the array.
    """
    array = value.derived.array
    if all(end.array.field.name != array for end in ends_read(value.value)):
        return None
    fields = (f.names[0] for f in fields_read(value.value) if f.owner == "own")
    return listing([string(name) for name in dict.fromkeys(fields) if name != array])
