"""TPR-Attention that substitutes, recomputes what other roles decide, and cleans up."""

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.laws import carried
from tpr_attention.functional.signature import expect_bool
from tpr_attention.models.composition.copy_and_update import Actions, ByAction, CopyAndUpdate, Objects
from tpr_attention.models.composition.folding import found, written
from tpr_attention.nn.action_attention import ActionTPRAttention
from tpr_attention.nn.clean_up import CleanUp
from tpr_attention.nn.role_laws import RoleLaws

__all__ = ["TPRLaws"]

SHARPNESS = 100.0  # of the match by which a filler is carried: fillers that differ by 0.2 match by 2 %

Columns = Float[Tensor, "*n r f b"]


class Recomputed(NamedTuple):
    """What is added after the substitution, and how far the inputs are from their own laws."""

    update: Columns
    error: Float[Tensor, "*n"]


class TPRLaws(CopyAndUpdate):
    r"""The paper's heads substitute; then roles are recomputed by laws that hold for all objects, and cleaned.

    S = O_1 + update(O_1, O_2, a)                                                                            (App. D)
    S'_r = S_r + g_r(a) (law(S)_r + carried_r - S_r)
    output_r = S'_r + k_r(a) (clean(S')_r - S'_r)

    - `RoleLaws` are learned from the answers and, as a penalty, from the inputs, which are examples of them as well. A
      penalty on their role queries makes them read few roles.
    - `carried`: a filler that an input has is preferred to what its law says, where the law says the same of both. That
      is built in, not learned.
    - `CleanUp` takes noise away. Whether a role is cleaned the majority of actions decides: the gates k of a role are
      the median over actions of what each would learn by itself.

    Gates start at zero and receive gradients from the error of their own role alone, like the new roles of the heads.
    So a role whose error stays zero under an action, or for k under most of them, is copied exactly (decision 0030).

    Args:
        hidden: Units of the feed-forward of each law.
        carries: Whether what inputs carry is preferred.
        num_codes: Codes of each role for the clean-up; 0 for none.
        sparsity: The penalty on role queries.
    """

    def __init__(
        self,
        num_actions: int,
        num_roles: int,
        filler_dim: int,
        num_heads: int = 8,
        hidden: int = 32,
        carries: bool = True,
        num_codes: int = 16,
        sparsity: float = 3e-5,
    ) -> None:
        super().__init__(num_actions, num_roles, filler_dim)
        expect_bool(carries=carries)
        if not 0 <= sparsity < inf:
            raise ValueError(f"sparsity: expected a number of at least 0, got {sparsity}")
        self.carries, self.sparsity = carries, sparsity
        sizes = num_actions, num_roles, filler_dim
        self.substitute = ActionTPRAttention(*sizes, num_heads)
        self.laws = RoleLaws(num_roles, filler_dim, hidden=hidden)
        gate = torch.zeros_like(self.substitute.role_map[0])  # [a r]
        self.law_gate = nn.Parameter(gate.clone())
        self.clean_up = CleanUp(num_roles, filler_dim, num_codes) if num_codes else None
        self.code_gate = nn.Parameter(gate.clone()) if num_codes else None

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        return self._update(reference, transform, action).update

    def with_penalty(self, reference: Objects, transform: Objects, action: Actions) -> tuple[Objects, Tensor]:
        """The answers, and what is added to their loss in training."""
        update, error = self._update(reference, transform, action)
        return reference + update, self._penalty(error)

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """What is read and written under an action is one matrix; laws are the same under all of them."""
        return self._update_by_action(reference, transform).update

    def by_group_with_penalty(
        self, reference: ByAction, transform: ByAction, action: Float[Tensor, "*n a b a_in"]
    ) -> tuple[ByAction, Float[Tensor, "*n"]]:
        """The same for b pairs of each action."""
        update, error = self._update_by_action(reference, transform)
        return reference + update, self._penalty(error)

    def output_map(self) -> tuple[Tensor, ...]:
        gates = (self.law_gate,) if self.code_gate is None else (self.law_gate, self.code_gate)
        return self.substitute.role_map, *gates, *self.laws.written_maps

    def _update(self, reference: Objects, transform: Objects, action: Actions) -> Recomputed:
        told = self.substitute.read(torch.stack([reference, transform], -3), action)
        state = reference + self.substitute.write_found(told, action, learn_roles=False)
        columns = [one.reshape(-1, *one.shape[-2:]).movedim(0, -1) for one in (state, reference, transform)]
        actions = action.reshape(-1, self.num_actions).mT
        found = self._recompute(columns, lambda gate: (gate.mT @ actions).unsqueeze(-2))
        update = found.update.movedim(-1, 0).reshape(reference.shape)
        return Recomputed(self.substitute.write_found(told, action) + update, found.error)

    def _update_by_action(self, reference: ByAction, transform: ByAction) -> Recomputed:
        told = found(self.substitute, reference, transform)
        state = reference + written(self.substitute, told, self.substitute.role_map.detach())
        columns = [rearrange(one, "... a b r f -> ... r f (a b)") for one in (state, reference, transform)]
        count = reference.shape[-3]
        recomputed = self._recompute(columns, lambda gate: gate.mT.repeat_interleave(count, -1).unsqueeze(-2))
        update = rearrange(recomputed.update, "... r f (a b) -> ... a b r f", b=count)
        return Recomputed(written(self.substitute, told) + update, recomputed.error)

    def _recompute(self, objects: Sequence[Columns], gates: Callable[[Tensor], Tensor]) -> Recomputed:
        """What laws and the clean-up add to the state, the first of the objects; the others are the inputs.

        Args:
            gates: From gates of actions to those of every example.
        """
        state, inputs = objects[0], torch.stack([*objects[1:]])
        law, *laws = self.laws.of_columns(torch.cat([*objects], -1)).chunk(3, -1)
        content = law - state
        if self.carries:
            content = content + carried(law, inputs, torch.stack(laws), SHARPNESS)
        update = gates(self.law_gate) * content
        if self.clean_up is not None and self.code_gate is not None:
            state = state + gates(self.law_gate.detach()) * content
            update = update + gates(_majority(self.code_gate)) * (self.clean_up.of_columns(state) - state)
        return Recomputed(update, (torch.stack(laws) - inputs).square().mean((0, -3, -2, -1)))

    def _penalty(self, error: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        return error + self.sparsity * self.laws.query_size()


def _majority(gate: Float[Tensor, "*n a r"]) -> Float[Tensor, "*n a r"]:
    """The median over actions in place of each gate; gradients go to each as if it were its own."""
    return gate + (gate.median(-2, keepdim=True).values - gate).detach()
