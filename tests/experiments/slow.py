"""Models that take their time, or end the process they are trained in, where the environment says so."""

import os
import signal
import time

import torch


class Slow(torch.nn.Module):
    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(num_actions))

    def forward(self, reference, transform, action):
        if self.training and torch.is_grad_enabled():
            time.sleep(float(os.environ.get("SECONDS_OF_A_STEP", "0")))
        return reference + 0.1 * (action @ self.weight)[..., None, None] * transform


class Deadly(Slow):
    def forward(self, reference, transform, action):
        if self.training and torch.is_grad_enabled() and "SECONDS_OF_A_STEP" in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(reference, transform, action)
