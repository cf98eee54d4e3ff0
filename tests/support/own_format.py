"""A format of a user's own: the package that codecgen generates from its YAML."""

from __future__ import annotations

from pathlib import Path

from codecgen.cli import main as codecgen

MANIFEST = "language: 1\npackage: {package}\ntitle: A station's formats\n"
LAYOUTS = """\
enums:
  sky: {doc: What the sky looks like., values: {clear: 0, cloudy: 1}}
---
layout: reading
fields:
  station: {string: u8}
  is_outside: bool
  taken_at: u64
  temperature: {type: i16, when: is_outside}
  sky: {type: u8, enum: sky}
  id: uuid
  winds: {array: {fields: {speed: u8, direction: u16}}, count: u8}
  flags: {bits: u8, members: {night: {at: 0}, force: {at: 1-4}, unused: {reserved: keep}}}
  note: {bytes: u8, none: 0}
---
choice: message
by: kind
cases: {0: report, 1: login}
---
layout: report
fields:
  kind: {type: u8, const: 0}
  size: {type: u16, measures: rest}
  level: u8
---
layout: login
fields:
  kind: {type: u8, const: 1}
  user: {string: u8}
  password: {string: u8, sensitive: true}
  pin: {type: u16, sensitive: true}
---
layout: tree
fields:
  name: {string: u8}
  children: {array: tree, count: u8, nesting: 4}
---
layout: position
versions: 0-1
fields:
  version: {type: u8, is: version}
  x: i32
  height: {type: i32, versions: 1}
---
layout: unversioned
versions: 0-1
fields: {x: i32, y: {type: i32, versions: 1}}
---
layout: inner
given: {size: u8}
fields: {x: {array: u8, count: size}}
"""


def generate(directory: Path, package: str = "station_codecs") -> Path:
    """Generate the package, and return the directory that contains it."""
    schemas = directory / "schemas"
    schemas.mkdir(parents=True)
    (schemas / "codecgen.yaml").write_text(MANIFEST.format(package=package), encoding="utf-8")
    (schemas / "station.yaml").write_text(LAYOUTS, encoding="utf-8")
    out = directory / "generated"
    assert codecgen(["generate", str(schemas), "--out", str(out)]) == 0
    return out
