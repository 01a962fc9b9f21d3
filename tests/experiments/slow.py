"""Models that take their time until there is a file, or end the process they are trained in, where that is asked."""

import os
import signal
import time

import torch

UNTIL = "SLOW_UNTIL"


class Slow(torch.nn.Module):
    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(num_actions))

    def forward(self, reference, transform, action):
        if self.training and UNTIL in os.environ and not os.path.exists(os.environ[UNTIL]):  # noqa: PTH110
            time.sleep(0.1)
        return reference + 0.1 * (action @ self.weight)[..., None, None] * transform


class Deadly(Slow):
    def forward(self, reference, transform, action):
        if self.training and UNTIL in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(reference, transform, action)
