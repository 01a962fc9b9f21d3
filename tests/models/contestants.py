"""Contestants that users might bring, and that break the contract in one way each."""

from collections.abc import Sequence

import torch
from torch import nn

from tpr_attention.models.composition.copy_and_update import CopyAndUpdate


class Swap(CopyAndUpdate):
    """A sound one: a learned gate for each action and role."""

    def __init__(self, num_actions, num_roles, filler_dim, scale=1.0):
        super().__init__(num_actions, num_roles, filler_dim)
        self.gate = nn.Parameter(scale * torch.randn(num_actions, num_roles))

    def update(self, reference, transform, action):
        return (action @ self.gate).unsqueeze(-1) * (transform - reference)

    def output_map(self):
        return (self.gate,)


class Plain(nn.Module):
    """A sound one that knows nothing of `CopyAndUpdate`."""

    def __init__(self, **sizes):
        super().__init__()
        self.sizes = sizes
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, reference, transform, action):
        return self.weight * reference


class Normed(nn.Module):
    """A sound one whose buffers change in training."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, reference, transform, action):
        return self.norm(reference)


class Branches(nn.Module):
    """A sound one that no stack of models can take: which way it goes depends on its numbers."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, reference, transform, action):
        return reference + transform * (self.weight if self.weight.sum() > 0 else -self.weight)


class Drops(nn.Module):
    """A sound one that draws numbers in training."""

    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(3, 3), nn.Dropout(0.3)

    def forward(self, reference, transform, action):
        return reference + self.drop(self.linear(transform))


class Hinted(Plain):
    """A sound one that says of which types its options are."""

    def __init__(self, depth: int = 1, rate: float | None = None, mode: "int | str" = 0, names: Sequence[str] = ()):
        super().__init__()
        if depth < 0:
            raise ValueError(f"depth: expected at least 0, got {depth}")


class Unresolved(Plain):
    """A sound one whose hints say nothing."""

    def __init__(self, depth: "NotThere" = 1):
        super().__init__()


class Wide(Plain):
    """A sound one that can be as large as one likes."""

    def __init__(self, width=3):
        super().__init__()
        self.wide = nn.Parameter(torch.ones(width))


class Calibrated(Plain):
    """A sound one that has to know its numbers to be made."""

    def __init__(self, width=3):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(torch.ones(width).mean().item()))


class Bad(nn.Module):
    """Answers the reference, scaled; subclasses go wrong from there."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, reference, transform, action):
        return self.answer(self.weight * reference)

    def answer(self, output):
        return output


class WrongShape(Bad):
    def answer(self, output):
        return output[:, 0]


class Nothing(Bad):
    def answer(self, output):
        return None


class Raises(Bad):
    def answer(self, output):
        raise KeyError("colour")


class WrongDtype(Bad):
    def answer(self, output):
        return output.double()


class Whole(Bad):
    def answer(self, output):
        return output.round().long()


class Unfit(Bad):
    needs_training = False

    def fit(self, batches):
        raise ZeroDivisionError


class NotFinite(Bad):
    def answer(self, output):
        return output / 0


class Detached(Bad):
    def answer(self, output):
        return output.detach()


class NoParameters(nn.Module):
    def forward(self, reference, transform, action):
        return reference


class Frozen(Bad):
    def __init__(self):
        super().__init__()
        self.weight.requires_grad_(False)


class BadGradient(Bad):
    def answer(self, output):
        return output + (self.weight - 1).abs().sqrt()


class Backwardless(Bad):
    def answer(self, output):
        middle = output.exp()
        answer = middle * output
        middle.mul_(0)
        return answer


class EditsInputs(Bad):
    def forward(self, reference, transform, action):
        transform.mul_(2)
        return self.weight * reference


class StaysInTraining(Bad):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout(0.1)

    def train(self, mode=True):
        return super().train(True)


class Random(Bad):
    def answer(self, output):
        return output + torch.rand(())


class MixesRows(Bad):
    def answer(self, output):
        return output - output.mean(0)


class Accumulates(Bad):
    """Sound for the first row."""

    def answer(self, output):
        return output.cumsum(0)


class _NoWayBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, output):
        return output.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no way back")


class BackwardRaises(Bad):
    def answer(self, output):
        return _NoWayBack.apply(output)


class Unused(Bad):
    """Its output asks for gradients, but not for those of a parameter."""

    def forward(self, reference, transform, action):
        return reference.clone().requires_grad_()


class InfiniteGradient(Bad):
    def answer(self, output):
        return output + (self.weight - 1).clamp(min=0).sqrt()


class Sparse(nn.Module):
    """A sound one whose gradient is sparse."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 18, sparse=True)

    def forward(self, reference, transform, action):
        return reference + self.table(action.argmax(-1)).reshape(reference.shape)


class Counted(nn.Module):
    """A sound one that asks for some sizes."""

    def __init__(self, num_roles, depth):
        super().__init__()
        self.given = num_roles, depth


class Refuses(nn.Module):
    def __init__(self):
        super().__init__()
        raise OSError("no disk")


class Outer:
    class Inner(Plain):
        pass


class MixesRowsOfTheUpdate(Swap):
    """At the copy it looks sound: its update is zero."""

    def __init__(self):
        super().__init__(5, 6, 3)
        self.zero_output_map()

    def update(self, reference, transform, action):
        return super().update(reference, transform.mean(0, keepdim=True).expand_as(transform), action)


class Broadcasts(Swap):
    def __init__(self):
        super().__init__(5, 6, 3)

    def update(self, reference, transform, action):
        return super().update(reference, transform, action).sum()


class Uncopyable(Bad):
    def __deepcopy__(self, memo):
        raise RuntimeError("only one of me")


def number(num_roles):
    return num_roles


not_callable = 3
