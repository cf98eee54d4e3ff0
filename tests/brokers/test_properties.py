"""Texts of properties beside java.util.Properties: what it reads and writes."""

from __future__ import annotations

import base64
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from codecgen.runtime.construct import PropertiesFile
from codecgen.runtime.errors import ParseError
from tests.shares import draw_seeds

SOURCE = Path(__file__).parent / "properties" / "ReadProperties.java"
TEXTS = 4000
PIECES = (
    *("a", "b", "key", "value", "0", "é", "€", "😀", "=", ":", " ", "\t", "\f", "#", "!"),
    *("\\", "\\\\", "\\\n", "\\\r\n", "\\u0041", "\\u20ac", "\\u00g", "\\n", "\\t", "\\=", "\\ "),
    *("\n", "\n", "\n", "\r\n", "\r", "\n#", "\n  ", "a=b\n", "\x00", "\x7f", "\u00a0", "\u2028"),
)
ANY = PropertiesFile(
    "any",
    accepts=["loose_properties", "duplicate_keys", "other_newlines", "any_final_newline"],
    keep_unknown=True,
)

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]


def decoded(word: str) -> str:
    return base64.b64decode(word.removeprefix("=")).decode("utf-8")


@pytest.mark.parametrize("seed", draw_seeds(1, first=7))
def test_properties_are_read_and_written_as_by_java(seed: int) -> None:
    r = random.Random(seed)
    texts = ["".join(r.choices(PIECES, k=r.randint(0, 14))) for _ in range(TEXTS)]
    lines = "".join(base64.b64encode(text.encode()).decode() + "\n" for text in texts)
    run = subprocess.run(
        ["java", str(SOURCE)], input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    answers = run.stdout.splitlines()
    assert len(answers) == TEXTS
    refused = 0
    for text, answer in zip(texts, answers, strict=True):
        if answer == "refused":
            refused += 1
            with pytest.raises(ParseError):
                ANY.parse(text.encode(), strict=False)
            continue
        _, stored, *words = (decoded(w) if w.startswith("=") else w for w in answer.split())
        expected = dict(zip(words[::2], words[1::2], strict=True))
        assert ANY.parse(text.encode(), strict=False).unknown == expected, repr(text)
        data = stored.encode()
        found = ANY.parse(data)
        assert found.unknown == expected and found.comments[0] == "", repr(text)
        assert ANY.build(found) == data, repr(text)
    assert 0 < refused < TEXTS / 2
