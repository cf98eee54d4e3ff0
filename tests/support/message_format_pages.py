"""Tables of Kafka's message-format page, compared with the generated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from codecgen.plan import LayoutPlan, Plan, as_of, make_plan
from codecgen.plan.as_of import release_key
from codecgen.schema.model import Field, Model
from codecgen.schema.types import (
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Misprint,
    Reference,
    ScalarType,
)
from tests.paths import ROOT

PAGES = ROOT / "tests" / "data" / "message_format_pages"


RELEASES = ("0.11.0", "2.1.0", "3.1.0")


NUMBERS = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u32": "uint32"}
"""Types as the pages write them; a varint is called so there too."""


@dataclass(frozen=True)
class Difference:
    """A place where a page does not say what the schema says. ``where`` is ``layout.field`` or ``layout.field.bit``;
    ``shown`` is what the page has. ``misprint`` is the schema's remark about the place."""

    where: str
    shown: str
    misprint: Misprint | None
    version: int | None

    def excused(self, release: str) -> bool:
        m = self.misprint
        return (
            m is not None
            and m.shown == self.shown
            and (m.until is None or release_key(release) < release_key(m.until))
            and (m.versions is None or self.version in m.versions)
        )


def page(release: str) -> dict[str, Any]:
    text = (PAGES / f"{release}.yaml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    assert found["release"] == release
    structures: dict[str, Any] = found["structures"]
    return structures


def plan_of(schemas: Model, release: str) -> Plan:
    return make_plan(as_of(schemas, release), release)


def compare(plan: Plan, structures: dict[str, Any]) -> list[Difference]:
    found: list[Difference] = []
    for name, listed in structures.items():
        layout, _, version = name.partition("@")
        wanted = int(version) if version else None
        (one,) = (p for p in plan.versions[layout] if p.version == wanted)
        found += fields(plan, one, listed)
    return found


def fields(plan: Plan, layout: LayoutPlan, listed: list[dict[str, Any]]) -> Iterator[Difference]:
    """Field by field. Fields that share a place and a name (one or the other is there) are one line of a page."""
    ours: dict[str, list[Field]] = {}
    for fp in layout.fields:
        ours.setdefault(plan.spelling(fp.name, fp.field.spelled), []).append(fp.field)
    shown = {line["name"]: line for line in listed}
    assert len(shown) == len(listed)
    for name, alternatives in ours.items():
        if name not in shown:
            where = f"{layout.name}.{alternatives[0].name}"
            yield Difference(where, "missing", alternatives[0].misprint, layout.version)
    for name in shown.keys() - ours.keys():
        yield Difference(layout.name, name, None, layout.version)
    both = [name for name in shown if name in ours]
    if both != [name for name in ours if name in shown]:
        yield Difference(layout.name, "another order", None, layout.version)
    for name in both:
        assert len(ours[name]) == 1 or all(f.when is not None for f in ours[name])
        for f in ours[name]:
            yield from field(plan, layout, f, shown[name])


def field(plan: Plan, layout: LayoutPlan, f: Field, line: dict[str, Any]) -> Iterator[Difference]:
    def differs(shown: str) -> Difference:
        return Difference(f"{layout.name}.{f.name}", shown, f.misprint, layout.version)

    type_ = line["type"].lower()
    match f.type:
        case ScalarType(name, enum, only):
            if NUMBERS.get(name, name) != type_:
                yield differs(line["type"].lower())
            if "values" in line:
                assert enum is not None
                if values(plan, enum, only, "") != line["values"]:
                    yield differs(", ".join(map(str, line["values"])))
        case BitsType(base, members):
            if NUMBERS[base] != type_:
                yield differs(type_)
            yield from bits(plan, layout, f, members, line["bits"])
        case BytesType(length, text, null):
            # The old protocol's BYTES: an int32, -1 for null, and the bytes.
            expected = "int32" if type_ == "bytes" else line["length"]["type"]
            kind = {"bytes": False, "byte[]": False, "string": True}[type_]
            if NUMBERS.get(str(length), length) != expected or text != kind:
                yield differs(f"{type_} with {expected}")
            if type_ == "bytes":
                assert null == -1
        case ArrayType(Reference() as element) if type_ == "bytes":
            # A compressed message set in the place of a value.
            assert element.layout == layout.name and NUMBERS[str(f.type.length)] == "int32"
        case ArrayType(Reference() as element):
            if f"[{element.layout}]" != type_ or f.type.count != line.get("count"):
                yield differs(type_)
        case _:
            yield differs(type_)
    if "always" in line and f.const != line["always"]:
        yield differs(f"always {line['always']}")
    if "current" in line:
        assert f.default is not None and str(f.default) == str(line["current"])


def bits(
    plan: Plan,
    layout: LayoutPlan,
    f: Field,
    members: tuple[BitMember, ...],
    listed: list[dict[str, Any]],
) -> Iterator[Difference]:
    """Bit by bit. The pages do not name the bits that hold the codec."""
    where = f"{layout.name}.{f.name}"
    ours = {
        str(m.low) if m.low == m.high else f"{m.low}~{m.high}": m
        for m in sorted(members, key=lambda m: m.low)
    }
    if list(ours) != [str(line["at"]) for line in listed]:
        yield Difference(where, str([line["at"] for line in listed]), None, layout.version)
        return
    for line in listed:
        m = ours[str(line["at"])]
        here = f"{where}.{m.name}"
        if "name" in line and plan.spelling(m.name, m.spelled) != line["name"]:
            yield Difference(here, line["name"], m.misprint, layout.version)
        if "values" in line:
            assert m.enum is not None
            if values(plan, m.enum, m.only, m.name) != line["values"]:
                shown = ", ".join(map(str, line["values"]))
                yield Difference(here, shown, m.misprint, layout.version)


def values(plan: Plan, enum: str, only: tuple[str, ...] | None, member: str) -> dict[int, str]:
    """The values of an enum as a page words them: ``create time``, ``no compression``."""
    return {
        v.value: f"no {member}" if v.name == "none" else v.name.replace("_", " ")
        for v in plan.model.enums[enum].values
        if only is None or v.name in only
    }


def misprints(schemas: Model) -> dict[str, Misprint]:
    out = {}
    for layout in schemas.layouts.values():
        for f in layout.fields:
            out[f"{layout.name}.{f.name}"] = f.misprint
            for m in f.type.members if isinstance(f.type, BitsType) else ():
                out[f"{layout.name}.{f.name}.{m.name}"] = m.misprint
    return {where: misprint for where, misprint in out.items() if misprint is not None}
