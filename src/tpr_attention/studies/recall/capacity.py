"""How many pairs a memory holds, every key once: measured and published curves, and the rank bound."""

from collections.abc import Iterator, Mapping
from functools import cache
from math import ceil

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Band, Known, Look, Panel, Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.statistics import mean
from tpr_attention.report.style import number
from tpr_attention.report.tables import Column
from tpr_attention.studies.recall.contest import Contest, Entrant, contest_table
from tpr_attention.studies.recall.looks import LOOKS, published_look
from tpr_attention.studies.recall.published import ONCE
from tpr_attention.studies.recall.state_sizes import state_size
from tpr_attention.studies.sizes import series_at
from tpr_attention.studies.study import Setup
from tpr_attention.studies.words import listed

__all__ = ["BOUND", "SIZES", "THIN_SIZES", "capacity_section", "capacity_summary", "figures"]

SIZES = (100, 200, 400, 600)
FEWER = (100, 200)
THIN_SIZES = (100,)
STEPS = {100: 1_000, 200: 1_000, 400: 1_500, 600: 2_000}
TPR = {"model": "recall-tpr", "model.values": "one-hot", "model.keys": "table", "model.learn": "fillers"}
PUBLISHED = {"model.encoder": "published", "model.width": 64}
SAME = {"model.encoder": "fixed-roles", "model.width": 64}


def _tpr(matches: int, size: int) -> dict[str, object]:
    return {**TPR, "model.num_matches": matches, "model.filler_dim": size}


MAIN = {
    "tpr": Entrant("TPR-Attention, 2 x 32", LOOKS["tpr"], _tpr(2, 32)),
    "softmax": Entrant("softmax attention", LOOKS["softmax"], {"model": "recall-softmax", **PUBLISHED}),
    "linear": Entrant("linear attention", LOOKS["linear"], {"model": "recall-linear", **PUBLISHED}),
    "dpfp": Entrant("DPFP-3", LOOKS["dpfp"], {"model": "recall-dpfp", **PUBLISHED, "model.nu": 3}),
}
CONTROLS = {
    "softmax-roles": Entrant(
        "softmax attention, same encoder", LOOKS["softmax-roles"], {"model": "recall-softmax", **SAME}
    ),
    "linear-roles": Entrant(
        "linear attention, same encoder", LOOKS["linear-roles"], {"model": "recall-linear", **SAME}
    ),
    "dpfp-roles": Entrant("DPFP-3, same encoder", LOOKS["dpfp-roles"], {"model": "recall-dpfp", **SAME, "model.nu": 3}),
}
BOUND = {"tpr-64": (1, 64), "tpr-100": (2, 10), "tpr-144": (2, 12)}
"""Contestants with few features: how many roles match, and the numbers of each."""
SCALED = {"model.learn": "all", "training.learning_rate": 0.003}
"""With unit-length fillers alone what is read cannot shrink, as it must with fewer features than pairs."""
BOUND_LOOKS = ("tpr-one", "tpr-small", "tpr-delta")
BOUNDED = {
    name: Entrant(f"TPR-Attention, {matches} x {size}", LOOKS[look], {**_tpr(matches, size), **SCALED})
    for look, (name, (matches, size)) in zip(BOUND_LOOKS, BOUND.items(), strict=True)
}
KNOWN = {"softmax": "softmax", "linear": "linear", "DPFP-3": "dpfp"}
"""Published model to the contestant whose colour it has."""
BEST = "DPFP-3"
"""The published model of constant state that holds most."""


def _contest(pairs: int) -> Contest:
    """All contestants with so many pairs; the published protocol, but for the end of the learning rate."""
    keys = {
        "task": "recall-capacity",
        "task.num_pairs": pairs,
        "task.queries": 32,
        "training.batch_size": 1,
        "training.train_examples": 500,
        "training.test_examples": 20,
        "training.learning_rate": 0.001,
        "training.schedule": "late-decay",
    }
    return Contest(keys, STEPS[pairs], {**MAIN, **CONTROLS, **BOUNDED})


def _series(name: str, sizes: tuple[int, ...], setup: Setup) -> Series:
    parts = [_contest(size).series(name, setup) for size in sizes]
    return Series(name, tuple(spec for part in parts for spec in part.specs), parts[0].words, parts[0].look)


def rank_bound(features: int, pairs: int) -> float:
    """The lowest loss of a memory with so many features: it can tell no more keys apart.

    >>> rank_bound(64, 256)
    0.375
    """
    return max(0.0, (1 - features / pairs) / 2)


def _panel(
    column: str, names: Mapping[str, Entrant], sizes: tuple[int, ...], setup: Setup, known: list[Known]
) -> Panel:
    series = tuple(_series(name, sizes, setup) for name in names)
    cell = {"setting": "every key once", "panel": column}
    return Panel(
        "every key once",
        column,
        cell,
        "in_distribution",
        Band(1, "SE"),
        series,
        sizes=sizes,
        axis="number of pairs",
        scale="linear",
        known=tuple(known),
    )


@cache
def figures(setup: Setup) -> tuple[Plan, ...]:
    """The curves beside the published ones, and beside the bound."""
    published = [
        Known(f"published {name}", {s: ONCE[name][s] for s in SIZES}, f"published: {name}", published_look(look))
        for name, look in KNOWN.items()
    ]
    bounds = [
        Known(
            f"bound {name}",
            {size: rank_bound(features**matches, size) for size in FEWER},
            f"bound of {features**matches} features",
            Look(LOOKS[look].colour, (), "_"),
        )
        for look, (name, (matches, features)) in zip(BOUND_LOOKS, BOUND.items(), strict=True)
    ]
    return (
        Plan(
            "recall-capacity",
            "How many pairs a memory holds",
            "Final loss against the number of pairs, every key once, keys of 64 numbers; 2 x 32: two roles "
            "that both have to match, of 32 numbers each. Points are published values (Schlag, Irie and Schmidhuber "
            "2021).",
            (_panel("measured and published", MAIN, SIZES, setup, published),),
        ),
        Plan(
            "recall-controls",
            "The same encoder, and the rank bound",
            "Left: other memories with the encoder of the TPR contestants. Right: TPR-Attention with fewer features "
            "than pairs, and the lowest loss that so many features allow.",
            (
                _panel("same encoder", {"tpr": MAIN["tpr"], **CONTROLS}, FEWER, setup, []),
                _panel("rank bound", BOUNDED, FEWER, setup, bounds),
            ),
        ),
    )


def _losses(results: Results, setup: Setup) -> dict[tuple[str, int], float]:
    """The mean final losses of contestants all of whose runs are stored, by name and number of pairs."""
    found = {}
    for panel in (panel for plan in figures(setup) for panel in plan.panels):
        for series in panel.series:
            for place, size in enumerate(panel.sizes):
                runs = series_at(panel, series, place)
                if results.complete([runs]):
                    found[series.name, int(size)] = mean(results.final(runs, "in_distribution"))
    return found


def capacity_section(results: Results, setup: Setup) -> list[Section]:
    """Figures, the table and what they say; none if nothing is stored."""
    losses = _losses(results, setup)
    if not losses:
        return []
    said = " ".join([*_softmax_words(losses), *_tpr_words(losses, setup), *_bound_words(losses)])
    blocks: list[Block] = [Text(said)] if said else []
    blocks.append(Text(PROTOCOL))
    blocks += [Curves(plan, results) for plan in figures(setup) if any(map(results.stored, plan.series()))]
    names = (*MAIN, *CONTROLS, *BOUNDED)
    cells = [(size, name) for size in SIZES for name in names if (name, size) in losses]
    rows = [([size], _contest(size).series(name, setup)) for size, name in cells]
    caption = "Associative retrieval, every key once: final loss by number of pairs."
    first, tests = [Column("pairs", "count")], {"in_distribution": "loss"}
    blocks.append(contest_table("recall-capacity", caption, results, rows, first, tests, "loss"))
    return [Section("Recall: how many pairs a memory holds", blocks)]


def capacity_summary(results: Results, setup: Setup) -> list[str]:
    """Sentences for the first screen, on the largest number of pairs that is stored."""
    losses = _losses(results, setup)
    stored = [size for size in SIZES if ("tpr", size) in losses]
    if not stored:
        return []
    size = stored[-1]
    said = [
        f"TPR-Attention, with a state of constant size, recalls {size} pairs of a sequence with a loss of "
        f"{number(losses['tpr', size])}."
    ]
    if ("softmax", size) in losses:
        said.append(
            "Softmax attention, which keeps every pair, has a loss of "
            f"{number(losses['softmax', size])} there, after the same steps."
        )
    return said


PROTOCOL = (
    "The task and its protocol are published (Schlag, Irie and Schmidhuber 2021): a wide normal table of keys, a "
    "linear map to 64 numbers, fixed one-hot values, half the squared error, Adam with a learning rate of 0.001, 32 "
    "queries a step. Every sequence has all keys, so that 32 queries of one sequence have the same loss and gradient "
    "as one query of each of 32. Here the learning rate falls to zero in the last quarter, and all contestants have "
    "the same steps; the published ones stop when they no longer improve. This schedule was chosen among three (with "
    "constant and cosine) on a seed that is not reported, and the learning rate is the published one. Only for the "
    "rank bound the maps of the layer are trained as well, with a rate of 0.003."
)


def _softmax_words(losses: Mapping[tuple[str, int], float]) -> Iterator[str]:
    """Where softmax attention is as good or better."""
    both = [size for size in SIZES if ("softmax", size) in losses and ("tpr", size) in losses]
    if both:
        as_good = [size for size in both if losses["softmax", size] <= max(losses["tpr", size], 1e-3)]
        where = "at every number of pairs" if as_good == both else f"with {listed([*map(str, as_good)])} pairs"
        size = as_good[-1] if as_good else both[-1]
        yield (
            f"Softmax attention, which keeps every pair, {f'is as good or better {where}' if as_good else 'is worse'}: "
            f"with {size} pairs its loss is {_two_losses(losses, size)}."
        )
        if worse := [size for size in both if as_good and size not in as_good]:
            yield f"With {worse[-1]} pairs, after the same steps, its loss is {_two_losses(losses, worse[-1])}."


def _two_losses(losses: Mapping[tuple[str, int], float], size: int) -> str:
    return f"{number(losses['softmax', size])}, that of TPR-Attention {number(losses['tpr', size])}"


def _tpr_words(losses: Mapping[tuple[str, int], float], setup: Setup) -> Iterator[str]:
    """The constant state beside the published best, with both sizes of states."""
    for size in SIZES[2:]:
        if ("tpr", size) in losses:
            ours = state_size(_contest(size).series("tpr", setup).specs[0])
            theirs = state_size(_contest(size).series("dpfp", setup).specs[0])
            yield (
                f"With {size} pairs and a constant state of {ours:,} numbers ({ours / theirs:.1f} times that of "
                f"{BEST}), TPR-Attention has a loss of {number(losses['tpr', size])}; the published {BEST} has "
                f"{ONCE[BEST][size]:.3f}."
            )


def _bound_words(losses: Mapping[tuple[str, int], float]) -> Iterator[str]:
    """How far losses are from the bound."""
    sizes = {name: size**matches for name, (matches, size) in BOUND.items()}
    far = [abs(loss - rank_bound(sizes[name], pairs)) for (name, pairs), loss in losses.items() if name in sizes]
    if far:
        yield (
            f"At equal numbers of features there is nothing to gain: with fewer features than pairs the loss follows "
            f"the rank bound within {ceil(1000 * max(far)) / 1000:.3f} ({len(far)} of {len(BOUND) * len(FEWER)} cases "
            "are stored)."
        )
