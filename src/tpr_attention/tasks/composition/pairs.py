"""Which pairs of objects, and which actions on them, make up training and the tests (sec. 4).

A condition says of the reference, the transform and the target whether each is held out. For one action, split an
object into what the action replaces and the rest: a reference (a1, r1) and a transform (a2, r2) have the target
(a2, r1). The three statements are then about neighbours in the chain a1 - r1 - a2 - r2, so that pairs can be counted
and drawn exactly and uniformly, without rejection, however few of them there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tpr_attention.functional.signature import choose
from tpr_attention.tasks.composition.factors import Factors, substitute
from tpr_attention.tasks.composition.held_out import HeldOut

__all__ = ["CONDITIONS", "Chain", "Condition", "Pairing", "Pairs"]

MOST_CELLS = 2**26  # their square, the number of pairs, stays exact in float64


@dataclass(frozen=True)
class Condition:
    """Where the held-out combinations are: True for held out, False for not, None for either."""

    reference: bool | None
    transform: bool | None
    target: bool | None


CONDITIONS: dict[str, Condition] = {
    "train": Condition(reference=False, transform=False, target=False),
    "in_distribution": Condition(reference=False, transform=False, target=False),
    "ood_reference": Condition(reference=True, transform=False, target=None),
    "ood_transform": Condition(reference=False, transform=True, target=None),
    "ood_composition": Condition(reference=False, transform=False, target=True),
}
"""Training, a test on fresh pairs of the same kind, and the paper's three tests, `splits.TESTS` (decision 0011)."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """One row a pair: the target is the reference with the acted factor of the transform."""

    reference: Factors
    transform: Factors
    action: Int[Tensor, "n"]

    def __len__(self) -> int:
        return len(self.action)

    @cached_property
    def target(self) -> Factors:
        """What each pair makes."""
        return substitute(self.reference, self.transform, self.action)


class Pairing:
    """Draws pairs under conditions, uniformly among those of an action.

    Args:
        held_out: The combinations that training never shows, neither in an input nor in a target.
        conditions: What each condition's name means.
        require_change: Whether the acted factor of the transform must differ from that of the reference.
        balance_actions: Whether all actions that a condition allows are equally likely, or all of its pairs.

    >>> from tpr_attention.tasks.composition.factors import dsprites
    >>> from tpr_attention.tasks.composition.splits import SPLITS
    >>> pairing = Pairing(HeldOut(dsprites(), SPLITS["square_red"]))
    >>> pairing.actions("ood_composition")
    ('shape', 'colour')
    >>> pairs = pairing.draw("ood_composition", 1000, torch.Generator().manual_seed(0))
    >>> pairing.held_out(pairs.target).all(), pairing.held_out(pairs.reference).any()
    (tensor(True), tensor(False))
    """

    def __init__(
        self,
        held_out: HeldOut,
        *,
        conditions: Mapping[str, Condition] = CONDITIONS,
        require_change: bool = False,
        balance_actions: bool = True,
    ) -> None:
        self.balance_actions = balance_actions
        self.grid, self.held_out, self.conditions = held_out.grid, held_out, dict(conditions)
        if self.conditions.get("train", CONDITIONS["train"]) != CONDITIONS["train"]:
            raise ValueError("conditions: expected nothing held out in the inputs and targets of 'train'")
        chains = {
            condition: {action: Chain(held_out, action, condition, require_change) for action in self.grid.actions}
            for condition in set(self.conditions.values())
        }
        self._chains = {name: chains[condition] for name, condition in self.conditions.items()}
        for name in self.conditions:
            if not self.actions(name):
                raise ValueError(
                    f"split: it leaves no pairs for the condition {name!r}; it holds out {held_out.share:.1%} of the "
                    f"grid, by {list(held_out.names)}. Choose another split, or leave the condition out"
                )

    def chain(self, condition: str, action: str) -> "Chain":
        """The pairs of a condition for one action."""
        return choose("action", action, choose("condition", condition, self._chains))

    def count(self, condition: str, action: str) -> int:
        """How many pairs there are."""
        return self.chain(condition, action).count

    def actions(self, condition: str) -> tuple[str, ...]:
        """The actions that a condition allows."""
        return tuple(action for action in self.grid.actions if self.count(condition, action))

    def weights(self, condition: str) -> dict[str, int]:
        """How often each action that a condition allows is drawn, compared with the others."""
        return {
            action: 1 if self.balance_actions else self.count(condition, action) for action in self.actions(condition)
        }

    def draw(self, condition: str, count: int, generator: torch.Generator) -> Pairs:
        """This many pairs, independent of each other."""
        _expect_draw(count, generator)
        pairs = [*self.weights(condition).values()]
        limits = torch.tensor([sum(pairs[: k + 1]) / sum(pairs) for k in range(len(pairs))], dtype=torch.float64)
        choice = torch.bucketize(torch.rand(count, generator=generator, dtype=torch.float64), limits, right=True)
        parts = self._each(condition, torch.bincount(choice, minlength=len(pairs)).tolist(), generator)
        place = choice.argsort(stable=True).argsort()
        return Pairs(parts.reference[place], parts.transform[place], parts.action[place])

    def draw_each(self, condition: str, count: int, generator: torch.Generator) -> Pairs:
        """This many pairs for each action that the condition allows, action after action."""
        _expect_draw(count, generator)
        return self._each(condition, [count] * len(self.actions(condition)), generator)

    def _each(self, condition: str, counts: list[int], generator: torch.Generator) -> Pairs:
        actions = self.actions(condition)
        drawn = [
            self._chains[condition][action].draw(count, generator)
            for action, count in zip(actions, counts, strict=True)
        ]
        reference, transform = (
            Factors(self.grid, {name: torch.cat([part[k][name] for part in drawn]) for name in self.grid.names})
            for k in range(2)
        )
        index = torch.tensor([list(self.grid.actions).index(action) for action in actions])
        return Pairs(reference, transform, index.repeat_interleave(torch.tensor(counts)))


class Chain:
    """The pairs of one condition for one action, over what the action replaces and the rest that the split reads.

    a1, a2 are rows and r1, r2 columns of the matrix of what is held out. All columns of the grid that do not matter for
    it are free.
    """

    def __init__(self, held_out: HeldOut, action: str, condition: Condition, require_change: bool) -> None:
        self.grid, self.require_change = held_out.grid, require_change
        replaced = self.grid.actions[action]
        self.acted = tuple(name for name in replaced if require_change or name in held_out.names)
        self.rest = tuple(name for name in held_out.names if name not in replaced)
        self.free = tuple(name for name in self.grid.names if name not in (*self.acted, *self.rest))
        cells = prod(self.grid.sizes[self.grid.index(name)] for name in (*self.acted, *self.rest))
        if cells > MOST_CELLS:
            raise ValueError(
                f"split: expected at most {MOST_CELLS} combinations of {[*self.acted, *self.rest]}, which it reads or "
                f"the action {action!r} replaces, got {cells}"
            )
        held = held_out.matrix(self.acted, self.rest)
        self.as_reference = _where(held, condition.reference)
        self.as_transform = _where(held, condition.transform)
        self.as_target = _where(held, condition.target)
        free = prod(self.grid.sizes[self.grid.index(name)] for name in self.free)
        self.count = int(self.weights.sum()) * free**2

    @property
    def references(self) -> Int[Tensor, "acted rest"]:
        """How many a1 there are for each target (a2, r1)."""
        return self.as_reference.sum(0, dtype=torch.int32) - self.as_reference.int() * self.require_change

    @property
    def transforms(self) -> Int[Tensor, "acted"]:
        """How many r2 there are for each a2."""
        return self.as_transform.sum(1, dtype=torch.int32)

    @property
    def weights(self) -> Int[Tensor, "acted rest"]:
        """How many pairs have each target (a2, r1): a choice of a1 and a choice of r2."""
        return self.as_target * self.references.long() * self.transforms[:, None]

    def draw(self, count: int, generator: torch.Generator) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The columns of references and transforms, uniform over the pairs."""
        tables = self._tables
        number = _whole_numbers(tables.cumulative[-1].expand(count), generator)
        target = torch.searchsorted(tables.cumulative, number, right=True)
        a2, r1 = target // self.as_target.shape[1], target % self.as_target.shape[1]
        k = _whole_numbers(tables.references[a2, r1], generator)
        if self.require_change:  # step over a2, which is one of those for r1 if it may be a reference
            k = k + (self.as_reference[a2, r1] & (k >= tables.ranks[a2, r1]))
        a1 = tables.first[k, r1]
        r2 = tables.second[a2, _whole_numbers(tables.transforms[a2], generator)]
        return self._columns(a1, r1, generator), self._columns(a2, r2, generator)

    @cached_property
    def _tables(self) -> "_Tables":
        acted, rest = (self.grid.combinations(names).columns for names in (self.acted, self.rest))
        return _Tables(
            self.weights.flatten().cumsum(0),
            self.references,
            self.transforms,
            self.as_reference.cumsum(0, dtype=torch.int32) - 1,
            self.as_reference.byte().argsort(dim=0, descending=True, stable=True).int(),
            self.as_transform.byte().argsort(dim=1, descending=True, stable=True).int(),
            {name: acted[name] for name in self.acted},
            {name: rest[name] for name in self.rest},
        )

    def _columns(self, acted: Tensor, rest: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        columns = {name: classes[acted] for name, classes in self._tables.acted.items()}
        columns |= {name: classes[rest] for name, classes in self._tables.rest.items()}
        for name in self.free:
            size = self.grid.sizes[self.grid.index(name)]
            columns[name] = torch.randint(size, (len(acted),), generator=generator, dtype=torch.int32)
        return columns


class _Tables(NamedTuple):
    """What drawing looks up."""

    cumulative: Int[Tensor, "cells"]
    references: Int[Tensor, "acted rest"]
    transforms: Int[Tensor, "acted"]
    ranks: Int[Tensor, "acted rest"]  # which of the references with this r1 has this a1
    first: Int[Tensor, "acted rest"]  # in each column, first the a1 that may be references
    second: Int[Tensor, "acted rest"]  # in each row, first the r2 that may be transforms
    acted: dict[str, Tensor]  # classes of the columns
    rest: dict[str, Tensor]


def _expect_draw(count: int, generator: torch.Generator) -> None:
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"count: expected a whole number of at least 0, got {count!r}")
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")


def _where(held: Bool[Tensor, "acted rest"], wanted: bool | None) -> Bool[Tensor, "acted rest"]:
    return torch.ones_like(held) if wanted is None else held == wanted


def _whole_numbers(limit: Int[Tensor, "n"], generator: torch.Generator) -> Int[Tensor, "n"]:
    """Whole numbers from 0 to below each limit; the limits are so small that a product never rounds up to one."""
    return (torch.rand(len(limit), generator=generator, dtype=torch.float64) * limit).long()
