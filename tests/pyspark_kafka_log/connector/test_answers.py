"""The answers of the connector's worker, asked on byte streams as the JVM asks them: no Java is needed."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kafka_log import read_table
from pyspark_kafka_log.connector import worker
from pyspark_kafka_log.connector.worker import AnswerStream
from tests.support.spark_logs import batch, build, flipped, numbered, write


def schema_json(**types: DataType) -> str:
    return StructType([StructField(name, kind) for name, kind in types.items()]).json()


WRITTEN = schema_json(topic=StringType(), partition=IntegerType(), value=BinaryType())


@dataclass
class Answer:
    """What one question gets: chunks, metrics of a task, and the text of an error."""

    chunks: list[bytes] = field(default_factory=list)
    metrics: dict[str, Any] | None = None
    error: str | None = None

    @property
    def data(self) -> bytes:
        return b"".join(self.chunks)


def question(ask: str, path: Path, pickled: bytes = b"", after: bytes = b"", **given: Any) -> bytes:
    request: dict[str, Any] = {"ask": ask, "options": {"path": str(path)}, "session": {}}
    request |= {"columns": [], "table": [], "filters": [], "limit": None, "parallelism": None}
    options = request["options"] | given.pop("options", {})
    text = json.dumps(request | given | {"options": options}).encode()
    return struct.pack(">i", len(text)) + text + struct.pack(">i", len(pickled)) + pickled + after


def answers(*questions: bytes) -> list[Answer]:
    """Return the answers to questions of one JVM, which then closes its end."""
    out = io.BytesIO()
    with pytest.raises(SystemExit) as ended:
        worker.main(io.BytesIO(b"".join(questions)), out)
    assert ended.value.code == 1
    out.seek(0)
    found: list[Answer] = [Answer()]
    while kind := out.read(4):
        (size,) = struct.unpack(">i", kind)
        if size > 0:
            found[-1].chunks.append(out.read(size))
        elif size == -2:
            found[-1].metrics = json.loads(out.read(*struct.unpack(">i", out.read(4))))
        else:
            if size == -1:
                found[-1].error = out.read(*struct.unpack(">i", out.read(4))).decode()
            found.append(Answer())
    assert found.pop() == Answer() and len(found) == len(questions)
    return found


def answer(*given: Any, **others: Any) -> Answer:
    (found,) = answers(question(*given, **others))
    assert found.error is None, found.error
    return found


def parse_tasks(data: bytes) -> list[bytes]:
    stream = io.BytesIO(data)
    (count,) = struct.unpack(">i", stream.read(4))
    tasks = [stream.read(*struct.unpack(">i", stream.read(4))) for _ in range(count)]
    assert stream.read() == b""
    return tasks


def parse_plan(data: bytes) -> tuple[bytes, tuple[int, int], list[bytes]]:
    """Return the logs that were found, the bytes and rows of the scan, and the tasks."""
    (size,) = struct.unpack(">i", data[:4])
    found, rest = data[4 : 4 + size], data[4 + size :]
    return found, struct.unpack(">qq", rest[:16]), parse_tasks(rest[16:])


def rows_of(data: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.ipc.open_stream(data).read_all().to_pylist()
    return rows


@pytest.fixture
def logs(directory: Path) -> Path:
    write(directory, "t", 0, 0, numbered(5, 2))
    write(directory, "u", 3, 0, numbered(2, 1))
    return directory


def test_questions_go_on_after_an_error(logs: Path) -> None:
    found = answers(
        question("hello", logs),
        question("schema", logs, options={"startingOffset": "x"}, schema=None),
        question("hello", logs),
        question("nothing", logs),
    )
    assert found[0] == found[2] == Answer()
    assert "option startingOffset: " in str(found[1].error)
    assert "Traceback" not in str(found[1].error) and "Traceback" in str(found[3].error)


def test_a_jvm_that_hangs_up_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    class EndedError(Exception):
        pass

    def end(code: int) -> None:
        raise EndedError(code)

    monkeypatch.setattr(os, "_exit", end)
    out = AnswerStream(Closed(), io.BytesIO())
    for send in (lambda: out.write(b"x"), out.flush):
        with pytest.raises(EndedError, match=r"^1$"):
            send()


def test_long_answers_are_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_CHUNK_BYTES", 3)
    sent = io.BytesIO()
    out = AnswerStream(sent, io.BytesIO(b"after"))
    assert out.write(b"1234567") == 7 and out.write(b"") == 0
    lengths = [b"\0\0\0" + bytes([n]) for n in (3, 3, 1)]
    assert sent.getvalue() == b"".join(
        length + piece for length, piece in zip(lengths, (b"123", b"456", b"7"), strict=True)
    )
    assert out.read(2) == b"af"


def test_schemas(logs: Path) -> None:
    default = StructType.fromJson(json.loads(answer("schema", logs, schema=None).data))
    assert default.names[:3] == ["key", "value", "topic"]
    chosen = schema_json(offset=LongType(), topic=StringType())
    assert json.loads(answer("schema", logs, schema=chosen).data) == json.loads(chosen)
    wrong = schema_json(offset=StringType())
    (refused,) = answers(question("schema", logs, schema=wrong))
    assert "offset" in str(refused.error) and refused.chunks == []


def test_tasks_of_a_plan_have_all_rows(logs: Path) -> None:
    given: Mapping[str, Any] = {"columns": ["topic", "offset"], "options": {"splitBytes": "1"}}
    found, (size, rows), tasks = parse_plan(answer("plan", logs, **given).data)
    assert (size, rows) == (sum(path.stat().st_size for path in logs.rglob("*.log")), -1)
    assert len(tasks) > 1
    wanted = read_table(logs, ["topic", "offset"]).to_pylist()
    told = [answer("read", logs, task, **given) for task in tasks]
    assert [row for one in told for row in rows_of(one.data)] == wanted
    assert sum((one.metrics or {})["readBytes"] for one in told) == size
    (task,) = parse_plan(answer("plan", logs, found, **{**given, "options": {}}).data)[2]
    filters = [["topic", "in", ["t"]], ["offset", ">", 7]]
    (of_t,) = parse_plan(answer("plan", logs, columns=["offset"], filters=filters).data)[2]
    assert [row["offset"] for row in rows_of(answer("read", logs, of_t, columns=["offset"], filters=filters).data)] == [8, 9]  # fmt: skip
    counts = answer("read", logs, task)
    assert sum(count for (count,) in struct.iter_unpack(">i", counts.data)) == len(wanted)
    limited = answer("read", logs, task, columns=["offset"], limit=3)
    assert rows_of(limited.data) == [{"offset": 0}, {"offset": 1}, {"offset": 2}]


def test_a_plan_finds_logs_once(logs: Path) -> None:
    found = parse_plan(answer("plan", logs).data)[0]
    write(logs, "v", 0, 0, numbered(1, 1))
    _, (size, _), _ = parse_plan(answer("plan", logs, found).data)
    _, (later, _), _ = parse_plan(answer("plan", logs).data)
    assert later == size + (logs / "v-0" / f"{0:020}.log").stat().st_size


def test_reports_have_tasks_and_no_size(logs: Path) -> None:
    given: Mapping[str, Any] = {"columns": ["topic"], "options": {"view": "segments"}}
    _, sizes, (task,) = parse_plan(answer("plan", logs, **given).data)
    assert sizes == (-1, -1)
    assert rows_of(answer("read", logs, task, **given).data) == [{"topic": "t"}, {"topic": "u"}]


def test_damage_is_an_error_after_the_rows_before_it(directory: Path) -> None:
    data = numbered(5, 2)
    write(directory, "t", 0, 0, flipped(data, len(data) - 3))
    (task,) = parse_plan(answer("plan", directory).data)[2]
    options = {"batchRows": "5"}
    (found,) = answers(question("read", directory, task, columns=["offset"], options=options))
    assert "checksum" in str(found.error) and found.metrics is None
    assert [row["offset"] for row in rows_of(found.data)] == list(range(5))
    # Damage is a row only if a column of the table says so, whatever columns are chosen.
    for table, count in ((["offset"], 9), (["offset", "problem"], 10)):
        given: Mapping[str, Any] = {"options": {"mode": "PERMISSIVE"}, "table": table}
        (kept,) = parse_plan(answer("plan", directory, columns=["offset"], **given).data)[2]
        rows = rows_of(answer("read", directory, kept, columns=["offset"], **given).data)
        assert len(rows) == count


def test_aggregates_of_totals(logs: Path) -> None:
    functions = [["count", "*"], ["max", "offset"], ["min", "timestamp"]]
    given: Mapping[str, Any] = {
        "aggregates": functions,
        "groups": ["topic"],
        "table": ["timestamp"],
    }
    fields = StructType.fromJson(json.loads(answer("aggregates", logs, **given).data))
    assert fields.simpleString() == "struct<topic:string,count(*):bigint,max(offset):bigint,min(timestamp):timestamp>"  # fmt: skip
    _, sizes, (task,) = parse_plan(answer("plan", logs, **given).data)
    assert sizes == (-1, len(pickle.loads(task)))
    told = answer("read", logs, task, **given)
    assert [(r["topic"], r["count(*)"], r["max(offset)"]) for r in rows_of(told.data)] == [
        ("t", 10, 9),
        ("u", 2, 1),
    ]
    assert told.metrics is not None
    assert told.metrics["readBytes"] >= sum(path.stat().st_size for path in logs.rglob("*.log"))
    whole: Mapping[str, Any] = {**given, "groups": []}
    (row,) = rows_of(answer("read", logs, task, **whole).data)
    assert (row["count(*)"], row["max(offset)"]) == (12, 9)
    for refused in ({"aggregates": [["max", "value"]]}, {"groups": ["value"]}, {"options": {"mode": "PERMISSIVE"}}):  # fmt: skip
        assert answer("aggregates", logs, **{**given, **refused}).chunks == []
    assert answer("aggregates", logs).chunks == []
    nowhere = [["topic", "in", []]]
    _, sizes, (empty,) = parse_plan(answer("plan", logs, **{**given, "groups": []}, filters=nowhere).data)  # fmt: skip
    assert sizes == (-1, 1) and pickle.loads(empty) == ()
    (row,) = rows_of(answer("read", logs, empty, **whole).data)
    assert (row["count(*)"], row["max(offset)"]) == (0, None)
    assert parse_plan(answer("plan", logs, filters=nowhere).data)[1:] == ((0, -1), [])


def test_aggregates_are_of_files_where_they_are_now(logs: Path) -> None:
    given: Mapping[str, Any] = {"aggregates": [["count", "*"]], "groups": [], "table": ["timestamp"]}  # fmt: skip
    (task,) = parse_plan(answer("plan", logs, **given).data)[2]
    path = logs / "t-0" / f"{0:020}.log"
    renamed = path.rename(path.with_name(f"{path.name}.deleted"))
    assert rows_of(answer("read", logs, task, **given).data) == [{"count(*)": 12}]
    renamed.unlink()
    (failed,) = answers(question("read", logs, task, **given))
    assert "No such file" in str(failed.error)
    with pytest.warns(UserWarning, match="is gone"):
        told = answer("read", logs, task, **given, options={"ignoreMissingFiles": "true"})
    assert rows_of(told.data) == [{"count(*)": 2}]


def test_options_of_the_query_override_those_of_stores(logs: Path) -> None:
    stores = {"path": str(logs / "nowhere"), "subscribe": "u"}
    _, (size, _), _ = parse_plan(answer("plan", logs, stores=stores).data)
    assert size == (logs / "u-3" / f"{0:020}.log").stat().st_size


def test_a_time_that_does_not_fit_fails_a_query_of_other_columns(directory: Path) -> None:
    late = {"base_timestamp": 1 << 62, "max_timestamp": 1 << 62}
    write(directory, "t", 0, 0, build(batch(0, [b"v"], **late)))
    given: Mapping[str, Any] = {"columns": ["value"], "table": ["value", "timestamp"]}
    (task,) = parse_plan(answer("plan", directory, **given).data)[2]
    (found,) = answers(question("read", directory, task, **given))
    assert "offset 0" in str(found.error) and "timestamp" in str(found.error)


def test_metadata_is_that_of_each_split(logs: Path) -> None:
    given: Mapping[str, Any] = {"columns": ["topic", "_metadata"], "metadata": ["file_path"]}
    (task,) = parse_plan(answer("plan", logs, **given).data)[2]
    rows = rows_of(answer("read", logs, task, **given).data)
    found = {(row["topic"], row["_metadata"]["file_path"]) for row in rows}
    places = {"t": logs / "t-0", "u": logs / "u-3"}
    assert found == {(t, (place / f"{0:020}.log").as_uri()) for t, place in places.items()}


def test_metadata_describes_the_file_and_the_split(logs: Path) -> None:
    path = logs / "u-3" / f"{0:020}.log"
    names = ["file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time"]  # fmt: skip
    options = {"subscribe": "u"}
    given: Mapping[str, Any] = {
        "columns": ["offset", "_metadata"],
        "metadata": names,
        "options": options,
    }
    (task,) = parse_plan(answer("plan", logs, **given).data)[2]
    rows = rows_of(answer("read", logs, task, **given).data)
    size = path.stat().st_size
    assert [row["offset"] for row in rows] == [0, 1]
    for row in rows:
        found = row["_metadata"]
        assert [found[name] for name in names[:5]] == [path.as_uri(), path.name, size, 0, size]
        assert abs(found["file_modification_time"].timestamp() - path.stat().st_mtime) < 0.001
    few = {**given, "metadata": ["file_size"]}
    assert [row["_metadata"] for row in rows_of(answer("read", logs, task, **few).data)] == [{"file_size": size}] * 2  # fmt: skip


@pytest.mark.slow
def test_a_job_writes_rows_that_follow_its_question(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    job = answer("job", out, schema=WRITTEN, overwrite=False, query="q").data.decode()
    table = pa.table({"topic": ["t"] * 3, "partition": pa.array([0] * 3, pa.int32()), "value": [b"a", b"b", b"c"]})  # fmt: skip
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    rows = sink.getvalue()
    wrong = table.set_column(0, "topic", pa.array(["../x"] * 3))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, wrong.schema) as stream:
        for batch in wrong.to_batches(max_chunksize=1):
            stream.write_batch(batch)
    written, failed, hello = answers(
        question("write", out, after=rows, job=job, task=0, batch=None),
        question("write", out, after=sink.getvalue(), job=job, task=1, batch=None),
        question("hello", out),
    )
    assert written.error is None and failed.error is not None and hello == Answer()
    messages = [written.data.decode()]
    assert answer("commit", out, job=job, messages=messages, batch=None, query=None).chunks == []
    assert read_table(out, ["value"])["value"].to_pylist() == [b"a", b"b", b"c"]
    second = answer("job", out, schema=WRITTEN, overwrite=False, query="q").data.decode()
    (staged,) = answers(question("write", out, after=rows, job=second, task=0, batch=None))
    assert staged.error is None
    assert answer("abort", out, job=second).chunks == []
    assert read_table(out, ["value"]).num_rows == 3


def test_a_micro_batch_is_committed_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    job = answer("job", out, schema=WRITTEN, overwrite=False, query="q").data.decode()
    table = pa.table({"topic": ["t"], "partition": pa.array([0], pa.int32()), "value": [b"a"]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    for number, rows in ((0, 1), (0, 1), (1, 2)):
        asked = question("write", out, after=sink.getvalue(), job=job, task=0, batch=number)
        (written,) = answers(asked)
        messages = [written.data.decode()]
        answer("commit", out, job=job, messages=messages, batch=number, query="q")
        assert read_table(out, ["value"]).num_rows == rows, number


@pytest.mark.parametrize("fails", [True, False])
def test_a_file_that_a_stream_does_not_find(logs: Path, fails: bool) -> None:
    options = {"startingOffsets": "earliest", "failOnDataLoss": str(fails).lower()}
    given: Mapping[str, Any] = {"options": options, "stream": True}
    ends = json.dumps({"t": {"0": 0}, "u": {"3": 0}}), json.dumps({"t": {"0": 10}, "u": {"3": 2}})
    asked: Mapping[str, Any] = {"target": None, "start": ends[0], "end": ends[1], "limited": False}
    (task,) = parse_tasks(answer("stream", logs, do="tasks", **given, **asked).data)
    (logs / "t-0" / f"{0:020}.log").unlink()
    reading = question("read", logs, task, columns=["topic"], **given)
    if fails:
        (found,) = answers(reading)
        assert "No such file" in str(found.error)
        return
    with pytest.warns(UserWarning, match="is gone"):
        (found,) = answers(reading)
    assert rows_of(found.data) == [{"topic": "u"}] * 2


def test_a_stream_ends_at_its_target_and_limits(logs: Path) -> None:
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "4"}
    target = json.dumps({"t": {"0": 6}, "u": {"3": 1}})
    begin = json.dumps({"t": {"0": 0}, "u": {"3": 0}})
    given: Mapping[str, Any] = {"options": options, "stream": True, "start": begin, "end": None}
    for limited, offsets in ((False, 7), (True, 4)):
        asked = answer("stream", logs, do="latest", target=target, limited=limited, **given)
        end = json.loads(asked.data)
        assert end["t"]["0"] + end["u"]["3"] == offsets and end["t"]["0"] <= 6


def test_one_stream_is_kept_between_questions(logs: Path) -> None:
    given: Mapping[str, Any] = {"options": {"startingOffsets": "earliest"}, "target": None, "stream": True}  # fmt: skip
    nothing: Mapping[str, Any] = {"start": None, "end": None, "limited": True}
    begin = json.loads(answer("stream", logs, do="initial", **given, **nothing).data)
    assert begin == {"t": {"0": 0}, "u": {"3": 0}}
    at: Mapping[str, Any] = {"start": json.dumps(begin), "end": None, "limited": False}
    end = json.loads(answer("stream", logs, do="latest", **given, **at).data)
    ranged: Mapping[str, Any] = {**at, "end": json.dumps(end)}
    first, tasks, limits = answers(
        question("stream", logs, do="latest", **given, **at),
        question("stream", logs, do="tasks", **given, **ranged),
        question("stream", logs, do="limits", **given, **nothing),
    )
    assert json.loads(first.data) == end and isinstance(json.loads(limits.data), dict)
    reading: Mapping[str, Any] = {
        "columns": ["offset"],
        "stream": True,
        "options": given["options"],
    }
    told = [answer("read", logs, task, **reading) for task in parse_tasks(tasks.data)]
    offsets = [row["offset"] for one in told for row in rows_of(one.data)]
    assert sorted(offsets) == sorted([*range(10), *range(2)])
