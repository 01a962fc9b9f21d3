"""The one copy mechanism: every contestant adds its update to the reference (sec. 4)."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.precision import autocasts
from tpr_attention.functional.signature import Sizes, expect, expect_alike, expect_positive

__all__ = ["Actions", "ByAction", "CopyAndUpdate", "Objects"]

Objects = Float[Tensor, "*batch r f"]
Actions = Float[Tensor, "*batch a"]
ByAction = Float[Tensor, "*n a b r f"]


class CopyAndUpdate(nn.Module, ABC):
    """output = reference + update(reference, transform, action); a contestant writes only `update`."""

    needs_training = True
    """Whether there is something to learn by gradients."""

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int) -> None:
        super().__init__()
        expect_positive(num_actions=num_actions, num_roles=num_roles, filler_dim=filler_dim)
        self.num_actions, self.num_roles, self.filler_dim = num_actions, num_roles, filler_dim

    def forward(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        """The answer: the reference, changed as the action asks."""
        sizes: Sizes = {"r": self.num_roles, "f": self.filler_dim, "a": self.num_actions}
        expect("reference", reference, "*batch r f", sizes)
        expect("transform", transform, "*batch r f", sizes)
        expect("action", action, "*batch a", sizes)
        alike = {"parameters": next(self.parameters(), None), "reference": reference}
        expect_alike({**alike, "transform": transform, "action": action}, dtypes=not autocasts(reference.device))
        update = self.update(reference, transform, action)
        if update.shape != reference.shape:
            raise ValueError(
                f"update: expected the reference's shape {list(reference.shape)}, got {list(update.shape)}"
            )
        return reference + update

    @abstractmethod
    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        """What to add to the reference."""

    def joined(self, reference: Objects, transform: Objects, action: Actions) -> Float[Tensor, "*batch x"]:
        """All that a model is given, side by side."""
        return torch.cat([reference.flatten(-2), transform.flatten(-2), action], -1)

    def as_objects(self, flat: Float[Tensor, "*batch rf"]) -> Objects:
        """Rows of numbers as objects."""
        return flat.reshape(*flat.shape[:-1], self.num_roles, self.filler_dim)

    def by_group(self, reference: ByAction, transform: ByAction, action: Float[Tensor, "*n a b a_in"]) -> ByAction:
        """The answers to b pairs of each action, action after action.

        Equal to `forward`, but a model that overrides `update_by_action` computes what depends on the action alone once
        for all pairs. Its parameters may then have leading axes, the same as the objects: many models at once.
        """
        return reference + self.update_by_action(reference, transform)

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """What to add to the references, for b pairs of each action."""
        actions = torch.eye(self.num_actions, device=reference.device, dtype=reference.dtype).unsqueeze(-2)
        return self.update(reference, transform, actions.expand(*reference.shape[:-2], -1))

    @property
    def folds(self) -> bool:
        """Whether `by_group` is cheaper than `forward`, and takes stacked parameters."""
        return type(self).update_by_action is not CopyAndUpdate.update_by_action

    def output_map(self) -> tuple[Tensor, ...]:
        """The parameters that make the update zero when they are zero; none where a model has no such parameters."""
        return ()

    @torch.no_grad()
    def zero_output_map(self) -> None:
        """Make the update zero, so that training starts at the exact copy (decision 0012)."""
        for parameter in self.output_map():
            parameter.zero_()
