"""The command line: calls a command, and says how it ended."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType

from tpr_attention.arguments import COMMANDS, command_parser
from tpr_attention.console import OutputError, Terminal, tell
from tpr_attention.runner.store import StoreError
from tpr_attention.training.spec import SpecError

__all__ = ["main"]

TRAINED = "interrupted: what was begun is saved; the same command goes on from there"
READER_GONE = 128 + 13  # as for other programs that SIGPIPE ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    The exit code is 0, 1 if something failed, 2 for a wrong request, 3 if runs that were asked for diverged, 130 if
    interrupted, 141 if the reader of the output has gone, 143 if asked to end.
    """
    with _signals():
        try:
            return _call(arguments)
        except (SpecError, StoreError) as error:
            tell(f"error: {error}")
            return 2 if isinstance(error, SpecError) else 1
        except _Signal as received:
            tell(str(received))
            return received.code
        except KeyboardInterrupt:
            tell("error: KeyboardInterrupt, without a signal: a model or a task has raised it")
            return 1
        except OutputError as error:
            _leave_output()
            if error.reader_has_gone:
                return READER_GONE
            tell(f"error: standard output: {error}")
            return 1


def _call(arguments: Sequence[str] | None) -> int:
    console = Terminal(sys.stdout)
    try:
        parsed = command_parser().parse_args(arguments)
    finally:  # also after help, which does not return
        console.file.flush()
    name = parsed.subcommand
    command = import_module(COMMANDS[name]).command  # only now: help must not wait for torch
    try:
        code: int = command(**parsed[name].as_dict(), console=console)
    except SystemExit as end:  # of a user's code: a silent end, and perhaps with the code of success
        raise StoreError(f"{name}: a model or a task has called sys.exit({end.code!r})") from end
    except _Signal as received:
        raise _Signal(received.code, TRAINED if name in ("run", "reproduce") else "interrupted") from received
    console.file.flush()
    return code


def _leave_output() -> None:
    """Drop what is still to be printed, so that the interpreter does not try it once more when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Signal(KeyboardInterrupt):
    """A signal that asks to end, and the exit code for it."""

    def __init__(self, code: int, said: str = "interrupted") -> None:
        super().__init__(said)
        self.code = code


def _end(number: int, frame: FrameType | None) -> None:
    raise _Signal(128 + number)


@contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM, as a scheduler sends it before it takes the machine away, ends a command like Ctrl-C."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as in the background of a shell, or under nohup
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
