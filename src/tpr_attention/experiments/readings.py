"""What the paper leaves open, and what else it could mean: one choice changed at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import pi

from tpr_attention.experiments.spec import RunSpec

__all__ = ["READINGS", "Reading"]

Changes = Mapping[str, object]


@dataclass(frozen=True)
class Reading:
    """Another way to read the paper.

    Args:
        title: What is different, in words.
        decision: The decision record that says why we read it as we do.
        task: Fields of a spec that change the task, for contestants and floors.
        training: Fields of a spec that change how contestants are trained.
        models: Contestants that are replaced by others.
        options: Further options of a contestant's model.
        with_heads: Whether models that replace others are told the number of heads, also in place of one without.
        interactions: The settings in which it makes a difference; elsewhere nothing is changed.
    """

    title: str
    decision: str = ""
    task: Changes = field(default_factory=dict)
    training: Changes = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Changes] = field(default_factory=dict)
    with_heads: bool = False
    interactions: tuple[str | None, ...] = (None, "scale_pos", "shape_col")

    def of_floor(self, spec: RunSpec) -> RunSpec:
        """A floor's spec under this reading."""
        return replace(spec, **self.task) if spec.interaction in self.interactions else spec  # type: ignore[arg-type]

    def of(self, spec: RunSpec, heads: int) -> RunSpec:
        """A contestant's spec under this reading."""
        if spec.interaction not in self.interactions:
            return spec
        options = dict(spec.options) | dict(self.options.get(spec.model, {}))
        model = self.models.get(spec.model, spec.model)
        if self.with_heads and model != spec.model:
            options["num_heads"] = heads
        return replace(spec, model=model, options=options, **self.task, **self.training)  # type: ignore[arg-type]


INTERACTING = ("scale_pos", "shape_col")

READINGS: dict[str, Reading] = {
    "ours": Reading("as we read the paper"),
    "positions": Reading("positions from 0 to 1 instead of -1 to 1", "0007", {"position_range": (0.0, 1.0)}),
    "angles": Reading(
        "scale angles from 0 to pi instead of 0 to pi/2", "0008", {"scale_angles": tuple(pi * k / 5 for k in range(6))}
    ),
    "mixing": Reading(
        "mixing tensor uniform instead of normal", "0009", {"mixing": "uniform"}, interactions=("shape_col",)
    ),
    "slot-action": Reading(
        "an action may also ask for the interaction's slot",
        "0010",
        {"interaction_action": True},
        interactions=INTERACTING,
    ),
    "target": Reading("in tests 1 and 2 the answer is held out, too", "0011", {"target_of_tests": True}),
    "change": Reading("the acted factor must differ between the two objects", "0011", {"require_change": True}),
    "random-start": Reading("a random start instead of the exact copy", "0012", training={"start_at_copy": False}),
    "role-tokens": Reading(
        "classical attention sees roles as tokens instead of objects", "0013", models={"classical": "classical-roles"}
    ),
    "matched": Reading(
        "baselines with about as many parameters as TPR-Attention",
        "0014",
        models={"classical": "classical-matched", "resnet": "resnet-matched"},
        with_heads=True,
    ),
    "fixed-ids": Reading("ids given instead of learned", "0016", options={"tpr": {"learn_ids": False}}),
    "factors-only": Reading(
        "the loss counts the factors' roles only, not the interaction's slot",
        "0017",
        training={"loss_roles": "factors"},
        interactions=INTERACTING,
    ),
    "one-rate": Reading("learning rate 0.01 for all, without a search", "0018", training={"learning_rate": 0.01}),
    "low-rate": Reading("learning rate 0.001 for all, without a search", "0018", training={"learning_rate": 0.001}),
}
"""Name to reading; the first is the one that all studies use."""
