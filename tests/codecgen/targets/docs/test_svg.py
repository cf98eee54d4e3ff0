"""Pictures of the layouts: whole, in scale, with every field and bit."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from codecgen.plan import make_plan
from codecgen.schema.types import BitsType
from codecgen.targets.docs.svg import bit_picture, byte_picture, svg_file
from tests.codecgen.targets.docs.doc_pages import (
    BOTH,
    MAIL,
    emitted,
    model_of,
)

SVG = "{http://www.w3.org/2000/svg}"


@BOTH
def test_pictures_are_whole(directory: Path) -> None:
    pictures = {p: t for p, t in emitted(directory).items() if p.endswith(".svg")}
    assert pictures
    for path, text in pictures.items():
        assert len(text) < 20_000, path
        root = ET.fromstring(text)
        assert root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None and title.text and description is not None and description.text
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert "prefers-color-scheme:dark" in text
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        for rect in root.iter(f"{SVG}rect"):
            x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
            assert x >= 0 and x + float(rect.get("width", 0)) <= width, path
            assert y >= 0 and y + float(rect.get("height", 0)) <= height, path
        for words in root.iter(f"{SVG}text"):
            assert 0 <= float(words.get("x", -1)) <= width, path
            assert 0 <= float(words.get("y", -1)) <= height, path


@BOTH
def test_pictures_show_every_field_and_bit(directory: Path) -> None:
    plan = make_plan(model_of(directory))
    for plans in plan.versions.values():
        for layout in plans:
            root = ET.fromstring(svg_file(byte_picture(layout, "bytes"), "mark"))
            drawn = "".join(t.text or "" for t in root.iter(f"{SVG}text"))
            for fp in layout.in_order:
                assert fp.name in drawn, layout.name
            for fp in layout.fields:
                if isinstance(fp.field.type, BitsType):
                    members = fp.field.type.members
                    text = svg_file(
                        bit_picture(fp.field.type.base, members, "bits", "words"), "mark"
                    )
                    lines = [t.text or "" for t in ET.fromstring(text).iter(f"{SVG}text")]
                    for m in members:
                        assert any(line.endswith(f" {m.name}") for line in lines)


def boxes(text: str) -> list[tuple[str, float, float, float]]:
    """(class, x, y, width) of the boxes of a picture."""
    return [
        (str(r.get("class")), float(r.get("x", 0)), float(r.get("y", 0)), float(r.get("width", 0)))
        for r in ET.fromstring(text).iter(f"{SVG}rect")
    ]


def test_bytes_are_drawn_in_scale() -> None:
    plan = make_plan(model_of(MAIL))
    layout = plan.versions["capsule"][0]
    found = boxes(svg_file(byte_picture(layout, "bytes"), "mark"))
    solid = [box for box in found if box[0] == "box"]
    cell = 84.0
    # edition 1, size 4, crc 3 | crc 1, packing 2, sent 5 | sent 3, letter_count 2
    assert [width / cell for _, _, _, width in solid] == [1, 4, 3, 1, 2, 5, 3, 2]
    (letters,) = (box for box in found if box[0] == "soft")
    assert letters[3] == 8 * cell
    # What `size` measures begins at the checksum, what the checksum covers after it; both reach to the end.
    measured = [box for box in found if box[0] == "s0"][:-1]
    covered = [box for box in found if box[0] == "s1"][:-1]
    assert [box[3] / cell for box in measured] == [3, 1, 2, 5, 3, 2, 8]
    assert [box[3] / cell for box in covered] == [2, 5, 3, 2, 8]


def test_bits_are_drawn_in_scale() -> None:
    layout = make_plan(model_of(MAIL)).versions["letter"][0]
    fp = layout.field("flags")
    assert fp is not None and isinstance(fp.field.type, BitsType)
    found = boxes(svg_file(bit_picture("u8", fp.field.type.members, "bits", "words"), "mark"))
    drawn = sorted((x, css, width) for css, x, _, width in found if css in ("box", "soft"))
    assert [(css, width / 40) for _, css, width in drawn] == [
        ("soft", 3),
        ("box", 1),
        ("box", 3),
        ("box", 1),
    ]


def test_a_picture_of_many_bits_stays_small() -> None:
    layout = make_plan(model_of(MAIL)).versions["letter"][0]
    fp = layout.field("flags")
    assert fp is not None and isinstance(fp.field.type, BitsType)
    unused = next(m for m in fp.field.type.members if m.reserved)
    wide = svg_file(bit_picture("u64", (replace(unused, low=0, high=63),), "bits", "words"), "mark")
    assert float(ET.fromstring(wide).get("width", 0)) < 900
