"""Runs of studies that nobody trained: what they end with is a function of spec and condition."""

import re
from unittest import mock

import numpy as np

from tpr_attention.report.document import Document, Section, Text
from tpr_attention.report.tables import Table
from tpr_attention.runner.store import Store
from tpr_attention.studies import STUDIES
from tpr_attention.studies.compose import compose
from tpr_attention.studies.contestants import TESTS
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point, group_label
from tpr_attention.training.spec import RunSpec

CONDITIONS = ("in_distribution", *TESTS)
ACTIONS = ("shape", "scale", "orientation", "position", "colour")
ROLES = (*ACTIONS, "shape_col")
NAMES = {
    "conditions": list(CONDITIONS),
    "metrics": ["loss", *ROLES],
    "groups": {"action": list(ACTIONS)},
    "axes": {"role": list(ROLES)},
}
SHARES = np.array([1.0, 0.5, 1.0, 1.0, 1.0, 1.5, 1.0])
"""The loss and the error of each role, as multiples of the loss."""
ENDS = {"tpr": 1e-3, "classical": 4e-3, "resnet": 2e-3, "linear-floor": 5e-4, "oracle": 0.0}


def loss(spec, condition):
    """TPR-Attention is lower without interaction, the ResNet with one; the linear floor has a loss only with one."""
    model, interacts = spec.model.name, spec.task.options.get("interaction") is not None
    end = ENDS.get(model, 1e-2) * (1 + spec.seed) * (interacts or model != "linear-floor")
    return end / 10 if model == ("resnet" if interacts else "tpr") else end


def _forget(descriptor):
    """Instead of `os.fsync`, which is nine tenths of the time: no machine is switched off here."""


@mock.patch("os.fsync", new=_forget)
def save(store: Store, specs, end=loss, weights=None, **provenance) -> None:
    """Add runs whose losses go from 1 to `end(spec, condition)`; for the action `shape` it is half as much more."""
    origin = {"seconds": 2.0, "parameters": 7, "commit": "abc", **provenance}
    for spec in specs:
        steps = spec.training.steps
        points = []
        for condition in CONDITIONS:
            last = end(spec, condition) * SHARES
            points += [Point("", 0, condition, None, (1.0,) * 7), Point("", steps, condition, None, tuple(last))]
            points.append(Point("", steps, condition, group_label("action", "shape"), tuple(1.5 * last)))
        stored = {"w": np.zeros(1)} if weights is None else weights(spec)
        store.save(spec, curve(points, NAMES["metrics"]), stored, origin, NAMES)


class Remembered(Store):
    """A store that keeps its runs in memory: reports of many parts of it read no files. Read what `Store` reads."""

    def __init__(self, path) -> None:
        super().__init__(path, create=True)
        self.runs = {}

    def __contains__(self, digest):
        return digest in self.runs

    def __iter__(self):
        return iter(sorted(self.runs))

    def save(self, spec, curve, weights, provenance, names):
        self.runs.setdefault(spec.digest, (spec, curve, dict(provenance), dict(names), dict(weights)))

    def spec(self, digest):
        return self.runs[digest][0]

    def check(self, digest):
        return self.runs[digest][0]

    def curve(self, digest):
        return self.runs[digest][1]

    def provenance(self, digest):
        return self.runs[digest][2]

    def names(self, digest):
        return self.runs[digest][3]

    def weights(self, digest):
        return self.runs[digest][4]

    def part(self, kept) -> "Remembered":
        """A store that has only some of its runs."""
        found = Remembered(self.path)
        found.runs = {spec.digest: self.runs[spec.digest] for spec in kept}
        return found


def plans_of(names, setup) -> list[RunSpec]:
    """The distinct runs of plans, as `reproduce --studies` takes their names."""
    plans = {name: plan for study in STUDIES.values() for name, plan in study.plans.items()}
    return list(dict.fromkeys(spec for name in names for spec in plans[name](setup)))


def sections(store, setup) -> dict[str, Section]:
    """The sections of a report by title."""
    return {section.title: section for section in compose(store, setup)[0].sections}


def texts(section) -> list[str]:
    """The paragraphs of a section."""
    return [block.text for block in section.blocks if isinstance(block, Text)]


def summary(document: Document) -> str:
    """All that is said, on the first screen and in sections: a paragraph a line."""
    return "\n".join(block.text for block in document.blocks if isinstance(block, Text))


def opening(document: Document) -> list[str]:
    """The sentences of the first screen."""
    return [block.text for block in document.opening if isinstance(block, Text)]


def rows(found, name: str) -> list[dict[str, str]]:
    """The rows of a table as texts by title, from sections or one of them."""
    among = [found] if isinstance(found, Section) else found.values()
    (table,) = (block for one in among for block in one.blocks if isinstance(block, Table) and block.name == name)
    return [dict(zip((column.title for column in table.columns), row, strict=True)) for row in table.texts()]


def is_broken(text: str) -> bool:
    """Whether a text has a NaN or an infinity in it."""
    return bool(re.search(r"\b(nan|inf)\b", text, re.IGNORECASE))
