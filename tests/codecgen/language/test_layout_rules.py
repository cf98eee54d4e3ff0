"""Rules of layouts that tests make up: the codecs, the kernels and NumPy apply the same ones."""

from __future__ import annotations

import html
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codecgen.cli import main
from codecgen.runtime.errors import BuildError, RuleBroken
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import checked
from tests.shares import draw_seeds
from tests.support.rejected_entries import LOADERS, decoders_of, rejected

SCHEMA = """\
choice: entry
by: kind
cases: {0: row, 1: listed, 2: closing}
---
layout: row
fields:
  kind: {type: u8, const: 0}
  size: {type: u8, measures: rest}
  low: i8
  high: i8
  level: {type: u8, when: high > 0}
rules:
  in_order: {about: low, is: low <= high}
  level_or_low: {about: level, is: level == null or level > 2}
---
layout: listed
fields:
  kind: {type: u8, const: 1}
  size: {type: u8, measures: rest}
  least: i8
  total: {type: u8, counts: points}
  points: {array: point}
rules:
  ascending_x: {about: points, ascending: points.x}
  not_below: {about: least, is: min(points).y >= least}
  ends: {about: points, is: first(points).y <= last(points).y and max(points).y - 1 < 6}
  few: {about: total, is: total < 5}
---
layout: closing
fields:
  kind: {type: u8, const: 2}
  size: {type: u8, measures: rest}
  points: {array: point, until: end}
rules: {ascending_y: {about: points, ascending: points.y}}
---
layout: point
fields: {x: varint, y: i8}
---
view: all_entries
of: entry
columns: {a: {type: int64}, b: {type: int64, nullable: true}}
rows:
  - {of: row, columns: {a: low, b: level}}
  - {of: listed, each: points, columns: {a: item.x}}
  - {of: closing, each: points, columns: {a: item.x}}
"""


def keeps_rules(value: dict[str, Any]) -> bool:
    """The rules, written down once more."""
    if value["kind"] == 0:
        return value["low"] <= value["high"] and value.get("level", 3) > 2
    xs = [point["x"] for point in value["points"]]
    ys = [point["y"] for point in value["points"]]
    if value["kind"] == 2:
        return all(a < b for a, b in pairwise(ys))
    if len(xs) >= 5:
        return False
    if not xs:
        return True
    ascends = all(a < b for a, b in pairwise(xs))
    return ascends and min(ys) >= value["least"] and ys[0] <= ys[-1] and max(ys) - 1 < 6


def drawn(r: random.Random) -> dict[str, Any]:
    kind = r.randrange(3)
    if kind == 0:
        value = {"kind": 0, "low": r.randrange(-3, 4), "high": r.randrange(-3, 4)}
        return value | ({"level": r.randrange(1, 6)} if value["high"] > 0 else {})
    count = r.choice((0, 1, 1, 2, 2, 3, 5))
    points = [{"x": r.randrange(-3, 9), "y": r.randrange(-2, 8)} for _ in range(count)]
    if r.random() < 0.7:
        points.sort(key=lambda point: point["x" if kind == 1 else "y"])
    return {"kind": kind, "points": points} | ({"least": r.randrange(-3, 1)} if kind == 1 else {})


@pytest.mark.slow
@LOADERS
@pytest.mark.parametrize("seed", draw_seeds(1, first=7))
def test_all_engines_apply_the_same_rules(tmp_path: Path, load: Any, seed: int) -> None:
    name = f"ruled_codecs_{load.__name__}"
    package = package_of(SCHEMA, tmp_path, name, "construct,arrow")
    ruled, unruled = decoders_of(package, "all_entries", tmp_path / "out", load)
    r = random.Random(seed)
    seen: set[tuple[int, bool]] = set()
    for _ in range(120):
        values = [drawn(r) for _ in range(r.randrange(1, 4))]
        parts = [package.ENTRY.build(value, strict=False) for value in values]
        good = [keeps_rules(value) for value in values]
        assert rejected(ruled, parts) == [i for i, one in enumerate(good) if not one], values
        assert rejected(unruled, parts) == [], values
        for value, part, is_good in zip(values, parts, good, strict=True):
            seen.add((value["kind"], is_good))
            if is_good:
                assert package.ENTRY.build(value) == part
                assert package.ENTRY.parse(part)
                continue
            with pytest.raises(RuleBroken):
                package.ENTRY.parse(part)
            with pytest.raises(BuildError):
                package.ENTRY.build(value)
            assert package.ENTRY.parse(part, strict=False)
    assert len(seen) == 6


NESTED = """\
choice: entry
by: kind
cases: {0: outer}
---
layout: outer
fields:
  kind: {type: u8, const: 0}
  size: {type: u8, measures: rest}
  points: {array: inner, until: end}
---
layout: inner
fields: {x: i8, y: i8}
rules: {in_order: {about: y, is: x <= y}}
---
view: inners
of: entry
columns: {x: {type: int64}}
rows: [{of: outer, each: points, columns: {x: item.x}}]
"""


def test_rules_that_kernels_do_not_apply_are_refused_not_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "codecgen.yaml").write_text("language: 1\npackage: nested\ntitle: A case\n")
    (tmp_path / "case.yaml").write_text(NESTED)
    main(["generate", str(tmp_path), "--out", str(tmp_path / "out"), "--targets", "arrow"])
    said = capsys.readouterr()
    assert '"y" is a rule of a layout that lies in another' in said.out + said.err
    assert "C023" in said.out + said.err


def test_a_rule_is_applied_to_layouts_in_layouts_by_the_codecs(tmp_path: Path) -> None:
    package = package_of(NESTED, tmp_path, "nested_rules")
    data = package.ENTRY.build(
        {"kind": 0, "points": [{"x": 1, "y": 2}, {"x": 3, "y": 2}]}, strict=False
    )
    with pytest.raises(RuleBroken) as refused:
        package.ENTRY.parse(data)
    assert refused.value.where.path == "points[1].y"
    assert refused.value.where.position == 5
    assert str(refused.value.where.schema).startswith("case.yaml:")
    assert refused.value.reason == "y is 2: it breaks the rule in_order (x <= y)"


BUILT = """\
layout: journey
fields:
  start: {type: i64, default: 5}
  largest: {type: i32, none: -1, default: max(stops).delta}
  latest: {type: i32, default: last(stops).delta}
  count: {type: u8, counts: stops}
  stops: {array: stop}
rules:
  to_last: {about: stops, is: last(stops).delta <= latest, doc: No stop is after the last one.}
  in_order: {about: stops, ascending: stops.delta}
build: {stops: {delta: {from: number, less: start, otherwise: index}}}
---
layout: stop
fields: {delta: i32}
"""


@pytest.mark.parametrize("target", ["docs", "html"])
def test_pages_show_rules_and_what_builders_fill_in(tmp_path: Path, target: str) -> None:
    (tmp_path / "codecgen.yaml").write_text("language: 1\npackage: journeys\ntitle: A case\n")
    (tmp_path / "case.yaml").write_text(BUILT)
    out = tmp_path / "out"
    assert main(["generate", str(tmp_path), "--out", str(out), "--targets", target]) == 0
    [page] = out.rglob("case.md" if target == "docs" else "case.html")
    text = html.unescape(re.sub("<.*?>|`", "", page.read_text("utf-8")))
    for shown in (
        "What builders fill in",
        "number of the element less start, if the element has number;",
        "otherwise its index",
        "number of the first of stops, if it has number;",
        "-1 means that there is none. Default: the largest delta of stops.",
        "Default: delta of the last of stops.",
        "the rule to_last (No stop is after the last one.): delta of the last of stops is at most latest",
        "the rule in_order: stops.delta ascends",
    ):
        assert shown in text, shown


VERSIONS = """\
layout: grown
versions: 0-1
fields: {version: {type: u8, is: version}, a: u8, b: u8}
rules: {in_order: {about: b, is: a <= b, versions: 1}}
"""


def test_a_rule_of_some_versions(tmp_path: Path) -> None:
    package = package_of(VERSIONS, tmp_path, "rules_by_version")
    assert package.GROWN.build({"version": 0, "a": 2, "b": 1}) == bytes([0, 2, 1])
    with pytest.raises(BuildError, match="breaks the rule in_order"):
        package.GROWN.build({"version": 1, "a": 2, "b": 1})


def test_an_example_gives_numbers_above_i64_less_a_u64() -> None:
    checked(
        {
            "codecgen.yaml": "language: 1\npackage: far\ntitle: Far\n",
            "case.yaml": """
layout: stop
fields: {delta: u8}
---
layout: journey
fields:
  base: u64
  stops: {array: stop, count: u8}
build:
  stops:
    delta: {from: number, less: base, otherwise: 0}
examples:
  - {name: far, build: true, values: {stops: [{number: 9223372036854775808}]}}
""",
        }
    )
