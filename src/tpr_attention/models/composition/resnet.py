"""One residual layer on the reference, the transform and the action."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import expect_positive
from tpr_attention.models.composition.copy_and_update import Actions, ByAction, CopyAndUpdate, Objects

__all__ = ["ResNet"]


class ResNet(CopyAndUpdate):
    """Two linear maps with a ReLU between them, added to the reference (decision 0014).

    Args:
        width: The number of hidden units.
        start_at_copy: Whether the update is zero at the start (decision 0012).
    """

    def __init__(
        self, num_actions: int, num_roles: int, filler_dim: int, width: int = 128, start_at_copy: bool = True
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        expect_positive(width=width)
        size = num_roles * filler_dim
        self.hidden = nn.Linear(2 * size + num_actions, width)
        self.output = nn.Linear(width, size)
        if start_at_copy:
            self.zero_output_map()

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        hidden = self.hidden(self.joined(reference, transform, action)).relu()
        return self.as_objects(self.output(hidden))

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """The action only shifts the hidden units."""
        objects = torch.cat([reference.flatten(-2), transform.flatten(-2)], -1)
        of_objects, of_actions = torch.split(self.hidden.weight, [objects.shape[-1], self.num_actions], -1)
        shift = of_actions.mT + self.hidden.bias.unsqueeze(-2)
        hidden = _rows(objects, of_objects) + shift.unsqueeze(-2)
        return self.as_objects(_rows(hidden.relu(), self.output.weight) + self.output.bias[..., None, None, :])

    def output_map(self) -> tuple[Tensor, ...]:
        return self.output.weight, self.output.bias


def _rows(rows: Float[Tensor, "*n a b x"], weight: Float[Tensor, "*n y x"]) -> Float[Tensor, "*n a b y"]:
    """A linear map of all rows, as one product for each model."""
    return (rows.flatten(-3, -2) @ weight.mT).reshape(*rows.shape[:-1], -1)
