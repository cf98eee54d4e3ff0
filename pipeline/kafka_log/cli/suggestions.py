"""Parsers of arguments that suggest what may have been meant."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kafka_log.segment.similar_names import suggest_similar


class SuggestingParser(argparse.ArgumentParser):
    """ArgumentParser whose errors about values of options name the most similar one, and that does
    not ignore errors when it prints.
    """

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help text, a version or an error. Raise OSError if it cannot be written."""
        print(message, end="", file=file or sys.stderr, flush=True)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError, with the most similar choice and all choices, if a value is none of
        the choices of an option or argument.
        """
        if action.choices is None or value in action.choices:
            return
        known = list(map(str, action.choices))
        raise argparse.ArgumentError(
            action,
            f"invalid choice: {value!r}; known: {', '.join(known)}{suggest_similar(str(value), known)}",
        )


def find_command(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """Return the parser of the command ``name`` among the subcommands of ``parser``. Raise KeyError
    if there is none.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and name in action.choices:
            found: argparse.ArgumentParser = action.choices[name]
            return found
    raise KeyError(name)
