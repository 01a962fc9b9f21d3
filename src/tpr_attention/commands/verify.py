"""`tpr-attention verify`: whether every stored file is what was written, and whether two stores have the same bits."""

from rich.console import Console

from tpr_attention.console import counted
from tpr_attention.runner.checkpoints import Checkpoints
from tpr_attention.runner.store import CURVE, WEIGHTS, Store

__all__ = ["command"]

SAME = ("version_torch", "device", "processor", "threads", "compiler_found", "trained_together")
"""What must be the same for two trainings to give the same bits."""


def command(store: str, against: str | None, console: Console) -> int:
    """List each file that is missing, torn or changed; compare with another store if one is given."""
    runs = Store(store)
    found = [*runs.faults(), *Checkpoints(runs).faults()]
    for path, fault in found:
        console.print(f"{path}: {fault}", style="red", highlight=False, markup=False, soft_wrap=True)
    failures, torn = runs.failures()
    if torn:
        console.print(f"{torn} torn lines in the record of failures", highlight=False)
    if failures:
        console.print(f"{len(failures)} failures on record: failures.jsonl", highlight=False)
    count = sum(1 for _ in runs)
    state = counted(len(found), "fault") if found else "all files are as written"
    console.print(f"{counted(count, 'run')}: {state}", highlight=False)
    if found:
        console.print("delete the folder of a run to have it trained again", highlight=False)
    differ = _compare(runs, Store(against), console) if against is not None and not found else 0
    return 1 if found or differ else 0


def _compare(one: Store, other: Store, console: Console) -> int:
    """How many runs that both stores have differ although they should not."""
    common = [digest for digest in one if digest in other]
    differ, reasons = [], dict[str, int]()
    for digest in common:
        if all(
            (one.path / digest / name).read_bytes() == (other.path / digest / name).read_bytes()
            for name in (CURVE, WEIGHTS)
        ):
            continue
        mine, theirs = one.provenance(digest), other.provenance(digest)
        unlike = [f"{key} {mine.get(key)} and {theirs.get(key)}" for key in SAME if mine.get(key) != theirs.get(key)]
        if unlike:
            reasons["; ".join(unlike)] = reasons.get("; ".join(unlike), 0) + 1
        else:
            differ.append(digest)
    equal = len(common) - len(differ) - sum(reasons.values())
    said = f"{len(common)} runs in both: {equal} with the same bits, {len(differ)} different"
    console.print(said, highlight=False, markup=False)
    for why, number in reasons.items():
        console.print(f"{number} not comparable: {why}", highlight=False, markup=False, soft_wrap=True)
    for digest in differ:
        console.print(f"{digest}: differs", style="red", highlight=False)
    return len(differ)
