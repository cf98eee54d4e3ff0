"""Secrets: what schemas say of fields is in the generated fields, and in the columns of views that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from codecgen.runtime.arrow.output_buffers import schema_of
from codecgen.runtime.arrow.view import Column, PayloadView
from codecgen.runtime.sensitive import REDACTED, Sensitive
from kafka_log.read.topic_views import TopicView, without_secrets
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
layout: holder
fields:
  pairs: {array: pair, count: u8}
  one: {layout: pair}
  group: {layout: group}
  words: {array: {string: u8}, count: u8, sensitive: true}
  secret: {layout: pair, sensitive: true}
---
layout: pair
fields:
  key: {string: i16}
  value: {string: i16, sensitive: true}
  named: {string: i16, sensitive: {named_by: key, endings: [password]}}
---
layout: group
fields: {inner: {array: pair, count: u8}, salt: {bytes: u8, sensitive: true}}
---
view: nested
of: {value: holder}
columns:
  pairs: {list: {key: {type: string}, value: {type: string}, named: {type: string}}}
  one: {struct: {named: {type: string}, value: {type: string}}}
  group: {struct: {inner: {list: {key: {type: string}, value: {type: string}}}, salt: {type: binary}}}
  words: {list: string}
  secret: {struct: {key: {type: string}}}
  kept: {type: string}
rows:
  - of: {value: holder}
    when: value != null
    columns: {pairs: value.pairs, one: value.one, group: value.group, words: value.words, secret: value.secret, kept: value.secret.key}
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


ALWAYS, BY_KEY = Sensitive(), Sensitive("key", ("password",))
NESTED: dict[str, Sensitive | None] = {
    "pairs": None,
    "pairs.key": None,
    "pairs.value": ALWAYS,
    "pairs.named": BY_KEY,
    "one": None,
    "one.named": ALWAYS,
    "one.value": ALWAYS,
    "group": None,
    "group.inner": None,
    "group.inner.key": None,
    "group.inner.value": ALWAYS,
    "group.salt": ALWAYS,
    "words": ALWAYS,
    "words.": None,
    "secret": ALWAYS,
    "secret.key": None,
    "kept": ALWAYS,
}
"""The columns of the view ``nested``; the element of a list has no name."""


def marks(columns: Iterable[Column], path: str = "") -> Iterator[tuple[str, Sensitive | None]]:
    """Yield the path and the mark of each column, and of those inside of it."""
    for column in columns:
        yield path + column.name, column.sensitive
        yield from marks(column.members, f"{path}{column.name}.")
        if column.element is not None:
            yield f"{path}{column.name}.", column.element.sensitive


def nested_view(tmp_path: Path) -> PayloadView:
    package_of(TEXT, tmp_path, "nested_codecs", "construct,arrow")
    scope: dict[str, Any] = {}
    exec((tmp_path / "out" / "nested_codecs" / "columns" / "nested.py").read_text(), scope)
    view: PayloadView = scope["NESTED"]
    return view


def test_columns_of_structs_and_lists(tmp_path: Path) -> None:
    assert dict(marks(nested_view(tmp_path).columns)) == NESTED


def test_secrets_inside_of_columns_are_hidden(tmp_path: Path) -> None:
    """By the one function that views, and tables of metadata, use."""
    pair = {"key": "My.Password", "value": "SECRET", "named": "SECRET"}
    other = {"key": "size", "value": "SECRET", "named": "shown"}
    row = {
        "pairs": [pair, other],
        "one": {"named": "SECRET", "value": "SECRET"},
        "group": {"inner": [{"key": "k", "value": "SECRET"}], "salt": b"SECRET"},
        "words": ["SECRET", "SECRET"],
        "secret": {"key": "SECRET"},
        "kept": "SECRET",
    }
    view = TopicView("nested", tuple(row), nested_view(tmp_path))
    columns = view.view.columns
    assert [c.name for c in columns if c.has_secrets] == list(row)
    hidden = {c.name: c.hide_secrets(row[c.name], row) for c in columns}
    assert "SECRET" not in repr(hidden)
    assert hidden["pairs"] == [
        {"key": "My.Password", "value": REDACTED, "named": REDACTED},
        {"key": "size", "value": REDACTED, "named": "shown"},
    ]
    assert hidden["group"]["salt"] == REDACTED.encode()
    assert hidden["words"] == [REDACTED, REDACTED]
    assert all(c.hide_secrets(None, {}) is None for c in columns)
    rows = pa.RecordBatch.from_pylist([row], schema_of(columns))
    assert without_secrets(rows, view.secrets).to_pylist() == [hidden]


def test_a_secret_number_is_null_where_the_schema_allows_it() -> None:
    """Nothing of its type stands for it: a column that has no nulls has some when they are hidden."""
    pin = Column("pin", "int64", 0, sensitive=Sensitive())
    text = Column("text", "string", 1, sensitive=Sensitive())
    pins = Column("pins", "list", 2, element=Column("", "bool", 3), sensitive=Sensitive())
    both = Column("both", "struct", 4, (pin, Column("plain", "int32", 5)))
    pairs = Column("pairs", "list", 6, (Column("a", "int16", 7),), sensitive=Sensitive())
    columns = (pin, text, pins, both, pairs, Column("id", "int64", 8))
    view = PayloadView("numbers", columns, (), "")
    row = {"pin": 7, "text": "x", "pins": [True], "both": {"pin": 7, "plain": 1}, "pairs": [{"a": 2}], "id": 1}  # fmt: skip
    names = tuple(row)
    rows = pa.RecordBatch.from_pylist([row], schema_of(columns))
    hidden = without_secrets(rows, TopicView("numbers", names, view).secrets)
    hidden.validate(full=True)
    assert hidden.to_pylist() == [
        {
            **row,
            "pin": None,
            "text": REDACTED,
            "pins": [None],
            "both": {"pin": None, "plain": 1},
            "pairs": [{"a": None}],
        }
    ]
    assert hidden.schema == TopicView("numbers", names, view).schema
    assert TopicView("numbers", names, view, show_secrets=True).schema == schema_of(columns)
    assert [f.nullable for f in hidden.schema] == [True, False, False, False, False, False]
    assert hidden.schema.field("pins").type.value_field.nullable
    assert hidden.schema.field("pairs").type.value_type.field("a").nullable
    assert [f.nullable for f in hidden.schema.field("both").type] == [True, False]


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
