"""A model that ends the process it is trained in."""

import multiprocessing
import os

import torch


class Deadly(torch.nn.Module):
    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(num_actions))

    def forward(self, reference, transform, action):
        if self.training and multiprocessing.parent_process() is not None and torch.is_grad_enabled():
            os._exit(7)
        return reference + 0 * transform + (action @ self.weight)[..., None, None]
