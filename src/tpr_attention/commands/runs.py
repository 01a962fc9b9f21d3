"""`tpr-attention runs`: the stored runs, what differs between them, and what they ended with."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from rich.console import Console

from tpr_attention.commands.keys import parse_line
from tpr_attention.console import diverged_words, table, tell
from tpr_attention.imports import nearest
from tpr_attention.report.style import number
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.studies.kinds import source_words
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["command"]

NOT_OF_A_RUN = "training.device"
MOST = 100
"""Runs in a table, if no other limit is given."""

Thing = TypeVar("Thing")
Found = TypeVar("Found")


class Run(NamedTuple):
    """A stored run: its keys, and the last value of each metric under each condition; none if it diverged."""

    spec: RunSpec
    conditions: Sequence[str]
    final: Mapping[str, Mapping[str, float | None]]
    divergence: tuple[int, str] | None
    parameters: int | None
    seconds: float | None

    @property
    def metric(self) -> str:
        """The first metric."""
        return next(iter(self.final))

    def at_the_end(self, condition: str, metric: str | None) -> float | None:
        """The last value of a metric, of the first if none is named."""
        return self.final.get(metric or self.metric, {}).get(condition)


def command(
    changes: Sequence[str],
    store: str,
    sort: str | None,
    descending: bool,
    limit: int | None,
    metric: str | None,
    as_json: bool,
    console: Console,
) -> int:
    """Show the runs that have these keys, as a table or as JSON."""
    stored, left_out = Store(store), list[str]()
    specs = list(_readable(stored, stored.spec, left_out))
    chosen = _chosen(specs, parse_line(changes))
    by_key = _order_of_keys(chosen, sort)
    found = _readable(_sorted(chosen, by_key, descending), lambda spec: _run(stored, spec), left_out)
    if not by_key:
        runs = list(found)
        found = iter(_sorted(runs, _order_of_values(runs, str(sort), specs, metric), descending))
    shown = list(islice(found, limit or (None if as_json else MOST)))
    if metric is not None and shown:
        _expect("--metric", metric, dict.fromkeys(name for run in shown for name in run.final))
    if as_json:
        console.file.write(json.dumps([_described(run, metric) for run in shown], indent=1, allow_nan=False) + "\n")
    else:
        _show(shown, len(chosen), store, metric, console)
    for said in left_out:
        tell(f"left out: {said}")
    return 0


def _readable(things: Iterable[Thing], read: Callable[[Thing], Found], left_out: list[str]) -> Iterator[Found]:
    """What is read of each; a sentence on each that cannot be read is added to a list."""
    for thing in things:
        try:
            yield read(thing)
        except StoreError as error:
            left_out.append(str(error))


def _run(store: Store, spec: RunSpec) -> Run:
    names, origin = store.names(spec.digest), store.provenance(spec.digest)
    end = store.divergence(spec.digest) if "diverged" in origin else None
    final: dict[str, dict[str, float | None]] = {metric: {} for metric in names["metrics"]}
    rows = store.curve(spec.digest).rows() if end is None else []
    last = max((row[0] for row in rows), default=None)
    for step, condition, metric, group, value in rows:
        if step == last and group is None and condition in names["conditions"] and metric in final:
            final[metric][condition] = value if isfinite(value) else None
    return Run(spec, names["conditions"], final, end, *map(origin.get, ("parameters", "seconds")))


@cache
def _keys(spec: RunSpec) -> dict[str, Any]:
    """The keys of a run, without where it was trained, which is no part of it."""
    return {key: value for key, value in spec.keys().items() if key != NOT_OF_A_RUN}


def _chosen(specs: Sequence[RunSpec], asked: Mapping[str, object]) -> list[RunSpec]:
    """The runs that have all of these keys; of a list, any of its values."""
    chosen = specs
    for key, value in asked.items() if specs else ():
        full = _full_key(key, _known(specs))
        found = [_entry(spec, full) for spec in specs]
        if not any(_is_one_of(entry, value) for entry in found):
            stored = list(dict.fromkeys(str(entry) for entry in sorted(found, key=_order) if entry is not ...))
            more = f" and {len(stored) - 10} others" if len(stored) > 10 else ""
            raise SpecError(f"{key}: no stored run has {value!r}; stored: {', '.join(stored[:10])}{more}")
        chosen = [spec for spec in chosen if _is_one_of(_entry(spec, full), value)]
    if specs and not chosen:
        raise SpecError(f"{', '.join(asked)}: no stored run has all of these values together")
    return list(chosen)


def _full_key(key: str, known: Sequence[str]) -> str:
    """The full name of a key that some run has, or of an entry inside an option.

    >>> _full_key("steps", ["seed", "training.steps"]), _full_key("law.name", ["task.law"])
    ('training.steps', 'task.law.name')
    """
    found = dict[str, None]()
    for full in known:
        for name in (full, full.partition(".")[2]):
            if name and (key == name or ("." in full and key.startswith(f"{name}."))):
                found[full + key[len(name) :]] = None
    if len(found) > 1:
        raise SpecError(f"{key}: could be {' or '.join(found)}; write its full name")
    if not found:
        names = [name for full in known for name in (full, full.partition(".")[2]) if name]
        raise SpecError(f"{key}: no stored run has this key{nearest(key, names)}")
    return next(iter(found))


def _entry(spec: RunSpec, key: str) -> Any:
    """The value of a key, or of an entry inside an option; an ellipsis where there is none."""
    found: Any = _keys(spec)
    if key in found:
        return found[key]
    section, option, *inner = key.split(".") if "." in key else (key, "")
    found = found.get(f"{section}.{option}", ...)
    for name in inner:
        found = found.get(name, ...) if isinstance(found, Mapping) else ...
    return found


def _is_one_of(found: object, wanted: object) -> bool:
    return _is(found, wanted) or (isinstance(wanted, list) and any(_is(found, one) for one in wanted))


def _is(found: object, wanted: object) -> bool:
    """Whether two values are the same; true is not 1."""
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted


def _sorted(things: Sequence[Thing], value: Callable[[Thing], Any] | None, descending: bool) -> list[Thing]:
    """Things by their values, if there are any; those without one are last."""
    if value is None:
        return list(things)
    valued = [(value(thing), thing) for thing in things]
    there = sorted((pair for pair in valued if pair[0] is not None), key=lambda pair: pair[0], reverse=descending)
    return [thing for _, thing in there] + [thing for found, thing in valued if found is None]


def _order_of_keys(specs: Sequence[RunSpec], sort: str | None) -> Callable[[RunSpec], Any] | None:
    """How runs are sorted that need not be read for it; None if they must be. By default by all that differs."""
    if sort is None:
        columns = ["task", "model", *_changing(specs), "seed"]
        return lambda spec: [_order(_keys(spec).get(column, ...)) for column in columns]
    if sort == "run":
        return lambda spec: spec.digest
    try:
        full = _full_key(sort, _known(specs))
    except SpecError:
        return None
    return lambda spec: None if (value := _entry(spec, full)) is ... else _order(value)


def _order_of_values(
    runs: Sequence[Run], sort: str, specs: Sequence[RunSpec], metric: str | None
) -> Callable[[Run], float | None]:
    """How runs are sorted by what they ended with or cost."""
    if sort == "parameters":
        return lambda run: run.parameters
    if sort == "seconds":
        return lambda run: run.seconds
    keys = [key.partition(".")[2] or key for key in _known(specs)]
    _expect("--sort", sort, [*_conditions(runs), "run", "parameters", "seconds", *keys])
    return lambda run: run.at_the_end(sort, metric)


def _order(value: object) -> tuple[int, Any]:
    """Numbers before texts, and both before anything else."""
    if isinstance(value, bool | int | float):
        return 0, value
    return 1, "" if value in (None, ...) else str(value)


def _expect(option: str, name: str, known: Sequence[str] | Mapping[str, Any]) -> None:
    if name not in known:
        raise SpecError(f"{option}: expected one of {', '.join(known)}; got {name!r}{nearest(name, known)}")


def _conditions(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(condition for run in runs for condition in run.conditions))


def _known(specs: Sequence[RunSpec]) -> list[str]:
    return list(dict.fromkeys(key for spec in specs for key in _keys(spec)))


def _changing(specs: Sequence[RunSpec]) -> list[str]:
    """The keys that are not the same in all runs that have them, but for those that are always shown."""
    values: dict[str, set[str]] = {}
    for spec in specs:
        for key, value in _keys(spec).items():
            values.setdefault(key, set()).add(str(value))
    return [key for key, found in values.items() if len(found) > 1 and key not in ("task", "model", "seed")]


def _described(run: Run, metric: str | None) -> dict[str, Any]:
    """All that a script needs of a run."""
    return {
        "run": run.spec.digest,
        "task": run.spec.task.name,
        "model": run.spec.model.name,
        "seed": run.spec.seed,
        "keys": _keys(run.spec),
        "sources": run.spec.sources,
        "metric": metric or run.metric,
        "final": run.final,
        "diverged_at": run.divergence and run.divergence[0],
        "parameters": run.parameters,
        "seconds": run.seconds,
    }


def _show(runs: Sequence[Run], matching: int, store: str, metric: str | None, console: Console) -> None:
    specs = [run.spec for run in runs]
    conditions, changing, sources = _conditions(runs), _changing(specs), source_words(specs)
    notes = [_note(run, sources.get(run.spec, "")) for run in runs]
    rows = [
        [
            *(run.spec.digest, run.spec.task.name, run.spec.model.name),
            *("-" if (value := _entry(run.spec, key)) is ... else str(value) for key in changing),
            str(run.spec.seed),
            *(number(run.at_the_end(condition, metric)) for condition in conditions),
            "-" if run.parameters is None else f"{run.parameters:,}",
            number(run.seconds),
            *([note] if any(notes) else []),
        ]
        for run, note in zip(runs, notes, strict=True)
    ]
    count = f"{len(runs):,} of {matching:,}" if len(runs) < matching else f"{matching:,}"
    title = f"{count} run{'s' if matching != 1 else ''} in {store}"
    if metrics := dict.fromkeys([metric] if metric else [run.metric for run in runs]):
        title += f", {' or '.join(metrics)} at the end"
    columns = ["run", "task", "model", *changing, "seed", *conditions, "parameters", "seconds"]
    table(title, [*columns, *(["note"] if any(notes) else [])], rows, console)
    if len(runs) == MOST < matching:
        console.print(f"more: --limit {matching}", highlight=False)


def _note(run: Run, source: str) -> str:
    """What a reader must know of a run besides its values."""
    diverged = "" if run.divergence is None else diverged_words(run.divergence)
    return ", ".join(filter(None, (source, diverged)))
