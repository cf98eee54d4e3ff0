"""Freedoms have something to free: each beside a field that it is about, and one that is almost the same."""

from __future__ import annotations

import re

import pytest

from codecgen.check import run, tolerances
from codecgen.schema import loader
from tests.codecgen.goldens import MANIFEST

MEASURED = "size: {type: u8, measures: rest}, data: {bytes: rest}"
ELEMENTS = {
    "measured": f"layout: e\nfields: {{{MEASURED}}}",
    "fixed": "layout: e\nfields: {a: u8, b: u32}",
    "varying": "layout: e\nfields: {data: {bytes: u8}}",
    "measured_late": f"layout: e\nfields: {{name: {{bytes: varint}}, {MEASURED}}}",
    "measured_in_part": "layout: e\nfields: {size: {type: u8, measures: {from: data, to: data}}, data: {bytes: rest}, n: {bytes: u8}}",
    "measured_by_varint": "layout: e\nfields: {size: {type: varint, measures: rest}, data: {bytes: rest}}",
    "measured_if": "layout: e\nfields: {k: u8, size: {type: u8, measures: rest, when: k == 1}, data: {bytes: u8}}",
    "measured_from_late": "layout: e\nfields: {size: {type: u8, measures: {from: data, to: data}}, name: {bytes: u8}, data: {bytes: rest}}",
    "of_varints": "layout: e\nfields: {a: varint}",
    "checked": "layout: e\nfields: {sum: {type: u32, checksum: crc32, covers: rest}, a: u8}",
    "of_versions": "layout: e\nversions: 0-1\nfields: {v: {type: u8, is: version}, a: u8}",
}
CASES = [
    ("overlong_varints", "x: varint", "x: u8"),
    ("overlong_varints", "x: {bytes: compact}", "x: {bytes: u8}"),
    ("overlong_varints", "x: {array: uvarlong, count: u8}", "x: {array: u8, count: u8}"),
    ("overlong_varints", "x: {fields: {a: {fields: {b: varint}}}}", "x: {fields: {a: {fields: {b: u8}}}}"),
    ("overlong_varints", "x: {fields: {a: varint}}", "x: {layout: of_varints}"),
    ("any_present", "x: {layout: fixed, none: {type: i8, value: -1}}", "x: u8"),
    ("negative_null", "x: {bytes: i8, none: -1}", "x: {bytes: u8, none: 255}"),
    ("negative_null", "x: {array: u8, count: i8, none: -1}", "x: {array: u8, count: i8}"),
    ("negative_null", "x: {array: {bytes: i8, none: -1}, count: u8}", "x: {array: {bytes: i8}, count: u8}"),
    ("any_present", "x: {layout: fixed, none: {type: i8, value: -1}}", "x: {layout: fixed}"),
    ("invalid_utf8", "x: {string: u8}", "x: {bytes: u8}"),
    ("invalid_utf8", "x: {array: {string: u8}, count: u8}", "x: {array: u8, count: u8}"),
    ("bytes_after_none", "x: {array: u8, count: u8}", "x: {array: u8, count: 3}"),
    ("bytes_after_none", "n: {type: u8, counts: x}, x: {array: u8}", "x: {array: u8, until: end}"),
    ("truncated_tail", "x: {array: u8, until: end}", "x: {array: varint, until: end}"),
    ("truncated_tail", "x: {array: {bytes: 3}, until: end}", "x: {array: {bytes: u8}, until: end}"),
    ("truncated_tail", "x: {array: u8, until: end}", "x: {array: u8, count: u8}"),
    ("truncated_tail", "x: {array: u8, until: end}", "x: {array: u8, count: 3}"),
    ("truncated_tail", "x: {array: fixed, until: end}", "x: {array: fixed, until: item.a == 1}"),
    ("truncated_tail", "x: {array: fixed, until: end}", "x: {array: varying, until: end}"),
    *(
        ("truncated_tail", "x: {array: measured, until: end}", f"x: {{array: {other}, until: end}}")
        for other in ("measured_late", "measured_in_part", "measured_by_varint", "measured_if", "measured_from_late")
    ),
    ("mixed_versions", "x: {array: of_versions, count: u8}", "x: {array: fixed, count: u8}"),
    ("mixed_versions", "x: {array: of_versions, count: u8}", "x: {array: u8, count: u8}"),
    ("mixed_versions", "x: {array: of_versions, count: u8}", "x: {array: checked, count: u8}"),
    ("unchecked_elements", "x: {array: checked, count: u8}", "x: {array: fixed, count: u8}"),
    ("unchecked_elements", "x: {array: checked, count: u8}", "x: {array: of_versions, count: u8}"),
    ("unchecked_elements", "x: {array: checked, count: u8}", "x: {layout: checked}"),
]  # fmt: skip


@pytest.mark.parametrize(("freedom", "about", "besides"), CASES)
@pytest.mark.parametrize("where", ["layout", "field"])
def test_a_freedom_is_about_something(freedom: str, about: str, besides: str, where: str) -> None:
    for fields, has_something in ((about, True), (besides, False)):
        assert (not _findings(freedom, fields, where)) == has_something


def _findings(freedom: str, fields: str, where: str) -> list[str]:
    accepts = f"accepts: [{freedom}]"
    head = f"layout: top\n{accepts}\n" if where == "layout" else "layout: top\n"
    if where == "field":
        before, _, last = fields.rpartition("x: ")
        last = last[1:-1] if last.startswith("{") else f"type: {last}"
        fields = f"{before}x: {{{last}, {accepts}}}"
    text = head + f"fields: {{{fields}}}\n"
    for name, element in ELEMENTS.items():
        if not re.search(rf"\b{name}\b", fields):
            continue
        text += "---\n" + element.replace("layout: e\n", f"layout: {name}\n") + "\n"
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert model is not None and not found, [d.message for d in found]
    others = [d for d in run(model) if d.code != "C029"]
    assert not others, [d.message for d in others]
    findings = list(tolerances.check(model))
    assert {d.code for d in findings} <= {"C029"}
    what = '"top"' if where == "layout" else '"x"'
    assert all(d.message == f'"{freedom}" has no effect on {what}' for d in findings)
    tail = "at a fixed place, a field that `measures` them to their end"
    assert all(d.help.endswith(tail) == (freedom == "truncated_tail") for d in findings)
    return [d.message for d in findings]


def test_bytes_may_follow_any_layout() -> None:
    text = "layout: top\naccepts: [trailing_bytes]\nfields: {a: u8}\n"
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert model is not None and not found
    assert list(tolerances.check(model)) == []


@pytest.mark.parametrize(
    ("fields", "has_effect"),
    [
        ("x: {type: u8, measures: rest, ACCEPTS}, data: {bytes: rest}", True),
        ("x: {layout: fixed, ACCEPTS}", True),
        ("x: {array: fixed, count: u8, ACCEPTS}", True),
        ("x: {type: u8, ACCEPTS}", False),
        ("x: {bytes: u8, ACCEPTS}", False),
    ],
)
def test_bytes_may_follow_what_a_field_measures_or_holds(fields: str, has_effect: bool) -> None:
    held = f"\n---\n{ELEMENTS['fixed']}\n".replace("layout: e", "layout: fixed")
    fields = fields.replace("ACCEPTS", "accepts: [trailing_bytes]")
    text = f"layout: top\nfields: {{{fields}}}{held if 'fixed' in fields else ''}"
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": text})
    assert model is not None and not found, [d.message for d in found]
    messages = [d.message for d in tolerances.check(model)]
    assert messages == ([] if has_effect else ['"trailing_bytes" has no effect on "x"'])
