"""Build the declarations of a model from YAML documents: layouts, texts, enums, choices and views."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from codecgen.diagnostics import Span
from codecgen.schema import forms, grammar, yaml_tree
from codecgen.schema.by_version import types_by_version, version_ranges
from codecgen.schema.declarations import Declarations
from codecgen.schema.expression import Expression
from codecgen.schema.flexible import (
    Flexible,
    field_record,
    flexible_of,
    section,
    with_lengths,
)
from codecgen.schema.inference import (
    complete_layout,
    drop_needless_versions,
    local_layout,
    with_cases,
    with_counts,
    with_numbers,
    with_sizes,
)
from codecgen.schema.key_types import FLEXIBLE, MAX_CASES, parse_number_range
from codecgen.schema.model import (
    Choice,
    Derived,
    Enum,
    EnumValue,
    Field,
    Layout,
    Manifest,
    Model,
    View,
)
from codecgen.schema.nested_choices import with_layouts
from codecgen.schema.reader import Reader, Record, Value, describe_alternatives, parse_integer
from codecgen.schema.texts import EachLine, Kind, Text, TextExample, TextValue
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    Element,
    FieldType,
    PaddingType,
    Reference,
    ScalarType,
    Since,
    StructType,
    Versions,
)
from codecgen.schema.uses import Used

_WORD = re.compile(r"\w+")


class ModelBuilder:
    """Builds a model from YAML documents, one by one. ``reader`` collects the diagnostics."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.reader = Reader(manifest.release_line, tuple(manifest.links))
        self.layouts: dict[str, Layout] = {}
        self.enums: dict[str, Enum] = {}
        self.choices: dict[str, Choice] = {}
        self.views: dict[str, View] = {}
        self.texts: dict[str, Text] = {}
        self.declared: dict[str, Span] = {}
        self.broken: set[str] = set()
        self.around = Record(
            "layout", {}, Span("", 1, 1, 1)
        )  # the layout that is read, and the way to
        self.path: list[str] = []  # the field in it
        self.local_names: list[str] = []
        self.flexible: Flexible | None = None

    def build(self, files: Mapping[str, str], used: Used) -> Model:
        """Return the model of all documents added so far, with cases, versions and enum numbers
        inferred. ``used`` has the declarations of used directories. Names of documents that were
        invalid, and words of files that were left out, are in ``broken``, unless they are declared elsewhere.
        """
        found = drop_needless_versions(self.layouts, self.local_names)
        every = Declarations(found, used.layouts)
        enums = Declarations(self.enums, used.enums)
        layouts = Declarations(
            {n: complete_layout(one, every, enums) for n, one in found.items()}, used.layouts
        )
        choices = Declarations(
            {
                n: with_numbers(c, layouts, enums, Declarations(self.choices, used.choices))
                for n, c in self.choices.items()
            },
            used.choices,
        )
        choices = Declarations(with_layouts(dict(choices.items()), choices), used.choices)
        layouts = Declarations(
            {n: with_cases(one, choices, enums) for n, one in layouts.items()}, used.layouts
        )
        return Model(
            manifest=self.manifest,
            layouts=layouts,
            enums=enums,
            choices=choices,
            files=dict(files),
            broken=frozenset(self.broken - set(self.declared)) | used.broken,
            views=self.views,
            uses=used.directories,
            texts=self.texts,
        )

    # ------------------------------------------------------------ documents

    def skip_file(self, text: str) -> None:
        """Leave out a file that cannot be read. Each word of its text may be a name that it declares: these become broken."""
        self.broken |= set(_WORD.findall(text))

    def add_document(self, node: yaml_tree.Mapping) -> None:
        """Add the layout, text, choice, view or enums of one document. If it has not exactly one of
        these keys, or does not match its form, report it and add nothing; names of a document that
        does not match become broken.
        """
        kinds = [kind for kind in grammar.DOCUMENTS if node.get(kind) is not None]
        if len(kinds) != 1:
            place = node.entries[0][0].span if node.entries else node.span
            code, message = describe_alternatives("this document", grammar.DOCUMENTS, kinds)
            help = "begin each document with a line `---`" if kinds else ""
            self.reader.report(code, message, place, help=help)
            return
        record = self.reader.read_record(node, kinds[0])
        if record is None:
            self.broken |= forms.declared_names(node.get(kinds[0]))
            return
        build: dict[str, Callable[[Record], None]] = {
            "layout": self.add_layout,
            "text": self.add_text,
            "choice": self.add_choice,
            "enums": self.add_enums,
            "view": self.add_view,
        }
        build[kinds[0]](record)

    def declare(self, name: str, span: Span) -> bool:
        """Record the place of a name and return True. If the name is declared already, report it,
        keep the first place and return False.
        """
        if name in self.declared:
            first = self.declared[name]
            self.reader.report(
                "C008", f'"{name}" is declared twice', span, help=f"first at {first}"
            )
            return False
        self.declared[name] = span
        return True

    def add_layout(self, r: Record) -> None:
        """Add a layout and its inline layouts. Report a name that is declared already, and then add
        nothing; report version notes whose key is not decimal digits, and leave them out.
        """
        name = str(r["layout"])
        if not self.declare(name, r.at("layout")):
            return
        accepts = frozenset(forms.words(r["accepts"]))
        self.around, self.path, self.flexible = r, [name], flexible_of(r)
        fields = self.make_fields(r, accepts) + self.make_tagged_fields(r, accepts)
        notes: dict[int, tuple[Since | None, Since | None]] = {}
        for key, n in forms.entries(r["version_notes"]):
            if key.isdecimal():
                notes[int(key)] = (cast(Since | None, n["since"]), cast(Since | None, n["until"]))
            else:
                help = "write the version as the key: `version_notes: {0: ..}`"
                self.reader.report("C006", f'a version is a number, not "{key}"', n.span, help=help)
        overhead = forms.documentation(r)["overhead"]
        self.layouts[name] = Layout(
            name=name,
            doc=r.text("doc"),
            span=r.at("layout"),
            fields=fields,
            endian=cast(Any, r["endian"] or "big"),
            versions=cast(Versions | None, r["versions"]),
            version_notes=notes,
            since=cast(Since | None, r["since"]),
            draft=cast(Since | None, r["draft"]),
            accepts=accepts,
            flexible=cast(Any, r["flexible"]),
            derived=tuple(self.make_derived(r)),
            fills=tuple(forms.fills(r["build"])),
            rules=tuple(
                forms.rule(key, value, forms.key_spans(r["rules"])[key])
                for key, value in forms.entries(r["rules"])
            ),
            examples=tuple(
                forms.example(v.value) for v in cast(tuple[Any, ...], r["examples"] or ())
            ),
            overhead=forms.overhead(overhead) if isinstance(overhead, Record) else None,
            message=forms.message(r["message"]),
            given=forms.given_values(r["given"]),
            places=r.places(
                *("since", "draft", "endian", "versions", "version_notes"),
                *("accepts", "flexible", "given"),
            ),
        )

    def add_text(self, r: Record) -> None:
        """Add a text. Report a name that is declared already, and then add nothing."""
        name = str(r["text"])
        if self.declare(name, r.at("text")):
            self.texts[name] = _make_text(r)

    def add_choice(self, r: Record) -> None:
        """Add a choice. Report a name that is declared already, and then add nothing."""
        name = str(r["choice"])
        if not self.declare(name, r.at("choice")):
            return
        self.choices[name] = _make_choice(self.reader, r)

    def add_view(self, r: Record) -> None:
        """Add a view. If another view has the name, report it and add nothing; names of layouts and
        other declarations do not collide with views.
        """
        name = str(r["view"])
        if name in self.views:
            first = self.views[name].span
            message = f'the view "{name}" is declared twice'
            self.reader.report("C008", message, r.at("view"), help=f"first at {first}")
            return
        self.views[name] = View(
            name=name,
            doc=r.text("doc"),
            span=r.at("view"),
            of="" if isinstance(r["of"], dict) else str(r["of"]),
            columns=forms.columns(r["columns"]),
            rows=tuple(forms.rows(v.value) for v in cast(tuple[Any, ...], r["rows"])),
            parts=forms.parts(r["of"]),
            kernels=bool(r["kernels"]),
            places=r.places("of", "kernels"),
        )

    def add_enums(self, r: Record) -> None:
        """Add all enums of a document. Report each name that is declared already and skip that
        enum.
        """
        for name, entry in cast(dict[str, Value], r["enums"]).items():
            key, inner = cast(Any, entry.value)
            if not self.declare(name, key.span):
                continue
            e = cast(Record, inner.value)
            values = []
            for value_name, value_entry in cast(dict[str, Value], e["values"]).items():
                value_key, value = cast(Any, value_entry.value)
                v = value.value
                if isinstance(v, int):
                    values.append(EnumValue(value_name, v, value_key.span))
                else:
                    values.append(
                        EnumValue(
                            name=value_name,
                            value=v["value"],
                            span=value_key.span,
                            doc=v.text("doc"),
                            since=v["since"],
                            spelled=v["spelled"],
                            places=v.places(),
                        )
                    )
            self.enums[name] = Enum(
                name, e.text("doc"), key.span, tuple(values), e["unknown"] == "keep"
            )

    # ------------------------------------------------------------ fields

    def make_fields(self, r: Record, accepts: frozenset[str]) -> tuple[Field, ...]:
        """Return the fields of a layout or of an inline layout in order, untagged ones only. Links
        are filled in: ``counted_by`` of arrays that a field counts, ``measures`` of fields that
        bytes name as their length. Inline layouts of fields are added to the model.
        """
        spans = forms.key_spans(r["fields"])
        entries = forms.entries(r["fields"])
        records = [(name, v) for name, v in entries if isinstance(v, Record)]
        counted = {name for _, v in records for name in forms.one_or_more(v["counts"])}
        counted |= {name for name, v in records if isinstance(v["count"], tuple)}
        fields = (
            self.make_field(n, value, spans[n], accepts, n in counted) for n, value in entries
        )
        return with_sizes(with_counts(tuple(fields)))

    def make_tagged_fields(self, r: Record, accepts: frozenset[str]) -> tuple[Field, ...]:
        """Return the tagged fields of a layout in order, followed by the field for their section if
        a version is flexible. All inherit the tolerances ``accepts``. Inline layouts of fields are
        added to the model; mistakes are reported, not raised.
        """
        spans = forms.key_spans(r["tagged"])
        entries = forms.entries(r["tagged"])
        fields = [self.make_field(n, value, spans[n], accepts, tagged=True) for n, value in entries]
        return (*fields, *section(self.flexible, r.at("flexible"), accepts))

    def make_local_layout(self, r: Record, span: Span, accepts: frozenset[str]) -> Reference:
        """Return a reference to an inline layout, and add the layout, with the tolerances
        ``accepts`` except ``trailing_bytes``, to the model. Its name is the path to the field,
        joined with ``_``. Add nothing if the same field was read before, for other versions. If
        another declaration has the name, report it and do not add this layout, only those inside of
        it; the reference, which then means the other declaration, is returned all the same.
        """
        name = "_".join(self.path)
        if self.declared.get(name) is span:
            return Reference(name, None, span)  # in another version
        accepts -= {"trailing_bytes"}
        fields = self.make_fields(r, accepts) + section(self.flexible, span, accepts)
        if self.declare(name, span):
            self.layouts[name] = local_layout(name, fields, span, self.around, accepts)
            self.local_names.append(name)
        return Reference(name, None, span)

    def make_field(
        self,
        name: str,
        value: object,
        span: Span,
        accepts: frozenset[str],
        counted: bool = False,
        tagged: bool = False,
    ) -> Field:
        """Return a field from a type name or a record (``value``), with the type of the last
        versions if its type differs by version. Report a tagged field (``tagged``) without ``tag``,
        a ``tag`` on another field, and an invalid ``const``, ``default`` or ``none``; return the
        field all the same. ``accepts`` are the tolerances of the layout, which the field inherits;
        ``counted`` says that another field counts its elements.
        """
        around = cast(Any, self.around["endian"] or "big")
        if isinstance(value, str) and value not in FLEXIBLE:
            return Field(name, ScalarType(value), span, around, accepts=accepts)
        given = value if isinstance(value, Record) else field_record(str(value), span)
        if tagged and "tag" not in given:
            help = "the number that stands before its bytes: `tag: 0`"
            self.reader.report(
                "C005", f'"{name}" is tagged, and needs the key "tag"', span, help=help
            )
        elif "tag" in given and not tagged:
            message = '"tag" is only allowed for fields under `tagged`'
            help = 'take out "tag", or move the field under `tagged`'
            self.reader.report("C011", message, given.at("tag"), help=help)
        r = with_lengths(self.reader, given, name, self.flexible, counted=counted, tagged=tagged)
        self.path.append(name)
        here = accepts | frozenset(forms.words(r["accepts"]))
        types = types_by_version(r, lambda one: self.make_type(one, span, here))
        type_ = types[-1][1] if types else self.make_type(r, span, here)
        self.path.pop()
        pages = forms.documentation(r)
        return Field(
            name=name,
            type=type_,
            types=types,
            ranges=version_ranges(r),
            span=span,
            endian=cast(Any, r["endian"]) or around,
            doc=r.text("doc"),
            versions=cast(Versions | None, r["versions"]),
            since=cast(Since | None, r["since"]),
            when=cast(Expression | None, r["when"]),
            default=forms.default(self.reader, r) or forms.absent_default(r),
            absent=forms.absent_number(r),
            const=forms.constant(self.reader, r),
            is_version=r["is"] == "version",
            measures=forms.field_range(r, "measures"),
            counts=forms.one_or_more(r["counts"]),
            checksum=cast(str | None, r["checksum"]),
            covers=forms.covered(r),
            mask=forms.mask(r["mask"]),
            valid=cast(Expression | None, r["valid"]),
            refuse=cast(Expression | None, r["refuse"]),
            accepts=accepts | frozenset(forms.words(r["accepts"])),
            unit=cast(str | None, r["unit"]),
            spelled=cast(str | None, r["spelled"]),
            formerly=forms.formerly(pages["formerly"]),
            misprint=forms.misprint(pages["misprint"]),
            hidden=bool(pages["hidden"]),
            sensitive=forms.sensitive(r["sensitive"]),
            tag=cast(int | None, r["tag"]),
            filled=forms.is_filled(r),
            gives=tuple(forms.entries(r["given"] or _given_elements(r))),
            places=r.places(),
        )

    def make_type(self, r: Record, span: Span, accepts: frozenset[str]) -> FieldType:
        """Return the type of a field (scalar, bits, bytes, padding, struct, choice or array) from a
        record without values by version. Inline layouts, at the place ``span`` and with the
        tolerances ``accepts``, are added to the model.
        """
        only = forms.words(r["only"]) if "only" in r else None
        if "type" in r:
            return ScalarType(str(r["type"]), cast(str | None, r["enum"]), only)
        if "bits" in r:
            members = tuple(
                forms.bit(key, value, forms.key_spans(r["members"])[key])
                for key, value in forms.entries(r["members"])
            )
            return BitsType(str(r["bits"]), members)
        if "bytes" in r or "string" in r:
            return forms.bytes_type(r)
        if "padding" in r:
            return PaddingType(cast(int, r["padding"]))
        if "layout" in r:
            return StructType(forms.reference(r["layout"], r.at("layout")), *_read_presence(r))
        if "choice" in r:
            return forms.choice_type(r)
        if "fields" in r:
            return StructType(self.make_local_layout(r, span, accepts), *_read_presence(r))
        compressed, count = r["compressed"], r["count"]
        return ArrayType(
            element=self.make_element(r, span, accepts),
            count=count if isinstance(count, str) else None,
            counted_by=count[0] if isinstance(count, tuple) else None,
            plus=-count[1] if isinstance(count, tuple) else 0,
            fixed=count if isinstance(count, int) else None,
            length=cast(str | None, r["length"]),
            compression=forms.compression(compressed) if isinstance(compressed, Record) else None,
            nesting=cast(int | None, r["nesting"]),
            at_least=cast(int, r["at_least"] or 0),
            null=cast(int | None, r["none"]),
            until=until if isinstance(until := r["until"], Expression) else None,
        )

    def make_element(self, r: Record, span: Span, accepts: frozenset[str]) -> Element:
        """Return the type of the elements of an array: a scalar, bytes, a choice or a reference to
        a layout. An inline layout, at the place ``span`` and with the tolerances ``accepts``, is
        added to the model.
        """
        match r["array"]:
            case str(name):
                return ScalarType(name)
            case Record() as inner if "fields" in inner:
                return self.make_local_layout(inner, span, accepts)
            case Record() as inner if "choice" in inner:
                return forms.choice_type(inner)
            case Record() as inner:
                return forms.bytes_type(inner)
            case name:
                return forms.reference(name, r.at("array"))

    # ------------------------------------------------------------ beside the fields

    def make_derived(self, r: Record) -> list[Derived]:
        """Return the derived values of a layout and of the elements of its arrays, in order. Values
        that do not match their form are reported and left out.
        """
        out = []
        for name, node in forms.entries(r["derived"]):
            span = forms.key_spans(r["derived"])[name]
            if isinstance(node, yaml_tree.Mapping) and node.get("is") is None:
                for key, child in node.entries:
                    found = self.reader.read_record(child, "derived")
                    if found is not None:
                        out.append(forms.derived(key.text, found, key.span, (name, span)))
            else:
                found = self.reader.read_record(node, "derived")
                if found is not None:
                    out.append(forms.derived(name, found, span, None))
        return out


def _given_elements(r: Record) -> object:
    """Return what the elements of an array are given, if the form of the elements says it; None otherwise."""
    element = r["array"]
    return element["given"] if isinstance(element, Record) else None


def _read_presence(r: Record) -> tuple[str | None, int | None, Expression | None]:
    """Return (type of the number in front of an optional layout, number that means null, version
    expression) of a field that holds a layout. The first two are None if the field cannot be null,
    the third if no version is given.
    """
    version, none = cast(Expression | None, r["version"]), r["none"]
    if not isinstance(none, Record):
        return None, None, version
    return str(none["type"]), cast(int, none["value"]), version


def _make_choice(reader: Reader, r: Record) -> Choice:
    """Return the choice of a document with its cases in order; a case of a number range becomes one
    per number. Report cases that are no valid range, and leave them out. Once there are more than
    ``MAX_CASES``, report that and leave out the rest. Numbers that occur twice are kept. ``by``
    names a field, unless it names a value that the choice is given, which then decides.
    """
    outer = forms.given_values(r["given"])
    by = str(r["by"])
    decider = next((f.type for f in outer if f.name == by), None)
    type_, enum = (decider.name, decider.enum) if isinstance(decider, ScalarType) else (None, None)
    cases: list[tuple[int | str, Reference]] = []
    places = r.places()
    for key, entry in cast(dict[str, Value], r["cases"]).items():
        inner = cast(Any, entry.value)[1]
        ref = forms.reference(inner.value, inner.span)
        for case in _case_values(reader, key, entry.span):
            cases.append((case, ref))
            places[f"cases.{case}"] = entry.span
        if len(cases) > MAX_CASES:
            reader.report("C006", f"more than {MAX_CASES} cases", entry.span)
            break
    return Choice(
        name=str(r["choice"]),
        doc=r.text("doc"),
        span=r.at("choice"),
        by=by if decider is None else None,
        given=enum,
        cases=tuple(cases),
        named=tuple(cases),
        given_type=type_ if enum is None else None,
        outer=outer,
        decider=None if decider is None else by,
        since=cast(Since | None, r["since"]),
        places=places,
    )


def _case_values(reader: Reader, key: str, span: Span) -> Sequence[int | str]:
    """Return the discriminators of a case: a word, one number, or all numbers of a range such as
    ``0-3``. Report a range that is invalid, descends or is longer than ``MAX_CASES``, and return
    ``()``.
    """
    number = parse_integer(key)
    if number is not None or not key[:1].isdecimal():
        return [key if number is None else number]
    numbers = parse_number_range(key)
    if numbers is None:
        help = f"write the lower number first, such as 0-3, and at most {MAX_CASES} numbers"
        reader.report("C006", f'"{key}" is not a valid range of numbers', span, help=help)
    return numbers or ()


_KINDS: tuple[Kind, ...] = ("decimal", "string", "uuid")


def _make_text(r: Record) -> Text:
    """Return the text of a document, with its lines or properties and examples. Repeated lines get
    the name of the line that counts them in ``counted_by``, or None.
    """
    accepts = frozenset(forms.words(r["accepts"]))
    lines = tuple(
        _make_text_line(name, line, span, accepts) for name, line, span in _text_entries(r["lines"])
    )
    counted = {line.counts: line.name for line in lines if isinstance(line, TextValue)}
    lines = tuple(
        replace(line, counted_by=counted.get(line.name)) if isinstance(line, EachLine) else line
        for line in lines
    )
    return Text(
        name=str(r["text"]),
        doc=r.text("doc"),
        span=r.at("text"),
        lines=lines,
        properties=tuple(
            _make_text_value(name, value, span, accepts)
            for name, value, span in _text_entries(r["properties"])
        ),
        since=cast(Since | None, r["since"]),
        accepts=accepts,
        may_be_empty=bool(r["may_be_empty"]),
        final_newline=r["final_newline"] is not False,
        keep_unknown=r["unknown"] == "keep",
        examples=tuple(
            _make_text_example(v.value) for v in cast(tuple[Any, ...], r["examples"] or ())
        ),
        places=r.places(),
    )


def _text_entries(value: object) -> list[tuple[str, Record, Span]]:
    """Return (name, record, place) of each entry of a mapping that was read, in order; ``[]`` if
    the key is missing (None).
    """
    spans: Mapping[str, Span] = forms.key_spans(value)
    return [(name, entry, spans[name]) for name, entry in forms.entries(value)]


def _make_text_line(
    name: str, r: Record, span: Span, accepts: frozenset[str]
) -> TextValue | EachLine:
    """Return a line of a text: an EachLine for the key ``each`` (repeated lines), else a TextValue.
    ``accepts`` are the tolerances of the text, which the line inherits.
    """
    if "each" not in r:
        return _make_text_value(name, r, span, accepts)
    return EachLine(
        name=name,
        values=tuple(
            _make_text_value(n, v, s, frozenset()) for n, v, s in _text_entries(r["each"])
        ),
        separator=str(r["separator"] or ""),
        span=span,
        doc=r.text("doc"),
        accepts=accepts | frozenset(forms.words(r["accepts"])),
        places=r.places(),
    )


def _make_text_value(name: str, r: Record, span: Span, accepts: frozenset[str]) -> TextValue:
    """Return a value of a text. Its kind is the first of ``decimal``, ``string`` and ``uuid`` in
    its record, which has one of them. Its property key is ``spelled``, or else its name.
    ``accepts`` are the tolerances of the text, which it inherits.
    """
    kind = next(kind for kind in _KINDS if kind in r)
    return TextValue(
        name=name,
        kind=kind,
        of=str(r[kind]),
        span=span,
        doc=r.text("doc"),
        key=str(r["spelled"] or name),
        label=cast(str | None, r["label"]),
        separator=str(r["separator"] or ""),
        const=cast(int | None, r["const"]),
        counts=cast(str | None, r["counts"]),
        default=cast(Expression | None, r["default"]),
        valid=cast(Expression | None, r["valid"]),
        refuse=cast(Expression | None, r["refuse"]),
        accepts=accepts | frozenset(forms.words(r["accepts"])),
        unit=cast(str | None, r["unit"]),
        since=cast(Since | None, r["since"]),
        places=r.places(),
    )


def _make_text_example(r: Record) -> TextExample:
    """Return an example of a text with its values as Python objects. ``data`` is the text as UTF-8,
    or None if the example gives values only.
    """
    node = cast(Any, r["values"])
    places = {"values": r.at("values"), **dict(forms.value_places(node, "values"))}
    data = cast(str | None, r["text"])
    return TextExample(
        name=r.text("name"),
        doc=r.text("doc"),
        data=None if data is None else data.encode("utf-8"),
        value=forms.to_python(node),
        span=r.at("name"),
        since=cast(Since | None, r["since"]),
        places=places,
    )
