"""Speed and memory of every form of `recall`, against the definitions and against softmax attention.

    python benchmarks/attention.py [--threads 1] [--quick] [--out benchmarks/results]

All contestants of a cell take turns in one process, so that ratios mean something even where the
machine's speed drifts. Writes a table of raw numbers, a report and a figure.
"""

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from einops import einsum, repeat
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from measure import (
    BACKWARD,
    MODES,
    Call,
    Case,
    Cost,
    Results,
    check_peak_bytes,
    matmul_gflops,
    peak_bytes,
    processor,
    shortest,
)
from tables import Machine, draw, show, write_report
from tpr_attention.functional.attention import extract, match
from tpr_attention.functional.factored import recall

Drawn = tuple[tuple[Tensor, ...], Tensor]  # the inputs, and a gradient for the output


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    lengths: tuple[int, ...] = (2, 64, 512, 2048, 8192)
    shapes: tuple[tuple[int, int], ...] = ((6, 3), (8, 16), (16, 32))
    heads: tuple[int, ...] = (4, 8)
    tokens: int = 2048  # in a batch, where a single sequence is so short that only the launch of kernels is measured
    batched: tuple[int, ...] = (2, 64)
    conjunction_lengths: tuple[int, ...] = (512, 2048, 8192)
    rounds: int = 5
    budget: float = 3.0  # seconds for one contestant in one cell
    patience: float = 1.0  # share of each contestant's limits that is granted


QUICK = Effort(
    lengths=(2, 64, 256),
    heads=(4,),
    conjunction_lengths=(256, 512),
    rounds=2,
    budget=0.1,
    patience=0.02,
)


@dataclass(frozen=True)
class Contestant:
    draw: Callable[[Case], Drawn]
    compute: Callable[..., Tensor]
    growth: int  # power of T by which the cost grows; says from a shorter sequence what a longer one would take
    most_seconds: float = 12.0  # for one call; what would take longer is skipped
    most_megabytes: float = 10_000.0


def queries_at_each_position(case: Case) -> Drawn:
    """Objects [b t r f], match roles [b t h m r], match fillers [b t h m f] and target roles [b t h r]."""
    b, t, h, m, r, f = case.batch, case.T, case.heads, case.matches, case.r, case.f
    return _normal((b, t, r, f), (b, t, h, m, r), (b, t, h, m, f), (b, t, h, r), output=(b, t, h, f))


def roles_of_each_head(case: Case) -> Drawn:
    """The same with match roles [h m r] and target roles [h r]."""
    b, t, h, m, r, f = case.batch, case.T, case.heads, case.matches, case.r, case.f
    return _normal((b, t, r, f), (h, m, r), (b, t, h, m, f), (h, r), output=(b, t, h, f))


def query_key_value(case: Case) -> Drawn:
    """Query, key and value [b h t d] of a token as wide as an object.

    18 is not divisible by 4 or 8: the head size is rounded up.
    """
    shape = (case.batch, case.heads, case.T, -(-case.r * case.f // case.heads))
    return _normal(shape, shape, shape, output=shape)


def _normal(*shapes: tuple[int, ...], output: tuple[int, ...]) -> Drawn:
    generator = torch.Generator().manual_seed(0)
    inputs = tuple(torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes)
    return inputs, torch.randn(output, generator=generator)


def fillers(*inputs: Tensor, form: str) -> Tensor:
    return recall(*inputs, final_state=False, form=form)[0]


def literal(objects: Tensor, match_role: Tensor, match_filler: Tensor, target_role: Tensor) -> Tensor:
    """Grow the full memory by one object at a time and apply the definitions to it, for one match.

    `attend` without its last step, `rebind`, which no other contestant does either.
    """
    heads = match_role.shape[2]
    memory: Tensor | float = 0.0
    found = []
    for t in range(objects.shape[1]):
        obj = objects[:, t]
        memory = memory + einsum(obj, obj, "b r f, b r_m f_m -> b r f r_m f_m")
        of_heads = memory.unsqueeze(1).expand(-1, heads, -1, -1, -1, -1)
        matched = match(of_heads, match_role[:, t, :, 0], match_filler[:, t, :, 0])
        found.append(extract(matched, target_role[:, t]))
    return torch.stack(found, 1)


CONTESTANTS = {
    "auto": Contestant(queries_at_each_position, partial(fillers, form="auto"), 1),
    "parallel": Contestant(queries_at_each_position, partial(fillers, form="parallel"), 2, most_seconds=5.0),
    "chunked": Contestant(queries_at_each_position, partial(fillers, form="chunked"), 1),
    "recurrent": Contestant(queries_at_each_position, partial(fillers, form="recurrent"), 1, most_seconds=5.0),
    "fixed roles": Contestant(roles_of_each_head, partial(fillers, form="auto"), 1),
    "literal": Contestant(queries_at_each_position, literal, 1),
    "SDPA": Contestant(query_key_value, partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True), 2),
}
CONJUNCTION = ("auto", "parallel", "chunked")


def check_agreement(r: int, f: int, heads: int) -> None:
    """Fail if contestants that should give the same numbers do not."""
    case = Case(r, f, heads, T=48, batch=2)
    inputs, _ = queries_at_each_position(case)
    expected = literal(*inputs)
    scale = expected.detach().abs().max().item()
    for form in ("auto", "parallel", "chunked", "recurrent"):
        torch.testing.assert_close(fillers(*inputs, form=form), expected, rtol=1e-4, atol=1e-5 * scale)
    objects, match_role, match_filler, target_role = roles_of_each_head(case)[0]
    everywhere = (
        repeat(match_role, "h m r -> b t h m r", b=case.batch, t=case.T),
        match_filler,
        repeat(target_role, "h r -> b t h r", b=case.batch, t=case.T),
    )
    found = fillers(objects, match_role, match_filler, target_role, form="auto")
    torch.testing.assert_close(found, literal(objects, *everywhere), rtol=1e-4, atol=1e-5 * scale)


def cells(effort: Effort) -> Iterator[tuple[Case, Case | None, Sequence[str]]]:
    """Every case, the smaller one that tells what it would cost, and who takes part."""
    for r, f in effort.shapes:
        for heads in effort.heads:
            smaller = None
            for length in effort.lengths:
                case = Case(r, f, heads, length)
                yield case, smaller, tuple(CONTESTANTS)
                if length in effort.batched:
                    yield dataclasses.replace(case, batch=effort.tokens // length), case, tuple(CONTESTANTS)
                smaller = case
    smaller = None
    for length in effort.conjunction_lengths:
        case = Case(*effort.shapes[0], effort.heads[0], length, matches=2)
        yield case, smaller, CONJUNCTION
        smaller = case


def run(effort: Effort, console: Console) -> Results:
    results = Results()
    for r, f in effort.shapes:
        check_agreement(r, f, effort.heads[0])
    columns = (TextColumn("{task.description}"), *Progress.get_default_columns()[1:2], MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        plan = [(*cell, mode) for cell in cells(effort) for mode in MODES]
        task = progress.add_task("", total=len(plan))
        for case, smaller, names, mode in plan:
            progress.update(task, description=f"{case}, {mode}")
            calls: dict[str, Call] = {}
            megabytes: dict[str, float] = {}
            for name in names:
                reason = refusal(name, case, smaller, mode, results, effort)
                if reason is not None:
                    results.skipped[name, case, mode] = reason
                    continue
                calls[name] = prepare(CONTESTANTS[name], case, mode)
                megabytes[name] = peak_bytes(calls[name]) / 1e6  # the untimed first call, which also warms up
            for name, seconds in shortest(calls, rounds=effort.rounds, budget=effort.budget).items():
                results.costs[name, case, mode] = Cost(seconds * 1e3, megabytes[name])
            progress.advance(task)
    return results


def prepare(contestant: Contestant, case: Case, mode: str) -> Call:
    inputs, gradient = contestant.draw(case)
    if mode == BACKWARD:
        return lambda: torch.autograd.grad(contestant.compute(*inputs), inputs, gradient)
    return torch.no_grad()(lambda: contestant.compute(*inputs))


def refusal(name: str, case: Case, smaller: Case | None, mode: str, results: Results, effort: Effort) -> str | None:
    """Why this is not worth trying, going by the cost of a smaller case."""
    if smaller is None:
        return None
    cost = results.cost(name, smaller, mode)
    if cost is None:
        return f"already skipped at T = {smaller.T}"
    contestant = CONTESTANTS[name]
    times = (case.T / smaller.T) ** contestant.growth * case.batch / smaller.batch
    megabytes, seconds = times * cost.megabytes, times * cost.milliseconds / 1e3
    if megabytes > effort.patience * contestant.most_megabytes:
        return f"could need {megabytes / 1e3:.1f} GB"
    launching_only = cost.milliseconds < 10  # a call this short says little about how the time grows
    if not launching_only and seconds > effort.patience * contestant.most_seconds:
        return f"could take {seconds:.1f} s for one call"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="short sequences and few rounds: a trial, not a result")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    console = Console()
    check_peak_bytes()
    gflops = matmul_gflops()
    results = run(QUICK if options.quick else Effort(), console)
    machine = Machine(processor(), torch.__version__, options.threads, gflops, options.quick)

    options.out.mkdir(parents=True, exist_ok=True)
    name = f"attention-threads{options.threads}" + ("-quick" if options.quick else "")
    results.write(options.out / f"{name}.csv")
    draw(results, machine, options.out / f"{name}.png")
    write_report(results, machine, options.out / f"{name}.md", figure=f"{name}.png")
    show(results, machine, console)


if __name__ == "__main__":
    main()
