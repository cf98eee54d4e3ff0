"""``kafka-log browse``: Look at logs in a web browser: problems, topics, partitions, segments, batches, records and bytes. \
The pages are made on this machine, for this machine: the server listens on a loopback address, and answers only to the URL that is printed.

Nothing is changed: the server answers GET and HEAD alone, and reads files as they are now. Each page is bounded work, also for large logs. \
Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from functools import cache

from kafka_log.cli.common import COULD_NOT_RUN, GOOD, add_paths, add_show_secrets
from kafka_log.cli.interruption import StopOnSignal
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import argument_type, number_type
from kafka_log.cli.schemas import add_schemas
from kafka_log.cli.selection import PLACES, add_selection
from kafka_log.inspect.dump import INTERNAL
from kafka_log.segment.times import milliseconds
from kafka_log.segment.urls import is_url

HELP = "look at logs in a web browser"
EXAMPLES = """\
  kafka-log browse samples/kafka-4.x
  kafka-log browse samples/kafka-4.x --topic 'c*' --decode key=utf8,value=json
  kafka-log browse samples/kafka-4.x --no-open --now 2026-11-22
"""

_MAX_PORT = 65535
_WAIT_S = 3600.0
"""Seconds between two wake-ups of the thread that waits for Ctrl-C."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, those of records, and those of the server to the
    parser of ``kafka-log browse``.
    """
    add_paths(command)
    add_selection(command, *PLACES)
    records = command.add_argument_group("records")
    records.add_argument(
        "--decode",
        default=INTERNAL,
        metavar="HOW",
        help="format of keys and values, as for kafka-log dump (default %(default)s: decode records of internal topics alone)",
    )
    add_schemas(records)
    add_show_secrets(records)
    records.add_argument(
        "--now",
        type=argument_type(milliseconds),
        metavar="TIME",
        help="time at which the log was in this state, such as 2026-11-22T10:15; if given, the age of an open transaction alone can"
        " make it hanging (default: the present)",
    )
    server = command.add_argument_group("server")
    server.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="loopback address to listen on (default %(default)s)",
    )
    server.add_argument(
        "--port",
        type=number_type("a port", 0, _MAX_PORT),
        default=0,
        metavar="N",
        help="port to listen on (default: a free one)",
    )
    server.add_argument(
        "--no-open",
        action="store_true",
        help="print the URL only (default: also open it in a browser, if there are a terminal and a display)",
    )


def run_command(options: argparse.Namespace) -> int:
    """Print what is read to stderr, then the URL, and answer requests until Ctrl-C or SIGTERM.
    Return 0 then; 2 after a message if an option is impossible, a topic or partition does not
    exist, or a path is a URL. Raise DirectoryError if a path holds no log, or ``--replicas``
    refuses copies of a partition; OSError if the port is taken, or a log directory cannot be
    listed.
    """
    if any(map(is_url, options.paths)):
        print_message("browse reads local files: it does not read URLs")
        return COULD_NOT_RUN
    named = ", ".join(map(str, options.paths[:3]))
    more = f" and {len(options.paths) - 3} more" if len(options.paths) > 3 else ""
    print_message(f"listing partitions below {named}{more}")
    from kafka_log.inspect.browse.document import make_policy_of_pages, write_document
    from kafka_log.inspect.browse.listing import Lister
    from kafka_log.inspect.browse.records import RecordView
    from kafka_log.inspect.browse.server import PageServer
    from kafka_log.inspect.browse.site import Site, make_error_page
    from kafka_log.logs.discovery import survey
    from kafka_log.read.schemas.registry import SchemaRegistry
    from kafka_log.read.schemas.sources import read_registry

    @cache
    def read_schemas() -> SchemaRegistry:
        """Return the schemas, which are read once."""
        there = survey(options.paths, (), unreadable_raises=False).partitions
        return read_registry(there, options.schemas)

    lister = Lister(
        options.paths,
        options.topic,
        options.partition,
        options.include,
        options.replicas or "keep",
    )
    view = RecordView(
        options.decode,
        options.show_secrets,
        read_schemas,
        lambda topic: [p for p in lister.list_paths().partitions.values() if p.topic == topic],
    )
    try:
        if not view.formats.needs_schemas and options.schemas is not None:
            raise ValueError(
                "--schemas is for values of a schema registry: add --decode auto, or leave it out"
            )
        lister.list_paths()
        server = PageServer(
            options.host,
            options.port,
            Site(lister, view, options.now).answer,
            lambda status, message: write_document(make_error_page(status, message)),
            make_policy_of_pages(),
        )
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with StopOnSignal() as stop:
            print(f"Open this URL in a browser on this machine: {server.url}")
            print("Ctrl-C ends the server.", flush=True)
            if not options.no_open and _has_display():
                webbrowser.open(server.url)
            while True:
                stop.wait(_WAIT_S)
        server.shutdown()
    print("The server has ended.")
    return GOOD


def _has_display() -> bool:
    """Return whether the command runs in a terminal of a machine with a display."""
    is_graphical = sys.platform in ("darwin", "win32")
    is_graphical |= any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return is_graphical and sys.stdout.isatty()
