"""Shell completion of a command, from its argparse parser."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")
ABOUT = "print a completion script for bash, zsh or fish"
DESCRIPTION = "Print a script that makes a shell complete commands, options and file names."
_NOTE = """\
to install it:
  bash  add this line to ~/.bashrc:  eval "$(COMMAND completion bash)"
  zsh   run once:  COMMAND completion zsh > "${fpath[1]}/_COMMAND"
  fish  run once:  COMMAND completion fish > ~/.config/fish/completions/COMMAND.fish
"""
_FILES = ("PATH", "DIR", "FILE", "VALUES")


def note(command: str) -> str:
    """Return the help text that tells how to install the completion script of a command."""
    return _NOTE.replace("COMMAND", command)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of the command with the parser ``parser`` for the ``shell``
    ``bash``, ``zsh`` or ``fish``. Mark the arguments of ``parser`` whose metavar is PATH, DIR, FILE
    or VALUES, without choices, so that they complete to file names. Raise ImportError if shtab is
    not installed.
    """
    import shtab

    _mark_files(parser)
    return str(shtab.complete(parser, shell=shell))


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Make the arguments of a parser and of its subcommands complete to file names if their metavar
    is PATH, DIR, FILE or VALUES and they have no choices. Raise ImportError if shtab is not
    installed.
    """
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark_files(command)
        elif action.metavar in _FILES and action.choices is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
