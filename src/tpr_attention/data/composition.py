"""The composition task (sec. 4): take the reference, replace one factor by the transform's."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import inf, pi, prod
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.data.encoding import Encoding
from tpr_attention.data.factors import dsprites, substitute
from tpr_attention.data.fillers import INTERACTIONS, MIXINGS, dsprites_fillers
from tpr_attention.data.pairs import CONDITIONS, Condition, Pairing, Pairs
from tpr_attention.data.splits import MOST_COMBINATIONS, SPLITS, HeldOut, Split
from tpr_attention.data.streams import stream
from tpr_attention.functional.signature import choose

__all__ = ["Batch", "Composition", "dsprites_composition"]

SAME = 1e-9  # fillers that differ by less are taken for equal


class Batch(NamedTuple):
    """What a model sees, and what it should answer."""

    reference: Float[Tensor, "n r f"]
    transform: Float[Tensor, "n r f"]
    action: Float[Tensor, "n a"]
    target: Float[Tensor, "n r f"]

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        return Batch(*(tensor.to(device) for tensor in self))


class Composition:
    """A task: pairs of factors under conditions, encoded as objects.

    Targets are encoded from substituted factors, so a role that depends on several factors is right in them too.

    Args:
        noise: The standard deviation of normal noise on every number of the inputs; targets have none.
    """

    def __init__(self, encoding: Encoding, pairing: Pairing, noise: float = 0.0) -> None:
        if not 0 <= noise < inf:
            raise ValueError(f"noise: expected a finite number of at least 0, got {noise}")
        if encoding.grid != pairing.grid:
            raise ValueError("pairing: expected pairs of the encoding's grid")
        _expect_no_double(encoding, pairing.held_out)
        self.encoding, self.pairing, self.grid, self.noise = encoding, pairing, encoding.grid, noise
        self.num_actions, self.num_roles, self.filler_dim = (
            len(self.grid.actions),
            encoding.num_roles,
            encoding.filler_dim,
        )

    def draw(self, condition: str, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Batch:
        """A batch of independent pairs of one condition."""
        return self.observe(self.pairing.draw(condition, count, generator), generator, dtype)

    def observe(self, pairs: Pairs, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Batch:
        """Pairs as objects, with noise if the task has any."""
        batch = self.encode(pairs, dtype)
        if not self.noise:
            return batch
        reference, transform = (
            objects + self.noise * torch.randn(objects.shape, generator=generator, dtype=dtype)
            for objects in (batch.reference, batch.transform)
        )
        return batch._replace(reference=reference, transform=transform)

    def encode(self, pairs: Pairs, dtype: torch.dtype = torch.float32) -> Batch:
        """Pairs as objects, and the action as a one-hot vector."""
        return Batch(
            self.encoding.encode(pairs.reference, dtype),
            self.encoding.encode(pairs.transform, dtype),
            torch.eye(self.num_actions, dtype=dtype)[pairs.action],
            self.encoding.encode(pairs.target, dtype),
        )

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
        known = self.shown[target] | carried
        fillers = torch.where(known[..., None], self.encoding.stacked[target], self.guesses[target])
        return self.encoding.bind(fillers.to(reference))

    @cached_property
    def shown(self) -> Bool[Tensor, "k"]:
        """Which rows of the encoding's tables follow a law or are in some object that is not held out."""
        held_out, shown = self.pairing.held_out, []
        for table in self.encoding.tables:
            rest = [name for name in held_out.names if name not in table.columns]
            seen = ~held_out.matrix(table.columns, rest).all(1)
            shown.append(seen if table.guess is not None else torch.ones_like(seen))
        return torch.cat(shown)

    @cached_property
    def guesses(self) -> Float[Tensor, "k f"]:
        """The best guess at each row of the encoding's tables; the row itself where it follows a law."""
        return torch.cat(
            [
                table.fillers.double() if table.guess is None else table.guess.double().expand_as(table.fillers)
                for table in self.encoding.tables
            ]
        )


def _expect_no_double(encoding: Encoding, held_out: HeldOut) -> None:
    """Check that no held-out object looks like one that is not: that would be a leak into training."""
    touched = [j for j, table in enumerate(encoding.tables) if {*table.columns} & {*held_out.names}]
    shared = {*held_out.names}.union(*(encoding.tables[j].columns for j in touched))
    names = tuple(name for name in encoding.grid.names if name in shared)
    count = prod(encoding.grid.sizes[encoding.grid.index(name)] for name in names)
    if count > MOST_COMBINATIONS:
        raise ValueError(
            f"split: expected at most {MOST_COMBINATIONS} combinations of {list(names)}, which it reads or which share "
            f"a role with what it reads, got {count}"
        )
    objects = encoding.grid.combinations(names)
    rows, looks = encoding.numbers(objects) - torch.tensor(encoding.starts), torch.zeros(count, dtype=torch.long)
    for j in touched:
        rounded = (encoding.tables[j].fillers.double() / SAME).round()
        kinds = torch.unique(rounded, dim=0, return_inverse=True)[1]
        looks = torch.unique(looks * len(kinds) + kinds[rows[:, j]], return_inverse=True)[1]
    held = held_out(objects)
    doubles = ~held & torch.isin(looks, looks[held])
    if doubles.any():
        double = int(doubles.nonzero()[0])
        original = int((held & (looks == looks[double])).nonzero()[0])
        out, left = ({name: objects.row(number)[name] for name in names} for number in (original, double))
        raise ValueError(
            f"split: it holds out {out} and not {left}, which have the same fillers, so that what it holds out would "
            "be in training all the same"
        )


def dsprites_composition(
    split: str | Split = "square_red",
    interaction: str | None = None,
    *,
    seed: int = 0,
    mixing: str = "normal",
    position_range: tuple[float, float] = (-1.0, 1.0),
    scale_angles: Sequence[float] | None = None,
    azimuth: float = pi / 4,
    interaction_action: bool = False,
    target_of_tests: bool | None = None,
    require_change: bool = False,
    balance_actions: bool = True,
    noise: float = 0.0,
    roles: Float[Tensor, "j r"] | None = None,
) -> Composition:
    """The paper's task; the keyword arguments are what the paper leaves open.

    Args:
        split: A name of `SPLITS`, or a predicate on factors.
        interaction: None, or a name of `INTERACTIONS`.
        seed: Of the random tensor of the categorical interaction, which has a stream of its own.
        mixing: How that tensor is drawn: a name of `MIXINGS` (decision 0009).
        position_range: Decision 0007.
        scale_angles, azimuth: Decision 0008.
        interaction_action: Whether a sixth action replaces all factors of the interaction (decision 0010).
        target_of_tests: Whether the target of tests 1 and 2 is held out; None for either (decision 0011).
        require_change: Whether the transform must differ from the reference in the acted factor (decision 0011).
        balance_actions: Whether all actions of a condition are equally likely, or all of its pairs (decision 0011).
        noise: The standard deviation of noise on the inputs.
        roles: Orthonormal role vectors; one-hot if not given.

    >>> task = dsprites_composition("square_red", "shape_col")
    >>> batch = task.draw("ood_composition", 16, stream(0, "eval"))
    >>> batch.reference.shape, batch.action.shape
    (torch.Size([16, 6, 3]), torch.Size([16, 5]))
    """
    draw, generator = choose("mixing", mixing, MIXINGS), stream(seed, "mixing")
    grid = dsprites(position_range)
    tables = dsprites_fillers(grid, scale_angles=scale_angles, azimuth=azimuth)
    if interaction is not None:
        interact = choose("interaction", interaction, INTERACTIONS)
        table = interact({table.role: table for table in tables}, lambda shape: draw(shape, generator))
        tables += (table,)
        if interaction_action:
            grid = replace(grid, actions={**grid.actions, table.role: table.columns})
    held_out = HeldOut(grid, choose("split", split, SPLITS) if isinstance(split, str) else split)
    conditions = _conditions(target_of_tests)
    pairing = Pairing(held_out, conditions=conditions, require_change=require_change, balance_actions=balance_actions)
    return Composition(Encoding(grid, tables, roles), pairing, noise)


def _conditions(target_of_tests: bool | None) -> dict[str, Condition]:
    if target_of_tests not in (None, False, True):
        raise ValueError(f"target_of_tests: expected None, False or True, got {target_of_tests!r}")
    return {
        name: replace(condition, target=target_of_tests) if condition.target is None else condition
        for name, condition in CONDITIONS.items()
    }
