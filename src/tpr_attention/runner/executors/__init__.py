"""Executors: where groups of runs are trained."""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from tpr_attention.imports import ImportPathError, is_path, load, nearest
from tpr_attention.runner.checkpoints import CheckpointInterval
from tpr_attention.runner.events import Event
from tpr_attention.runner.store import Store
from tpr_attention.runner.work import Work
from tpr_attention.training.spec import SpecError

__all__ = ["EXECUTORS", "Executor", "ExecutorSettings", "make_executor"]

EXECUTORS = {
    "local": "tpr_attention.runner.executors.local:local_executor",
    "ray": "tpr_attention.runner.executors.ray:ray_executor",
}
"""Functions that make an executor from `ExecutorSettings`. An executor needs the optional dependencies of its name."""

Executor = Callable[[Sequence[Work], Store, CheckpointInterval], Generator[Event]]
"""Trains groups anywhere, in any order, even more than once; the results are in the store at the end."""


class ExecutorSettings(NamedTuple):
    """Settings that all executors have.

    Args:
        workers: Groups that are trained at the same time, with one thread each; one per core if None. With 0, the local
            executor starts no process, and torch keeps its threads.
        address: The address of a cluster; None for this machine.
        attempts: How often a group is started whose process dies.
    """

    workers: int | None = None
    address: str | None = None
    attempts: int = 3


DEFAULTS = ExecutorSettings()


def make_executor(name: str, settings: ExecutorSettings = DEFAULTS) -> Executor:
    """Make an executor by its name in `EXECUTORS`, or by the import path of a function like those there."""
    if not is_path(name) and name not in EXECUTORS:
        raise SpecError(f"executor: expected one of {[*EXECUTORS]}, got {name!r}{nearest(name, EXECUTORS)}")
    try:
        factory = load(EXECUTORS.get(name, name))
    except ImportPathError as error:
        if name in EXECUTORS and isinstance(error.__cause__, ModuleNotFoundError):
            advice = f'pip install "tpr-attention[{name}]"'
            raise SpecError(f"executor {name}: {error.__cause__.name} is not installed; {advice}") from error
        raise SpecError(f"executor: {error}") from error
    executor: Executor = factory(settings)
    return executor
