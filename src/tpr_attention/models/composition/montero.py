"""The composition operations of Montero et al. (2022), "Lost in Latent Space"; their MLP is our `ResNet`."""

from torch import Tensor, nn

from tpr_attention.models.composition.copy_and_update import Actions, CopyAndUpdate, Objects

__all__ = ["Interpolate", "Linear"]


class Linear(CopyAndUpdate):
    """One linear map of the reference, the transform and the action."""

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        size = num_roles * filler_dim
        self.output = nn.Linear(2 * size + num_actions, size)
        self.zero_output_map()

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        return self.as_objects(self.output(self.joined(reference, transform, action)))

    def output_map(self) -> tuple[Tensor, ...]:
        return self.output.weight, self.output.bias


class Interpolate(CopyAndUpdate):
    """Each entry of the answer lies between those of the reference and the transform; a gate says where.

    The gate is a sigmoid, so that the copy is a limit and not a starting point: there is no output map to zero.
    """

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        size = num_roles * filler_dim
        self.gate = nn.Linear(2 * size + num_actions, size)

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        gate: Tensor = self.gate(self.joined(reference, transform, action)).sigmoid()
        return self.as_objects(gate) * (transform - reference)
