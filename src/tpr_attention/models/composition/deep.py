"""The same layer several times: each changes what the layer before has made of the reference."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tpr_attention.functional.signature import expect_positive
from tpr_attention.models.composition.classical import Classical
from tpr_attention.models.composition.copy_and_update import Actions, ByAction, CopyAndUpdate, Objects
from tpr_attention.models.composition.resnet import ResNet
from tpr_attention.models.composition.tpr import TPR

__all__ = ["Deep", "classical_deep", "resnet_deep", "tpr_deep"]


class Deep(CopyAndUpdate):
    """Layers one after the other, all of which see the transform and the action.

    >>> Deep(lambda: TPR(5, 6, 3, num_heads=4), num_layers=3).folds
    True
    """

    def __init__(self, make: Callable[[], CopyAndUpdate], num_layers: int) -> None:
        expect_positive(num_layers=num_layers)
        layers = [make() for _ in range(num_layers)]
        super().__init__(layers[0].num_actions, layers[0].num_roles, layers[0].filler_dim)
        self.layers: Sequence[CopyAndUpdate] = nn.ModuleList(layers)  # type: ignore[assignment]

    def update(self, reference: Objects, transform: Objects, action: Actions) -> Objects:
        update = torch.zeros_like(reference)
        for layer in self.layers:
            update = update + layer.update(reference + update, transform, action)
        return update

    def update_by_action(self, reference: ByAction, transform: ByAction) -> ByAction:
        """Every layer as it folds by itself."""
        update = torch.zeros_like(reference)
        for layer in self.layers:
            update = update + layer.update_by_action(reference + update, transform)
        return update

    @property
    def folds(self) -> bool:
        return all(layer.folds for layer in self.layers)

    def output_map(self) -> tuple[Tensor, ...]:
        return tuple(parameter for layer in self.layers for parameter in layer.output_map())


def tpr_deep(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4, num_layers: int = 2) -> Deep:
    """The paper's layer several times; linear as one of them is."""
    return Deep(lambda: TPR(num_actions, num_roles, filler_dim, num_heads), num_layers)


def classical_deep(num_actions: int, num_roles: int, filler_dim: int, num_heads: int = 4, num_layers: int = 2) -> Deep:
    """Several layers of softmax attention over the reference, as it has become, and the transform."""
    return Deep(lambda: Classical(num_actions, num_roles, filler_dim, num_heads), num_layers)


def resnet_deep(num_actions: int, num_roles: int, filler_dim: int, width: int = 128, num_layers: int = 2) -> Deep:
    """Several residual layers."""
    return Deep(lambda: ResNet(num_actions, num_roles, filler_dim, width), num_layers)
