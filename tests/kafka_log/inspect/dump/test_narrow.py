"""``dump`` on narrow screens: what is shown of a number is the number."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import write_segment
from kafka_log.cli import main
from kafka_log.text.text_rows import ROOM

NAME = "a-topic-with-a-long-name.of-a-department"
LAST = 2**63 - 10
TIME = len("2026-11-22T00:00:00.000Z")


@pytest.mark.slow
@pytest.mark.parametrize("width", range(60, 161, 5))
@pytest.mark.parametrize(
    "columns", ["offset,key,value", "topic,partition,offset,timestamp,key,value"]
)
def test_no_number_loses_digits(
    columns: str,
    width: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Words of a line at any width are words of the whole line, but for texts, which end in an ellipsis."""
    directory = tmp_path / f"{NAME}-2147483647"
    directory.mkdir()
    values = [(-(2**63)).to_bytes(8, "big", signed=True), b"a text of some words " * 9, None]
    table = pa.table(
        {
            "offset": pa.array(range(LAST, LAST + 3), pa.int64()),
            "key": [(2**62 + i).to_bytes(8, "big") for i in range(3)],
            "value": pa.array(values, pa.binary()),
        }
    )
    write_segment(directory / f"{LAST:020}.log", table)
    command = ["dump", str(directory), "--columns", columns, "--decode", "int"]
    main([*command, "--width", "500"])
    whole = capsys.readouterr().out.splitlines()
    monkeypatch.setenv("COLUMNS", str(width))
    main(command)
    shown = capsys.readouterr().out
    narrow = shown.splitlines()
    assert max(map(len, narrow)) <= width
    if len(narrow) > len(
        whole
    ):  # a paragraph for each row, where the numbers do not fit beside each other
        assert len(NAME) + len("2147483647") + len(str(LAST)) + TIME + 3 * 2 + ROOM > width
        parts = [part.splitlines() for part in shown.split("\n\n")]
        names = columns.split(",")
        assert [[line.split()[0] for line in part] for part in parts] == [names] * 3
        narrow = ["", *(" ".join(line.split(None, 1)[1] for line in part) for part in parts)]
    assert len(narrow) == len(whole) == 4
    for line, of in zip(narrow[1:], whole[1:], strict=True):
        words = line.replace("…", " … ").split()
        numbers = [word for word in words if word.lstrip("-").isdigit()]
        assert (
            numbers == [word for word in of.split() if word.lstrip("-").isdigit()][: len(numbers)]
        )
        assert set(numbers) & set(map(str, range(LAST, LAST + 3)))
        assert NAME not in of or (NAME in words and "2147483647" in words)
