"""The composition task (sec. 4): take the reference, replace one factor by the transform's."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from tpr_attention.functional.signature import choose
from tpr_attention.tasks.composition.encoding import Encoding
from tpr_attention.tasks.composition.factors import Factors, dsprites, substitute
from tpr_attention.tasks.composition.fillers import dsprites_fillers
from tpr_attention.tasks.composition.floors import floors, known_rows
from tpr_attention.tasks.composition.held_out import HeldOut, Split, expect_no_leak, find_split
from tpr_attention.tasks.composition.laws import encode_interaction
from tpr_attention.tasks.composition.pairs import CONDITIONS, Condition, Pairing, Pairs
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.tasks.composition.sprites import colour, render
from tpr_attention.tasks.task import Batch

__all__ = ["Composition", "DSpritesComposition", "dsprites_composition", "expect_every_action", "scored_roles"]

MOST_NOISE = 1e6


class Composition:
    """A task: pairs of factors under conditions, encoded as objects.

    A model is called as `model(reference, transform, action)`, where the action is a one-hot vector. Targets are
    encoded from substituted factors, so that a role that depends on several factors is right in them too.

    Args:
        noise: The standard deviation of normal noise on every number of the inputs; targets have none.
        scored: The roles that count in the loss, by name; None for all.
    """

    def __init__(
        self, encoding: Encoding, pairing: Pairing, noise: float = 0.0, scored: Collection[str] | None = None
    ) -> None:
        if not 0 <= noise <= MOST_NOISE:
            raise ValueError(f"noise: expected a number from 0 to {MOST_NOISE:g}, got {noise}")
        if encoding.grid != pairing.grid:
            raise ValueError("pairing: expected pairs of the encoding's grid")
        if "loss" in encoding.role_names:
            raise ValueError("roles: expected other names than 'loss', which is that of the loss")
        if scored is not None and not (scored and set(scored) <= set(encoding.role_names)):
            raise ValueError(f"scored: expected one or more of {list(encoding.role_names)}, got {list(scored)}")
        expect_no_leak(encoding, pairing.held_out)
        self.encoding, self.pairing, self.grid, self.noise = encoding, pairing, encoding.grid, noise
        self.num_actions, self.num_roles = len(self.grid.actions), encoding.num_roles
        self.filler_dim = encoding.filler_dim
        self.scored = tuple(scored is None or name in scored for name in encoding.role_names)

    @property
    def sizes(self) -> dict[str, int]:
        """What a model's constructor may ask for by name."""
        return {"num_actions": self.num_actions, "num_roles": self.num_roles, "filler_dim": self.filler_dim}

    @property
    def conditions(self) -> tuple[str, ...]:
        """The tests by name."""
        return tuple(name for name in self.pairing.conditions if name != "train")

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        """The actions."""
        return {"action": tuple(self.grid.actions)}

    @property
    def axis_names(self) -> dict[str, tuple[str, ...]]:
        """The roles."""
        return {"role": self.encoding.role_names}

    @property
    def stack_key(self) -> Hashable:
        """Equal for tasks whose batches have the same shapes and whose `measure` is the same function."""
        roles = None if self.encoding.one_hot else tuple(self.encoding.roles.flatten().tolist())
        return tuple(self.sizes.items()), self.conditions, self.scored, self.even_group, roles

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Batch:
        """A batch of independent pairs of one condition."""
        return self.observe(self.pairing.draw(condition, count, generator), generator, dtype)

    @property
    def even_group(self) -> str | None:
        """The actions, if all are equally likely in training."""
        return "action" if self.pairing.balance_actions else None

    def draw_evenly(
        self, condition: str, each: int, generator: torch.Generator, dtype: torch.dtype = torch.float32
    ) -> Batch:
        """As many pairs of each action, action after action."""
        expect_every_action(self.pairing, condition)
        return self.observe(self.pairing.draw_each(condition, each, generator), generator, dtype)

    def observe(self, pairs: Pairs, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Batch:
        """Pairs as objects, with noise if the task has any."""
        batch = self.encode(pairs, dtype)
        if not self.noise:
            return batch
        reference, transform, action = batch.inputs
        noisy = (
            objects + self.noise * torch.randn(objects.shape, generator=generator, dtype=dtype)
            for objects in (reference, transform)
        )
        return batch._replace(inputs=(*noisy, action))

    def encode(self, pairs: Pairs, dtype: torch.dtype = torch.float32) -> Batch:
        """Pairs as objects, and the action as a one-hot vector."""
        inputs = (
            self.encoding.encode(pairs.reference, dtype),
            self.encoding.encode(pairs.transform, dtype),
            torch.eye(self.num_actions, dtype=dtype)[pairs.action],
        )
        return Batch(inputs, self.encoding.encode(pairs.target, dtype), {"action": pairs.action})

    def measure(self, output: Tensor, batch: Batch) -> dict[str, Float[Tensor, "*n"]]:
        """The loss, a mean over the roles that count, and the mean squared error of the fillers of each role."""
        if output.shape != batch.target.shape:
            raise ValueError(
                f"output: expected the target's shape {list(batch.target.shape)}, got {list(output.shape)}"
            )
        error = output - batch.target
        fillers = self.encoding.unbind(error)
        squares = fillers.square().mean(-1)
        roles = dict(zip(self.encoding.role_names, squares.unbind(-1), strict=True))
        if all(self.scored):
            return {"loss": error.square().mean((-2, -1)), **roles}
        counted = torch.stack([squares[..., j] for j, counts in enumerate(self.scored) if counts], -1)
        # What an object has outside of all roles is zero in targets, and counts as further roles.
        further = self.num_roles - len(self.scored)
        outside = (error - self.encoding.bind(fillers)).square().mean(-1).sum(-1)
        return {"loss": (counted.sum(-1) + outside) / (counted.shape[-1] + further), **roles}

    measure_stack = measure
    """It takes any leading axes."""

    @torch.no_grad()
    def best_answer(
        self, reference: Float[Tensor, "n r f"], transform: Float[Tensor, "n r f"], action: Float[Tensor, "n a"]
    ) -> Float[Tensor, "n r f"]:
        """The best answer for who knows the task and what training shows, and nothing else.

        It is the target, except for fillers that follow no law, that training never shows, and that neither input
        carries: they are guessed. Noise is taken away by rounding to the nearest fillers, which is not always best.
        """
        first, second = self.encoding.decode(reference), self.encoding.decode(transform)
        target = self.encoding.numbers(substitute(first, second, action.argmax(-1).cpu()))
        carried = (target == self.encoding.numbers(first)) | (target == self.encoding.numbers(second))
        known = self.known_rows[target] | carried
        fillers = torch.where(known[..., None], self.encoding.stacked[target], self.encoding.guesses[target])
        return self.encoding.bind(fillers.to(reference))

    @cached_property
    def known_rows(self) -> Bool[Tensor, "k"]:
        """Which rows of the encoding's tables follow a law or are in some object that is not held out."""
        return known_rows(self.encoding, self.pairing.held_out)

    def floors(self) -> dict[str, dict[str, float]]:
        """The lowest losses under each condition: of maps that are linear in the objects, and of the best answer."""
        return floors(self.encoding, self.pairing, noise=self.noise, scored=self.scored)

    def words(self, batch: Batch) -> list[dict[str, str]]:
        """Each example's objects in words, by their nearest fillers, and its action."""
        names, factors = self.group_names["action"], self.decode(batch)
        return [
            {part: found.describe(row) for part, found in factors.items()} | {"action": names[number]}
            for row, number in enumerate(batch.inputs[2].argmax(-1).tolist())
        ]

    def decode(self, batch: Batch) -> dict[str, Factors]:
        """The factors of the objects in a batch, by their nearest fillers."""
        parts = {"reference": batch.inputs[0], "transform": batch.inputs[1], "target": batch.target}
        return {part: self.encoding.decode(objects) for part, objects in parts.items()}


class DSpritesComposition(Composition):
    """The paper's task, whose objects can be drawn."""

    def pictures(self, batch: Batch) -> dict[str, UInt8[Tensor, "n 64 64 3"]]:
        """The sprites of each example, by their nearest fillers."""
        return {part: colour(render(found), found) for part, found in self.decode(batch).items()}


def dsprites_composition(
    split: str | Mapping[str, Any] | Split = "square_red",
    interaction: str | Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    mixing: Literal["normal", "uniform"] = "normal",
    position_range: Sequence[float] = (-1.0, 1.0),
    scale_angles: Sequence[float] | None = None,
    azimuth: float = 0.7853981633974483,
    interaction_action: bool = False,
    target_of_tests: bool | None = None,
    require_change: bool = False,
    balance_actions: bool = True,
    noise: float = 0.0,
    scored: Literal["all", "factors"] = "all",
) -> DSpritesComposition:
    """The paper's task; the keyword arguments are what the paper leaves open.

    Args:
        split: A name of `SPLITS`, the import path of a predicate on factors, a predicate, or the combination that is
            held out, such as `{"shape": "heart", "colour": "blue"}`.
        interaction: None, a name of `ALL_INTERACTIONS`, or a law of your own; see `laws`.
        seed: Of the random tensor of the categorical interaction, which has a generator of its own.
        mixing: How that tensor is drawn: a name of `MIXINGS` (decision 0009).
        position_range: The first and the last position (decision 0007).
        scale_angles: One for each scale (decision 0008).
        azimuth: Of the fillers of scales (decision 0008).
        interaction_action: Whether a sixth action replaces all factors of the interaction (decision 0010).
        target_of_tests: Whether the target of tests 1 and 2 is held out; None for either (decision 0011).
        require_change: Whether the transform must differ from the reference in the acted factor (decision 0011).
        balance_actions: Whether all actions of a condition are equally likely, or all of its pairs (decision 0011).
        noise: The standard deviation of noise on the inputs.
        scored: Whether all roles count in the loss, or those of the factors without that of the interaction.

    >>> task = dsprites_composition("square_red", "shape_col")
    >>> batch = task.draw("ood_composition", 16, torch.Generator().manual_seed(0))
    >>> [list(tensor.shape) for tensor in batch.inputs]
    [[16, 6, 3], [16, 6, 3], [16, 5]]
    """
    grid = dsprites(position_range)
    tables = dsprites_fillers(grid, scale_angles=scale_angles, azimuth=azimuth)
    if not all(table.fillers.float().isfinite().all() for table in tables):
        raise ValueError(f"position_range: expected positions that are finite in float32, got {position_range}")
    encoding = encode_interaction(
        grid, tables, interaction, seed=seed, mixing=mixing, interaction_action=interaction_action
    )
    held_out = HeldOut(encoding.grid, find_split(split, SPLITS, encoding.grid))
    conditions = _conditions(target_of_tests)
    pairing = Pairing(held_out, conditions=conditions, require_change=require_change, balance_actions=balance_actions)
    expect_every_action(pairing)
    return DSpritesComposition(encoding, pairing, noise, scored_roles(scored, [table.role for table in tables]))


def expect_every_action(pairing: Pairing, condition: str = "train") -> None:
    """Check that a condition has pairs of every action."""
    missing = [name for name in pairing.grid.actions if name not in pairing.actions(condition)]
    if missing:
        where = "training" if condition == "train" else f"the condition {condition!r}"
        raise ValueError(f"split: it leaves some action without pairs in {where}: {missing}")


def scored_roles(scored: str, factors: Collection[str]) -> Collection[str] | None:
    """The roles that an option `scored` stands for, given those of the factors."""
    return choose("scored", scored, {"all": None, "factors": factors})


def _conditions(target_of_tests: bool | None) -> dict[str, Condition]:
    if target_of_tests not in (None, False, True):
        raise ValueError(f"target_of_tests: expected None, False or True, got {target_of_tests!r}")
    return {
        name: replace(condition, target=target_of_tests) if condition.target is None else condition
        for name, condition in CONDITIONS.items()
    }
