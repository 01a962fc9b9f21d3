"""All tasks are held to one suite of checks, and the suite finds tasks that break the contract."""

from pathlib import Path

import pytest
import torch

from tpr_attention.tasks import TASKS
from tpr_attention.tasks.task import Batch

from .conformance import CHECKS, Case
from .images.cases import IMAGES
from .recall.cases import RECALL


def is_held_out(task, batch):
    """Whether an object in an example of a composition task is one that training never shows."""
    objects = (*batch.inputs[:2], batch.target)
    return torch.stack([task.pairing.held_out(task.encoding.decode(each)) for each in objects]).any(0)


FRUIT = {
    "path": str(Path(__file__).parent / "composition" / "fruit.csv"),
    "factors": {"kind": "one-hot", "weight": "numeric", "taste": ["sweet", "sour"]},
}
LAW = {"law": "tpr_attention.tasks.composition.laws:direction_of_sum", "factors": ["shape", "colour"]}
CASES = {
    "composition": Case("composition", {}, is_held_out),
    "interaction": Case(
        "composition",
        {"split": "scale_pos", "interaction": "shape_col", "scored": "factors", "interaction_action": True},
        is_held_out,
    ),
    "unbalanced": Case("composition", {"balance_actions": False, "noise": 0.001, "position_range": [0.0, 2.0]}),
    "conditional": Case(
        "composition", {"split": "scale_pos", "interaction": "conditional_shape_scale_position"}, is_held_out
    ),
    "mixture": Case("composition", {"interaction": "mixture_shape_orientation"}, is_held_out),
    "own": Case("composition", {"split": {"shape": "heart", "colour": "blue"}, "interaction": LAW}, is_held_out),
    "random": Case("random-composition", {"factors": 4, "filler_dim": 6}, is_held_out),
    "random-noise": Case("random-composition", {"noise": 0.1}),
    "table": Case("table-composition", FRUIT, is_held_out),
    "table-all": Case("table-composition", {"path": FRUIT["path"], "split": {"kind": "pear", "ripe": "true"}}),
    **IMAGES,
    **RECALL,
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tasks_conform(case, check):
    check(case)


def test_every_task_is_checked():
    assert {case.name for case in CASES.values()} == set(TASKS)


class Plain:
    """The least that a task can be: numbers that should be doubled. Those above one half are held out.

    Args:
        size: How many numbers.
    """

    conditions = ("large",)

    def __init__(self, size: int = 2) -> None:
        self.sizes, self.group_names = {"size": size}, {"sign": ("negative", "positive")}

    def draw(self, condition, count, generator, dtype):
        if condition not in ("train", "large"):
            raise ValueError(f"condition: expected 'train' or 'large', got {condition!r}")
        small = torch.rand(count, self.sizes["size"], generator=generator, dtype=dtype) / 2
        numbers = small + (condition == "large") / 2
        return Batch((numbers,), 2 * numbers, {"sign": (numbers[:, 0] > 0).long()})

    def measure(self, output, batch):
        if output.shape != batch.target.shape:
            raise ValueError(f"output: expected {list(batch.target.shape)}, got {list(output.shape)}")
        return {"loss": (output - batch.target).square().mean(-1)}


def plain(name):
    return Case(f"{__name__}:{name}", {}, lambda _, batch: (batch.inputs[0] > 0.5).any(1))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_task_of_ones_own_conforms(check):
    check(plain("Plain"))


class Forgetful(Plain):
    """Draws from torch's global state. size: as before."""

    def draw(self, condition, count, generator, dtype):
        return super().draw(condition, count, torch.default_generator, dtype)


class Leaking(Plain):
    """Shows in training what is held out. size: as before."""

    def draw(self, condition, count, generator, dtype):
        return super().draw("large" if condition == "train" else condition, count, generator, dtype)


class Averaging(Plain):
    """Gives one number for all examples. size: as before."""

    def measure(self, output, batch):
        return {"loss": super().measure(output, batch)["loss"].mean(0, keepdim=True)}


class Undocumented(Plain):
    """Says nothing of its option."""


class Stubborn(Plain):
    """Always draws float32. size: as before."""

    def draw(self, condition, count, generator, dtype):
        return super().draw(condition, count, generator, torch.float32)


class Branching(Plain):
    """Looks at numbers, which cannot be traced. size: as before."""

    def measure(self, output, batch):
        return {"loss": super().measure(output, batch)["loss"] * (1 if output.sum() > 0 else 2)}


class Unchecked(Plain):
    """Broadcasts an output of any shape. size: as before."""

    def measure(self, output, batch):
        return {"loss": (output - batch.target).square().flatten(1).mean(-1)}


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Forgetful, "the_same_generator_gives_the_same_bits"),
        (Leaking, "what_is_held_out_is_where_it_must_be"),
        (Averaging, "metrics_are_numbers_of_examples"),
        (Undocumented, "options_survive_json_and_are_documented"),
        (Stubborn, "it_draws_what_it_says"),
        (Branching, "measuring_works_for_many_runs_at_once_and_can_be_traced"),
        (Unchecked, "an_output_of_another_shape_and_an_unknown_condition_are_refused"),
    ],
)
def test_what_breaks_the_contract_is_found(broken, check):
    found = {one.__name__: one for one in CHECKS}[check]
    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        found(plain(broken.__name__))
