"""The report on a run: ratio tables, expectations and a figure. Every number is computed from the results."""

from collections.abc import Iterator
from math import floor, log10
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from measure import BACKWARD, MODES, Case, Cost, Results

FORMS = ("auto", "parallel", "chunked", "recurrent", "fixed roles")
PEERS = ("literal", "SDPA")

METHOD = (
    "float32, causal, one match, no state. Roles and fillers of the queries differ at every position and head; "
    "fixed roles are given once for each head.",
    "Time: the minimum over rounds in which all contestants take turns; short calls are repeated within a round, slow "
    "ones take part in fewer rounds, the slowest in one. Peak memory comes from a separate call and counts what "
    "torch's allocator held above the level at its start.",
    "literal: a loop over positions that adds each object to the full memory and applies `match` and `extract` to it, "
    "the memory expanded over the heads. SDPA: torch's causal scaled_dot_product_attention with as many heads and "
    "tokens of width r f; where the heads do not divide it (18 by 4 or 8) the head size is rounded up (to 5 and 3).",
)
LINES = {  # Okabe and Ito's colours, which colour-blind readers can tell apart; the markers say it again
    "literal": ("#000000", "o"),
    "parallel": ("#E69F00", "s"),
    "chunked": ("#0072B2", "D"),
    "fixed roles": ("#009E73", "^"),
    "SDPA": ("#D55E00", "v"),
}


class Machine(NamedTuple):
    processor: str
    torch: str
    threads: int
    matmul_gflops: float
    quick: bool

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        peak = f"{self.matmul_gflops:.0f} GFLOP/s in a float32 matrix product of 1024 x 1024"
        return f"{self.processor}, {threads}, torch {self.torch}, {peak}"


class Table(NamedTuple):
    """Shown on the console and in the report alike."""

    title: str
    note: str
    columns: list[str]
    rows: list[list[str]]


class Expectation(NamedTuple):
    what: str
    at_least: bool
    bound: float
    measured: float | None

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        reached = self.measured >= self.bound if self.at_least else self.measured <= self.bound
        return "reached" if reached else "NOT reached"


def expectations(results: Results) -> Iterator[Expectation]:
    """What the forms were designed to reach: forward+backward, 4 heads."""

    def slower(contestant: str, than: str, case: Case) -> float | None:
        return results.slower(contestant, than, case, BACKWARD)

    for (r, f), bound in {(6, 3): 100, (8, 16): 18, (16, 32): 7}.items():
        measured = slower("literal", "auto", Case(r, f, 4, 2048))
        yield Expectation(f"literal / auto, ({r},{f}), T = 2048", True, bound, measured)
    for (r, f, length), bound in {(6, 3, 2048): 12, (8, 16, 2048): 2, (6, 3, 8192): 30, (8, 16, 8192): 5}.items():
        measured = slower("SDPA", "auto", Case(r, f, 4, length))
        yield Expectation(f"SDPA / auto, ({r},{f}), T = {length}", True, bound, measured)
    case = Case(16, 32, 4, 2048)
    yield Expectation("auto / SDPA, (16,32), T = 2048", False, 1.3, slower("auto", "SDPA", case))
    for r, f in ((6, 3), (8, 16), (16, 32)):
        measured = growth(results, Case(r, f, 4, 8192), BACKWARD)
        yield Expectation(f"auto, T = 8192 / auto, T = 2048, ({r},{f})", False, 4.5, measured)
    case = Case(8, 16, 4, 8192)
    ours, theirs = (results.cost(name, case, BACKWARD) for name in ("auto", "SDPA"))
    share = None if ours is None or theirs is None else ours.megabytes / theirs.megabytes
    yield Expectation("peak memory, auto / SDPA, (8,16), T = 8192", False, 1.0, share)
    for case in results.cases(matches=1):
        if case.T in (2, 64) and case.heads == 4:
            what = f"auto / SDPA, ({case.r},{case.f}), T = {case.T}, batch {case.batch}"
            yield Expectation(what, False, 1.5, slower("auto", "SDPA", case))
    case = Case(8, 16, 4, 2048)
    yield Expectation("auto / fixed roles, (8,16), T = 2048", True, 5, slower("auto", "fixed roles", case))


def growth(results: Results, case: Case, mode: str) -> float | None:
    """Time of the automatic form over that for a quarter of the length."""
    shorter = Case(case.r, case.f, case.heads, case.T // 4)
    long, short = (results.cost("auto", x, mode) for x in (case, shorter))
    return None if long is None or short is None else long.milliseconds / short.milliseconds


def tables(results: Results) -> list[Table]:
    found = [
        _expectation_table(results),
        *(_ratio_table(results, peer, mode) for mode in MODES for peer in PEERS),
        _growth_table(results),
        _conjunction_table(results),
        *(_memory_table(results, mode) for mode in MODES),
        _skipped_table(results),
    ]
    return [table for table in found if table.rows]


def _expectation_table(results: Results) -> Table:
    rows = [
        [x.what, f"{'at least' if x.at_least else 'at most'} {x.bound:g}", _number(x.measured), x.verdict]
        for x in expectations(results)
    ]
    note = "Ratios of time unless they say memory; forward+backward, 4 heads, one sequence where no batch is given."
    return Table("Expectations", note, ["ratio", "expected", "measured", "verdict"], rows)


def _ratio_table(results: Results, peer: str, mode: str) -> Table:
    rows = []
    for case in results.cases(matches=1):
        ratios = [_number(results.slower(peer, form, case, mode)) for form in FORMS]
        rows.append([*_case(case), _milliseconds(results.cost(peer, case, mode)), *ratios])
    note = f"Time of {peer} over the time of each form: above 1 the form is faster. A dash: skipped, see the end."
    return Table(f"Time against {peer}, {mode}", note, [*_CASE, f"{peer}, ms", *FORMS], rows)


def _growth_table(results: Results) -> Table:
    rows = []
    for case in results.cases(matches=1):
        found = [growth(results, case, mode) for mode in MODES]
        if case.T == 8192 and None not in found:
            rows.append([f"({case.r},{case.f})", str(case.heads), *map(_number, found)])
    note = "Time at T = 8192 over time at T = 2048, automatic form: 4 is linear, 16 is quadratic."
    return Table("Growth", note, ["(r,f)", "heads", *MODES], rows)


def _conjunction_table(results: Results) -> Table:
    forms = ("parallel", "chunked", "auto")
    rows = []
    for case in results.cases(matches=2):
        for mode in MODES:
            costs = [results.cost(form, case, mode) for form in forms]
            times = [_milliseconds(cost) for cost in costs]
            sizes = [_megabytes(cost) for cost in costs]
            rows.append([f"({case.r},{case.f})", str(case.T), mode, *times, *sizes])
    columns = ["(r,f)", "T", "mode", *(f"{form}, ms" for form in forms), *(f"{form}, MB" for form in forms)]
    return Table("Conjunction of two matches", "4 heads, one sequence.", columns, rows)


def _memory_table(results: Results, mode: str) -> Table:
    names = (*FORMS, *PEERS)
    rows = []
    for case in results.cases(matches=1):
        costs = [results.cost(name, case, mode) for name in names]
        rows.append([*_case(case), *(_megabytes(cost) for cost in costs)])
    kept = ", what is kept for the backward and the gradients included" if mode == BACKWARD else ""
    note = f"Megabytes (10^6 bytes) above the inputs, at their highest{kept}."
    return Table(f"Peak memory, {mode}", note, [*_CASE, *names], rows)


def _skipped_table(results: Results) -> Table:
    rows = [[name, str(case), mode, reason] for (name, case, mode), reason in results.skipped.items()]
    note = "Going by what the same contestant took for a shorter sequence or a single one."
    return Table("Skipped", note, ["contestant", "case", "mode", "reason"], rows)


_WORDS = {"ratio", "verdict", "mode", "contestant", "case", "reason"}  # columns that align left
_CASE = ["(r,f)", "heads", "T", "batch"]


def _case(case: Case) -> list[str]:
    return [f"({case.r},{case.f})", str(case.heads), str(case.T), str(case.batch)]


def _milliseconds(cost: Cost | None) -> str:
    return _number(None if cost is None else cost.milliseconds)


def _megabytes(cost: Cost | None) -> str:
    return _number(None if cost is None else cost.megabytes)


def _number(value: float | None) -> str:
    """Three significant digits, but at most four decimals and never an exponent.

    >>> _number(0.01234), _number(1.234), _number(1234.5), _number(None)
    ('0.0123', '1.23', '1234', '-')
    """
    if value is None:
        return "-"
    digits = 4 if value <= 0 else 2 - floor(log10(value))
    return f"{value:.{min(4, max(0, digits))}f}"


def show(results: Results, machine: Machine, console: Console) -> None:
    wide = console if console.is_terminal else Console(width=150)  # a file has no edge to wrap at
    for table in tables(results):
        shown = RichTable(title=table.title, caption=table.note, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in table.columns:
            shown.add_column(column, justify="left" if column in _WORDS else "right")
        for row in table.rows:
            shown.add_row(*(_STYLE.get(entry, entry) for entry in row))
        wide.print(shown)
    wide.print(f"{machine}{_QUICK if machine.quick else ''}", highlight=False)


_STYLE = {"reached": "[green]reached[/]", "NOT reached": "[red]NOT reached[/]"}
_QUICK = ". A quick trial: few rounds, short sequences"


def write_report(results: Results, machine: Machine, path: Path, *, figure: str) -> None:
    lines = ["# Speed and memory of TPR-Attention", f"{machine}{_QUICK if machine.quick else ''}.", *METHOD]
    lines.append(f"![Time against the length of the sequence]({figure})")
    for table in tables(results):
        rules = ["---" if column in _WORDS else "---:" for column in table.columns]
        rows = [f"| {' | '.join(row)} |" for row in (table.columns, rules, *table.rows)]
        lines += [f"## {table.title}", table.note, "\n".join(rows)]
    path.write_text("\n\n".join(lines) + "\n")


def draw(results: Results, machine: Machine, path: Path) -> None:
    """Time of forward+backward against T: one panel for each (r, f), one sequence, 4 heads."""
    cases = [case for case in results.cases(matches=1) if case.heads == 4 and case.batch == 1]
    shapes = list(dict.fromkeys((case.r, case.f) for case in cases))
    figure = Figure(figsize=(3.7 * len(shapes), 4.2), layout="constrained")
    panels = figure.subplots(1, len(shapes), sharex=True, sharey=True, squeeze=False)[0]
    lengths = sorted({case.T for case in cases})
    for panel, (r, f) in zip(panels, shapes, strict=True):
        for name, (colour, marker) in LINES.items():
            costs = {case.T: results.cost(name, case, BACKWARD) for case in cases if (case.r, case.f) == (r, f)}
            measured = {length: cost.milliseconds for length, cost in costs.items() if cost is not None}
            panel.plot(list(measured), list(measured.values()), color=colour, marker=marker, markersize=4.5, label=name)
        panel.set(xscale="log", yscale="log", title=f"r = {r}, f = {f}", xlabel="objects T")
        panel.set_xticks(lengths, [str(length) for length in lengths])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.grid(True, color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("forward + backward, ms")
    panels[0].yaxis.set_major_formatter("{x:g}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(LINES), frameon=False)
    threads = f"{machine.threads} thread{'s' if machine.threads > 1 else ''}"
    figure.suptitle(f"Time of one sequence, 4 heads, {threads}", fontsize=11)
    figure.savefig(path, dpi=160)
