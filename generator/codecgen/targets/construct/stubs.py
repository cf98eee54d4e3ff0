"""Stubs for type checkers: one beside each module of target construct. They are never imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codecgen.plan import LayoutPlan, Plan
from codecgen.schema.model import Choice, Declared, Enum, Layout
from codecgen.schema.nested_choices import list_cases
from codecgen.schema.texts import EachLine, Text, TextValue
from codecgen.schema.types import BitsType, Reference
from codecgen.targets.construct.build_types import BuildTypes
from codecgen.targets.construct.class_names import Classes, cases, merge_versions, union_alias
from codecgen.targets.construct.homes import Home, class_name, symbol
from codecgen.targets.construct.value_types import ENTRIES, PARSED, ValueTypes
from codecgen.targets.python_source import WIDTH, docstring

_TEXT_KINDS = {"decimal": "int", "uuid": "UUID", "string": "str"}


class Stub:
    """Collects the types of the declarations of one YAML file as the parts of a stub."""

    def __init__(self, plan: Plan, home: Home, homes: Mapping[str, Home], names: Classes) -> None:
        self.plan = plan
        self.types = ValueTypes(plan, home, homes, names)
        self.builders = BuildTypes(self.types)
        self.classes: list[str] = []
        self.values: list[str] = []
        self.functions: dict[str, str] = {}
        self.has_fast_parsers = False

    def text(self, header: str) -> str:
        """Return the source of the stub: ``header`` as its docstring, imports, classes, codecs,
        functions, and ``__fast__`` and ``__made_for__``. Lines above 100 characters end with ``# fmt: skip``.
        """
        made_for = f"__made_for__: {self.types.builtin('dict')}[{self.types.builtin('str')}, {self.types.builtin('object')}]"
        if self.has_fast_parsers:
            made_for = f"__fast__: {self.types.builtin('str')}\n{made_for}"
        parts = [docstring(header)]
        imports = self.types.import_lines()
        if imports:
            parts.append("\n".join(imports))
        parts += map(_as_it_is, self.classes)
        if self.values:
            parts.append(_as_it_is("\n".join(self.values)))
        if self.functions:
            parts.append(_as_it_is("\n".join(self.functions.values())))
        parts.append(made_for)
        return "\n\n".join(parts) + "\n"

    def add(self, thing: Declared) -> None:
        """Add the types of a declaration (an enum, layout, text or choice) to the parts of the
        stub: its classes, codec and functions.
        """
        if isinstance(thing, Enum):
            self.add_enum(thing)
        elif isinstance(thing, Layout):
            self.add_layout(thing)
        elif isinstance(thing, Text):
            self.add_text_file(thing)
        else:
            self.add_choice(thing)

    # ------------------------------------------------------------ classes

    def add_enum(self, enum: Enum) -> None:
        """Add the class of an enum with its members, and with the static method ``LABELS`` if a
        value has another spelling.
        """
        base = self.types.use(ENTRIES, "Enumeration")
        lines = [f"class {class_name(enum.name)}({base}):"]
        lines += [f"    {value.name.upper()} = {value.value}" for value in enum.values]
        if any(value.spelled is not None for value in enum.values):
            text = self.types.builtin("str")
            lines += ["    @" + self.types.builtin("staticmethod")]
            lines += [f"    def LABELS() -> {self.types.builtin('dict')}[{text}, {text}]: ..."]
        self.classes.append("\n".join(lines))

    def add_class(
        self,
        name: str,
        fields: Iterable[tuple[str, str]],
        *,
        base: str | None = None,
        derived: Iterable[tuple[str, str]] = (),
        hidden: bool = False,
    ) -> None:
        """Add a class with annotated ``fields`` and with a property for each of ``derived``, both
        pairs of name and type. Its base is ``base``, by default ``Parsed``. A ``hidden`` class is
        marked ``type_check_only``: it does not exist at run time.
        """
        lines = [f"@{self.types.use('typing', 'type_check_only')}"] if hidden else []
        body = [f"    {field}: {type_}" for field, type_ in fields]
        for value, type_ in derived:
            body += [
                f"    @{self.types.builtin('property')}",
                f"    def {value}(self) -> {type_}: ...",
            ]
        head = f"class {name}({base or self.types.use(PARSED, 'Parsed')}):"
        lines += [head, *body] if body else [f"{head} ..."]
        self.classes.append("\n".join(lines))

    def add_layout(self, layout: Layout) -> None:
        """Add the classes and codecs of all versions of a layout, and its functions of derived
        values. A layout with versions also gets the union of its classes and a codec for all
        versions.
        """
        plans = self.plan.versions[layout.name]
        for plan in plans:
            self.add_layout_version(plan)
        if layout.versions is not None:
            whole = self.types.class_of(layout.name)
            types = [self.types.class_of(plan.name, plan.version) for plan in plans]
            self.classes.append(union_alias(whole, types))
            every = Reference(layout.name, None, layout.span)
            values = self.builders.values_of((plan.name, plan.version) for plan in plans)
            self.values.append(
                f"{symbol(layout.name)}: {self.types.codec_type(every, whole, values)}"
            )
        for value in self.plan.derived[layout.name]:
            d = value.derived
            name = d.name if d.array is None else f"{d.array}_{d.name}"
            any_ = self.types.use("typing", "Any")
            parameters = f"{layout.name}: {any_}" + ("" if d.array is None else f", item: {any_}")
            type_ = self.types.derived_type(value)
            self.functions[name] = f"def {name}({parameters}) -> {type_}: ..."

    def add_layout_version(self, plan: LayoutPlan) -> None:
        """Add the types of one version of a layout: the class of its parsed values, classes of its
        bits and of elements with derived values, the TypedDicts that its builder takes, and its
        codec.
        """
        name = self.types.class_of(plan.name, plan.version)
        for fp in plan.fields:
            if isinstance(fp.field.type, BitsType):
                bits = [(m.name, self.types.bit_type(m)) for m in fp.field.type.members]
                self.add_class(self.types.inner_class(name, fp.name), bits, hidden=True)
        arrays = plan.given_arrays
        fields = [(f.name, self.types.field_type(plan, f)) for f in plan.values if f not in arrays]
        derived = [(fp.name, self.types.field_type(plan, fp)) for fp in arrays] + [
            (v.derived.name, self.types.derived_type(v))
            for v in plan.derived
            if v.derived.array is None
        ]
        self.add_class(name, fields, derived=derived)
        for fp in plan.fields:
            for element in self.types.held_layouts(plan, fp.field.type):
                own = self.types.element_derived(plan, fp.name, element)
                if own:
                    base = self.types.class_of(element.name, element.version)
                    known = self.types.element_class(plan, fp, element)
                    self.add_class(known, (), base=base, derived=own, hidden=True)
        values = self.add_built_types(plan)
        entry = self.types.use(ENTRIES, "Layout")
        self.values.append(f"{symbol(plan.name, plan.version)}: {entry}[{name}, {values} | {name}]")

    def add_built_types(self, plan: LayoutPlan) -> str:
        """Add the TypedDicts that the builder of one version of a layout takes: for its fields of
        bits, for elements of which the layout fills fields (only if the array holds one layout),
        and for the layout itself. Return the name of the last.
        """
        name = self.builders.values_of([(plan.name, plan.version)])
        for fp in plan.fields:
            if isinstance(fp.field.type, BitsType):
                bits = [(m.name, self.builders.accepted_bit(m)) for m in fp.field.type.members]
                self.add_typed_dict(self.builders.built_bits(plan, fp), bits)
            filled, held = (
                self.builders.given_names(plan, fp.name),
                self.types.held_layouts(plan, fp.field.type),
            )
            if filled and len(held) == 1:
                fields = [(given, self.types.builtin("int")) for given in filled.values()]
                base = self.builders.values_of([(held[0].name, held[0].version)])
                self.add_typed_dict(self.builders.built_element(plan, fp), fields, base)
        self.add_typed_dict(name, self.builders.built_fields(plan))
        return name

    def add_typed_dict(self, name: str, fields: list[tuple[str, str]], base: str = "") -> None:
        """Add a class that exists for type checkers only, with ``fields``, pairs of name and type,
        all of which may be missing unless the type is ``Required[...]``. Its base is ``base``, or
        ``TypedDict`` if that is empty.
        """
        base = base or self.types.use("typing", "TypedDict")
        lines = [
            f"@{self.types.use('typing', 'type_check_only')}",
            f"class {name}({base}, total={self.types.builtin('False')}):",
            *(f"    {field}: {type_}" for field, type_ in fields),
        ]
        self.classes.append("\n".join(lines) + ("" if fields else " ..."))

    def add_choice(self, choice: Choice) -> None:
        """Add the union of the parsed classes of a choice, and the type of its codec: ``Choice`` if
        a field of the cases selects them, otherwise a dict of codecs by enum member or ``int``.
        """
        whole = self.types.class_of(choice.name)
        types = [
            self.types.class_of(*key) for key in merge_versions(self.plan, cases(self.plan, choice))
        ]
        self.classes.append(union_alias(whole, types))
        values = self.builders.values_of(cases(self.plan, choice))
        if choice.by is not None:
            type_ = f"{self.types.use(ENTRIES, 'Choice')}[{whole}, {values} | {whole}]"
        else:
            key = self.types.builtin("int")
            if choice.given is not None:
                key = self.types.refer(choice.given, class_name(choice.given))
            kinds = dict.fromkeys(
                f"{self.types.use(ENTRIES, 'Choice')}[{whole}, {values} | {whole}]"
                if inner
                else self.types.codec_type(ref, whole, values)
                for _, ref, inner in list_cases(choice)
            )
            type_ = f"{self.types.builtin('dict')}[{key}, {' | '.join(kinds)}]"
        self.values.append(f"{symbol(choice.name)}: {type_}")

    # ------------------------------------------------------------ texts

    def add_text_file(self, text: Text) -> None:
        """Add the class and the codec of a text file. Values may be None if the file may be empty,
        properties always. A properties file also gets ``unknown``, ``comments`` and ``order``;
        repeated lines get a class of their own.
        """
        name = self.types.class_of(text.name)
        fields: list[tuple[str, str]] = []
        for line in text.lines:
            if isinstance(line, EachLine):
                item = self.types.inner_class(name, line.name)
                self.add_class(
                    item, [(v.name, self.text_type(v)) for v in line.values], hidden=True
                )
                type_ = f"{self.types.use('collections.abc', 'Sequence')}[{item}]"
            else:
                type_ = self.text_type(line)
            fields.append((line.name, self.types.optional(type_, text.may_be_empty)))
        fields += [(p.name, self.types.optional(self.text_type(p), True)) for p in text.properties]
        if text.properties:
            word = self.types.builtin("str")
            sequence = self.types.use("collections.abc", "Sequence")
            fields += [
                ("unknown", f"{self.types.builtin('dict')}[{word}, {word}]"),
                ("comments", f"{sequence}[{word}]"),
                ("order", f"{sequence}[{self.types.optional(word, True)}]"),
            ]
        self.add_class(name, fields)
        entry = self.types.use(ENTRIES, "PropertiesFile" if text.properties else "LinesFile")
        self.values.append(f"{symbol(text.name)}: {entry}[{name}]")

    def text_type(self, value: TextValue) -> str:
        """Return the type of a value of a text."""
        kind = _TEXT_KINDS[value.kind]
        return self.types.use("uuid", kind) if kind == "UUID" else self.types.builtin(kind)


def _as_it_is(text: str) -> str:
    """Return ``text`` with ``# fmt: skip`` at the end of lines that are too long for a formatter."""
    return "\n".join(
        line if len(line) <= WIDTH else f"{line}  # fmt: skip" for line in text.split("\n")
    )
