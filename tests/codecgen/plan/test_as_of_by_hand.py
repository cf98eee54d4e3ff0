"""The model at a release beside the schema that somebody would have written at that time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from codecgen.check import run
from codecgen.diagnostics import Span, render
from codecgen.plan.as_of import as_of
from codecgen.schema import loader
from codecgen.schema.expression import Expression
from tests.codecgen.goldens import MANIFEST

RELEASES = ("1.0", "1.1", "2.0")

SCHEMA = """
layout: packet
since: {app: 1.0}
versions: 0-2                                                                      #@2.0
versions: 0-1                                                                      #@1.1-1.1
versions: 0-0                                                                      #@1.0-1.0
version_notes:
  0: {since: {app: 1.0}}
  1: {since: {app: 1.1}}                                                           #@1.1
  2: {since: {app: 2.0}}                                                           #@2.0
flexible: 2+                                                                       #@2.0
flexible: never                                                                    #@1.0-1.1
accepts: [loose_tags, overlong_varints]                                            #@2.0
fields:
  kind: {type: u8, enum: kinds, only: [early, middle, late]}                      #@2.0
  kind: {type: u8, enum: kinds, only: [early, middle]}                             #@1.1-1.1
  kind: {type: u8, enum: kinds, only: [early]}                                     #@1.0-1.0
  flags:
    bits: u8
    members:
      mode: {at: 0-1, enum: kinds, only: [early, late]}                           #@2.0
      mode: {at: 0-1, enum: kinds, only: [early]}                                  #@1.0-1.1
      is_new: {at: 7, since: {app: 1.1}}                                           #@1.1
      others: {reserved: keep}
  was: {type: u16, spelled: older_name, documentation: {formerly: {name: older_name, until: 1.1}}}  #@1.0-1.0
  was: {type: u16, documentation: {formerly: {name: older_name, until: 1.1}}}                       #@1.1
  added: {type: u32, default: 0, since: {app: 1.1}}                                            #@1.1
  name: {string: u8, accepts: [invalid_utf8]}
tagged:                                                                            #@2.0
  extra: {tag: 0, type: u8, versions: 2+}                                          #@2.0
derived:
  twice: {type: i32, is: was + was}
  sum: {type: i64, is: was + added, since: {app: 1.1}}                             #@1.1
examples:
  - {name: zero, version: 0, build: true, values: {kind: early, flags: {}, was: 1, name: a}}
  - {name: one, version: 1, build: true, values: {kind: early, flags: {}, was: 1, added: 0, name: a}}    #@1.1
  - {name: two, version: 2, build: true, values: {kind: late, flags: {}, was: 1, added: 0, name: a}}    #@2.0
documentation:
  overhead:
    sizes: [1]
    columns:
      - {title: Old, layout: first_body, each: {}}
      - {title: New, layout: third_body, each: {}}                                   #@2.0
---
layout: squeezed
fields:
  codec: {type: u8, enum: codecs}
  body:
    array: first_body
    until: end
    compressed: {by: codec, limit: 9, except: [lz4, zstd], variants: {snappy: {write: xerial, read: xerial}}}  #@2.0
    compressed: {by: codec, limit: 9, except: [lz4]}                               #@1.0-1.1
---
layout: holder
fields:
  kind: {type: u8, enum: kinds}
  body: {choice: bodies, given: {kind: kind}}
---
layout: many
fields:
  kind: {type: u8, enum: kinds}
  all: {array: {choice: bodies, given: {kind: kind}}, count: u8}
---
choice: bodies
given: {kind: kinds}
by: kind
cases: {early: first_body, middle: second_body, late: third_body}                 #@2.0
cases: {early: first_body, middle: second_body}                                    #@1.1-1.1
cases: {early: first_body}                                                         #@1.0-1.0
---
choice: told_apart
by: mark
cases: {1: first_mark, 2: second_mark}                                             #@1.1
cases: {1: first_mark}                                                             #@1.0-1.0
---
layout: first_mark
fields: {mark: {type: u8, const: 1}}
---
layout: second_mark                                                                #@1.1
since: {app: 1.1}                                                                  #@1.1
fields: {mark: {type: u8, const: 2}}                                               #@1.1
---                                                                                #@1.1
layout: second_holder                                                              #@1.1
since: {app: 1.1}                                                                  #@1.1
fields: {part: {layout: second_mark}, parts: {array: second_mark, count: u8}}      #@1.1
---                                                                                #@1.1
layout: of_what_is_new                                                             #@2.0
since: {app: 2.0}                                                                  #@2.0
fields: {part: {layout: third_body}}                                               #@2.0
---                                                                                #@2.0
layout: first_body
since: {rfc: [7]}
fields: {a: u8}
---
layout: begun_later                                                                #@2.0
versions: 0-0                                                                      #@2.0
version_notes: {0: {since: {app: 2.0}}}                                            #@2.0
fields: {a: u8}                                                                    #@2.0
---                                                                                #@2.0
choice: told_later                                                                 #@2.0
since: {app: 2.0}                                                                  #@2.0
by: mark                                                                           #@2.0
cases: {1: first_mark}                                                             #@2.0
---                                                                                #@2.0
layout: second_body
fields: {b: u8}
---
layout: third_body                                                                 #@2.0
since: {app: 2.0}                                                                  #@2.0
fields: {c: {type: u8, enum: newest}}                                              #@2.0
---                                                                                #@2.0
layout: proposed                                                                   #@full
draft: {rfc: [1]}                                                                  #@full
fields: {a: {type: u8, enum: proposals}}                                           #@full
---                                                                                #@full
enums: {proposals: {values: {x: 0}}}                                               #@full
---                                                                                #@full
enums: {newest: {values: {x: 0}}}                                                  #@2.0
---                                                                                #@2.0
enums:
  kinds:
    values:
      early: 0
      middle: {value: 1, since: {app: 1.1}}                                        #@1.1
      late: {value: 2, since: {app: 2.0}}                                         #@2.0
  codecs: {values: {none: 0, lz4: 1, snappy: {value: 2, since: {app: 2.0}}, zstd: {value: 3, since: {app: 2.0}}}}       #@2.0
  codecs: {values: {none: 0, lz4: 1}}                                              #@1.0-1.1
---
text: settings
properties:
  a: {string: rest}
  b: {decimal: i32, default: 0, since: {app: 1.1}}                                 #@1.1
---
text: newer_text                                                                   #@2.0
since: {app: 2.0}                                                                  #@2.0
properties: {a: {string: rest}}                                                    #@2.0
"""
"""Each line is of all releases, of those from one on (``#@1.1``), of a range, or of the whole schema alone (``#@full``)."""


def text_at(release: str | None) -> str:
    """Return the schema as it was written at a release; None for the whole one."""
    out = []
    for line in SCHEMA.splitlines():
        text, _, mark = line.partition("#@")
        low, _, high = mark.strip().partition("-")
        at = RELEASES[-1] if release is None else release
        there = release is None if low == "full" else low <= at
        if there and (not high or at <= high):
            out.append(text.rstrip())
    return "\n".join(out).rstrip("-\n") + "\n"


def loaded(text: str) -> Any:
    files = {"codecgen.yaml": MANIFEST, "case.yaml": text}
    model, found = loader.load(files)
    assert model is not None
    assert render([*found, *run(model)], files) == ""
    return model


def plain(thing: Any) -> Any:
    """Return a declaration without places: what is left is what it means."""
    if isinstance(thing, Span):
        return None
    if isinstance(thing, Expression):
        return thing.text
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = (f.name for f in dataclasses.fields(thing) if f.name not in ("places", "file"))
        return {name: plain(getattr(thing, name)) for name in fields}
    if isinstance(thing, Mapping):
        return {key: plain(value) for key, value in thing.items()}
    if isinstance(thing, tuple):
        return [plain(part) for part in thing]
    return thing


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", ["layouts", "enums", "choices", "texts"])
def test_it_is_the_schema_of_that_time(release: str, kind: str) -> None:
    found = plain(getattr(as_of(loaded(text_at(None)), release), kind))
    wanted = plain(getattr(loaded(text_at(release)), kind))
    assert found.keys() == wanted.keys()
    for name, one in wanted.items():
        assert found[name] == one, name
