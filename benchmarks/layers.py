"""Speed of whole layers with their projections, against softmax and linear attention of the same width and heads.

    python benchmarks/layers.py [--threads 1] [--quick] [--out benchmarks/results]

All layers of a case take turns in one process, forward and backward, and the median of the processor time of each
counts: ratios then mean something even where other programs use the machine. Writes raw numbers and a report.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from measure import Case, processor
from peers import LinearLayer, SoftmaxLayer
from tpr_attention.functional.factored import read, recall
from tpr_attention.nn.attention import TPRAttention
from tpr_attention.nn.queries import FixedRoleQueries, LinearQueries

SAMPLE = 0.01  # seconds; shorter calls are repeated until they fill it
BATCHES = tuple(
    Case(r, f, 4, length, batch)
    for (r, f), sizes in {
        (8, 16): ((64, 32), (512, 4), (2048, 1), (8192, 1)),
        (16, 32): ((64, 32), (512, 2), (2048, 1)),
    }.items()
    for length, batch in sizes
)
SINGLE = tuple(Case(r, f, 4, length) for r, f in ((8, 16), (16, 32)) for length in (2, 16, 64))
LONG = Case(8, 16, 4, 2048)
QUICK_BATCHES, QUICK_SINGLE, QUICK_LONG = (Case(8, 16, 4, 64, 2),), (Case(8, 16, 4, 2),), Case(8, 16, 4, 128)

OURS = ("varying roles", "fixed roles", "softmax match", "delta")
Times = dict[str, float]


def layers(case: Case) -> dict[str, nn.Module]:
    """TPR layers without normalisation, as the peers have none; matches of the last two have fixed roles."""
    sizes = case.r, case.f, case.heads

    def ours(queries: type[nn.Module], **options: str) -> nn.Module:
        return TPRAttention(*sizes, queries=queries(*sizes), normalise=None, **options)

    width = case.r * case.f
    return {
        "softmax": SoftmaxLayer(width, case.heads),
        "linear, chunks of 32": LinearLayer(width, case.heads, 32),
        "linear, chunks of 64": LinearLayer(width, case.heads, 64),
        "varying roles": ours(LinearQueries),
        "fixed roles": ours(FixedRoleQueries),
        "softmax match": ours(FixedRoleQueries, match="softmax"),
        "delta": ours(FixedRoleQueries, write="delta"),
    }


def step(layer: nn.Module, case: Case, **options: Tensor) -> Callable[[], object]:
    """Forward and backward to the objects and all parameters."""
    generator = torch.Generator().manual_seed(0)
    width = (case.r, case.f) if isinstance(layer, TPRAttention) else (case.r * case.f,)
    x = torch.randn(case.batch, case.T, *width, generator=generator).requires_grad_()
    inputs = [x, *layer.parameters()]
    gradient = torch.randn(layer(x, **options).shape, generator=generator)
    return lambda: torch.autograd.grad(layer(x, **options), inputs, gradient, allow_unused=True)


def medians(calls: Mapping[str, Callable[[], object]], rounds: int) -> Times:
    """Milliseconds of one call of each."""
    repeats = {name: max(1, round(SAMPLE / max(_seconds(call, 2), 1e-6))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(_seconds(call, repeats[name]))
    return {name: 1e3 * statistics.median(found) for name, found in times.items()}


def _seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


class Row(NamedTuple):
    case: Case
    times: Times

    def faster(self, name: str, peer: str) -> float:
        """How many times as fast as a peer; of the two linear ones, as the faster."""
        return min(time for other, time in self.times.items() if other.split(",")[0] == peer) / self.times[name]


def measure(cases: tuple[Case, ...], rounds: int) -> Iterator[Row]:
    for case in cases:
        calls = {name: step(layer, case) for name, layer in layers(case).items()}
        row = Row(case, medians(calls, rounds if case.T < 8192 else min(rounds, 3)))
        print(case, *(f"{name} {ms:.2f} ms" for name, ms in row.times.items()), sep="; ", flush=True)
        yield row


def one_read(case: Case, rounds: int) -> Times:
    """How many times as fast it is to read at the last position as to read everywhere."""
    found = {}
    last = torch.tensor([case.T - 1])
    drawn = torch.Generator().manual_seed(0)
    objects = torch.randn(case.batch, case.T, case.r, case.f, generator=drawn)
    for name in ("varying roles", "fixed roles"):
        layer = layers(case)[name]
        times = medians({"all": step(layer, case), "one": step(layer, case, positions=last)}, rounds)
        found[f"layer, {name}, forward+backward"] = times["all"] / times["one"]
        with torch.no_grad():
            calls = {"all": partial(layer, objects), "one": partial(layer, objects, positions=last)}
            times = medians(calls, rounds)
            found[f"layer, {name}, forward"] = times["all"] / times["one"]
            queries = layer.queries(objects)
            asked = [x if x.ndim < 4 else x[:, -1:] for x in queries]
            everywhere = partial(recall, objects, *queries, final_state=False)
            times = medians({"all": everywhere, "one": partial(read, objects, *asked)}, rounds)
            found[f"`read`, {name}, forward"] = times["all"] / times["one"]
    return found


def report(batches: list[Row], single: list[Row], reads: Times, long: Case, machine: str) -> str:
    lines = [
        "# Speed of whole layers",
        f"{machine}. Forward and backward with all projections, 4 heads, medians of processor time taken in turns. "
        "`softmax` is a layer on `scaled_dot_product_attention`, `linear` one of chunked linear attention (ELU + 1) in "
        "plain torch with the better of two chunk sizes; both have the width $r f$ of the objects. TPR layers do not "
        "normalise, and those with a softmax match or the delta rule have fixed roles.",
        "## Batches: times as fast as softmax / as linear attention",
        _table(
            ["(r,f)", "T", "batch", "softmax, ms", *OURS],
            [
                [*_name(x), f"{x.times['softmax']:.1f}"]
                + [f"{x.faster(name, 'softmax'):.2f} / {x.faster(name, 'linear'):.2f}" for name in OURS]
                for x in batches
            ],
        ),
        "## One short sequence: times as long as softmax",
        _table(
            ["(r,f)", "T", "batch", "softmax, ms", "linear", *OURS],
            [
                [*_name(x), f"{x.times['softmax']:.2f}", f"{x.faster('softmax', 'linear'):.1f}"]
                + [f"{1 / x.faster(name, 'softmax'):.1f}" for name in OURS]
                for x in single
            ],
        ),
        f"## Reading at one position of {long.T}: times as fast as everywhere",
        _table(["what", "times as fast"], [[what, f"{times:.1f}"] for what, times in reads.items()]),
        "## Wanted",
        _table(["what", "wanted", "measured", "verdict"], [list(x) for x in wanted(batches, single, reads)]),
    ]
    return "\n\n".join(lines) + "\n"


def wanted(batches: list[Row], single: list[Row], reads: Times) -> Iterator[tuple[str, str, str, str]]:
    """What the layers are meant to reach, and the worst that was measured."""

    def least(what: str, bound: float, found: list[float]) -> tuple[str, str, str, str]:
        return what, f"at least {bound:g}", f"{min(found):.2f}", "reached" if min(found) >= bound else "NOT reached"

    for name, softmax, linear in (("varying roles", 1.0, 0.8), ("fixed roles", 2.4, 2.5)):
        yield least(f"{name}, times as fast as softmax", softmax, [x.faster(name, "softmax") for x in batches])
        yield least(f"{name}, times as fast as linear", linear, [x.faster(name, "linear") for x in batches])
    found = [x.faster("softmax match", "softmax") for x in (*batches, *single)]
    yield least("softmax match, times as fast as softmax", 1.0, found)
    found = [x.times["fixed roles"] / x.times["delta"] for x in batches]
    yield least("delta, times as fast as the sum with fixed roles", 0.5, found)
    for name in ("varying roles", "fixed roles"):
        found = [x.faster(name, "softmax") for x in single]
        yield least(f"{name}, one short sequence, times as fast as softmax", 0.5, found)
    for what, times in reads.items():
        yield least(f"{what}, one position, times as fast as all", 20.0, [times])


def _name(row: Row) -> list[str]:
    return [f"({row.case.r},{row.case.f})", str(row.case.T), str(row.case.batch)]


def _table(columns: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one case of each kind and few rounds: a trial")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rounds = 2 if options.quick else 11
    batches = list(measure(QUICK_BATCHES if options.quick else BATCHES, rounds))
    single = list(measure(QUICK_SINGLE if options.quick else SINGLE, rounds))
    long = QUICK_LONG if options.quick else LONG
    reads = one_read(long, rounds)
    threads = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    machine = f"{processor()}, torch {torch.__version__}, {threads}"
    name = f"layers-threads{options.threads}" + ("-quick" if options.quick else "")
    options.out.mkdir(parents=True, exist_ok=True)
    text = report(batches, single, reads, long, machine)
    (options.out / f"{name}.md").write_text(text)
    with (options.out / f"{name}.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["layer", "r", "f", "heads", "T", "batch", "milliseconds"])
        for case, times in (*batches, *single):
            sizes = case.r, case.f, case.heads, case.T, case.batch
            rows.writerows([layer, *sizes, f"{ms:.6g}"] for layer, ms in times.items())
    print(text)


if __name__ == "__main__":
    main()
