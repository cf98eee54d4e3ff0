"""Reads and writes a next batch, in one log with all other versions, with everything that there is.

    python -m tests.codecs.use_next_batch NAME DIRECTORY

Runs in a process of its own, with the codecs of a tree to which ``tests.codecs.next_batches`` has added the batch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa

from kafka_codecs import LOG_ENTRY
from kafka_log import SegmentReader, encode, read_table, write_segment
from tests.codecs import use_random_format
from tests.codecs.next_batches import MAGIC
from tests.codecs.use_random_format import ALL, ENGINES, ROWS, rows, said


def flagged(directory: Path) -> None:
    """Records with and without a schema: each batch has only one kind, and its flag says which."""
    path = directory / "flagged-0" / f"{0:020}.log"
    path.parent.mkdir()
    data, expected = b"", []
    for i, magic in enumerate((2, MAGIC, 1, MAGIC)):
        table = rows(i * ROWS, magic)
        ids = [None if magic != MAGIC or n % 50 < 20 else n % 3 - 1 for n in range(ROWS)]
        expected += ids
        if magic == MAGIC:
            table = table.append_column("schema_id", pa.array(ids, pa.int32()))
        codec = "zstd" if i == 3 else "none"
        data += b"".join(encode(table, magic=magic, codec=codec, batch_bytes=3000))
    path.write_bytes(data)
    for engine in ENGINES:
        found = read_table(path, ["offset", "schema_id"], engine=engine)
        assert found.column("offset").to_pylist() == list(range(4 * ROWS))
        assert found.column("schema_id").to_pylist() == expected
    third = [b for b in SegmentReader(path, policy="strict") if b.magic == MAGIC]
    parsed = [LOG_ENTRY.parse(data[b.position : b.position + b.size]) for b in third]
    assert {batch.attributes.has_schema for batch in parsed} == {False, True}
    for batch in parsed:
        assert {record.schema_id is not None for record in batch.records} == {
            batch.attributes.has_schema
        }
    copy = directory / "flagged.log"
    write_segment(copy, read_table(path, ALL))
    assert read_table(copy, ["schema_id"]).column("schema_id").to_pylist() == expected
    found = said("check", str(path.parent), "--deep", "--format", "jsonl").splitlines()
    assert [f for f in map(json.loads, found) if f["severity"] == "error"] == []


BATCHES = {"flagged": flagged}


def main() -> None:
    name, directory = sys.argv[1], Path(sys.argv[2])
    BATCHES[name](directory)
    sys.argv[1:] = [str(directory)]
    use_random_format.main()


if __name__ == "__main__":
    main()
