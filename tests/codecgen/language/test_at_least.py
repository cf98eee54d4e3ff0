"""``at_least``: fewer elements are refused wherever the array stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.errors import LengthError
from tests.codecgen.generated import package_of


@pytest.mark.parametrize("after", ["", ", z: u8"])
@pytest.mark.parametrize("count", ["count: u8", "until: end"])
def test_none_where_some_must_be(after: str, count: str, tmp_path: Path) -> None:
    if after and count == "until: end":
        after = ""
    package = package_of(
        f"layout: some\nfields: {{a: u8, xs: {{array: u16, {count}, at_least: 1}}{after}}}\n",
        tmp_path,
        f"at_least_{len(after)}_{count[0]}",
    )
    head = b"\1" if count == "until: end" else b"\1\0"
    with pytest.raises(LengthError, match="0 elements, where at least 1 must be"):
        package.SOME.parse(head + b"\0" * (1 if after else 0))
