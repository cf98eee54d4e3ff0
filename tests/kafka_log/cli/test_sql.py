"""``kafka-log sql``: tables over a log, read lazily, and the shell."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.cli.sql_tables import ABOUT, LogTables
from kafka_log.read.selection import Selection
from tests.paths import ROOT, SAMPLES
from tests.support.batches import batch
from tests.support.peak_memory import PEAK_KIB, needs_peak

duckdb = pytest.importorskip("duckdb")

from kafka_log.read.sql.lazy_tables import LazyTable, connect  # noqa: E402
from kafka_log.read.sql.words import quote_columns  # noqa: E402

NEW = SAMPLES / "kafka-4.x"
REGISTRY = SAMPLES / "schema-registry"


def rows_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> list[Any]:
    assert main(["sql", *map(str, arguments), "--format", "jsonl"]) == code, capsys.readouterr().err
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# ---------------------------------------------------------------- tables


def test_records_are_those_of_scan(capsys: pytest.CaptureFixture[str]) -> None:
    query = "select partition, offset, key from records order by partition, offset"
    found = rows_of(capsys, NEW, "--topic", "codecs", query)
    wanted = read_table(NEW, ["partition", "offset", "key"], topics="codecs").to_pylist()
    wanted.sort(key=lambda row: (row["partition"], row["offset"]))
    assert [(row["partition"], row["offset"]) for row in found] == [
        (row["partition"], row["offset"]) for row in wanted
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ABOUT)
def test_each_table_has_the_rows_of_its_answer(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogDirectory(NEW)
    answers: dict[str, Any] = {
        "records": lambda: read_table(NEW, ["topic"]),
        "batches": lambda: scan_batches(NEW, ["topic"]).read_all(),
        "topics": lambda: log.ls(by="topic"),
        "partitions": log.ls,
        "segments": lambda: log.ls(segments=True),
        "transactions": log.txn,
        "producers": log.producers,
        "offsets": log.groups,
        "groups": lambda: log.groups(states=True),
        "findings": log.check,
    }
    [row] = rows_of(capsys, NEW, f"select count(*) as n from {name}")
    assert row["n"] == answers[name]().num_rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ABOUT)
def test_all_columns_of_each_table_can_be_read(name: str) -> None:
    table = LogTables(LogDirectory(NEW), Selection()).make()[name]
    read = table.scanner().to_reader().read_all()
    assert read.schema.names == table.schema.names
    assert read.schema.types == table.schema.types


def test_options_select_rows(capsys: pytest.CaptureFixture[str]) -> None:
    def count(*options: str, table: str = "records") -> int:
        [row] = rows_of(capsys, NEW, *options, f"select count(*) as n from {table}")
        return int(row["n"])

    assert count("--topic", "codecs", "--partition", "0", "--offsets", "5:8") == 3
    assert 0 < count("--topic", "codecs", "--time", "2026-11-20T07") < 10
    assert count("--topic", "transactions", "--isolation", "read_committed") < count("--topic", "transactions")  # fmt: skip
    assert count("--topic", "codecs", table="partitions") == 5
    assert count("--topic", "codecs", "--offsets", "60:", table="batches") < count("--topic", "codecs", table="batches")  # fmt: skip


def test_decoded_values_have_fields(capsys: pytest.CaptureFixture[str]) -> None:
    query = "select value.home.city as city, count(*) as n from records group by city"
    arguments = (REGISTRY, "--topic", "customers", "--decode", "auto", query)
    assert rows_of(capsys, *arguments) == [{"city": "Bern", "n": 3}]
    query = "select value_schema_id from records limit 1"
    [row] = rows_of(capsys, REGISTRY, "--topic", "customers", "--decode", "auto", query)
    assert row["value_schema_id"] is not None


def test_values_that_cannot_be_decoded_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("sql", str(REGISTRY), "--topic", "orders", "--decode", "auto", "--format", "jsonl")
    assert main([*arguments, "select count(*) n, count(value) v from records"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == {"n": 10, "v": 6}
    lines = said.err.splitlines()
    assert len(lines) == 3
    assert all("1 value not decoded, null in the query: " in line for line in lines)
    query = "select count(value) v, count(value_problem) p, count(*) n from records"
    assert main([*arguments, query]) == 0
    assert capsys.readouterr() == ('{"v": 6, "p": 3, "n": 10}\n', "")  # and a tombstone
    assert main([*arguments, "select count(*) n from records"]) == 0
    assert capsys.readouterr().err == ""


def test_a_query_may_read_a_table_twice_and_join_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    query = """
        with last as (select topic, partition, max(offset) + 1 as end_offset from records group by all)
        select o.group, o.partition, o.log_end_offset - l.end_offset as difference, count(*) as n
        from offsets o join last l using (topic, partition) join records r using (topic, partition)
        where topic = 'codecs' group by all order by all"""
    found = rows_of(capsys, NEW, query)
    assert found
    assert {row["difference"] for row in found} == {0}


# ---------------------------------------------------------------- laziness


def read_columns(query: str) -> list[list[str]]:
    """The columns of each scan of the table ``t`` that a query makes."""
    asked: list[list[str]] = []
    schema = pa.schema([("a", pa.int64()), ("b", pa.binary()), ("c", pa.timestamp("ms", "UTC"))])
    data = pa.table({"a": [1, 2, 3], "b": [b"x", None, b"z"], "c": [1, 2, 3]}, schema=schema)

    def read(names: Sequence[str]) -> pa.RecordBatchReader:
        asked.append(list(names))
        return data.select(list(names)).to_reader(max_chunksize=2)

    connection = connect({"t": LazyTable(schema, read)})
    connection.sql(query).fetchall()
    return asked


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select sum(a) from t", [["a"]]),
        ("select a from t where b = 'x'", [["a", "b"]]),
        ("select x.a from t x join t y on x.a = y.a", [["a"], ["a"]]),
        ("from t", [["a", "b", "c"]]),
        ("select 1", []),
        ("select t from t", [["a", "b", "c"]]),
    ],
)
def test_only_the_columns_of_a_query_are_read(query: str, columns: list[list[str]]) -> None:
    assert [sorted(names) for names in read_columns(query)] == columns


def test_nothing_is_read_of_tables_that_no_query_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("check", "txn", "producers", "groups", "ls"):
        monkeypatch.setattr(LogDirectory, name, None)
    assert rows_of(capsys, NEW / "codecs-0", "select count(*) as n from records") == [{"n": 67}]


@needs_peak
@pytest.mark.soak
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    with (tmp_path / "t-0" / f"{0:020d}.log").open("wb") as file:
        for i in range(400):
            file.write(batch(i * 1000, records=1000, size=1000))
    query = "select count(*), max(octet_length(value)) from records"
    code = (
        "import sys; from kafka_log.cli import main; code = main(sys.argv[1:]);"
        f"print({PEAK_KIB} // 1024); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "sql", str(tmp_path), query, "--format", "jsonl"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    row, peak = done.stdout.splitlines()
    assert list(json.loads(row).values()) == [400_000, 1000]
    assert int(peak) < 700, "MiB, of a log of 400 MB whose rows are larger"


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        ("select offset from r", 'select "offset" from r'),
        ("select max(offset), r.offset from r", 'select max("offset"), r."offset" from r'),
        (
            "select 1 from r where a>=offset and offset<9",
            'select 1 from r where a>="offset" and "offset"<9',
        ),
        (
            "from r order by offset desc limit 5 offset 10",
            'from r order by "offset" desc limit 5 offset 10',
        ),
        ("select a from r limit (1) offset 2", "select a from r limit (1) offset 2"),
        (
            "select 'offset', \"offset\" from r -- offset",
            "select 'offset', \"offset\" from r -- offset",
        ),
        ("select 'ä', offset, ä from r", "select 'ä', \"offset\", ä from r"),
        ("select group from r group by group", 'select "group" from r group by "group"'),
        ("select OFFSET from r GROUP  BY all", 'select "OFFSET" from r GROUP  BY all'),
        ("select offsets, groups from r", "select offsets, groups from r"),
        ("", ""),
    ],
)
def test_columns_with_reserved_names_need_no_quotes(query: str, quoted: str) -> None:
    assert quote_columns(query) == quoted


# ---------------------------------------------------------------- output


def test_formats(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    query = "select topic, count(*) as n, sum(offset) as s, min(timestamp) as t, interval 2 hour as i from records group by topic order by topic"  # fmt: skip
    printed: dict[str, bytes] = {}
    for form in ("text", "jsonl", "csv", "parquet", "arrow"):
        assert main(["sql", str(NEW), "--topic", "codecs", query, "--format", form]) == 0
        printed[form] = capsysbinary.readouterr().out
    wanted = {"topic": "codecs", "n": 323, "s": 10275, "t": "2026-11-20T06:00:00.000Z"}
    assert json.loads(printed["jsonl"]) == {**wanted, "i": "02:00:00"}
    assert printed["text"].split()[5:9] == [
        b"codecs",
        b"323",
        b"10275",
        b"2026-11-20T06:00:00.000Z",
    ]
    assert printed["csv"].decode().splitlines()[1].startswith("codecs,323,10275,2026-11-20T06")
    for table in (pq.read_table(io.BytesIO(printed["parquet"])), pa.ipc.open_stream(printed["arrow"]).read_all()):  # fmt: skip
        assert table.num_rows == 1
        assert table.column("n").to_pylist() == [323]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize(
    "value",
    [
        "union_value(n := 3)",
        "[interval 1 day]",
        "[interval 1 day]::interval[1]",
        "{'a': interval 1 day}",
        "map {1: [union_value(n := 3)]}",
        "340282366920938463463374607431768211455::uhugeint",
        "'12:34:56+02'::timetz",
        "'1010'::bit",
        "{'a': [123456789123456789123456789::bignum]}",
    ],
)
def test_types_that_cannot_be_printed(
    form: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", str(NEW / "codecs-0"), f"select 1 a, {value} b", "--format", form]) == 2
    out, errors = capsys.readouterr()
    assert not out
    assert "column 'b'" in errors and "cast it" in errors


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "value",
    ["interval '86399.123456 seconds'", "-interval '1.000001 seconds'", "interval '1 hour' * 300000000", "null::interval"],
)  # fmt: skip
def test_intervals_are_exact(
    form: str, value: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    query = f'select 1 a, 2 a, {value} "x "" y", ({value})::varchar as truth'
    assert main(["sql", str(NEW / "codecs-0"), query, "--format", form]) == 0
    out = capsysbinary.readouterr().out
    if form == "jsonl":
        found = json.loads(out, object_pairs_hook=list)
        assert [name for name, _ in found][2:] == ['x " y', "truth"]
        assert found[2][1] == found[3][1]
    else:
        table = pq.read_table(io.BytesIO(out), columns=['x " y', "truth"])
        assert table.column(0).to_pylist() == table.column(1).to_pylist()


def test_keys_of_maps_are_text_as_other_values(capsys: pytest.CaptureFixture[str]) -> None:
    query = """select map {'\\xff'::blob: 1, 'a'::blob: 2} b, map {timestamp '2026-01-01': 1} t, map {1: 1, 2: 2} n, map {'"': 1} s"""
    [row] = rows_of(capsys, NEW / "codecs-0", query)
    assert row == {
        "b": {'{"base64": "/w=="}': 1, "a": 2},
        "t": {"2026-01-01T00:00:00.000000": 1},
        "n": {"1": 1, "2": 2},
        "s": {'"': 1},
    }


def test_a_long_result_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    query = "select range as number from range(5000)"
    assert main(["sql", str(NEW / "codecs-0"), query]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines] == ["number", *map(str, range(5000))]


def test_no_progress_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """DuckDB would print a bar if a query takes 2 s, by itself, into the standard output."""
    slow = "set progress_bar_time = 1; select sum(a.range * b.range % 7) > 0 as done from range(3000) a, range(5000) b"
    assert main(["sql", str(NEW), slow, "--format", "jsonl"]) == 0
    shown = capfd.readouterr()
    assert list(map(json.loads, shown.out.splitlines())) == [{"done": True}]


def test_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", str(NEW / "codecs-0"), "select offset from records where false"]) == 0
    assert capsys.readouterr().out == "no rows\n"


def test_several_statements(capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "create table c as select offset from records; select count(*) as n from c; select 2 as n"
    )
    found = rows_of(capsys, NEW / "codecs-0", query)
    assert found[-2:] == [{"n": 67}, {"n": 2}]
    assert main(["sql", str(NEW), "select 1; select 2", "--format", "parquet"]) == 2


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select nope from records", 'Referenced column "nope" not found'),
        ("select from where", "Parser Error"),
        ("select decode(value) from records", "Conversion Error"),
        ("select * from log_tables", "log_tables"),
        ("select 1; select nope", "nope"),
    ],
)
def test_a_failing_query_exits_with_2(
    query: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log_tables = pa.table({"a": [1]})
    assert log_tables.num_rows
    assert main(["sql", str(NEW), query]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("query", ["select decode(value)::int from records", "select * from bad"])
def test_a_query_that_fails_late_gives_the_same_message(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB fails at the call, or, after the first 8,192 rows, while the result is read."""
    messages = []
    for at in (0, 9_999):
        values = [b"x" if i == at else b"1" for i in range(10_000)]
        records: list[Any] = [{"offset_delta": i, "value": value} for i, value in enumerate(values)]
        log = tmp_path / str(at) / "t-0"
        log.mkdir(parents=True)
        (log / f"{0:020d}.log").write_bytes(RECORD_BATCH.build({"records": records}))
        view = "create view bad as select if(i = {}, error('a\n\nb'), i) from range(10_000) t(i)"
        command = ["sql", str(log.parent), f"{view.format(at)}; {query}", "--format", "csv"]
        assert main(command) == 2
        messages.append(capsys.readouterr().err)
    assert messages[0] == messages[1]
    assert "\\n" not in messages[0]


def test_damage_after_many_rows_ends_the_query_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = batch(20_000)
    (tmp_path / "t-0").mkdir()
    data = batch(0, records=20_000) + whole[:-1] + bytes([whole[-1] ^ 1])
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data)
    assert main(["sql", str(tmp_path), "select key from records", "--format", "jsonl"]) == 1
    errors = capsys.readouterr().err
    assert f"{0:020d}.log" in errors and "checksum" in errors


def damaged(directory: Path) -> Path:
    (directory / "t-0").mkdir()
    whole = batch(3)
    data = batch(0) + whole[:-1] + bytes([whole[-1] ^ 1]) + batch(6)
    (directory / "t-0" / f"{0:020d}.log").write_bytes(data)
    return directory


def test_damage_ends_the_query_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", str(damaged(tmp_path)), "select count(*) from records"]) == 1
    out, errors = capsys.readouterr()
    assert not out
    assert "byte" in errors
    assert f"{0:020d}.log" in errors


def test_salvage_reads_on_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damaged(tmp_path)
    data = path / "t-0" / f"{0:020d}.log"
    data.write_bytes(data.read_bytes() + b"garbage that is no batch" * 4)
    query = "select count(*) as n from records"
    [row] = rows_of(capsys, path, "--policy", "salvage", query, code=1)
    assert row["n"] >= 6


@pytest.mark.parametrize("query", ["select count(*) from records", "select key from records"])
def test_salvage_names_a_damaged_batch_whose_records_are_returned(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = batch(0)
    (tmp_path / "t-0").mkdir()
    data = whole[:17] + bytes([whole[17] ^ 1]) + whole[18:]  # of the checksum
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data + batch(3))
    assert main(["sql", str(tmp_path), "--policy", "salvage", query]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "stored checksum" in line and f"{0:020d}.log" in line


def test_a_table_without_its_topic_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(batch(0))
    assert main(["sql", str(tmp_path), "select * from offsets"]) == 2
    assert "__consumer_offsets" in capsys.readouterr().err
    assert main(["sql", str(tmp_path), "select count(*) from records"]) == 0


def test_copies_of_a_partition_are_not_counted_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for disk in ("a", "b"):
        (tmp_path / disk / "t-0").mkdir(parents=True)
        (tmp_path / disk / "t-0" / f"{0:020d}.log").write_bytes(batch(0))
    query = "select count(*) as n from records"
    assert main(["sql", str(tmp_path), query]) == 2
    assert "--replicas" in capsys.readouterr().err
    assert rows_of(capsys, tmp_path, "--replicas", "newest", query) == [{"n": 3}]
    assert rows_of(capsys, tmp_path, "--replicas", "keep", query) == [{"n": 6}]


@pytest.mark.parametrize(
    "arguments",
    [["select 1 as a"], ["nowhere", "select 1"], [str(NEW), "--schemas", "x", "select 1"]],
)
def test_arguments_that_are_missing_or_wrong(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", *arguments]) == 2
    assert capsys.readouterr().err


def test_extensions_are_not_installed() -> None:
    connection = connect({})
    query = "select value from duckdb_settings() where name = 'autoinstall_known_extensions'"
    assert connection.sql(query).fetchall() == [("false",)]


def test_without_duckdb_a_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    loaded = [n for n in sys.modules if n.startswith(("kafka_log.read.sql.", "kafka_log.cli.sql_"))]
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    assert main(["sql", str(NEW), "select 1 as a"]) == 2
    assert 'pip install "kafka-codecs[sql]"' in capsys.readouterr().err


# ---------------------------------------------------------------- shell


def piped(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code = main(["sql", str(NEW), "--topic", "codecs"])
    return code, *capsys.readouterr()


def test_statements_of_the_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "\\d\n\\d topics\nselect 'a;' as x -- no;\n, 2 as y;\n\nselect count(*) as n from records"
    )
    code, out, errors = piped(text, monkeypatch, capsys)
    assert code == 0, errors
    assert all(name in out for name in ABOUT)
    assert "largest_replica_bytes" in out
    assert out.splitlines()[-1].strip() == "323"
    assert "a;" in out


def test_quit_ends_and_errors_do_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, errors = piped("nope;\n\\x\nselect 7;\nquit\nselect 8;\n", monkeypatch, capsys)
    assert code == 2
    assert "nope" in errors
    assert "\\x" in errors
    assert "7" in out
    assert "8" not in out


@pytest.mark.parametrize(
    ("encoding", "errors"), [("utf-8", "strict"), ("ascii", "surrogateescape")]
)
def test_other_bytes_than_utf8_are_refused(
    encoding: str,
    errors: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The statements around them are run, in any locale."""
    data = b"select 'before \xc3\xa9';\nselect '\xff'\n, 2;\n\\d \xff\nselect 'after';\n"
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors=errors)
    )
    code = main(["sql", str(NEW), "--topic", "codecs"])
    shown = capsys.readouterr()
    assert code == 2
    assert "before \u00e9" in shown.out
    assert "after" in shown.out
    assert shown.err.count("the query is not UTF-8") == 2
    assert main(["sql", str(NEW), "--topic", "codecs", "select '\udcff'"]) == 2
    assert "the query is not UTF-8" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_a_terminal_has_a_prompt_and_keeps_going() -> None:
    import pty

    main_end, other = pty.openpty()
    command = [sys.executable, "-m", "kafka_log", "sql", str(NEW), "--topic", "codecs"]
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "100"}
    process = subprocess.Popen(
        command,
        stdin=other,
        stdout=other,
        stderr=other,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )
    os.close(other)
    shown = b""

    def wait_for(text: bytes) -> None:
        nonlocal shown
        until = time.monotonic() + 20
        while text not in shown:
            assert select.select([main_end], [], [], max(until - time.monotonic(), 0))[0], shown
            shown += os.read(main_end, 4096)
        shown = shown[shown.index(text) + len(text) :]

    try:
        wait_for(b"kafka-log> ")
        os.write(main_end, b"select count(*)\n")
        wait_for(b"...> ")
        os.write(main_end, b"as n from records;\n")
        wait_for(b"323")
        wait_for(b"kafka-log> ")
        os.write(main_end, b"select nope;\n")
        wait_for(b"Binder Error")
        wait_for(b"kafka-log> ")
        os.write(main_end, b"select 'dropped'\n")
        wait_for(b"...> ")
        process.send_signal(signal.SIGINT)
        # readline misses a signal that comes after its prompt and before it waits for a key
        while not select.select([main_end], [], [], 2)[0]:
            process.send_signal(signal.SIGINT)
        wait_for(b"kafka-log> ")
        os.write(main_end, b"select 41 + 1;\n")
        wait_for(b"42")
        wait_for(b"kafka-log> ")
        os.write(main_end, b"quit\n")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(20)
        os.close(main_end)


@pytest.mark.parametrize(
    ("query", "column", "place"),
    [
        ("select timestamp from records", "timestamp", "offset 3"),
        ("select max(max_timestamp) from batches", "max_timestamp", "base_offset 3"),
    ],
)
def test_a_time_out_of_range_is_named(
    query: str, column: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka takes any 64-bit number of milliseconds for a time; DuckDB takes microseconds."""
    late = RECORD_BATCH.build(
        {"base_offset": 3, "base_timestamp": 1 << 60, "records": [{"value": b"v"}]}
    )
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(batch(0) + late)
    assert main(["sql", str(tmp_path), query]) == 2
    error = capsys.readouterr().err
    assert (
        f"column {column} of the row with topic t, partition 0, {place}: {1 << 60} milliseconds"
        in error
    )
    rows = rows_of(capsys, tmp_path, "select offset, value from records")
    assert len(rows) == 4
    rows = rows_of(capsys, tmp_path, "select timestamp from records where offset < 3")
    assert len(rows) == 3


TIMES = {"s": "2026-11-22 10:00:00", "ms": "1970-01-01 00:00:00.123", "us": "1970-01-01 00:00:00.123456", "ns": "2026-11-22 10:00:00.123456789"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name, time", [(f"TIMESTAMP_{u}", t) for u, t in TIMES.items()] + [("TIMESTAMPTZ", TIMES["us"])])  # fmt: skip
@pytest.mark.parametrize("shape", ["[{}, null]", "{{'a': {}}}", "map{{'a': [{}]}}", "[{}]::{}[1]"])
def test_times_inside_of_other_values(
    name: str, time: str, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = name.removesuffix("_us")
    query = f"select {shape.format(f'{kind} {time!r}', kind)} as t"
    (row,) = rows_of(capsys, SAMPLES / "kafka-4.x", query)
    expected = f"{time.replace(' ', 'T')}{'Z' if name == 'TIMESTAMPTZ' else ''}"
    assert expected in (json.dumps(row) + " ").replace('"', " ").split()
    assert main(["sql", str(SAMPLES / "kafka-4.x"), query]) == 0
    assert expected in re.split(r'[ ",\n]+', capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["DATE '2020-01-02'", "TIME '10:00:00'", "1.50::decimal(5, 2)"])
@pytest.mark.parametrize("shape", ["{{'a': {}}}", "[[{}]]", "map{{{}: 1}}", "map{{[{}]: 1}}"])
@pytest.mark.parametrize("output", ["text", "jsonl", "csv"])
def test_dates_and_decimals_inside_of_other_values(
    value: str, shape: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = f"select {shape.format(value)} as t"
    assert main(["sql", str(SAMPLES / "kafka-4.x"), query, "--format", output]) == 0
    assert re.search("2020-01-02|10:00:00|1.50", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "path", "shown"),
    [
        ("row()", "x is a STRUCT without fields", {}),
        ("{'a': 1, 'b': row()}", "x.b is a STRUCT without fields", {"a": 1, "b": {}}),
        ("[row(), row()]", "x.l is a STRUCT without fields", [{}, {}]),
        ("map()", "x is a MAP whose keys have no type", {}),
    ],
)
def test_types_without_fields(
    value: str, path: str, shown: Any, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Parquet has no such type; DuckDB and Spark refuse to write a STRUCT without fields too."""
    command = ["sql", str(SAMPLES / "kafka-4.x" / "codecs-0"), f"select 7 y, {value} x", "--format"]
    assert main([*command, "parquet"]) == 2
    out, err = capfdbinary.readouterr()
    assert not out
    assert path.encode() in err and b"cast it to VARCHAR" in err and len(err.splitlines()) == 1
    assert main([*command, "jsonl"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == {"y": 7, "x": shown}
    assert main([*command, "arrow"]) == 0
    table = pa.ipc.open_stream(capfdbinary.readouterr().out).read_all()
    assert table.num_rows == 1 and table.column_names == ["y", "x"]
    for output in ("csv", "text"):
        assert main([*command, output]) == 0
        assert json.dumps(shown)[:1] in capfdbinary.readouterr().out.decode()
    sql = command[2].replace(value, f"{value}::varchar")
    assert main([*command[:2], sql, "--format", "parquet"]) == 0
