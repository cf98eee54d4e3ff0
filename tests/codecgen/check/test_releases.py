"""Releases in an order that can be: each fault beside the same schema without it."""

from __future__ import annotations

import pytest

from codecgen.check import releases, run
from codecgen.schema import loader
from tests.codecgen.goldens import MANIFEST

OTHERS = """
---
layout: old
since: {app: 1.0}
fields: {a: u8}
---
layout: new
since: {app: 2.0}
fields: {a: u8}
---
layout: draft
draft: {rfc: [1]}
fields: {a: u8}
---
choice: newer
since: {app: 2.0}
given: {kind: u8}
by: kind
cases: {0: old}
"""
TOP = "layout: top\nsince: {app: 1.1}\nfields: {"
CASES = [
    # a part is no older than the whole; of the same release is good
    (TOP + "x: {type: u8, since: {app: 1.0}}}", "1.0 is before 1.1, the first release with top itself"),
    (TOP + "x: {type: u8, since: {app: 1.1}}}", ""),
    (TOP + "x: {type: u8, since: {rfc: [1]}}}", ""),
    ("layout: top\nsince: {rfc: [1]}\nfields: {x: {type: u8, since: {app: 1.0}}}", ""),
    (TOP + "x: {bits: u8, members: {low: {at: 0, since: {app: 1.0}}, rest: {reserved: keep}}}}", "1.0 is before 1.1, the first release with x"),
    (TOP + "x: {bits: u8, since: {app: 2.0}, members: {low: {at: 0, since: {app: 1.1}}, rest: {reserved: keep}}}}", "1.1 is before 2.0, the first release with x"),
    (TOP + "x: {bits: u8, members: {low: {at: 0, since: {app: 1.1}}, rest: {reserved: keep}}}}", ""),
    (TOP + "a: u8}\nderived: {d: {type: i32, is: a + 1, since: {app: 1.0}}}", "1.0 is before 1.1, the first release with top itself"),
    (TOP + "a: u8}\nderived: {d: {type: i32, is: a + 1, since: {app: 2.0}}}", ""),
    # former names
    (TOP + "x: {type: u8, documentation: {formerly: {name: y, until: 1.1}}}}", '"x" exists since 1.1, so it had no other name until 1.1'),
    (TOP + "x: {type: u8, documentation: {formerly: {name: y, until: 2.0}}}}", ""),
    (TOP + "x: {type: u8, since: {app: 2.0}, documentation: {formerly: {name: y, until: 2.0}}}}", '"x" exists since 2.0, so it had no other name until 2.0'),
    ("layout: top\nfields: {x: {type: u8, documentation: {formerly: {name: y, until: 1.0}}}}", ""),
    (TOP + "x: {type: u8, documentation: {formerly: {name: y, until: 1.5}}}}", "the manifest does not list the release 1.5"),
    (TOP + "x: {type: u8, documentation: {misprint: {as: i8, until: 1.5, doc: No.}}}}", "the manifest does not list the release 1.5"),
    (TOP + "x: {type: u8, documentation: {misprint: {as: i8, until: 2.0, doc: No.}}}}", ""),
    # what is held is no newer than what holds it
    (TOP + "x: {layout: new}}", '"x" exists since 1.1, but holds "new", which exists since 2.0'),
    (TOP + "x: {array: new, count: u8}}", '"x" exists since 1.1, but holds "new", which exists since 2.0'),
    (TOP + "x: {layout: new, since: {app: 2.0}}}", ""),
    (TOP + "x: {layout: old}}", ""),
    ("layout: top\nfields: {x: {layout: new}}", ""),
    (TOP + "x: {layout: draft}}", '"draft" is a draft, which no release contains, but "top" is not a draft'),
    ("layout: top\ndraft: {rfc: [2]}\nfields: {x: {layout: draft}, y: {layout: new}}", ""),
    (TOP + "k: u8, x: {choice: newer, given: {kind: k}}}", '"x" exists since 1.1, but holds "newer", which exists since 2.0'),
    (TOP + "k: u8, x: {array: {choice: newer, given: {kind: k}}, count: u8}}", '"x" exists since 1.1, but holds "newer", which exists since 2.0'),
    (TOP + "k: u8, x: {choice: newer, given: {kind: k}, since: {app: 2.0}}}", ""),
    ("layout: top\ndraft: {rfc: [2]}\nfields: {k: u8, x: {choice: newer, given: {kind: k}}}", ""),
    # ends of ranges, and what is counted, are as old as what speaks of them
    (TOP + "m: {type: u8, measures: {from: x}}, x: {bytes: rest, since: {app: 2.0}}}", '"m" exists since 1.1, but uses "x", which exists since 2.0'),
    ("layout: top\nfields: {m: {type: u8, measures: {from: x}}, x: {bytes: rest, since: {app: 1.0}}}", '"m" exists since the first release, but uses "x", which exists since 1.0'),
    (TOP + "m: {type: u8, measures: {from: x, to: x}, since: {app: 2.0}}, x: {bytes: rest, since: {app: 2.0}}}", ""),
    (TOP + "s: {type: u32, checksum: crc32, covers: {from: x, to: y}}, x: u8, y: {type: u8, since: {app: 2.0}}}", '"s" exists since 1.1, but uses "y", which exists since 2.0'),
    (TOP + "n: {type: u8, counts: x}, x: {array: u8, since: {app: 2.0}}}", '"n" exists since 1.1, but uses "x", which exists since 2.0'),
    (TOP + "n: {type: u8, counts: x}, x: {array: u8, since: {app: 1.1}}}", ""),
    # versions
    ("layout: top\nversions: 0-1\nversion_notes: {0: {since: {app: 1.1}, until: {app: 1.1}}}\nfields: {a: u8}", "version 0 ends in 1.1, before it begins in 1.1"),
    ("layout: top\nversions: 0-1\nversion_notes: {0: {since: {app: 1.1}, until: {app: 2.0}}}\nfields: {a: u8}", ""),
    ("layout: top\nversions: 0-1\nversion_notes: {0: {since: {app: 1.5}}}\nfields: {a: u8}", "the manifest does not list the release 1.5"),
    ("layout: top\nversions: 0-1\nversion_notes: {0: {until: {app: 1.5}}}\nfields: {a: u8}", "the manifest does not list the release 1.5"),
    # releases that are not listed, wherever they are
    ("layout: top\nsince: {app: 1.5}\nfields: {a: u8}", "the manifest does not list the release 1.5"),
    ("layout: top\ndraft: {app: 1.5}\nfields: {a: u8}", "the manifest does not list the release 1.5"),
    ("layout: top\nfields: {a: {type: u8, since: {app: 1.5}}}", "the manifest does not list the release 1.5"),
    ("layout: top\nsince: {app: 1.1.0}\nfields: {a: u8}", ""),
    ("layout: top\nsince: {app: 1.0}\ndraft: {rfc: [1]}\nfields: {a: u8}", "no release contains a draft: it has no release from which it exists"),
    ("layout: top\nfields: {a: u8}\nexamples: [{name: x, hex: 01, values: {a: 1}, since: {app: 1.5}}]", "the manifest does not list the release 1.5"),
    ("choice: top\ngiven: {kind: u8}\nby: kind\nsince: {app: 1.5}\ncases: {0: old}", "the manifest does not list the release 1.5"),
    ("enums: {top: {values: {x: {value: 0, since: {app: 1.5}}}}}", "the manifest does not list the release 1.5"),
    ("text: top\nsince: {app: 1.5}\nproperties: {a: {string: rest}}", "the manifest does not list the release 1.5"),
    ("text: top\nproperties: {a: {string: rest, since: {app: 1.5}}}", "the manifest does not list the release 1.5"),
    ("text: top\nproperties: {a: {string: rest}}\nexamples: [{name: x, text: 'a=b', values: {a: b}, since: {app: 1.5}}]", "the manifest does not list the release 1.5"),
    # a key is no older than its text
    ("text: top\nsince: {app: 1.1}\nproperties: {a: {string: rest, since: {app: 1.0}}}", "1.0 is before 1.1, the first release with top itself"),
    ("text: top\nsince: {app: 1.1}\nproperties: {a: {string: rest, since: {app: 1.1}}}", ""),
    # a part whose `since` names only documents is as old as the whole
    (TOP + "m: {type: u8, measures: {from: x}, since: {rfc: [1]}}, x: {bytes: rest, since: {app: 1.1}}}", ""),
    (TOP + "x: {layout: new, since: {rfc: [1]}}}", '"x" exists since 1.1, but holds "new", which exists since 2.0'),
    (TOP + "x: {type: u8, since: {rfc: [1]}, documentation: {formerly: {name: y, until: 1.1}}}}", '"x" exists since 1.1, so it had no other name until 1.1'),
    (TOP + "x: {bits: u8, since: {rfc: [1]}, members: {low: {at: 0, since: {app: 1.0}}, rest: {reserved: keep}}}}", "1.0 is before 1.1, the first release with x"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), CASES)
def test_releases(text: str, message: str) -> None:
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": f"{text}{OTHERS}"})
    assert model is not None and not found, [d.message for d in found]
    assert [d.message for d in releases.check(model)] == ([message] if message else [])


NEWER = [
    # a key uses itself and keys that are no newer, in its conditions and its default
    ("text: top\nproperties: {a: {decimal: i32, since: {app: 2.0}, valid: a < 9, refuse: a == 5}}", ""),
    ("text: top\nsince: {app: 1.1}\nproperties: {a: {decimal: i32, since: {app: 2.0}, valid: a < 9}}", ""),
    ("text: top\nproperties: {a: {decimal: i32, since: {app: 1.1}}, b: {decimal: i32, since: {app: 1.1}, default: 2, valid: a == b}}", ""),
    ("text: top\nproperties: {a: {decimal: i32, since: {app: 2.0}}, b: {decimal: i32, since: {app: 1.1}, valid: a == b}}", '"b" exists since 1.1, but uses "a", which exists since 2.0'),
    ("text: top\nproperties: {a: {decimal: i32, since: {app: 2.0}}, b: {decimal: i32, valid: a == b}}", '"b" exists since the first release, but uses "a", which exists since 2.0'),
    # a `since` that names only documents says nothing about the release
    ("text: top\nsince: {app: 1.1}\nproperties: {a: {decimal: i32, since: {app: 1.1}}, b: {decimal: i32, since: {rfc: [1]}, valid: a == b}}", ""),
    (TOP + "a: {type: u8, since: {app: 1.1}}, b: {type: u8, since: {rfc: [1]}, valid: b > a}}", ""),
    (TOP + "a: {type: u8, since: {app: 2.0}}, b: {type: u8, since: {rfc: [1]}, valid: b > a}}", '"b" exists since 1.1, but uses "a", which exists since 2.0'),
    (TOP + "a: {type: u8, since: {app: 1.1}}}\nderived: {d: {type: i32, is: a + 1, since: {rfc: [1]}}}", ""),
    (TOP + "a: {type: u8, since: {app: 1.1}}}\nrules: {r: {about: a, is: a > 1, since: {rfc: [1]}}}", ""),
    (TOP + "k: {type: u8, since: {app: 1.1}}, x: {choice: newer, given: {kind: k}, since: {rfc: [1]}}}", '"x" exists since 1.1, but holds "newer", which exists since 2.0'),
    (TOP + "a: {type: u8, since: {app: 2.0}}, b: {bits: u8, members: {low: {at: 0, default: a == 1, since: {rfc: [1]}}, rest: {reserved: keep}}}}", '"b" exists since 1.1, but uses "a", which exists since 2.0'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), NEWER)
def test_expressions_use_what_exists(text: str, message: str) -> None:
    model, found = loader.load({"codecgen.yaml": MANIFEST, "case.yaml": f"{text}{OTHERS}"})
    assert model is not None and not found, [d.message for d in found]
    assert [d.message for d in run(model)] == ([message] if message else [])


@pytest.mark.parametrize(
    ("listed", "messages"),
    [
        ("[1.0, 1.1, 2.0]", []),
        ("[1.0, 1.0.0]", ["1.0.0 stands after 1.0: releases go from the oldest to the newest"]),
        ("[1.10, 1.9]", ["1.9 stands after 1.10: releases go from the oldest to the newest"]),
        ("[0.9, 0.10, 1]", []),
        ("[1, 2]\ndocuments: {as_of: [1, 2.0]}", []),
        ("[1, 2]\ndocuments: {as_of: [1, 3]}", ["the manifest does not list the release 3"]),
    ],
)
def test_the_list_of_releases(listed: str, messages: list[str]) -> None:
    manifest = f"language: 1\npackage: p_codecs\ntitle: P\nrelease_line: app\nreleases: {listed}\n"
    files = {"codecgen.yaml": manifest, "case.yaml": "layout: a\nfields: {a: u8}\n"}
    model, found = loader.load(files)
    assert model is not None and not found, [d.message for d in found]
    assert [d.message for d in releases.check(model)] == messages


def test_releases_need_a_line() -> None:
    text = "language: 1\npackage: p_codecs\ntitle: P\n"
    for releases_, said in (("releases: [1.0]\n", True), ("", False)):
        files = {"codecgen.yaml": text + releases_, "case.yaml": "layout: a\nfields: {a: u8}\n"}
        model, _ = loader.load(files)
        assert model is not None
        found = [d.message for d in releases.check(model)]
        wanted = "releases need a `release_line`: the key under `since` that names a release"
        assert found == ([wanted] if said else [])
