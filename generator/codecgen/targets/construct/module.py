"""One module of target construct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import DerivedValue, Value, ends_read, fields_read
from codecgen.schema.expression import Expression
from codecgen.schema.model import Choice, Declared, Derived, Enum, Layout
from codecgen.schema.nested_choices import cases_of
from codecgen.schema.texts import Text
from codecgen.schema.types import FieldRange
from codecgen.targets.construct.class_names import Classes, Key, cases, shortest, union
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

    def part(self, text: str, *, apart: bool = False) -> None:
        """Append a part of the module; ``apart`` surrounds it with two empty lines, as classes and functions have."""
        self.parts.append((text, apart))

    # ------------------------------------------------------------ the whole

    def text(self, header: str) -> str:
        """The module's source."""
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
        if isinstance(thing, Enum):
            self.enum(thing)
        elif isinstance(thing, Layout):
            self.layout(thing)
        elif isinstance(thing, Text):
            self.text_file(thing)
        else:
            self.choice(thing)

    # ------------------------------------------------------------ enums

    def enum(self, enum: Enum) -> None:
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
        self.part("\n".join(lines), apart=True)

    # ------------------------------------------------------------ layouts

    def layout(self, layout: Layout) -> None:
        plans = self.plan.versions[layout.name]
        if layout.doc:
            self.part(comment(layout.doc) + "\n" + self.one(plans[0]))
        else:
            self.part(self.one(plans[0]))
        for plan in plans[1:]:
            self.part(self.one(plan))
        if layout.versions is not None:
            cases = [(str(plan.version), symbol(layout.name, plan.version)) for plan in plans]
            name = symbol(layout.name)
            self.scope.exported.append(name)
            if layout.version_is is not None:
                name += f": {self.scope.use('Choice')}"
                code: Code = call(
                    self.scope.use("Choice"),
                    string(layout.name),
                    by=string(layout.version_is),
                    cases=mapping([(k, v) for k, v in cases]),
                    source=string(self.file),
                )
            else:
                code = mapping([(k, v) for k, v in cases])
            self.part(
                f"{assign(name, code)}\n{self.union(layout.name, [(p.name, p.version) for p in plans])}"
            )
        self.scope.defined.add(layout.name)
        for value in self.plan.derived[layout.name]:
            self.derived(layout, value)
        for plan in plans:
            self.derives(plan)
            self.requires(plan)

    def derives(self, plan: LayoutPlan) -> None:
        """Say what a layout derives, so that what is parsed has it."""
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
                )
            )
        if items:
            name = symbol(plan.name, plan.version)
            self.part(render(call(f"{name}.derives", *items)), apart=True)

    def requires(self, plan: LayoutPlan) -> None:
        """Set the rules of a layout."""
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
            self.part(text, apart=True)

    def one(self, plan: LayoutPlan) -> str:
        name = symbol(plan.name, plan.version)
        self.scope.exported.append(name)
        items: list[tuple[str, Code]] = [("", string(plan.name))]
        items += [("", self.field(plan, i)) for i in range(len(plan.fields))]
        items.append(("source=", string(self.file)))
        if plan.version is not None:
            items.append(("version=", str(plan.version)))
        if "trailing_bytes" in plan.layout.accepts:
            items.append(("trailing=", "True"))
        code = assign(name, Call(self.scope.use("Layout"), tuple(items)))
        return f"{code}\n{self.parsed_class(plan.name, plan.version)}"

    def field(self, plan: LayoutPlan, index: int) -> Call:
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
            measures=_run(fp.measures, plan),
            counts=None if f.counts is None else string(f.counts),
            checksum=None if f.checksum is None else string(f.checksum),
            covers=_covered(fp, plan),
            zero=listing([string(name) for name in f.zero]) if f.zero else None,
            mask=None if f.mask is None else f"{f.mask:#x}",
            valid=self.rule(f.valid, fp.valid),
            refuse=self.rule(f.refuse, fp.refuse),
            spelled=self.spelled(f.name, f.spelled),
            hidden="True" if f.hidden else None,
            tag=None if f.tag is None else str(f.tag),
            absent=None if f.absent is None else str(f.absent),
            unit=None if f.unit is None else string(f.unit),
            fills=self.fills(plan, f.name),
            sensitive=None
            if f.sensitive is None
            else sensitive_code(self.scope.use("Sensitive"), f.sensitive),
        )

    def fills(self, plan: LayoutPlan, array: str) -> Code | None:
        """Return the code for what builders put into the elements of an array, None for nothing."""
        items: list[tuple[str, Code]] = []
        for fill in plan.layout.fills_of(array, plan.version):
            names = map(string, (fill.target, fill.given, fill.base))
            otherwise = None if fill.otherwise is None else str(fill.otherwise)
            items.append(("", call(self.scope.use("Fill"), *names, otherwise=otherwise)))
        return Call("", tuple(items)) if items else None

    def spelled(self, name: str, spelled: str | None) -> str | None:
        """The name in the format's own documents, where it is another."""
        other = self.plan.spelling(name, spelled)
        return None if other == name else string(other)

    def rule(self, code: Expression | None, value: Value | None) -> Code | None:
        if code is None or value is None:
            return None
        return call(self.scope.use("Rule"), string(str(code)), self.scope.condition(value))

    # ------------------------------------------------------------ derived values and choices

    def derived(self, layout: Layout, derived: DerivedValue) -> None:
        d = derived.derived
        name = d.name if d.array is None else f"{d.array}_{d.name}"
        if name in self.functions:
            self.scope.refuse(
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
        result = "int | None" if derived.type.nullable else "int"
        unit = f", in {d.unit}" if d.unit else ""
        note = f"int{bits}{unit}; sums wrap. From {self.file}:{d.span.line}."
        if d.versions is not None:
            note = f"Versions {d.versions}. {note}"
        lines = [f"def {name}({parameters}) -> {result}:", docstring(d.doc, note, indent=4)]
        self.part("\n".join([*lines, *body]), apart=True)

    def choice(self, choice: Choice) -> None:
        name = symbol(choice.name)
        self.scope.exported.append(name)
        codecs: list[tuple[str, Code]] = []
        for key, ref, inner in cases_of(choice):
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
        whole = self.union(choice.name, shortest(self.plan, cases(self.plan, choice)))
        self.part(f"{comment(choice.doc)}\n{assign(name, code)}\n{whole}")

    def text_file(self, text: Text) -> None:
        name = symbol(text.name)
        self.scope.exported.append(name)
        code = f"{assign(name, self.texts.text_file(text))}\n{self.parsed_class(text.name)}"
        self.part(comment(text.doc) + "\n" + code if text.doc else code)

    def parsed_class(self, name: str, version: int | None = None) -> str:
        """Return the assignment that gives the class of parsed values of a layout or a text its name."""
        known = self.scope.classes[name, version]
        self.scope.exported.append(known)
        value = f"{symbol(name, version)}.parsed_class"
        one = f"{known} = {value}"
        return one if len(one) <= WIDTH else f"{known} = (\n    {value}\n)"

    def union(self, name: str, keys: Sequence[Key]) -> str:
        """What a choice, or a layout in any of its versions, is parsed to."""
        known = self.scope.classes[name, None]
        self.scope.exported.append(known)
        return union(known, [self.scope.refer(key[0], self.scope.classes[key]) for key in keys])


def _run(field_range: FieldRange | None, plan: LayoutPlan) -> Code | None:
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


def _covered(fp: FieldPlan, plan: LayoutPlan) -> Code | None:
    """The range that a checksum covers, or a list of several."""
    parts = [run for part in fp.covers if (run := _run(part, plan)) is not None]
    return listing(parts) if len(parts) > 1 else parts[0] if parts else None


def _names_around(value: DerivedValue) -> Code | None:
    """Return the names of the fields of the layout that a value of an element is made of, if it is made of other elements
    too; None if it is not."""
    array = value.derived.array
    if all(end.array.field.name != array for end in ends_read(value.value)):
        return None
    fields = (f.field.name for f in fields_read(value.value) if f.owner != "item")
    return listing([string(name) for name in dict.fromkeys(fields) if name != array])
