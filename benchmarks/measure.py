"""Time and peak memory of a call on the CPU, and what is known of the machine."""

import csv
import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch
from torch.profiler import RecordScope

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler announces each start and stop on stderr otherwise

Call = Callable[[], object]
BACKWARD, FORWARD = MODES = ("forward+backward", "forward")

_SAMPLE = 0.02  # seconds; shorter calls are repeated until they fill it, so that the clock's grain does not matter


@dataclass(frozen=True)
class Case:
    """One point of the grid."""

    r: int
    f: int
    heads: int
    T: int
    batch: int = 1
    matches: int = 1

    def __str__(self) -> str:
        batch = f", {self.batch} sequences" if self.batch > 1 else ""
        matches = f", {self.matches} matches" if self.matches > 1 else ""
        return f"({self.r},{self.f}), {self.heads} heads, T = {self.T}{batch}{matches}"


@dataclass(frozen=True)
class Cost:
    milliseconds: float
    megabytes: float


@dataclass
class Results:
    """What was measured, and what was not and why."""

    costs: dict[tuple[str, Case, str], Cost] = field(default_factory=dict)
    skipped: dict[tuple[str, Case, str], str] = field(default_factory=dict)

    def cost(self, contestant: str, case: Case, mode: str) -> Cost | None:
        return self.costs.get((contestant, case, mode))

    def slower(self, contestant: str, than: str, case: Case, mode: str) -> float | None:
        """How many times as long one takes as another; None where one of them was not measured."""
        slow, fast = self.cost(contestant, case, mode), self.cost(than, case, mode)
        return None if slow is None or fast is None else slow.milliseconds / fast.milliseconds

    def cases(self, *, matches: int) -> list[Case]:
        return list(dict.fromkeys(case for _, case, _ in self.costs if case.matches == matches))

    def write(self, path: Path) -> None:
        columns = ["contestant", *(x.name for x in fields(Case)), "mode", *(x.name for x in fields(Cost))]
        with path.open("w", newline="") as file:
            rows = csv.DictWriter(file, columns, lineterminator="\n")
            rows.writeheader()
            for (contestant, case, mode), cost in self.costs.items():
                numbers = {name: f"{value:.6g}" for name, value in asdict(cost).items()}
                rows.writerow({"contestant": contestant, **asdict(case), "mode": mode, **numbers})


def shortest(calls: Mapping[str, Call], *, rounds: int, budget: float) -> dict[str, float]:
    """Seconds of one call of each: the minimum over rounds in which all take turns.

    Who would exceed `budget` seconds sits out, so that a very slow one is called only once.
    """
    gc.collect()
    best = {name: _seconds(call, 1) for name, call in calls.items()}
    spent = dict(best)
    repeats = {name: max(1, round(_SAMPLE / seconds)) for name, seconds in best.items()}
    for _ in range(rounds):
        for name, call in calls.items():
            if spent[name] + repeats[name] * best[name] <= budget:
                seconds = _seconds(call, repeats[name])
                spent[name] += repeats[name] * seconds
                best[name] = min(best[name], seconds)
    return best


def _seconds(call: Call, repeats: int) -> float:
    gc.disable()  # as timeit does: a collection would be charged to whoever happens to run
    try:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats
    finally:
        gc.enable()


def peak_bytes(call: Call) -> int:
    """The most that torch's allocator held during the call, above what it held at the start.

    The profiler reports every allocation (positive) and release (negative) in order; the peak is the highest running
    sum. What a matrix-product library allocates by itself is not seen.
    """
    profile = torch.autograd.profiler.profile(use_kineto=True, profile_memory=True)
    config, activities = profile.config(), profile.kineto_activities
    torch.autograd._prepare_profiler(config, activities)
    # `with profile` sees the same but records every operation too, which takes minutes for a loop over positions
    torch.autograd._enable_profiler(config, activities, {RecordScope.USER_SCOPE})
    try:
        kept = call()  # until the end, as a caller would
    finally:
        recorded = torch.autograd._disable_profiler()
    del kept
    level = peak = 0
    for event in recorded.events():
        if event.name() == "[memory]":
            level += event.nbytes()
            peak = max(peak, level)
    return peak


def check_peak_bytes() -> None:
    """Fail if `peak_bytes` does not report known allocations."""
    entries = 1 << 20

    def three_of_which_one_goes_early() -> object:
        first = torch.empty(entries)
        del first
        return torch.empty(entries), torch.empty(entries)

    def three_of_which_one_goes_late() -> object:
        kept = [torch.empty(entries) for _ in range(3)]
        return kept[1:]

    x = torch.ones(entries, requires_grad=True)
    upstream = torch.ones(entries)

    def saved_result_and_gradient() -> object:  # exp keeps its result; nothing else but the gradient is as large
        return torch.autograd.grad(x.exp(), x, upstream)

    known = ((three_of_which_one_goes_early, 2), (three_of_which_one_goes_late, 3), (saved_result_and_gradient, 2))
    for call, tensors in known:
        expected, found = tensors * entries * 4, peak_bytes(call)
        if found != expected:
            raise RuntimeError(f"peak memory of {call.__name__}: expected {expected} bytes, the profiler saw {found}")


def matmul_gflops(size: int = 1024) -> float:
    """What this machine reaches, with the threads set, in a square float32 matrix product."""
    left, right = torch.ones(2, size, size)
    best = shortest({"product": lambda: left @ right}, rounds=10, budget=2.0)["product"]
    return 2 * size**3 / best / 1e9


def write_table(path: Path, title: str, said: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a page with one table, below what is said of it and of the machine; the page's text."""
    threads = torch.get_num_threads()
    machine = f"{processor()}, {threads} thread{'s' * (threads > 1)}, torch {torch.__version__}"
    table = [f"| {' | '.join(cells)} |" for cells in (columns, *rows)]
    table.insert(1, "|---" * len(columns) + "|")
    page = "\n".join([f"# {title}", "", f"{machine}; {said}", "", *table, ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)
    return page


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
