"""The first screen of a report: a map of the paper's claims, and three sentences on it."""

import re
from collections.abc import Iterator, Sequence

from tpr_attention.report.document import Block, Text
from tpr_attention.report.tables import Badge, Column, Linked, Table
from tpr_attention.studies.study import Judged
from tpr_attention.studies.words import listed

__all__ = ["first_screen", "verdict_map", "verdict_words"]

MOST_SENTENCES = 3
MOST_NUMBERS = 2
"""In a sentence."""
NUMBER = re.compile(r"\d[\d,.]*")
CLAIM = "The paper's claim of a lower loss than both baselines, substantially lower where factors interact, holds"
MIXED = "does not hold, or only in part,"
PAST = "What goes past the paper was not run: `tpr-attention reproduce --studies beyond laws` trains it."
NOTHING = "No claim of the paper can be judged yet: `tpr-attention reproduce` trains what is missing."


def first_screen(judged: Sequence[Judged], past: Sequence[str]) -> list[Block]:
    """The map and three sentences: where the claim holds, where it does not, and what goes past the paper.

    Args:
        past: Sentences on studies past the paper; without a claim to judge they are all that is said.
    """
    if not judged:
        return [*map(Text, past[:MOST_SENTENCES])]
    return [verdict_map(judged), *map(Text, verdict_words(judged)), Text(past[0] if past else PAST)]


def verdict_map(judged: Sequence[Judged]) -> Table:
    """Claims by condition. Cells lead to the evidence; a claim that a condition does not touch has none there."""
    conditions = list(dict.fromkeys(one.condition for one in judged))
    rows = []
    for claim, says in dict.fromkeys((one.claim, one.says) for one in judged):
        found = {one.condition: Linked(one.badge, one.section) for one in judged if one.claim == claim}
        rows.append([claim, says, *map(found.get, conditions)])
    columns = [Column("claim of the paper"), Column("it says"), *(Column(one, "badge") for one in conditions)]
    caption = (
        "Where the paper's claims hold. A cell is one task and one test; a claim holds if all cells speak for it, in "
        "part if at least half do."
    )
    return Table("verdict-map", caption, columns, rows, "open", latex=True, is_map=True)


def verdict_words(judged: Sequence[Judged]) -> Iterator[str]:
    """Where the paper's main claim holds, and where it does not, in two sentences; what was not run is in neither."""
    about = [one for one in judged if one.setting]
    run = [one for one in about if _is_run(one.badge)]
    if not run:
        yield NOTHING
        return
    scope = "" if all(one.is_whole for one in about) else ", as far as it was run,"
    yield f"{CLAIM}{scope} {listed(_places(run, ('good',), 'every')) or 'nowhere'}."
    tones = {one.badge.tone for one in run} - {"good"}
    if not tones:
        settings = dict.fromkeys(one.setting for one in about)
        missing = [setting for setting in settings if setting not in {one.setting for one in run}]
        yield f"Nothing that was run speaks against it{f'; it was not run {listed(missing)}' if missing else ''}."
        return
    verb = "does not hold" if tones == {"bad"} else "holds only in part" if tones == {"fair"} else MIXED
    yield f"It {verb} {listed(_places(run, ('fair', 'bad'), 'any'))}."


def _is_run(badge: Badge) -> bool:
    return badge.tone != "none"


def _places(run: Sequence[Judged], tones: Sequence[str], every: str) -> list[str]:
    """The settings with one of these verdicts, and at which numbers of pairs; at most two numbers in all."""
    places: list[str] = []
    for setting in dict.fromkeys(one.setting for one in run):
        here = [one for one in run if one.setting == setting]
        if any(one.badge.tone in tones for one in here):
            exact, vague = (f"{setting}{_range(here, tones, every, is_exact=kind)}" for kind in (True, False))
            count = sum(len(NUMBER.findall(place)) for place in (*places, exact))
            places.append(exact if count <= MOST_NUMBERS else vague)
    return places


def _range(here: Sequence[Judged], tones: Sequence[str], every: str, *, is_exact: bool) -> str:
    """At which numbers of pairs a setting has one of these verdicts; nothing if that is so wherever it was run.

    Args:
        every: The word for all numbers: every, or any.
    """
    sizes = sorted((one.pairs, one.badge.tone in tones) for one in here if one.pairs is not None)
    figures = [one.badge.tone in tones for one in here if one.pairs is None]
    chosen = [size for size, is_chosen in sizes if is_chosen]
    if len(chosen) == len(sizes) and all(figures):
        return f" at {every} number of pairs that was run" if len(sizes) > 1 else ""
    where = "in the paper's figures" if all(figures) else "in a part of the paper's figures"
    if not chosen:
        return f" {where}"
    said = _sizes([size for size, _ in sizes], chosen, every, is_exact=is_exact)
    return f" {said} (also {where})" if any(figures) else f" {said}"


def _sizes(sizes: Sequence[int], chosen: Sequence[int], every: str, *, is_exact: bool) -> str:
    """Some of the numbers of pairs in words.

    >>> _sizes([30, 100, 300], [30, 100], "every", is_exact=True)
    'up to 100 pairs'
    >>> _sizes([30, 100, 300], [300], "any", is_exact=True), _sizes([30, 100, 300], [300], "any", is_exact=False)
    ('at 300 pairs', 'with many pairs')
    """
    if len(chosen) == len(sizes):
        return f"at {every} other number of pairs that was run" if len(sizes) > 1 else f"at {sizes[0]:,} pairs"
    is_low, is_high = [*chosen] == [*sizes[: len(chosen)]], [*chosen] == [*sizes[-len(chosen) :]]
    if not is_exact or not (is_low or is_high or len(chosen) == 1):
        return "with few pairs" if is_low else "with many pairs" if is_high else "at some numbers of pairs"
    if len(chosen) == 1:
        return f"at {chosen[0]:,} pairs"
    return f"up to {chosen[-1]:,} pairs" if is_low else f"from {chosen[0]:,} pairs on"
