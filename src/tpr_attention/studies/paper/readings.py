"""What the paper leaves open, and what else it could mean: one choice changed at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import pi

from tpr_attention.training.spec import RunSpec

__all__ = ["DEFAULT", "READINGS", "Reading"]

Changes = Mapping[str, object]
INTERACTING = ("scale_pos", "shape_col")


@dataclass(frozen=True)
class Reading:
    """Another way to read the paper.

    Args:
        title: What is different, in words.
        decision: The decision record that says why we read it as we do.
        changes: Keys of a spec; floors take only those of the task.
        models: Contestants that are replaced by others.
        options: Further options of a contestant's model.
        with_heads: Whether models that replace others are told the number of heads, also in place of one without.
        interactions: The settings in which it makes a difference; elsewhere nothing is changed.
    """

    title: str
    decision: str = ""
    changes: Changes = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Changes] = field(default_factory=dict)
    with_heads: bool = False
    interactions: tuple[str | None, ...] = (None, *INTERACTING)

    def of_floor(self, spec: RunSpec) -> RunSpec:
        """A floor's spec under this reading."""
        task = {key: value for key, value in self.changes.items() if key.startswith("task.")}
        return spec.changed(task) if self._matters(spec) and task else spec

    def of(self, spec: RunSpec, heads: int) -> RunSpec:
        """A contestant's spec under this reading."""
        name = spec.model.name
        model = self.models.get(name, name)
        changes = {**self.changes, **self.options.get(name, {})}
        if not self._matters(spec) or not (changes or model != name):
            return spec
        if model != name:
            changes["model"] = model
            if self.with_heads or "num_heads" in spec.model.options:
                changes["model.num_heads"] = heads
        return spec.changed(changes)

    def _matters(self, spec: RunSpec) -> bool:
        return spec.task.options["interaction"] in self.interactions


DEFAULT = "default"

READINGS: dict[str, Reading] = {
    DEFAULT: Reading("as the decision records say"),
    "positions": Reading("positions from 0 to 1 instead of -1 to 1", "0007", {"task.position_range": (0.0, 1.0)}),
    "angles": Reading(
        "scale angles from 0 to pi instead of 0 to pi/2",
        "0008",
        {"task.scale_angles": tuple(pi * k / 5 for k in range(6))},
    ),
    "mixing": Reading(
        "mixing tensor uniform instead of normal", "0009", {"task.mixing": "uniform"}, interactions=("shape_col",)
    ),
    "slot-action": Reading(
        "an action may also ask for the interaction's slot",
        "0010",
        {"task.interaction_action": True},
        interactions=INTERACTING,
    ),
    "target": Reading(
        "in `ood_reference` and `ood_transform` the answer is held out, too", "0011", {"task.target_of_tests": True}
    ),
    "change": Reading("the acted factor must differ between the two objects", "0011", {"task.require_change": True}),
    "random-start": Reading("a random start instead of the exact copy", "0012", {"model.start_at_copy": False}),
    "role-tokens": Reading(
        "classical attention sees roles as tokens instead of objects", "0013", models={"classical": "classical-roles"}
    ),
    "matched": Reading(
        "baselines with about as many parameters as TPR-Attention",
        "0014",
        models={"classical": "classical-matched", "resnet": "resnet-matched"},
        with_heads=True,
    ),
    "fixed-ids": Reading("ids given instead of learned", "0016", options={"tpr": {"model.learn_ids": False}}),
    "factors-only": Reading(
        "the loss counts the factors' roles only, not the interaction's slot",
        "0017",
        {"task.scored": "factors"},
        interactions=INTERACTING,
    ),
    "one-rate": Reading("learning rate 0.01 for all, without a search", "0018", {"training.learning_rate": 0.01}),
    "low-rate": Reading("learning rate 0.001 for all, without a search", "0018", {"training.learning_rate": 0.001}),
    **{
        f"pairs-{pairs}": Reading(
            f"{pairs:,} training pairs instead of 50,000", "0017", {"training.train_examples": pairs}
        )
        for pairs in (100, 300, 1_000, 5_000)
    },
    **{
        f"steps-{steps}": Reading(f"{steps:,} steps of training", "0017", {"training.steps": steps})
        for steps in (300, 1_000, 3_000)
    },
}
"""Name to reading; all studies use the default."""
