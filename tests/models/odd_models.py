"""Models and tasks that a user should not write."""

import multiprocessing
import sys

import torch
from torch import nn


class Own(BaseException):
    """An error that is no `Exception`."""


class Base(nn.Module):
    calls = 0

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(num_actions))

    def forward(self, reference, transform, action):
        self.act()
        return reference + 0.1 * (action @ self.weight)[..., None, None] * transform

    def act(self) -> None:
        """Do something odd."""


class Exits(Base):
    def act(self) -> None:
        sys.exit(0)


class RaisesOwn(Base):
    def act(self) -> None:
        raise Own("in forward")


class RaisesGeneratorExit(Base):
    def act(self) -> None:
        raise GeneratorExit


class Interrupts(Base):
    def act(self) -> None:
        raise KeyboardInterrupt


class Endless(Base):
    def act(self) -> None:
        self.act()


class Prints(Base):
    def act(self) -> None:
        print("called")  # noqa: T201 (what users do while they look for a fault)


class ExitsWhenMade(Base):
    def __init__(self, num_actions: int) -> None:
        sys.exit(3)


class RaisesOwnWhenMade(Base):
    def __init__(self, num_actions: int) -> None:
        raise Own("when made")


class InterruptsWhenMade(Base):
    def __init__(self, num_actions: int) -> None:
        raise KeyboardInterrupt


class Late(Base):
    """Odd at its 50th call in a worker process."""

    def act(self) -> None:
        if multiprocessing.parent_process() is not None:
            Late.calls += 1
            if Late.calls == 50:
                self.end()

    def end(self) -> None:
        """Do something odd."""


class ExitsLate(Late):
    def end(self) -> None:
        sys.exit(0)


class RaisesOwnLate(Late):
    def end(self) -> None:
        raise Own("late")


class InterruptsLate(Late):
    def end(self) -> None:
        raise KeyboardInterrupt


class Lazy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.LazyLinear(3)

    def forward(self, reference, transform, action):
        return reference + self.map(transform)


class Meta(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, device="meta"))

    def forward(self, reference, transform, action):
        return reference + self.weight


class MetaBuffer(Base):
    def __init__(self, num_actions: int) -> None:
        super().__init__(num_actions)
        self.register_buffer("shift", torch.zeros(3, device="meta"))


class NoConstructor(nn.Module):
    def forward(self, reference, transform, action):
        return reference


class NoSuper(nn.Module):
    def __init__(self) -> None:
        pass


class NoModule:
    pass


class NoCopy(Base):
    def __deepcopy__(self, memo):
        sys.exit(1)


def task_that_exits():
    sys.exit(0)


def no_task():
    return None


class ExitsWhenDrawn:
    sizes: dict[str, int] = {}  # noqa: RUF012
    conditions = ("test",)
    group_names: dict[str, tuple[str, ...]] = {}  # noqa: RUF012

    def draw(self, condition, count, generator, dtype):
        sys.exit(4)

    def measure(self, output, batch):
        return {}


class RaisesInProperty(ExitsWhenDrawn):
    @property
    def sizes(self):
        raise ValueError("no sizes")
