"""Pairs under several splits at once: training shows nothing that any of them holds out, and each has its own tests."""

from collections.abc import Mapping
from math import prod

from tpr_attention.tasks.composition.held_out import HeldOut
from tpr_attention.tasks.composition.pairs import CONDITIONS, Chain, Condition, Pairing
from tpr_attention.tasks.composition.splits import TESTS

__all__ = ["UnionPairing"]


class UnionPairing(Pairing):
    """Draws pairs where a union of splits is held out of training.

    A test `split.ood_reference` has references that this split holds out; what a test has as known is held out by no
    split, so that there is one new thing in an example. The target of the first two tests is either, as in the paper.

    Args:
        union: What any of the parts holds out.
        parts: What each split holds out, by its name.
    """

    def __init__(self, union: HeldOut, parts: Mapping[str, HeldOut]) -> None:
        super().__init__(union, conditions={name: CONDITIONS[name] for name in ("train", "in_distribution")})
        for split, part in parts.items():
            for test in TESTS:
                name, condition = f"{split}.{test}", CONDITIONS[test]
                self.conditions[name] = condition
                self._chains[name] = {
                    action: _PartChain(union, part, action, condition) for action in self.grid.actions
                }


class _PartChain(Chain):
    """The pairs of one test: where something of the union is wanted, it is of this part of it."""

    def __init__(self, union: HeldOut, part: HeldOut, action: str, condition: Condition) -> None:
        super().__init__(union, action, condition, require_change=False)
        held = part.matrix(self.acted, self.rest)
        self.as_reference = self.as_reference & held if condition.reference else self.as_reference
        self.as_transform = self.as_transform & held if condition.transform else self.as_transform
        self.as_target = self.as_target & held if condition.target else self.as_target
        free = prod(self.grid.sizes[self.grid.index(name)] for name in self.free)
        self.count = int(self.weights.sum()) * free**2
