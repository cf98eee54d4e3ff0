"""Secrets: what schemas say of fields is in the generated fields, and in the columns of views that are made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.sensitive import Sensitive
from tests.codecgen.generated import package_of

NAMED = Sensitive("name", ("password", ".secret"))
TEXT = """\
layout: setting
fields:
  size: {type: u8, measures: rest}
  name: {string: u8}
  value: {string: u8, none: 255, sensitive: {named_by: name, endings: [password, .secret]}}
  pin: {bytes: u8, sensitive: true}
  plain: u8
---
layout: message
fields: {body: {layout: setting}}
---
view: settings
of: setting
columns:
  title: {type: string}
  value: {type: string, nullable: true}
  is_set: {type: bool}
  plain: {type: uint8}
rows: [{of: setting, columns: {title: name, value: value, is_set: value != null, plain: plain}}]
---
view: nameless
of: setting
columns: {value: {type: string, nullable: true}, pin: {type: binary}}
rows: [{of: setting, columns: {value: value, pin: pin}}]
---
view: within
of: {value: message}
columns: {name: {type: string}, value: {type: string, nullable: true}, pin: {type: binary}}
rows: [{of: {value: message}, when: value != null, columns: {name: value.body.name, value: value.body.value, pin: value.body.pin}}]
"""

VIEWS: dict[str, dict[str, Sensitive | None]] = {
    "settings": {
        "title": None,
        "value": Sensitive("title", NAMED.endings),
        "is_set": None,
        "plain": None,
    },
    "nameless": {"value": Sensitive(), "pin": Sensitive()},
    "within": {"name": None, "value": NAMED, "pin": Sensitive()},
}


def test_fields_and_columns(tmp_path: Path) -> None:
    package = package_of(TEXT, tmp_path, "sensitive_codecs", "construct,arrow")
    fields = {f.name: f.sensitive for f in package.SETTING.fields}
    assert fields == {
        **dict.fromkeys(("size", "name", "plain")),
        "value": NAMED,
        "pin": Sensitive(),
    }
    for name, expected in VIEWS.items():
        scope: dict[str, object] = {}
        exec((tmp_path / "out" / "sensitive_codecs" / "columns" / f"{name}.py").read_text(), scope)
        view = scope[name.upper()]
        assert {c.name: c.sensitive for c in view.columns} == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("password", True),
        ("My.PASSWORD", True),
        ("a.secret", True),
        ("asecret", False),
        ("password.file", False),
        ("", False),
        (None, True),
    ],
)
def test_names(name: str | None, is_secret: bool) -> None:
    assert NAMED.covers(name) is is_secret
    assert Sensitive().covers(name)
