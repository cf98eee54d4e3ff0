"""Laws about views into payloads: kernels and the functions of rows see what the parsed values say, and refuse the same bytes."""

from __future__ import annotations

import importlib
import random
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from tests.laws.chosen import by_field, case_of
from tests.laws.codec_laws import codec_of, samples
from tests.laws.made import Generated
from tests.laws.meaning import Meaning, words_of
from tests.laws.memory import Broken
from tests.laws.mutations import mutated
from tests.laws.payload_memory import decoded, summed
from tests.laws.reference import shown
from tests.laws.view_laws import by_bits
from tests.laws.world import Facts, Tree

LIMITS = Limits(decompressed=1 << 14, elements=300, findings=200)
Payload = dict[str, bytes | None]


def payload_laws(made: Generated, package: ModuleType, r: random.Random, rounds: int = 3) -> int:
    """The laws for every view into payloads; how many rows were read. Raises Broken."""
    seen = 0
    for name, tree in made.facts.payloads.items():
        view = getattr(importlib.import_module(f"{made.package}.columns.{name}"), name.upper())
        reading = Reading(made.facts, tree, package)
        for turn in range(rounds):
            payloads = [payload(made, tree, r) for _ in range(r.choice((1, 3, 6)))]
            if turn:
                payloads = [damaged(one, r) for one in payloads]
            names = list(tree["columns"])
            some = names if r.random() < 0.7 else r.sample(names, r.randint(1, len(names)))
            for strict in (True, False):
                seen += agree(view, reading, payloads, some, strict, r)
    return seen


def agree(
    view: Any,
    reading: Reading,
    payloads: Sequence[Payload],
    names: list[str],
    strict: bool,
    r: random.Random,
) -> int:
    """Kernel and codecs give what the values say. How many rows there are."""
    wanted = reading.all(payloads, names, strict)
    parts = {name: [one[name] for one in payloads] for name in view.parts}
    text = [{k: None if v is None else v.hex() for k, v in one.items()} for one in payloads]
    options = {"strict": strict, "limits": LIMITS, "max_rows": r.choice((1, 4, 1 << 16))}
    for compiled in (True, False):
        found = summed(
            decoded(view, parts, names, compiled=compiled, before=r.randint(0, 3), **options)
        )
        engine = "the kernel" if compiled else "the functions of rows"
        found["values"] = by_bits(found["values"])
        found["rejected"] = [(wrong.row, wrong.part) for wrong in found["rejected"]]
        mine = reading.passed_over(wanted, found) if compiled else wanted
        for what, value in mine.items():
            if found[what] != value:
                raise Broken(
                    f"{engine} of {view.name}: {what} of {text} are {found[what]}, not {value}"
                )
    return len(wanted["rows"])


def payload(made: Generated, tree: Tree, r: random.Random) -> Payload:
    """A payload of one kind: parts that go together."""
    facts, rows = made.facts, r.choice(tree["rows"])
    out: Payload = {}
    for part, of in tree["of"].items():
        layout = rows["of"].get(part)
        if layout is None:
            cases = facts.choices[of]["cases"].values() if of in facts.choices else [of]
            layout = r.choice(list(cases)).partition("@")[0]
        versions = facts.versions(layout)
        named = [
            int(ref.partition("@")[2])
            for ref in (facts.choices[of]["cases"].values() if of in facts.choices else ())
            if ref.startswith(f"{layout}@")
        ]
        version = r.choice(named or versions)
        found = next((data for _, data in samples(made, layout, version, r, 2) if data), b"")
        out[part] = None if r.random() < 0.15 else found
    return out


def damaged(one: Payload, r: random.Random) -> Payload:
    """A payload with a part that is another one."""
    part = r.choice(list(one))
    data = one[part]
    return {**one, part: next(iter(mutated(data, r, 1)), data) if data else data}


class Reading:
    """What payloads mean, from the YAML and what the codecs of their layouts parse."""

    def __init__(self, facts: Facts, tree: Tree, package: ModuleType) -> None:
        self.facts = facts
        self.tree = tree
        self.package = package
        self.choices = {p: facts.choices.get(of) for p, of in tree["of"].items()}
        self.decider = next(
            (p for p, c in self.choices.items() if c and by_field(c) is not None), None
        )

    def all(self, payloads: Sequence[Payload], names: list[str], strict: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"values": [], "rows": [], "rejected": [], "unknown": []}
        for row, one in enumerate(payloads):
            try:
                made = self.rows(one, row, strict)
            except KeyError:
                out["unknown"].append(row)
            except Refused as error:
                out["rejected"].append((row, error.part))
            else:
                out["values"] += [{name: value[name] for name in names} for value in made]
                out["rows"] += [row] * len(made)
        return out

    def rows(self, one: Payload, row: int, strict: bool) -> list[dict[str, Any]]:
        """The rows of a payload. Raises KeyError where nothing says what it is, and Refused."""
        references = self.references(one)
        fitting = [
            rows
            for rows in self.tree["rows"]
            if all(
                references.get(p, "").partition("@")[0] == layout
                for p, layout in rows["of"].items()
            )
        ]
        looked_at = {part for rows in fitting for part in rows["of"]}
        parsed: dict[str, Any] = {}
        versions: dict[str, int | None] = {}
        for part, reference in references.items():
            data = one[part]
            if part in looked_at:
                parsed[part] = versions[part] = None
                if data is not None:
                    parsed[part], versions[part] = self.parsed(part, reference, data, strict)
        for rows in fitting:
            scope = PayloadScope(self.facts, rows, parsed, versions, row)
            if "when" in rows and not scope.meaning(None).holds(rows["when"]):
                continue
            items: Any = [None]
            if "each" in rows:
                part, _, array = rows["each"].partition(".")
                items = (parsed[part] or {}).get(array) or []
            return [self.row(rows, scope, item) for item in items]
        return []

    def passed_over(self, wanted: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        """Without what kernels need not refuse: parts with choices, of whose cases they look at some."""
        rejected = [
            (row, part)
            for row, part in wanted["rejected"]
            if (row, part) in found["rejected"] or not self.holds_choices(part)
        ]
        return {**wanted, "rejected": rejected}

    def holds_choices(self, part: str) -> bool:
        """Whether some layout of a part, or what that holds, has a choice in it."""
        of = self.tree["of"][part]
        todo = [
            ref.partition("@")[0]
            for ref in self.facts.choices.get(of, {}).get("cases", {}).values()
        ] or [of]
        seen = set(todo)
        while todo:
            for spec in self.facts.layouts[todo.pop()]["fields"].values():
                held = spec if isinstance(spec, dict) else {}
                inside = held.get("array") if isinstance(held.get("array"), dict) else held
                if "choice" in held or "choice" in inside:
                    return True
                for name in (held.get("layout"), held.get("array")):
                    bare = str(name).partition("@")[0]
                    if bare in self.facts.layouts and bare not in seen:
                        seen.add(bare)
                        todo.append(bare)
        return False

    def references(self, one: Payload) -> dict[str, str]:
        """The layout of each part that has one."""
        if self.decider is None:
            return dict(self.tree["of"])
        data, choice = one[self.decider], self.choices[self.decider]
        assert choice is not None
        if data is None:
            raise KeyError
        if len(data) < 2:
            raise Refused(self.decider)
        number = int.from_bytes(data[:2], "big", signed=True)
        cases = {int(key): ref for key, ref in choice["cases"].items()}
        out = {self.decider: cases[number]}
        for part, other in self.choices.items():
            if part == self.decider:
                continue
            if other is None:
                out[part] = self.tree["of"][part]
                continue
            values = self.facts.enums[other["given"][other["by"]]]["values"]
            word = next((w for w, n in values.items() if n == number), "")
            if word in other["cases"]:
                out[part] = other["cases"][word]
        return out

    def parsed(
        self, part: str, reference: str, data: bytes, strict: bool
    ) -> tuple[Mapping[str, Any], int | None]:
        layout, _, version = reference.partition("@")
        codec = codec_of(self.package, layout, int(version) if version else None)
        try:
            if isinstance(codec, Mapping):  # a layout of one version
                codec = next(iter(codec.values()))
            elif hasattr(codec, "case"):
                codec = codec.case(Source(data, Session()))
            found = codec.parse(data, strict=strict, limits=LIMITS)
        except CodecError:
            raise Refused(part) from None
        return found, codec.version

    def row(self, rows: Tree, scope: PayloadScope, item: Any) -> dict[str, Any]:
        out = {}
        for name, column in self.tree["columns"].items():
            text = rows["columns"].get(name)
            value = None if text is None else scope.meaning(item).of(text)
            out[name] = shown(value, column)
        return out


class Refused(Exception):
    """A part that does not parse."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


class PayloadScope:
    """What the columns of a payload can name."""

    def __init__(
        self,
        facts: Facts,
        rows: Tree,
        parsed: Mapping[str, Any],
        versions: Mapping[str, int | None],
        row: int,
    ) -> None:
        self.facts = facts
        self.layouts = rows["of"]
        self.versions = versions
        self.parsed = parsed
        self.row = row
        self.words: dict[tuple[str, ...], Mapping[str, int]] = {}
        for part, layout in rows["of"].items():
            inside = words_of(facts, layout)
            self.words |= {(part, *path): words for path, words in inside.items()}

    def meaning(self, item: Any) -> Meaning:
        return Meaning(lambda names: self.look(names, item), self.words)

    def look(self, names: tuple[str, ...], item: Any) -> Any:
        if names == ("row",):
            return self.row
        value = item if names[0] == "item" else self.parsed[names[0]]
        if names[0] != "item" and len(names) > 2 and names[2] in self.facts.layouts:
            spec = self.facts.layouts[self.layouts[names[0]]]["fields"].get(names[1])
            if isinstance(spec, Mapping) and "choice" in spec:
                return self.in_case(names, spec, value)
        for name in names[1:]:
            value = None if value is None else value[name]
        return value

    def in_case(self, names: tuple[str, ...], spec: Tree, fields: Any) -> Any:
        """What is in a case of a choice; None where that is another one."""
        part, choice, case, *rest = names
        layout = self.layouts[part]
        value = None if fields is None else fields.get(choice)
        if not isinstance(value, Mapping):
            return None
        found = case_of(self.facts, layout, spec, fields, self.versions[part], value)
        if found is None or found[0] != case:
            return None
        for name in rest:
            value = None if value is None else value.get(name)
        return value
