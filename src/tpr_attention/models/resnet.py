"""One residual layer on the reference, the transform and the action."""

from torch import Tensor, nn

from tpr_attention.functional.signature import expect_positive
from tpr_attention.models.copy_and_update import Actions, CopyAndUpdate, Objects

__all__ = ["ResNet"]


class ResNet(CopyAndUpdate):
    """Two linear maps with a ReLU between them, added to the reference (decision 0014).

    Args:
        width: The number of hidden units.
    """

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int, width: int = 128) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        expect_positive(width=width)
        size = num_roles * filler_dim
        self.hidden = nn.Linear(2 * size + num_actions, width)
        self.output = nn.Linear(width, size)

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        hidden = self.hidden(self.joined(reference, transform, action)).relu()
        return self.as_objects(self.output(hidden))

    def output_map(self) -> tuple[Tensor, ...]:
        return self.output.weight, self.output.bias
