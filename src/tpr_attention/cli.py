"""The command line: parses and calls."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

from jsonargparse import ArgumentParser, DefaultHelpFormatter
from jsonargparse.typing import NonNegativeFloat, PositiveInt
from rich.console import Console

from tpr_attention import __version__
from tpr_attention.runner.store import StoreError
from tpr_attention.training.spec import SpecError

__all__ = ["main"]

EPILOGUE = """
examples:
  tpr-attention reproduce                       every figure of the paper, then the report
  tpr-attention reproduce --quick               the two main figures, small, in less than a minute
  tpr-attention reproduce --studies beyond      what goes past the paper, for interacting factors
  tpr-attention run model=resnet seed=[0,1,2]   three trainings of your own
  tpr-attention report --store runs             the report of what is stored
  tpr-attention floors interaction=shape_col    the lowest losses of a task
"""

RUN = """
Keys are those of a spec: task, model, seed, task.OPTION, model.OPTION and training.KEY. A key may be written without
its prefix where that is unambiguous, for example num_heads, split, steps, learning_rate; `tpr-attention list` shows
all. A list means each of its values. A file has the same keys, and `runs`, a list of changes that go together:

  split: square_red
  seed: [0, 1, 2]
  runs:
    - {model: tpr, num_heads: 8}
    - {model: my_package.my_module:MyModel}

What you bring is named by its path: model=my_module:MyModel, task=my_module:MyTask, and for the task composition
split=my_module:my_split or interaction.law=my_module:my_law interaction.factors=[scale,position].
"""

FLOORS = """
Keys are those of a task, for example interaction, split, seed, require_change; a list means each of its values. Without
any, all splits and interactions of the paper are shown. There are two losses in each test:

  linear    of the linear map for each action that is best in training
  knowable  of the best answer for who knows the task and what training shows, and nothing else
"""

WIDTH = 160
"""Characters in a line where there is no terminal to tell."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    The exit code is 0, 1 if something failed, 2 for a wrong request, 130 if interrupted, 143 if asked to end.
    """
    parsed = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    errors = Console(stderr=True, soft_wrap=True)
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        command = import_module(COMMANDS[parsed.subcommand]).command  # only now: help must not wait for torch
        code: int = command(**parsed[parsed.subcommand].as_dict(), console=console)
        return code
    except SpecError as error:
        errors.print(f"error: {error}", style="red", markup=False, highlight=False)
        return 2
    except StoreError as error:
        errors.print(f"error: {error}", style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt as error:
        errors.print("interrupted: what was begun is saved; the same command goes on from there", markup=False)
        return 143 if isinstance(error, _Terminated) else 130
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


class _Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler sends it before it takes the machine away."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="tpr-attention",
        description="TPR-Attention for combinatorial generalization: reproduce the paper, or train models of your own.",
        version=__version__,
        epilog=EPILOGUE,
        formatter_class=_Formatter,
    )
    commands = parser.add_subcommands()
    commands.add_subcommand("reproduce", _reproduce(), help="train what the paper's figures need and write the report")
    commands.add_subcommand("list", _list(), help="studies, models, splits, interactions and readings")
    commands.add_subcommand("run", _run(), help="train models of your choice, one or many")
    commands.add_subcommand("report", _report(), help="write the report of what is stored")
    commands.add_subcommand("show", _show(), help="one stored run: spec, losses, provenance, and what its heads do")
    commands.add_subcommand("floors", _floors(), help="how low a loss can be in each test, from the task alone")
    commands.add_subcommand("examples", _examples(), help="what a task asks, in words and as a picture")
    commands.add_subcommand("verify", _verify(), help="check that every stored file is what was written")
    return parser


def _reproduce() -> ArgumentParser:
    parser = _subparser("Train what studies need, as far as it is not stored, and write the report.")
    _add_store(parser)
    _add_report(parser)
    parser.add_argument(
        "--studies",
        nargs="+",
        type=str,
        default=None,
        metavar="NAME",
        help="which studies or parts of them (default: the paper's figures); `readings` varies what the paper leaves "
        "open, `search` repeats the learning-rate search, `beyond`, `depth` and `scaling` go past the paper; "
        "`tpr-attention list` shows all",
    )
    parser.add_argument("--seeds", type=PositiveInt, default=5, help="trainings of each kind")
    parser.add_argument("--steps", type=PositiveInt, default=10_000, help="steps of each training")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the two main figures with two seeds and 1,000 steps, in less than a minute; overrules the three above",
    )
    _add_training(parser)
    return parser


def _list() -> ArgumentParser:
    parser = _subparser("What has a name, and how much of each study is stored.")
    _add_store(parser)
    return parser


def _run() -> ArgumentParser:
    parser = _subparser("Train models of your choice.", RUN)
    parser.add_argument(
        "changes", nargs="*", default=[], metavar="key=value", help="a key of the spec and its value, or a list"
    )
    parser.add_argument(
        "--sweep", dest="sweep_file", type=str, default=None, metavar="FILE", help="a YAML file that describes the runs"
    )
    _add_store(parser)
    _add_training(parser)
    return parser


def _report() -> ArgumentParser:
    parser = _subparser("Write the report of what is stored, without training anything.")
    _add_store(parser)
    _add_report(parser)
    return parser


def _show() -> ArgumentParser:
    parser = _subparser("One stored run.")
    parser.add_argument("digest", type=str, help="the run's name, or the first digits of it")
    parser.add_argument(
        "--figure",
        type=str | None,
        default=None,
        metavar="FILE",
        help="draw what each head does, into a .png, .svg or .pdf",
    )
    _add_store(parser)
    return parser


def _floors() -> ArgumentParser:
    parser = _subparser("How low a loss can be in training and in each test, without training anything.", FLOORS)
    parser.add_argument(
        "changes", nargs="*", default=[], metavar="key=value", help="a key of the task and its value, or a list"
    )
    return parser


def _examples() -> ArgumentParser:
    parser = _subparser("Some examples of a task, in training and in each test.")
    parser.add_argument(
        "changes", nargs="*", default=[], metavar="key=value", help="the task, and keys of it and their values"
    )
    parser.add_argument("--count", type=PositiveInt, default=3, help="examples of each test")
    parser.add_argument(
        "--figure", type=str | None, default=None, metavar="FILE", help="draw them into a .png, .svg or .pdf"
    )
    return parser


def _verify() -> ArgumentParser:
    parser = _subparser("Check the SHA-256 of every stored file; list each that is missing, torn or changed.")
    parser.add_argument("store", type=str, nargs="?", default="runs", metavar="DIR", help="the folder of finished runs")
    parser.add_argument(
        "--against", type=str | None, default=None, metavar="DIR", help="a store that should have the same bits"
    )
    return parser


def _subparser(description: str, epilogue: str = "") -> ArgumentParser:
    return ArgumentParser(description=description, epilog=epilogue, formatter_class=_Formatter)


class _Formatter(DefaultHelpFormatter):
    """Help that keeps the line breaks of its examples and tells the defaults."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.strip("\n").splitlines())


def _add_store(parser: ArgumentParser) -> None:
    parser.add_argument("--store", type=str, default="runs", metavar="DIR", help="the folder of finished runs")


def _add_report(parser: ArgumentParser) -> None:
    parser.add_argument("--report", type=str, default="report", metavar="DIR", help="the folder of the report")


def _add_training(parser: ArgumentParser) -> None:
    """Where runs are trained, and how often they are saved: `commands.training.TrainingSettings`."""
    parser.add_argument(
        "--workers",
        type=PositiveInt | None,
        default=None,
        help="processes of one thread that train at the same time (default: one for each core)",
    )
    parser.add_argument(
        "--executor",
        type=str,
        default="local",
        help="local for processes on this machine, ray for a Ray cluster, or the path of an executor of your own",
    )
    parser.add_argument(
        "--ray-address",
        type=str | None,
        default=None,
        metavar="ADDRESS",
        help="the Ray cluster, such as auto or 10.0.0.1:6379; without it, one is started on this machine",
    )
    parser.add_argument(
        "--shard", type=str, default="1/1", metavar="I/N", help="train only the Ith of N parts, for arrays of jobs"
    )
    parser.add_argument(
        "--checkpoint-seconds", type=NonNegativeFloat, default=30.0, help="save trainings every so many seconds"
    )
    parser.add_argument(
        "--checkpoint-steps", type=PositiveInt | None, default=None, help="save them also every so many steps"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say how many trainings there are and how long they may take"
    )


COMMANDS = {
    name: f"tpr_attention.commands.{name}"
    for name in ("reproduce", "run", "report", "show", "floors", "examples", "verify")
}
COMMANDS["list"] = "tpr_attention.commands.listing"
