"""Models of the composition task that are slow, or end the process in which they are trained, when asked."""

import multiprocessing
import os
import signal
import time

import torch

UNTIL = "SLOW_UNTIL"
"""The environment variable with a path: `Slow` waits in every step until there is a file."""


class Slow(torch.nn.Module):
    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(num_actions))

    def forward(self, reference, transform, action):
        if self.training and UNTIL in os.environ and not os.path.exists(os.environ[UNTIL]):  # noqa: PTH110
            time.sleep(0.1)
        return reference + 0.1 * (action @ self.weight)[..., None, None] * transform


class Killed(Slow):
    def forward(self, reference, transform, action):
        if self.training and UNTIL in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(reference, transform, action)


class Exits(Slow):
    def forward(self, reference, transform, action):
        if self.training and multiprocessing.parent_process() is not None and torch.is_grad_enabled():
            os._exit(7)
        return super().forward(reference, transform, action)
