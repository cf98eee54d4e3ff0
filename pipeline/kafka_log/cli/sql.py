"""``kafka-log sql``: Query a log with SQL (DuckDB): records, batches, transactions, committed offsets, findings and more are tables. Without
a query, queries are read from the terminal or the standard input.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from kafka_log.cli.common import (
    COULD_NOT_RUN,
    FORMATS,
    GOOD,
    PROBLEMS,
    add_output,
    add_paths,
    add_policy,
    screen_width,
    warn_of_deleted_records,
    warn_of_skipped_paths,
)
from kafka_log.cli.damage import report_damage
from kafka_log.cli.messages import print_message
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.schemas import add_decode, add_schemas, reads_registry
from kafka_log.cli.selection import RECORDS, add_selection, selection_of
from kafka_log.cli.tables import warn_of_excluded_segments

if TYPE_CHECKING:
    import duckdb

    from kafka_log.cli.sql_tables import LogTables
    from kafka_log.read.schemas.registry import SchemaRegistry

HELP = "query records, batches, transactions, offsets and more with SQL"
EXAMPLES = """\
  kafka-log sql samples/kafka-4.x "select topic, count(*) n from records group by topic order by n desc"
  kafka-log sql samples/kafka-4.x --topic codecs "select date_trunc('hour', timestamp) h, count(*) n from records group by h order by h"
  kafka-log sql samples/kafka-4.x "select * from offsets where lag > 0" --format jsonl
  kafka-log sql samples/schema-registry --topic customers --decode auto "select value.home.city, count(*) n from records group by 1"
"""

PROMPT, MORE = "kafka-log> ", "      ...> "

SHELL_HELP = """\
Write SQL that ends with a semicolon. \\d lists the tables, \\d NAME the columns of one, quit or Ctrl-D ends.
Example: select topic, count(*) n from records group by topic order by n desc;"""

_QUIT = ("quit", "exit", "\\q")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths with the query, options that select rows and say how to read, and the output options to the parser of ``kafka-log sql``."""
    add_paths(command)
    command.add_argument(
        "query",
        nargs="?",
        metavar="QUERY",
        help="statements of SQL, with semicolons between; default: read them from the terminal or the standard input",
    )
    add_selection(command, *RECORDS)
    output = add_output(command, FORMATS)
    add_decode(output)
    add_schemas(output)
    add_policy(command.add_argument_group("reading"))


def run_command(options: argparse.Namespace) -> int:
    """Run the query, or the queries of the terminal or the standard input, and print their results.
    Return 0; 1 if damage was met; 2 for a query that failed (DuckDB's message is printed), a
    time that DuckDB cannot hold, a missing path, and ``--schemas`` that ``--decode`` does not use. Raise CodecError for damage that the
    policy does not accept, DirectoryError or NotFoundError if no log matches, ModuleNotFoundError
    without DuckDB.
    """
    from kafka_log.cli.sql_tables import LogTables
    from kafka_log.log_directory import LogDirectory
    from kafka_log.read.sql.lazy_tables import connect

    paths, query = _split_query(options.paths, options.query)
    if not paths:
        print_message('name a path before the query: kafka-log sql PATH "select ..."')
        return COULD_NOT_RUN
    log = LogDirectory(
        paths,
        topics=options.topic,
        partitions=options.partition,
        include=options.include,
        replicas=options.replicas,
    )
    selection = selection_of(options)
    warn_of_excluded_segments(options, log)
    warn_of_skipped_paths(log.skipped_paths)
    warn_of_deleted_records(log.all_partitions, selection)
    try:
        tables = LogTables(log, selection, options.decode, lambda: _read_schemas(paths, options))
        connection = connect(tables.make())
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN
    session = _Session(connection, tables, options.format, binary_stdout())
    if query is None:
        return session.run_shell(sys.stdin.isatty())
    try:
        code = session.run_query(query)
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN
    return code or report_damage(tables.damage)


def _split_query(words: Sequence[str], query: str | None) -> tuple[list[str], str | None]:
    """Return the paths and the query among the arguments. The last one is the query if it contains whitespace and does not exist
    as a path; if it is the only argument, it also must have no path separator. Else all are paths, and the query is None.
    """
    every = [*words, *(() if query is None else (query,))]
    last = every[-1]
    is_query = any(map(str.isspace, last)) and not os.path.lexists(last)
    if is_query and (len(every) > 1 or os.sep not in last):
        return every[:-1], last
    return every, None


def _read_schemas(paths: Sequence[str], options: argparse.Namespace) -> SchemaRegistry | None:
    """Return the schemas of ``--schemas`` or of the paths, and print problems of their source.
    Return None if ``--decode`` uses none. Raise ValueError for ``--schemas`` then, and if the source
    is invalid; DirectoryError if the source has no schemas; OSError if it cannot be read.
    """
    if not reads_registry(options.decode, options.schemas, None):
        return None
    from kafka_log.logs.discovery import survey
    from kafka_log.read.schemas.sources import read_registry

    registry = read_registry(survey(paths, (), unreadable_raises=False).partitions, options.schemas)
    for problem in registry.problems:
        print_message(problem)
    return registry


class _Session:
    """Runs statements and prints their results.

    Args:
        connection: Connection that has the tables.
        tables: The tables, for errors of reading.
        output: Output format.
        out: Where results are written.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tables: LogTables,
        output: str,
        out: BinaryIO,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._output = output
        self._out = out

    def run_query(self, query: str) -> int:
        """Run the statements in a text of SQL, and print the rows of each statement that returns
        rows. Return 0; return 2 and print DuckDB's message if one fails, if a result has a type
        that cannot be printed, or (none is run then) if there are several with the format arrow or
        parquet. Raise what ended the reading of a table, such as CodecError, or ValueError for a
        time that DuckDB cannot hold; OSError with DuckDB's message if a statement fails after its
        first rows; KeyboardInterrupt if the query was interrupted.
        """
        import duckdb

        from kafka_log.cli.sql_output import ResultTypeError, make_printable, write_result
        from kafka_log.read.sql.lazy_tables import stream_result
        from kafka_log.read.sql.words import quote_columns

        try:
            statements = self._connection.extract_statements(quote_columns(query))
            if len(statements) > 1 and self._output in ("arrow", "parquet"):
                print_message(f"--format {self._output} holds one result: write one statement")
                return COULD_NOT_RUN
            for statement in statements:
                relation = self._connection.sql(statement.query)
                if relation is not None:  # a statement such as SET has no result
                    rows = stream_result(make_printable(relation))
                    write_result(rows, self._output, self._out, screen_width())
        except UnicodeEncodeError:
            print_message(
                "the query is not UTF-8: save it as UTF-8, and write bytes as '\\xFF'::BLOB"
            )
            return COULD_NOT_RUN
        except (duckdb.Error, ResultTypeError) as error:
            self._raise_error_of_reading()
            if isinstance(error, duckdb.InterruptException):
                raise KeyboardInterrupt from None
            _print_lines(str(error))
            return COULD_NOT_RUN
        except Exception:
            self._raise_error_of_reading()
            raise
        return GOOD

    def _raise_error_of_reading(self) -> None:
        """Raise the exception that ended the reading of a table, such as KeyboardInterrupt, if there is one."""
        error, self._tables.error = self._tables.error, None
        if error is not None:
            raise error from None

    def run_shell(self, is_terminal: bool) -> int:
        """Run statements from a terminal (``is_terminal``), with a prompt and line editing, or from
        the standard input, until its end or ``quit``. Errors are printed, and the next statement is
        run. Return the exit code: 2 if a statement from the standard input failed, else 1 if damage
        was met, else 0. Raise KeyboardInterrupt if the standard input is interrupted,
        BrokenPipeError if the reader of the output has gone.
        """
        from codecgen.runtime.errors import CodecError
        from kafka_log.logs.partitions import DirectoryError

        worst, met_damage = GOOD, False
        if isinstance(sys.stdin, io.TextIOWrapper):  # as the output, whatever the locale says
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        if is_terminal:
            with suppress(ImportError):
                import readline  # line editing; not on Windows

                readline.parse_and_bind("tab: self-insert")
            print(SHELL_HELP)
        for text in _read_statements(is_terminal):
            try:
                worst = max(worst, self._run_line(text))
            except CodecError as error:
                print_message(error)
                met_damage = True
            except BrokenPipeError:
                raise
            except (DirectoryError, ValueError, OSError) as error:
                print_message(error)
                worst = COULD_NOT_RUN
            except KeyboardInterrupt:
                if not is_terminal:
                    raise
                print_message("interrupted: the result above is incomplete")
            met_damage |= report_damage(self._tables.damage) == PROBLEMS
            self._tables.damage.clear()
        if worst and not is_terminal:
            return worst
        return PROBLEMS if met_damage else GOOD

    def _run_line(self, text: str) -> int:
        r"""Run a statement, or a command that begins with a backslash, and return the exit code. The
        command ``\d`` lists the tables, ``\d NAME`` the columns of a table; any other prints a
        message and returns 2. Raise as :meth:`run_query` does.
        """
        if not text.startswith("\\"):
            return self.run_query(text)
        command, _, name = text.rstrip(";").partition(" ")
        if command != "\\d":
            print_message(f"{command} is no command. {SHELL_HELP.partition(chr(10))[0]}")
            return COULD_NOT_RUN
        if name.strip():
            quoted = '"' + name.strip().replace('"', '""') + '"'
            return self.run_query(f"select column_name, column_type from (describe {quoted})")
        from kafka_log.cli.sql_tables import ABOUT

        self._out.writelines(f"{name:<12}  {what}\n".encode() for name, what in ABOUT.items())
        self._out.flush()
        return GOOD


def _print_lines(text: str) -> None:
    """Print the lines of a message of DuckDB to stderr, without empty ones."""
    for line in text.splitlines():
        if line.strip():
            print_message(line)


# ---------------------------------------------------------------- what is typed


def _read_statements(is_terminal: bool) -> Iterator[str]:
    """Yield statements, which end with a semicolon, and commands, which are a line of their own and begin with a backslash. End at
    ``quit``, ``exit`` or the end of the input; the last statement needs no semicolon there. Ctrl-C at the prompt drops what
    was typed of a statement; without a terminal KeyboardInterrupt is raised.
    """
    pending = ""
    while True:
        try:
            line = (
                _read_line(PROMPT if not pending else MORE) if is_terminal else _read_piped_line()
            )
        except KeyboardInterrupt:
            if not is_terminal:
                raise
            print()
            pending = ""
            continue
        if line is None:
            break
        text = line.strip()
        if not pending and text.rstrip(";").lower() in _QUIT:
            return
        if not pending and text.startswith("\\"):
            yield text
            continue
        pending += f"{line}\n" if pending or text else ""
        if _is_complete(pending):
            statement, pending = pending, ""
            yield statement
    if pending:
        yield pending


def _read_line(prompt: str) -> str | None:
    """Return a line that was typed after ``prompt``, without its end; None, after an empty line, at
    the end of the input. Raise KeyboardInterrupt after Ctrl-C.
    """
    try:
        return input(prompt)
    except EOFError:
        print()
        return None


def _read_piped_line() -> str | None:
    """Return a line of the standard input without its end, None at its end."""
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _is_complete(text: str) -> bool:
    """Return whether a text ends with a semicolon that is not in a comment or a text in quotes. A
    text that is not UTF-8 (it has surrogates) ends with any semicolon: none of it can be run.
    """
    import duckdb

    if not text.rstrip().endswith(";"):
        return False
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return True
    position, kind = duckdb.tokenize(text)[-1]
    return kind == duckdb.token_type.operator and data[position:].strip() == b";"
