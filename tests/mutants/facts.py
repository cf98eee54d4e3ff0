"""Every fact of a schema directory, changed: a list of mutants of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from tests.mutants import words
from tests.mutants.edits import Editor, Entry, Mutant, child, entries, items, word
from tests.mutants.expressions import changes
from tests.mutants.texts import text_mutants
from tests.mutants.views import view_mutants

SIMPLE = {
    "type": ("type", words.TYPES),
    "array": ("type", words.TYPES),
    "bits": ("type", words.TYPES),
    "bytes": ("type", words.LENGTHS),
    "string": ("type", words.LENGTHS),
    "count": ("type", words.LENGTHS),
    "length": ("type", words.LENGTHS),
    "checksum": ("algorithm", words.CHECKSUMS),
}
"""Keys of a field whose value is one word: kind of the mutant, other words."""

HEX_DIGITS = "0123456789abcdef"
NUMBERS = {
    "const": "default",
    "default": "default",
    "none": "sentinel",
    "nesting": "limit",
    "at_least": "limit",
    "limit": "limit",
}
TEXTS = {"spelled": "spelling", "unit": "unit", "title": "title"}
"""Keys, wherever they stand, whose text may be any other one."""
EXPRESSIONS = {"valid": "limit", "refuse": "limit", "when": "condition", "default": "default"}


@dataclass(frozen=True, slots=True)
class Names:
    """What the whole directory declares: releases in order, and the values of each enum."""

    releases: Sequence[str]
    enums: Mapping[str, Sequence[str]]
    layouts: Sequence[str]


def mutants(files: Mapping[str, str]) -> list[Mutant]:
    """The mutants of a schema directory: path -> text. Each differs from the text, and each is there once."""
    documents = {
        path: list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        for path, text in files.items()
        if path.endswith(".yaml")
    }
    names = _names([d for found in documents.values() for d in found if d is not None])
    made: dict[str, Mutant] = {}
    for path, found in documents.items():
        editor = Editor(path, files[path])
        for document in filter(None, found):
            for mutant in (
                *_document(editor, document, names),
                *_texts(editor, _name(document), document),
            ):
                if mutant.new != mutant.old:
                    made.setdefault(mutant.name, mutant)
    return list(made.values())


def _names(documents: Sequence[Node]) -> Names:
    releases: list[str] = []
    enums: dict[str, list[str]] = {}
    layouts: list[str] = []
    for document in documents:
        releases += [str(e.value.value) for e in items(child(document, "releases"))]
        layouts += [word(child(document, "layout")) or ""] if child(document, "layout") else []
        for enum in entries(child(document, "enums")):
            enums[enum.name] = [e.name for e in entries(child(enum.value, "values"))]
    return Names(releases, enums, layouts)


def _name(document: Node) -> str:
    """Return the name of the layout, choice, text or view that a document declares; empty for other documents."""
    keys = ("layout", "choice", "text", "view")
    return next((name for key in keys if (name := word(child(document, key)))), "")


def _texts(editor: Editor, place: str, node: Node) -> Iterator[Mutant]:
    """Texts that are more than remarks, the bytes and values of examples, and the list of releases."""
    for entry in entries(node):
        where = f"{place}.{entry.name}".lstrip(".")
        text = word(entry.value)
        if entry.name in TEXTS and text is not None:
            yield editor.change(
                where, TEXTS[entry.name], entry.value, _other(editor.raw(entry.value))
            )
        elif entry.name == "examples":
            yield from _examples(editor, where, entry.value)
        elif entry.name == "releases":
            for item in items(entry.value):
                yield from editor.remove(where, "release list", item)
        else:
            yield from _texts(editor, where, entry.value)
    for item in items(node):
        yield from _texts(editor, f"{place}[{item.index}]", item.value)


def _other(raw: str) -> str:
    """Another text, in the same quotes."""
    return f"{raw[:-1]}x{raw[-1]}" if raw[-1] in "\"'" else f"{raw}x"


def _examples(editor: Editor, place: str, node: Node) -> Iterator[Mutant]:
    """The last digit of each example's bytes, and each of its numbers."""
    for entry in entries(node):
        where = f"{place}.{entry.name}"
        text = word(entry.value) or ""
        if entry.name == "hex" and text.strip():
            raw = editor.raw(entry.value)
            at = max(i for i, c in enumerate(raw) if c in HEX_DIGITS)
            digit = HEX_DIGITS[HEX_DIGITS.index(raw[at]) ^ 1]
            yield editor.change(where, "example", entry.value, f"{raw[:at]}{digit}{raw[at + 1 :]}")
        elif not isinstance(entry.value, ScalarNode):
            yield from _examples(editor, where, entry.value)
        elif entry.name not in ("version", "name"):
            for new in words.numbers(text)[:1]:
                yield editor.change(where, "example", entry.value, new)
    for item in items(node):
        yield from _examples(editor, f"{place}[{item.index}]", item.value)


def _document(editor: Editor, document: Node, names: Names) -> Iterator[Mutant]:
    if child(document, "layout") is not None:
        yield from LayoutFacts(editor, names, document).all()
    elif child(document, "choice") is not None:
        yield from _choice(editor, document)
    elif child(document, "text") is not None:
        yield from releases(editor, word(child(document, "text")) or "", document, names)
        for key in entries(child(document, "properties")):
            place = f"{word(child(document, 'text'))}.{key.name}"
            yield from releases(editor, place, key.value, names)
        yield from text_mutants(editor, document)
    elif child(document, "view") is not None:
        yield from view_mutants(editor, document, list(names.enums.values()))
    for enum in entries(child(document, "enums")):
        yield from _enum(editor, enum, names)


def releases(editor: Editor, place: str, node: Node, names: Names) -> Iterator[Mutant]:
    """Facts about releases that a mapping holds: since, until, draft, versions' notes."""
    for entry in entries(node):
        where = f"{place}.{entry.name}"
        if entry.name in ("since", "until", "draft"):
            for fact in entries(entry.value) or [entry]:
                for item in items(fact.value):
                    for new in words.numbers(str(item.value.value))[:1]:
                        yield editor.change(f"{where}.{fact.name}", "release", item.value, new)
                for new in words.neighbours(word(fact.value) or "", names.releases):
                    yield editor.change(where, "release", fact.value, new)
        elif entry.name == "documentation":
            yield from releases(editor, where, entry.value, names)
        elif entry.name in ("formerly", "misprint"):
            yield from releases(editor, where, entry.value, names)
            for fact in entries(entry.value):
                if fact.name in ("name", "as"):
                    new = (word(fact.value) or "").strip('"') + "_x"
                    yield editor.change(f"{where}.{fact.name}", "release", fact.value, new)
                elif fact.name == "versions":
                    yield from versions(editor, where, fact)
        elif entry.name == "version_notes":
            for note in entries(entry.value):
                yield from releases(editor, f"{where}.{note.name}", note.value, names)


def versions(editor: Editor, place: str, entry: Entry) -> Iterator[Mutant]:
    for new in words.versions(word(entry.value) or ""):
        yield editor.change(f"{place}.versions", "version range", entry.value, new)
    yield from editor.remove(f"{place}.versions", "version range", entry)


def accepts(editor: Editor, place: str, entry: Entry, possible: Sequence[str]) -> Iterator[Mutant]:
    for item in items(entry.value):
        yield from editor.remove(f"{place}.accepts", "freedom", item)
    there = [str(item.value.value) for item in items(entry.value)]
    for freedom in possible:
        if freedom not in there:
            last = items(entry.value)[-1]
            yield editor.add(f"{place}.accepts", "freedom", last, freedom)


class LayoutFacts:
    """The facts of one layout."""

    def __init__(self, editor: Editor, names: Names, document: Node) -> None:
        self.editor = editor
        self.names = names
        self.document = document
        self.name = word(child(document, "layout")) or ""
        self.fields = entries(child(document, "fields"))
        scalars = [f.name for f in self.fields if _scalar_type(f.value) is not None]
        self.words = [*names.enums.values(), scalars]
        self.is_flexible = child(document, "flexible") is not None

    def all(self) -> Iterator[Mutant]:
        yield from releases(self.editor, self.name, self.document, self.names)
        for entry in entries(self.document):
            if entry.name == "versions":
                yield from versions(self.editor, self.name, entry)
            elif entry.name == "accepts":
                yield from accepts(self.editor, self.name, entry, words.LAYOUT_TOLERANCES)
            elif entry.name == "layout":
                yield self.editor.add(self.name, "type", entry, "endian: little")
            elif entry.name == "flexible":
                for new in words.flexible(word(entry.value) or ""):
                    yield self.editor.change(
                        f"{self.name}.flexible", "version range", entry.value, new
                    )
            elif entry.name == "derived":
                yield from self.derived(self.name, entry.value)
            elif entry.name == "rules":
                yield from self.rules(f"{self.name}.rules", entry.value)
            elif entry.name == "build":
                yield from self.fills(f"{self.name}.build", entry.value)
        if child(self.document, "accepts") is None:
            layout = entries(self.document)[0]
            for freedom in words.LAYOUT_TOLERANCES:
                line = f"accepts: [{freedom}]"
                yield self.editor.add(f"{self.name}.accepts", "freedom", layout, line)
        yield from self.in_order(self.name, self.fields)
        for entry in entries(child(self.document, "tagged")):
            yield from self.field(entry, self.name)

    def in_order(self, place: str, fields: Sequence[Entry]) -> Iterator[Mutant]:
        """The facts of fields that follow each other."""
        for first, second in pairwise(fields):
            yield self.editor.swap(f"{place}.{first.name}", "order", first, second)
        for entry in fields:
            yield from self.field(entry, place)

    def field(self, field: Entry, around: str) -> Iterator[Mutant]:
        place = f"{around}.{field.name}"
        if not isinstance(field.value, MappingNode):
            for new in words.TYPES.get(word(field.value) or "", ()):
                yield self.editor.change(place, "type", field.value, new)
            return
        yield from releases(self.editor, place, field.value, self.names)
        for entry in entries(field.value):
            yield from self.key(f"{place}", entry, field)
        yield from self.added(place, field)

    def key(self, place: str, entry: Entry, field: Entry) -> Iterator[Mutant]:
        where = f"{place}.{entry.name}"
        value = word(entry.value)
        if entry.name in SIMPLE and value is not None:
            kind, others = SIMPLE[entry.name]
            for new in others.get(value, ()):
                yield self.editor.change(where, kind, entry.value, new)
        if entry.name in NUMBERS and value is not None:
            for new in words.numbers(value):
                yield self.editor.change(where, NUMBERS[entry.name], entry.value, new)
            yield from self.editor.remove(where, NUMBERS[entry.name], entry)
        if entry.name in EXPRESSIONS and value is not None and not words.numbers(value):
            yield from self.expression(where, EXPRESSIONS[entry.name], entry.value)
            if entry.name != "default":
                yield from self.editor.remove(where, EXPRESSIONS[entry.name], entry)
        if entry.name in ("measures", "covers"):
            yield from self.run(where, entry, field)
        elif entry.name == "mask":
            yield from self.mask(where, entry)
        elif entry.name == "versions":
            yield from versions(self.editor, place, entry)
        elif entry.name == "none" and isinstance(entry.value, MappingNode):
            yield from self.none(where, entry.value)
        elif entry.name == "tag":
            yield self.editor.change(where, "code", entry.value, str(int(value or 0) + 50))
        elif entry.name == "fields":
            yield from self.in_order(place, entries(entry.value))
        elif entry.name == "array" and isinstance(entry.value, MappingNode):
            yield from self.in_order(place, entries(child(entry.value, "fields")))
        elif entry.name == "accepts":
            yield from accepts(self.editor, place, entry, words.ARRAY_TOLERANCES)
        elif entry.name in ("bytes", "string"):
            other = "string" if entry.name == "bytes" else "bytes"
            yield self.editor.change(place, "type", entry.key, other)
        elif entry.name == "enum":
            for new in words.neighbours(value or "", list(self.names.enums)):
                yield self.editor.change(where, "type", entry.value, new)
            yield from self.editor.remove(where, "type", entry)
        elif entry.name == "counts":
            yield from self.editor.remove(where, "span", entry)
        elif entry.name == "members":
            yield from self.members(place, entry.value)
        elif entry.name == "compressed":
            yield from self.compressed(place, entry.value)

    def none(self, place: str, node: Node) -> Iterator[Mutant]:
        """Null in other versions, as another number, or after another type of number."""
        for entry in entries(node):
            value = word(entry.value) or ""
            if entry.name[0].isdecimal():
                for new in words.versions(entry.name):
                    yield self.editor.change(f"{place}.versions", "version range", entry.key, new)
                yield from self.editor.remove(f"{place}.versions", "version range", entry)
            if isinstance(entry.value, MappingNode):
                yield from self.none(place, entry.value)
            for new in words.numbers(value):
                yield self.editor.change(f"{place}.{entry.name}", "sentinel", entry.value, new)
            for new in words.TYPES.get(value, ()):
                yield self.editor.change(f"{place}.{entry.name}", "type", entry.value, new)

    def mask(self, place: str, entry: Entry) -> Iterator[Mutant]:
        """Another number, or none at all."""
        for number in [entry, *entries(entry.value)]:
            value = word(number.value)
            if value is not None:
                new = str(int(value, 0) ^ 1)
                where = place if number is entry else f"{place}.{number.name}"
                yield self.editor.change(where, "algorithm", number.value, new)
        yield from self.editor.remove(place, "algorithm", entry)

    def added(self, place: str, field: Entry) -> Iterator[Mutant]:
        """Null where it is not allowed."""
        given = {e.name: e for e in entries(field.value)}
        type_ = given.get("type") or given.get("array")
        settled = "array" in given or (
            type_ is not None and word(type_.value) in ("string", "bytes")
        )
        if self.is_flexible and type_ is not None and settled and "none" not in given:
            yield self.editor.add(f"{place}.none", "sentinel", type_, "none: true")
        lead = given.get("bytes") or given.get("string")
        if lead is not None and "none" not in given and word(lead.value) in words.NULLS:
            null = words.NULLS[str(word(lead.value))]
            yield self.editor.add(f"{place}.none", "sentinel", lead, f"none: {null}")

    def expression(self, place: str, kind: str, node: Node) -> Iterator[Mutant]:
        """An expression with one part changed."""
        begin, _ = self.editor.span(node)
        for start, end, new in changes(self.editor.raw(node), self.words):
            old = self.editor.text[begin + start : begin + end]
            spot = f"{place}[{start}]"
            yield Mutant(self.editor.file, spot, kind, begin + start, begin + end, old, new)

    def run(self, place: str, entry: Entry, field: Entry) -> Iterator[Mutant]:
        """A span that begins or ends a field before or after."""
        names = [f.name for f in self.fields]
        if word(entry.value) == "rest":
            after = names[field.index + 2 :]
            if after:
                new = f"{{from: {after[0]}}}"
                yield self.editor.change(place, "span", entry.value, new)
            return
        for part in items(entry.value):
            yield from self.editor.remove(f"{place}[{part.index}]", "span", part)
            yield from self.ends(f"{place}[{part.index}]", part.value, names)
        yield from self.ends(place, entry.value, names)

    def ends(self, place: str, node: Node, names: Sequence[str]) -> Iterator[Mutant]:
        """The ends of one span; none of anything else."""
        for end in entries(node):
            for new in words.neighbours(word(end.value) or "", names):
                yield self.editor.change(f"{place}.{end.name}", "span", end.value, new)
            if end.name in ("to", "zero"):
                yield from self.editor.remove(f"{place}.{end.name}", "span", end)
        if entries(node) and child(node, "to") is None:
            new = f"to: {names[-2]}"
            yield self.editor.add(f"{place}.to", "span", entries(node)[0], new)

    def members(self, place: str, node: Node) -> Iterator[Mutant]:
        found = entries(node)
        for first, second in pairwise(found):
            places = [child(m.value, "at") for m in (first, second)]
            if all(places) and word(places[0]) != word(places[1]):
                yield from self.exchange(f"{place}.{first.name}", "bit", places)
        for member in found:
            where = f"{place}.{member.name}"
            yield from releases(self.editor, where, member.value, self.names)
            for entry in entries(member.value):
                value = word(entry.value) or ""
                if entry.name == "at":
                    for new in words.bits(value):
                        yield self.editor.change(f"{where}.at", "bit", entry.value, new)
                elif entry.name == "only":
                    yield from self.editor.remove(f"{where}.only", "limit", entry)
                    for item in items(entry.value):
                        yield from self.editor.remove(f"{where}.only", "limit", item)
                elif entry.name == "versions":
                    yield from versions(self.editor, where, entry)
                elif entry.name == "enum":
                    for new in words.neighbours(value, list(self.names.enums)):
                        yield self.editor.change(f"{where}.enum", "type", entry.value, new)
                    yield from self.editor.remove(f"{where}.enum", "type", entry)

    def exchange(self, place: str, kind: str, nodes: Sequence[Node | None]) -> Iterator[Mutant]:
        """Two words in each other's place, with all that stands between."""
        first, second = (node for node in nodes if node is not None)
        (start, a_end), (b_start, end) = self.editor.span(first), self.editor.span(second)
        text = self.editor.text
        new = text[b_start:end] + text[a_end:b_start] + text[start:a_end]
        yield Mutant(self.editor.file, place, kind, start, end, text[start:end], new)

    def compressed(self, place: str, node: Node) -> Iterator[Mutant]:
        for entry in entries(node):
            where = f"{place}.compressed.{entry.name}"
            if entry.name == "limit":
                for new in words.numbers(word(entry.value) or ""):
                    yield self.editor.change(where, "limit", entry.value, new)
            elif entry.name == "refuses":
                yield from self.editor.remove(where, "limit", entry)
            elif entry.name == "variants":
                yield from self.editor.remove(where, "algorithm", entry)
                for variant in entries(entry.value):
                    for fact in entries(variant.value):
                        if fact.name == "versions":
                            yield from versions(self.editor, where, fact)
                        else:
                            spot = f"{where}.{fact.name}"
                            yield from self.editor.remove(spot, "algorithm", fact)

    def rules(self, place: str, node: Node) -> Iterator[Mutant]:
        """Each rule left out, and with another condition."""
        for rule in entries(node):
            where = f"{place}.{rule.name}"
            yield from self.editor.remove(where, "rule", rule)
            yield from releases(self.editor, where, rule.value, self.names)
            expression = child(rule.value, "is")
            if expression is not None:
                yield from self.expression(where, "rule", expression)

    def fills(self, place: str, node: Node) -> Iterator[Mutant]:
        """What builders put into elements: left out, or another value for those without one."""
        for array in entries(node):
            for fill in entries(array.value):
                where = f"{place}.{array.name}.{fill.name}"
                yield from self.editor.remove(where, "default", fill)
                otherwise = child(fill.value, "otherwise")
                if otherwise is not None:
                    new = "1" if word(otherwise) == "index" else "index"
                    yield self.editor.change(f"{where}.otherwise", "default", otherwise, new)

    def derived(self, place: str, node: Node) -> Iterator[Mutant]:
        for value in entries(node):
            where = f"{place}.{value.name}"
            expression = child(value.value, "is")
            if expression is None:
                yield from self.derived(where, value.value)
                continue
            yield from releases(self.editor, where, value.value, self.names)
            type_ = child(value.value, "type")
            assert type_ is not None
            for new in words.TYPES.get(word(type_) or "", ()):
                yield self.editor.change(f"{where}.type", "derived value", type_, new)
            yield from self.expression(where, "derived value", expression)


def _scalar_type(node: Node) -> str | None:
    return word(node) or word(child(node, "type"))


def _choice(editor: Editor, document: Node) -> Iterator[Mutant]:
    name = word(child(document, "choice"))
    cases = entries(child(document, "cases"))
    for first, second in pairwise(cases):
        if word(first.value) != word(second.value):
            (a, a_end), (b, b_end) = editor.span(first.value), editor.span(second.value)
            old = editor.text[a:b_end]
            new = editor.text[b:b_end] + editor.text[a_end:b] + editor.text[a:a_end]
            yield Mutant(editor.file, f"{name}.{first.name}", "code", a, b_end, old, new)
    for case in cases:
        layout, at, version = (word(case.value) or "").partition("@")
        if at:
            new = f"{layout}@{int(version) + 1}"
            yield editor.change(f"{name}.{case.name}", "version range", case.value, new)
        if case.name.isdecimal():
            new = str(len(cases))
            yield editor.change(f"{name}.{case.name}", "code", case.key, new)


def _enum(editor: Editor, enum: Entry, names: Names) -> Iterator[Mutant]:
    values = entries(child(enum.value, "values"))
    codes = [child(v.value, "value") or v.value for v in values]
    free = max(int(word(code) or "0", 0) for code in codes) + 1
    for i, (value, code) in enumerate(zip(values, codes, strict=True)):
        place = f"{enum.name}.{value.name}"
        yield editor.change(place, "code", code, str(free))
        yield editor.change(place, "name", value.key, f"{value.name}_x")
        if i + 1 < len(values):
            (a, a_end), (b, b_end) = editor.span(code), editor.span(codes[i + 1])
            new = editor.text[b:b_end] + editor.text[a_end:b] + editor.text[a:a_end]
            yield Mutant(editor.file, place, "code", a, b_end, editor.text[a:b_end], new)
        yield from releases(editor, place, value.value, names)
    unknown = next((e for e in entries(enum.value) if e.name == "unknown"), None)
    if unknown is not None:
        yield from editor.remove(f"{enum.name}.unknown", "freedom", unknown)
