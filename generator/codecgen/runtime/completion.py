"""Completion of a command's words in shells, from its argparse parser."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")
ABOUT = "print what makes a shell complete this command"
_NOTE = """\
where it goes:
  eval "$(COMMAND completion bash)"                                    in ~/.bashrc
  COMMAND completion zsh > "${fpath[1]}/_COMMAND"                      once
  COMMAND completion fish > ~/.config/fish/completions/COMMAND.fish    once
"""
_FILES = ("PATH", "DIR", "FILE", "VALUES")


def note(command: str) -> str:
    """How the script of a command is taken into use, for its help."""
    return _NOTE.replace("COMMAND", command)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of :data:`SHELLS`. Arguments called PATH, DIR, FILE or VALUES are completed with names of files."""
    import shtab

    _mark_files(parser)
    return str(shtab.complete(parser, shell=shell))


def _mark_files(parser: argparse.ArgumentParser) -> None:
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark_files(command)
        elif action.metavar in _FILES and action.choices is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
