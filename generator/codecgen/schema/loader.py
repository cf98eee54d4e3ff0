"""A schema directory -> a :class:`Model` and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from codecgen.diagnostics import Diagnostic
from codecgen.runtime.version import LANGUAGE
from codecgen.schema import forms, grammar, yaml_tree
from codecgen.schema.by_version import ranges_of, types_of
from codecgen.schema.declarations import Declarations
from codecgen.schema.expression import Expression
from codecgen.schema.inference import complete
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
from codecgen.schema.reader import Reader, Record, Value
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    FieldType,
    Reference,
    ScalarType,
    Since,
    Span,
    StructType,
    Versions,
)
from codecgen.schema.uses import Find, Used, use

MANIFEST = "codecgen.yaml"
_DIGITS = re.compile("[0-9]{1,9}")
_NOWHERE = Span(MANIFEST, 1, 1, 1)


def read_files(directory: Path) -> dict[str, str]:
    """The text of every YAML file below a directory, by its path relative to it (with ``/``).

    Hidden files are passed over. Bytes that are not UTF-8 become lone surrogates, which :func:`load` reports; of
    a file that is too large no more is read than it takes to see that.
    """
    out = {}
    for path in directory.rglob("*.y*ml"):
        name = path.relative_to(directory)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.suffix in (".yaml", ".yml") and path.is_file() and not hidden:
            with path.open("rb") as file:
                data = file.read(yaml_tree.MAX_BYTES + 1)
            text = data.decode("utf-8", "surrogateescape")
            out[name.as_posix()] = text.replace("\r\n", "\n")
    return dict(sorted(out.items()))


def load(
    files: Mapping[str, str], find: Find | None = None
) -> tuple[Model | None, list[Diagnostic]]:
    """The model of the files, and findings. The model is None when there is no manifest; what does not fit its
    form is left out of it. ``find`` finds the directories that it uses."""
    if MANIFEST not in files:
        message = f"the schema directory has no {MANIFEST}"
        help = (
            f"write one with the keys language, package and title (other YAML files: {len(files)})"
        )
        return None, [Diagnostic("C025", message, _NOWHERE, help=help)]
    documents, diagnostics = yaml_tree.load(MANIFEST, files[MANIFEST])
    if len(documents) != 1:
        if not diagnostics:
            diagnostics = [Diagnostic("C025", f"{MANIFEST} holds one document", _NOWHERE)]
        return None, diagnostics
    other = _other_language(documents[0])
    if other is not None:
        return None, [*diagnostics, other]
    reader = Reader()
    record = reader.record(documents[0], "manifest")
    diagnostics += reader.diagnostics
    if record is None:
        return None, diagnostics
    manifest = _manifest(record)
    builder = _Builder(manifest)
    used, found = use(manifest, find)
    diagnostics += found
    for file, text in files.items():
        if file.endswith(".yml"):
            help = f'name it "{file.removesuffix(".yml")}.yaml"'
            place = Span(file, 1, 1, 1)
            diagnostics.append(Diagnostic("C025", "schema files end in .yaml", place, help=help))
        elif file != MANIFEST:
            documents, found = yaml_tree.load(file, text)
            diagnostics += found
            for document in documents:
                builder.document(document)
    return builder.model(files, used), diagnostics + builder.reader.diagnostics


def _other_language(manifest: yaml_tree.Node) -> Diagnostic | None:
    """A finding when the files are in a version of the language that is not known: nothing else could be said of them."""
    node = manifest.get("language") if isinstance(manifest, yaml_tree.Mapping) else None
    if not isinstance(node, yaml_tree.Scalar) or not _DIGITS.fullmatch(node.text):
        return None
    if int(node.text) == LANGUAGE:
        return None
    message = (
        f"the files are in version {int(node.text)} of the schema language; {LANGUAGE} is known"
    )
    help = "install the release of the generator that knows it"
    if int(node.text) < LANGUAGE or int(node.text) == 0:
        help = f"change them as the changelog says, and write `language: {LANGUAGE}`"
    return Diagnostic("C020", message, node.span, help=help)


def _manifest(r: Record) -> Manifest:
    documents = r["documents"]
    return Manifest(
        package=str(r["package"]),
        title=r.text("title"),
        doc=r.text("doc"),
        span=r.span,
        spelling=cast(Any, r["spelling"] or "snake"),
        release_line=cast(str | None, r["release_line"]),
        releases=forms.words(r["releases"]),
        links={k: str(v) for k, v in forms.entries(r["links"])},
        as_of=forms.words(documents["as_of"]) if isinstance(documents, Record) else (),
        uses={k: str(v) for k, v in forms.entries(r["uses"])},
        places=r.places(),
    )


class _Builder:
    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.reader = Reader(manifest.release_line, tuple(manifest.links))
        self.layouts: dict[str, Layout] = {}
        self.enums: dict[str, Enum] = {}
        self.choices: dict[str, Choice] = {}
        self.views: dict[str, View] = {}
        self.declared: dict[str, Span] = {}
        self.broken: set[str] = set()

    def model(self, files: Mapping[str, str], used: Used) -> Model:
        every = Declarations(self.layouts, used.layouts)
        return Model(
            manifest=self.manifest,
            layouts=Declarations({n: complete(t, every) for n, t in every.items()}, used.layouts),
            enums=Declarations(self.enums, used.enums),
            choices=Declarations(self.choices, used.choices),
            files=dict(files),
            broken=frozenset(self.broken - set(self.declared)) | used.broken,
            views=self.views,
            uses=used.directories,
        )

    # ------------------------------------------------------------ documents

    def document(self, node: yaml_tree.Mapping) -> None:
        kinds = [kind for kind in grammar.DOCUMENTS if node.get(kind) is not None]
        if len(kinds) != 1:
            words = ", ".join(grammar.DOCUMENTS)
            place = node.entries[0][0].span if node.entries else node.span
            self.reader.report("C005", f"a document has exactly one of the keys {words}", place)
            return
        record = self.reader.record(node, kinds[0])
        if record is None:
            self.broken |= forms.key_names(node.get(kinds[0]))
            return
        build: dict[str, Callable[[Record], None]] = {
            "layout": self.layout,
            "choice": self.choice,
            "enums": self.enum_table,
            "view": self.view,
        }
        build[kinds[0]](record)

    def declare(self, name: str, span: Span) -> bool:
        if name in self.declared:
            first = self.declared[name]
            self.reader.report(
                "C008", f'"{name}" is declared twice', span, help=f"first at {first}"
            )
            return False
        self.declared[name] = span
        return True

    def layout(self, r: Record) -> None:
        name = str(r["layout"])
        if not self.declare(name, r.at("layout")):
            return
        accepts = frozenset(forms.words(r["accepts"]))
        fields = tuple(
            self.field(key, value, forms.key_spans(r["fields"])[key], accepts)
            for key, value in forms.entries(r["fields"])
        )
        notes: dict[int, tuple[Since | None, Since | None]] = {}
        for key, n in forms.entries(r["version_notes"]):
            if key.isdecimal():
                notes[int(key)] = (cast(Since | None, n["since"]), cast(Since | None, n["until"]))
            else:
                self.reader.report("C006", f'a version is a number, not "{key}"', n.span)
        counted = {f.counts: f.name for f in fields if f.counts}
        fields = tuple(
            f.with_types(counted_by=counted[f.name])
            if f.name in counted and isinstance(f.type, ArrayType)
            else f
            for f in fields
        )
        overhead = r["overhead"]
        self.layouts[name] = Layout(
            name=name,
            doc=r.text("doc"),
            span=r.at("layout"),
            fields=fields,
            endian=cast(Any, r["endian"] or "big"),
            versions=cast(Versions | None, r["versions"]),
            version_is=cast(str | None, r["version_is"]),
            version_notes=notes,
            since=cast(Since | None, r["since"]),
            draft=cast(Since | None, r["draft"]),
            accepts=accepts,
            derived=tuple(self.derived(r)),
            examples=tuple(
                forms.example(v.value) for v in cast(tuple[Any, ...], r["examples"] or ())
            ),
            overhead=forms.overhead(overhead) if isinstance(overhead, Record) else None,
            places=r.places(
                "since", "draft", "endian", "versions", "version_is", "version_notes", "accepts"
            ),
        )

    def choice(self, r: Record) -> None:
        name = str(r["choice"])
        if not self.declare(name, r.at("choice")):
            return
        cases: list[tuple[int | str, Reference]] = []
        for key, entry in cast(dict[str, Value], r["cases"]).items():
            inner = cast(Any, entry.value)[1]
            cases.append(
                (int(key) if key.isdecimal() else key, forms.reference(inner.value, inner.span))
            )
        self.choices[name] = Choice(
            name=name,
            doc=r.text("doc"),
            span=r.at("choice"),
            by=cast(str | None, r["by"]),
            given=cast(str | None, r["given"]),
            cases=tuple(cases),
            since=cast(Since | None, r["since"]),
            places=r.places(),
        )

    def view(self, r: Record) -> None:
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
            of=str(r["of"]),
            columns=forms.columns(r["columns"]),
            rows=tuple(forms.rows(v.value) for v in cast(tuple[Any, ...], r["rows"])),
            places=r.places("of"),
        )

    def enum_table(self, r: Record) -> None:
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

    def field(self, name: str, value: object, span: Span, accepts: frozenset[str]) -> Field:
        if isinstance(value, str):
            return Field(name, ScalarType(value), span, accepts=accepts)
        r = cast(Record, value)
        default = r["default"]
        if isinstance(
            default, tuple
        ):  # the empty list, which is what the builder takes for arrays anyway
            if default or "array" not in r:
                message = (
                    "the empty list is the only list that can be a default, and only of an array"
                )
                self.reader.report("C017", message, r.at("default"))
            default = None
        types = types_of(r, self.type)
        return Field(
            name=name,
            type=types[-1][1] if types else self.type(r),
            types=types,
            ranges=ranges_of(r),
            span=span,
            doc=r.text("doc"),
            versions=cast(Versions | None, r["versions"]),
            since=cast(Since | None, r["since"]),
            when=cast(Expression | None, r["when"]),
            default=cast(Expression | None, default) or forms.none_default(r),
            none=cast(int | None, r["none"]),
            const=cast(int | None, r["const"]),
            is_version=r["is"] == "version",
            measures=forms.field_range(r, "measures"),
            counts=cast(str | None, r["counts"]),
            checksum=cast(str | None, r["checksum"]),
            covers=forms.field_range(r, "covers"),
            valid=cast(Expression | None, r["valid"]),
            refuse=cast(Expression | None, r["refuse"]),
            accepts=accepts | frozenset(forms.words(r["accepts"])),
            unit=cast(str | None, r["unit"]),
            spelled=cast(str | None, r["spelled"]),
            formerly=forms.formerly(r["formerly"]),
            misprint=forms.misprint(r["misprint"]),
            hidden=bool(r["hidden"]),
            places=r.places(),
        )

    def type(self, r: Record) -> FieldType:
        only = forms.words(r["only"]) if "only" in r else None
        if "type" in r:
            return ScalarType(str(r["type"]), cast(str | None, r["enum"]), only)
        if "bits" in r:
            members = tuple(
                forms.bit(key, value, forms.key_spans(r["members"])[key])
                for key, value in forms.entries(r["members"])
            )
            return BitsType(str(r["bits"]), members)
        for key in ("bytes", "string"):
            if key in r:
                length = cast(str | int, r[key])
                null = cast(int | None, r["null"])
                return BytesType(length, key == "string", null)
        if "layout" in r:
            present = cast(str | None, r["present"])
            null = cast(int | None, r["null"])
            return StructType(forms.reference(r["layout"], r.at("layout")), present, null)
        element = r["array"]
        compressed = r["compressed"]
        return ArrayType(
            element=ScalarType(element)
            if isinstance(element, str)
            else forms.reference(element, r.at("array")),
            count=cast(str | None, r["count"]),
            length=cast(str | None, r["length"]),
            compression=forms.compression(compressed) if isinstance(compressed, Record) else None,
            nesting=cast(int | None, r["nesting"]),
            at_least=cast(int, r["at_least"] or 0),
            null=cast(int | None, r["null"]),
        )

    # ------------------------------------------------------------ beside the fields

    def derived(self, r: Record) -> list[Derived]:
        out = []
        for name, node in forms.entries(r["derived"]):
            span = forms.key_spans(r["derived"])[name]
            if isinstance(node, yaml_tree.Mapping) and node.get("is") is None:
                for key, child in node.entries:
                    found = self.reader.record(child, "derived")
                    if found is not None:
                        out.append(forms.derived(key.text, found, key.span, name))
            else:
                found = self.reader.record(node, "derived")
                if found is not None:
                    out.append(forms.derived(name, found, span, None))
        return out
