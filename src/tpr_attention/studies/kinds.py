"""Kinds of runs: those that differ only in their seed. What they are called, and the table of their digests."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import msgspec

from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Linked, Table
from tpr_attention.training.options import default_options
from tpr_attention.training.spec import RunSpec, Training

__all__ = [
    "cost",
    "finishing_seconds",
    "kinds_of",
    "linked",
    "run_words",
    "runs_table",
    "shared_training",
    "source_words",
    "task_words",
    "training_seconds",
]

MOST_DIGESTS = 20
"""Digests in a row of the table of runs."""
SHORT = 6
"""Digits of a hash that tell two versions of a file apart."""


def kinds_of(specs: Iterable[RunSpec]) -> dict[RunSpec, tuple[RunSpec, ...]]:
    """The runs of each kind, which is named by its spec with seed 0; sorted by what they are called, and by seed."""
    found: dict[RunSpec, list[RunSpec]] = {}
    for spec in specs:
        found.setdefault(spec.with_seed(0), []).append(spec)
    ordered = sorted(found, key=lambda kind: (task_words(kind), run_words(kind), kind.digest))
    return {kind: tuple(sorted(found[kind], key=lambda spec: spec.seed)) for kind in ordered}


def run_words(spec: RunSpec, known: Iterable[str] = ()) -> str:
    """The model, and what is not as usual.

    Args:
        known: Keys of the training that need not be told.
    """
    changed = {key: value for key, value in _changed(spec).items() if key not in known}
    return _words(spec.model.name, {**_unusual("model", spec.model.name, spec.model.options), **changed})


def shared_training(specs: Iterable[RunSpec]) -> dict[str, Any]:
    """What is not as usual in the training of several runs, and the same for all of them.

    >>> shared_training([RunSpec.of({"steps": 10, "batch_size": size}) for size in (20, 30)])
    {'steps': 10}
    """
    first, *others = [*map(_changed, specs)] or [{}]
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}


def _changed(spec: RunSpec) -> dict[str, Any]:
    """What is not as usual in a training."""
    usual, training = msgspec.to_builtins(Training()), msgspec.to_builtins(spec.training)
    return {key: value for key, value in training.items() if value != usual[key] and key != "device"}


def task_words(spec: RunSpec) -> str:
    """The task, and what is not as usual."""
    return _words(spec.task.name, _unusual("task", spec.task.name, spec.task.options))


def source_words(specs: Iterable[RunSpec]) -> dict[RunSpec, str]:
    """What tells runs apart that have equal keys and were made by other code; nothing of those that need none.

    >>> mine = [msgspec.structs.replace(RunSpec.of({}), sources={"m:M": name}) for name in ("1a2b3c4d", "5e6f")]
    >>> list(source_words(mine).values()), source_words(mine[:1])
    (['source 1a2b3c', 'source 5e6f'], {})
    """
    alike: dict[RunSpec, list[RunSpec]] = {}
    specs = list(specs)
    if any(spec.sources for spec in specs):
        for spec in specs:
            alike.setdefault(spec.with_seed(0).without_sources(), []).append(spec)
    found = {}
    for group in alike.values():
        files = dict.fromkeys(name for spec in group for name in spec.sources)
        changed = [name for name in files if len({spec.sources.get(name) for spec in group}) > 1]
        for spec in group if changed else ():
            hashes = dict.fromkeys(spec.sources.get(name, "")[:SHORT] or "unknown" for name in changed)
            found[spec] = f"source {', '.join(hashes)}"
    return found


def linked(value: object, spec: RunSpec) -> Linked:
    """A value with a link to the runs of a kind."""
    return Linked(value, f"run-{spec.with_seed(0).digest}")


def cost(results: Results, specs: Iterable[RunSpec]) -> tuple[int | None, float | None]:
    """How many numbers the runs of a kind learn, and how long one takes, as far as that is known."""
    specs = list(specs)
    sizes = [int(size) for size in _told(results, specs, "parameters")]
    seconds = _told(results, specs, "seconds")
    return min(sizes, default=None), fmean(seconds) if seconds else None


def training_seconds(results: Results, specs: Iterable[RunSpec]) -> float | None:
    """The processor time of the steps of one run, in the mean over those that tell it; None if none does."""
    return _mean_told(results, specs, "training_seconds")


def finishing_seconds(results: Results, specs: Iterable[RunSpec]) -> float | None:
    """The processor time of what one run does after its steps, in the same way."""
    return _mean_told(results, specs, "finishing_seconds")


def _mean_told(results: Results, specs: Iterable[RunSpec], key: str) -> float | None:
    seconds = _told(results, specs, key)
    return fmean(seconds) if seconds else None


def _told(results: Results, specs: Iterable[RunSpec], key: str) -> list[int | float]:
    """The numbers that the provenance of runs has under a key."""
    found = (results.store.provenance(spec.digest).get(key) for spec in specs)
    return [value for value in found if isinstance(value, int | float)]


def runs_table(results: Results) -> Table:
    """All runs of some results, one row a kind."""
    kinds = kinds_of(results.specs.values())
    sources = source_words(kinds)
    columns = [Column("task"), Column("run"), Column("parameters", "count"), Column("seconds", "number")]
    columns += [Column("which seeds"), Column("digests")]
    rows: list[list[Any]] = []
    for kind, specs in kinds.items():
        said = run_words(kind) + (f" ({sources[kind]})" if kind in sources else "")
        shown = specs[:MOST_DIGESTS]
        more = f", and {len(specs) - len(shown):,} more in `losses.csv`" if len(specs) > len(shown) else ""
        seeds = _seeds([spec.seed for spec in specs])
        digests = ", ".join(_digest(results, spec) for spec in shown)
        rows.append([task_words(kind), said, *cost(results, shown), seeds, digests + more])
    names = [linked(None, kind).place for kind in kinds]
    caption = "Runs in the order of their seeds; seconds are those of one run."
    return Table("runs", caption, columns, rows, row_names=names)


def _digest(results: Results, spec: RunSpec) -> str:
    end = results.store.divergence(spec.digest)
    return f"`{spec.digest}`" + (f" (diverged at step {end[0]})" if end else "")


def _seeds(seeds: list[int]) -> str:
    """Seeds in brief.

    >>> _seeds([0, 1, 2, 3]), _seeds([0, 7])
    ('0 to 3', '0, 7')
    """
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    few = ", ".join(map(str, seeds[:MOST_DIGESTS]))
    return few + (f", and {len(seeds) - MOST_DIGESTS:,} more" if len(seeds) > MOST_DIGESTS else "")


def _unusual(section: str, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not the defaults of a task or model of this package; all of a user's own."""
    usual = default_options(section, name)
    return {key: value for key, value in options.items() if key not in usual or value != usual[key]}


def _words(name: str, options: Mapping[str, Any]) -> str:
    return ", ".join([name, *(f"{key}={value}" for key, value in options.items())])
