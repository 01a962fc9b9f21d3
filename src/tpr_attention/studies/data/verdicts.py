"""The paper's claim with its condition: at which numbers of training pairs it holds."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from tpr_attention.report.tables import Badge, Column, Table
from tpr_attention.studies.contestants import BASELINES, OURS, SPLITS, TESTS
from tpr_attention.studies.data.lowest import Point
from tpr_attention.studies.data.specs import SETTINGS, THIN
from tpr_attention.studies.paper.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    PARTLY,
    SUBSTANTIAL,
    UNKNOWN,
    badge_of,
    is_lower,
)
from tpr_attention.studies.study import Judged

__all__ = ["Count", "claim_table", "claim_words", "counts_of", "judged_of", "pattern_words"]

CELLS = len(SPLITS) * len(TESTS)
"""Cells of a setting."""
CLAIM_OF = dict(zip(SETTINGS, (claim for claim in CLAIMS if claim.setting and not claim.main), strict=True))
"""Interaction to the claim of the paper about it, over all splits."""
THIN_SIZES = THIN[1]
VERBS = {HOLDS: "holds", PARTLY: "holds in part", FAILS: "does not hold"}


class Count(NamedTuple):
    """In how many cells of a setting the claim is borne out, at one number of pairs."""

    favourable: int
    cells: int

    @property
    def badge(self) -> Badge:
        return badge_of(self.favourable, self.cells)


def counts_of(points: Sequence[Point]) -> dict[str | None, dict[int, Count]]:
    """The cells that speak for the claim and those that are stored, by setting and number of pairs.

    Without interaction, the loss must be lower than that of both baselines; with one, substantially lower.
    """
    found: dict[str | None, dict[int, Count]] = {}
    for interaction, name in ((one, one or "none") for one in SETTINGS):
        chosen = [point for point in points if point.panel.cell["interaction"] == name]
        for size in sorted({int(point.size) for point in chosen}):
            cells = [_is_favourable(point) for point in chosen if point.size == size]
            found.setdefault(interaction, {})[size] = Count(sum(cells), len(cells))
    return found


def _is_favourable(point: Point) -> bool:
    at_least = 1.0 if point.panel.cell["interaction"] == "none" else SUBSTANTIAL
    return all(is_lower(point.losses[OURS], point.losses[name], at_least) for name in BASELINES)


def judged_of(counts: Mapping[str | None, Mapping[int, Count]], section: str = "") -> Iterator[Judged]:
    """The verdicts for the map: at the numbers of pairs that are stored, and at those of the thin study.

    >>> [(one.condition, one.badge.word) for one in judged_of({})][:2]
    [('100 pairs', 'not run'), ('1,000 pairs', 'not run')]
    """
    sizes = sorted({*THIN_SIZES, *(size for by_size in counts.values() for size in by_size)})
    for interaction, claim in CLAIM_OF.items():
        for size in sizes:
            found = counts.get(interaction, {}).get(size)
            badge = found.badge._replace(note=_note(found)) if found else UNKNOWN
            is_whole = found is not None and found.cells == CELLS
            about = (claim.name, claim.says, f"{size:,} pairs", badge, section)
            yield Judged(*about, claim.setting, size, is_whole)


def _note(count: Count) -> str:
    missing = f"; {CELLS - count.cells} not run" if count.cells < CELLS else ""
    return f"{count.favourable} of {count.cells} cells{missing}"


def claim_words(counts: Mapping[str | None, Mapping[int, Count]]) -> Iterator[str]:
    """A sentence for each setting that is stored."""
    for interaction, by_size in counts.items():
        setting = f"With the {SETTINGS[interaction]} interaction" if interaction else "Without interaction"
        lower = "substantially lower" if interaction else "lower"
        verdicts = [(size, count.badge) for size, count in by_size.items()]
        few, many = (choose(count.cells for count in by_size.values()) for choose in (min, max))
        stored = f"{few} to {many}" if few < many else f"{many}"
        of = f" ({stored} of its {CELLS} cells are stored)" if few < CELLS else ""
        yield (
            f"{setting}, the claim that TPR-Attention's loss is {lower} than that of both baselines "
            f"{pattern_words(verdicts)}{of}."
        )


def pattern_words(verdicts: Sequence[tuple[int, Badge]]) -> str:
    """At which numbers of pairs a claim holds, holds in part or does not.

    >>> pattern_words([(30, HOLDS), (100, HOLDS), (300, PARTLY), (1000, FAILS), (3000, FAILS)])
    'holds up to 100 pairs, holds in part at 300, and does not hold from 1,000 on'
    >>> pattern_words([(30, FAILS), (100, HOLDS), (300, FAILS)])
    'does not hold at 30 and 300 pairs, and holds at 100'
    """
    groups = [(badge, [size for size, _ in group]) for badge, group in groupby(verdicts, lambda one: one[1])]
    if len(groups) == 1:
        ((badge, sizes),) = groups
        if len(sizes) == 1:
            return f"{VERBS[badge]} at {sizes[0]:,} pairs"
        every = "any" if badge == FAILS else "every"
        return f"{VERBS[badge]} at {every} number of pairs that was run, from {sizes[0]:,} to {sizes[-1]:,}"
    badges = list(dict.fromkeys(badge for badge, _ in groups))
    if len(badges) == len(groups):
        parts = [f"{VERBS[badge]} {_range(sizes, place, len(groups))}" for place, (badge, sizes) in enumerate(groups)]
    else:
        sizes_of = {badge: [size for size, one in verdicts if one == badge] for badge in badges}
        parts = [f"{VERBS[badge]} at {_listed([f'{size:,}' for size in sizes])}" for badge, sizes in sizes_of.items()]
    first, *others = parts
    return _listed([f"{first} pairs", *others], ", and ")


def _range(sizes: Sequence[int], place: int, groups: int) -> str:
    """Neighbouring sizes in words; those at an end are open."""
    if len(sizes) == 1:
        return f"at {sizes[0]:,}"
    if place == 0:
        return f"up to {sizes[-1]:,}"
    return f"from {sizes[0]:,} on" if place == groups - 1 else f"from {sizes[0]:,} to {sizes[-1]:,}"


def _listed(parts: Sequence[str], last: str = " and ") -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def claim_table(counts: Mapping[str | None, Mapping[int, Count]]) -> Table:
    """The verdict at each number of pairs, with the cells in favour."""
    sizes = sorted({size for by_size in counts.values() for size in by_size})
    rows = []
    for interaction, by_size in counts.items():
        found = [by_size.get(size) for size in sizes]
        at = [one.badge._replace(note=f"{one.favourable} of {one.cells}") if one else None for one in found]
        rows.append([interaction or "none", "substantially lower" if interaction else "lower", *at])
    columns = [Column("interaction"), Column("the loss is"), *(Column(f"{size:,} pairs", "badge") for size in sizes)]
    caption = (
        "The paper's claim by number of training pairs: in how many cells TPR-Attention's loss is lower than that of "
        f"both baselines. Lower: the 95 % interval of each ratio is above 1; substantially: above {SUBSTANTIAL:g}. "
        "It holds if every cell speaks for it, in part if at least half do."
    )
    return Table("data-claim", caption, columns, rows, "open")
