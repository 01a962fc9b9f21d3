"""The best linear map for each action, in closed form: the floor of every model that is linear in its objects."""

from collections.abc import Iterable

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from tpr_attention.models.composition.copy_and_update import Actions, CopyAndUpdate, Objects
from tpr_attention.models.contract import Examples

__all__ = ["LinearFloor"]


class LinearFloor(CopyAndUpdate):
    """Least squares on (reference, transform, 1), one for each action.

    update = (O_1, O_2, 1) W_a,    W_a = argmin E |O_3 - O_1 - (O_1, O_2, 1) W_a|^2, the shortest if there are many

    The action-conditioned layer of App. D is of this form, whatever its parameters; so no such layer, and no sum of
    them, has a lower loss on the data that this one was fitted to.
    """

    needs_training = False
    weight: Tensor

    def __init__(self, num_actions: int, num_roles: int, filler_dim: int) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        size = num_roles * filler_dim
        self.register_buffer("weight", torch.full((num_actions, 2 * size + 1, size), torch.nan))

    @torch.no_grad()
    def fit(self, batches: Iterable[Examples]) -> "LinearFloor":
        """Fit to batches of pairs, of which only moments are kept, in float64.

        Until then the answers are not numbers. An action that the batches do not have keeps the copy.
        """
        inputs_size, device = self.weight.shape[1], self.weight.device
        moments = torch.zeros(self.num_actions, inputs_size, inputs_size, dtype=torch.float64, device=device)
        products = torch.zeros(self.weight.shape, dtype=torch.float64, device=device)
        for batch in batches:
            (reference, transform, action), target = batch.inputs, batch.target
            inputs = _inputs(reference.double(), transform.double())
            wanted = (target.double() - reference.double()).flatten(-2)
            for a in range(self.num_actions):
                chosen = action[:, a].bool()
                moments[a] += inputs[chosen].mT @ inputs[chosen]
                products[a] += inputs[chosen].mT @ wanted[chosen]
        if not moments.any() or not moments.isfinite().all() or not products.isfinite().all():
            raise ValueError("batches: expected at least one pair, and finite numbers")
        self.weight.copy_(torch.linalg.pinv(moments, hermitian=True, rtol=1e-10) @ products)
        return self

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        inputs = _inputs(reference, transform)
        return self.as_objects(einsum(inputs, self.weight, action, "... x, a x rf, ... a -> ... rf"))


def _inputs(reference: Objects, transform: Objects) -> Float[Tensor, "*batch x"]:
    ones = torch.ones_like(reference[..., :1, 0])
    return torch.cat([reference.flatten(-2), transform.flatten(-2), ones], -1)
