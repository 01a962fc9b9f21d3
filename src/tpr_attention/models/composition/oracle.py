"""The best answer that training allows."""

from collections.abc import Callable

from torch import Tensor

from tpr_attention.models.composition.copy_and_update import Actions, CopyAndUpdate, Objects

__all__ = ["Oracle"]


class Oracle(CopyAndUpdate):
    """Knows the task; what training does not tell and neither input carries it guesses as well as possible.

    Its loss is the floor of every model, on average over what is guessed: for a single draw of a random tensor, another
    guess may happen to be nearer. If there is noise, it takes the nearest fillers for the true ones, and is no floor.

    Args:
        best_answer: The task's own answer to a reference, a transform and an action.
    """

    needs_training = False

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        best_answer: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        self.best_answer = best_answer

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        rows = (tensor.reshape(-1, *tensor.shape[reference.ndim - 2 :]) for tensor in (reference, transform, action))
        return self.best_answer(*rows).reshape(reference.shape) - reference
