"""Extension types of Arrow: whatever writes rows refuses them, and writes their storage once they are cast to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log import SinkError, encode, read_table, write_log, write_segment

STORED = pa.array([b"%016d" % i for i in range(3)], pa.binary(16))
TYPES: dict[str, pa.DataType] = {
    "arrow.uuid": pa.uuid(),
    "arrow.opaque": pa.opaque(pa.binary(16), "geometry", "PostGIS"),
}


def encode_rows(rows: pa.Table, directory: Path) -> Path:
    path = directory / "t-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encode(rows)))
    return path


def write_rows(rows: pa.Table, directory: Path) -> Path:
    path = directory / f"{0:020}.log"
    write_segment(path, rows)
    return path


def write_partitions(rows: pa.Table, directory: Path) -> Path:
    write_log(directory, rows, topic="t")
    return directory


WRITERS: tuple[Callable[[pa.Table, Path], Path], ...] = (encode_rows, write_rows, write_partitions)


@pytest.mark.parametrize("column", ["key", "value"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("write", WRITERS)
def test_refused_until_it_is_cast(write: Any, name: str, column: str, tmp_path: Path) -> None:
    values = {"key": STORED, "value": STORED} | {column: STORED.cast(TYPES[name])}
    rows = pa.table({"offset": pa.array(range(3)), **values})
    with pytest.raises(ValueError, match=f"{name}.* cast it to fixed_size_binary") as caught:
        write(rows, tmp_path)
    assert column in str(caught.value)
    if isinstance(caught.value, SinkError):
        assert (caught.value.row, caught.value.column) == (None, column)
    place = rows.schema.get_field_index(column)
    cast = rows.set_column(place, column, rows[column].cast(STORED.type))
    (tmp_path / "cast").mkdir()
    found = read_table(write(cast, tmp_path / "cast"), [column])
    assert found[column].to_pylist() == STORED.to_pylist()
