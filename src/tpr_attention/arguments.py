"""What each command takes."""

import re
from typing import NoReturn

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from tpr_attention import __version__
from tpr_attention.argument_types import count, part, seconds
from tpr_attention.console import tell

__all__ = ["COMMANDS", "command_parser"]

COMMANDS = {
    name: f"tpr_attention.commands.{name}"
    for name in ("reproduce", "run", "report", "runs", "show", "floors", "examples", "compare", "verify", "explore")
}
COMMANDS["list"] = "tpr_attention.commands.listing"
"""The module of each command."""

EPILOGUE = """
examples:
  tpr-attention reproduce                       every figure of the paper, then the report
  tpr-attention reproduce --quick               the two main figures, small, in less than a minute
  tpr-attention reproduce --studies data        the map: which model is lowest with how many training pairs
  tpr-attention reproduce --studies beyond      what goes past the paper, in every cell
  tpr-attention run model=resnet seed=[0,1,2]   three trainings of your own
  tpr-attention report --store runs             the report of what is stored
  tpr-attention floors interaction=shape_col    the lowest losses of a task
  tpr-attention explore --open                  a page to play with
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

MOST_WORKERS, MOST_EXAMPLES = 1024, 1_000


def command_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
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
    commands.add_subcommand("runs", _runs(), help="the stored runs: what differs between them, and their last values")
    commands.add_subcommand("show", _show(), help="one stored run: spec, losses, provenance, and what its heads do")
    commands.add_subcommand("floors", _floors(), help="how low a loss can be in each test, from the task alone")
    commands.add_subcommand("examples", _examples(), help="what a task asks, in words and as a picture")
    commands.add_subcommand("compare", _compare(), help="what stored runs answer, as a picture and in numbers")
    commands.add_subcommand("explore", _explore(), help="write a page in which memories and models can be tried")
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
        help="which studies or parts of them (default: the paper's figures and `data-thin`); `readings` varies what "
        "the paper leaves open, `data` the training pairs; `search` and `data-search` repeat the searches for learning "
        "rates; `beyond`, `depth` and `scaling` go past the paper; `recall` is about sequences, `images` about pixels; "
        "`tpr-attention list` shows all",
    )
    parser.add_argument("--seeds", type=count(), default=5, help="trainings of each kind")
    parser.add_argument("--steps", type=count(), default=10_000, help="steps of each training")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the two main figures with two seeds and 1,000 steps, in less than a minute; with `--studies recall` or "
        "`--studies images` a part of these, in about three minutes; overrules seeds and steps",
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


def _runs() -> ArgumentParser:
    parser = _subparser("The stored runs, those with the given keys, and the last value of each under each test.")
    parser.add_argument(
        "changes", nargs="*", default=[], metavar="key=value", help="only runs with this value, or with one of a list"
    )
    parser.add_argument(
        "--sort",
        type=str | None,
        default=None,
        metavar="COLUMN",
        help="by a test, a key, run, parameters or seconds (default: by task, model, what differs, and seed)",
    )
    parser.add_argument("--descending", action="store_true", help="the largest first")
    parser.add_argument("--limit", type=count(), default=None, metavar="N", help="only the first N")
    parser.add_argument(
        "--metric", type=str | None, default=None, metavar="NAME", help="whose last values (default: the first metric)"
    )
    parser.add_argument(
        "--json", dest="as_json", action="store_true", help="one JSON array, with all keys and metrics of each run"
    )
    _add_store(parser)
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
    parser.add_argument("--count", type=count(MOST_EXAMPLES), default=3, help="examples of each test")
    parser.add_argument(
        "--figure", type=str | None, default=None, metavar="FILE", help="draw them into a .png, .svg or .pdf"
    )
    return parser


def _compare() -> ArgumentParser:
    parser = _subparser("What stored runs of one task answer to the same examples of a test.")
    parser.add_argument("digests", nargs="+", type=str, metavar="DIGEST", help="runs, each by the start of its digest")
    _add_store(parser)
    parser.add_argument("--test", type=str | None, default=None, metavar="NAME", help="the test; the last if not given")
    parser.add_argument("--count", type=count(MOST_EXAMPLES), default=4, help="how many examples")
    parser.add_argument(
        "--figure", type=str | None, default=None, metavar="FILE", help="draw them into a .png, .svg or .pdf"
    )
    return parser


def _explore() -> ArgumentParser:
    parser = _subparser("Write the explorer: one page, without a server, in which memories and models can be tried.")
    parser.add_argument(
        "--store",
        type=str | None,
        default=None,
        metavar="DIR",
        help="the folder of finished runs whose models are shown (default: runs, if there is one)",
    )
    parser.add_argument("--out", type=str, default="explorer", metavar="DIR", help="the folder of the page")
    parser.add_argument("--open", dest="open_page", action="store_true", help="open the page in a browser")
    return parser


def _verify() -> ArgumentParser:
    parser = _subparser("Check the SHA-256 of every stored file; list each that is missing, torn or changed.")
    parser.add_argument("store", type=str, nargs="?", default="runs", metavar="DIR", help="the folder of finished runs")
    parser.add_argument(
        "--against", type=str | None, default=None, metavar="DIR", help="a store that should have the same bits"
    )
    return parser


def _subparser(description: str, epilogue: str = "") -> ArgumentParser:
    return _Parser(description=description, epilog=epilogue, formatter_class=_Formatter)


class _Parser(ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say what is wrong with the arguments, and end."""
        said = re.sub(r"^argument (sub)?", "", message).rstrip(".")
        if "not provided" in said:
            said = f"expected a command, one of {', '.join(COMMANDS)}"
        if re.match("unrecognized arguments: [^-]", said) and "=" in said:
            said += "; keys stand together, before or after all options"
        name = self.prog.replace(" [options]", "")
        tell(f"error: {said}; see {name} --help")
        self.exit(2)


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
        type=count(MOST_WORKERS, ", because each has a copy of torch in memory"),
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
        "--shard",
        type=part,
        default="1/1",
        metavar="I/N",
        help="train only the Ith of N parts, for arrays of jobs",
    )
    parser.add_argument("--checkpoint-seconds", type=seconds, default=30.0, help="save trainings as often")
    parser.add_argument("--checkpoint-steps", type=count(), default=None, help="save them also every so many steps")
    parser.add_argument(
        "--again", action="store_true", help="delete what is stored of the runs asked for, and train it anew"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say how many trainings there are and how long they may take"
    )
