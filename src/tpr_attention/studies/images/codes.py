"""Which codes the clean-up of the main model found, read from stored weights."""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float

from tpr_attention.report.results import Results
from tpr_attention.report.tables import Column, Table
from tpr_attention.studies.images.values import finished
from tpr_attention.studies.kinds import linked
from tpr_attention.studies.study import Setup

__all__ = ["code_table", "codes_in"]

FAR = 1e6
"""A code that is not used: `FAR` of the memory, which needs torch."""
MEMORY = "memory."
CODES = ("shapes", "log_scales", "angles", "places", "colours", "is_used")
"""What the table needs of a memory; a few kilobytes."""


def codes_in(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The codes among the weights of a model, under the names that they have there; nothing if it has no memory."""
    names = [MEMORY + name for name in CODES]
    return {name: weights[name] for name in names} if all(name in weights for name in names) else {}


def code_table(results: Results, setup: Setup) -> Iterator[Table]:
    """The codes of each seed on the union of the splits whose weights are stored."""
    series = finished("main", results, setup).get("union")
    rows = []
    for spec in series.specs if series else ():
        found = codes_in(results.store.weights(spec.digest))
        if found:
            rows.append([linked(spec.seed, spec), *_row({name: found[MEMORY + name] for name in CODES})])
    columns = [Column("seed", "exact"), Column("shapes", "count"), Column("scales", "count")]
    columns += [Column("fewest scales of a shape", "count"), Column("angles", "count"), Column("colours", "count")]
    columns += [Column("places across", "count"), Column("places down", "count")]
    columns += [Column("degrees between angles", "exact"), Column("pixels between places across", "exact")]
    columns += [Column("pixels between places down", "exact"), Column("first place across", "exact")]
    columns += [Column("first place down", "exact"), Column("codes are used", "yes_no")]
    if rows:
        caption = (
            "The codes that the clean-up of the main model found on the union of the splits, without labels. Right "
            "are 3 shapes with 6 scales each, 9 angles 360/39 = 9.2308 degrees apart, 3 colours, and 32 places across "
            "and down, 32/31 = 1.0323 pixels apart from 16 on. Spacings are means. Scales: of the shape with the most."
        )
        yield Table("images-codes", caption, columns, rows)


def _row(codes: Mapping[str, np.ndarray]) -> list[object]:
    """How many codes of each kind there are, and how far they are apart."""
    shapes = int((codes["shapes"][:, 0] < FAR).sum())
    scales = (codes["log_scales"][:shapes] < FAR).sum(1).tolist()
    colours = int((codes["colours"][:, 0] < FAR).sum())
    angles, across, down = (row[row < FAR] for row in (codes["angles"], *codes["places"]))
    counts = shapes, max(scales, default=0), min(scales, default=0), len(angles), colours, len(across), len(down)
    apart = _apart(np.rad2deg(angles)), _apart(across), _apart(down)
    return [*counts, *apart, _first(across), _first(down), bool(codes["is_used"])]


def _apart(codes: Float[np.ndarray, "n"]) -> float | None:
    """The mean distance from one to the next; they are in order."""
    return round(float(np.diff(codes.astype(np.float64)).mean()), 4) if len(codes) > 1 else None


def _first(codes: Float[np.ndarray, "n"]) -> float | None:
    return round(float(codes[0]), 4) if len(codes) else None
