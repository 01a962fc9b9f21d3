"""Published splits hold out what they say, and a task can give images or true fillers."""

import pytest
import torch

from tpr_attention.tasks.images.fillers import true_fillers
from tpr_attention.tasks.images.reconstruction import ImageReconstruction
from tpr_attention.tasks.images.splits import PUBLISHED

from ..cases import generator

SHARES = {
    "sqr2tx": 1 / 6,
    "r2r-1": 1 / 6,
    "r2r-2": 1 / 3,
    "r2r-3": 1 / 2,
    "r2e": (1 / 3) * (1 / 6) * (14 / 40) * (13 / 32) ** 2,
}


@pytest.mark.parametrize("split", PUBLISHED)
def test_splits_hold_out_their_share(split):
    assert ImageReconstruction(split).held_out.share == pytest.approx(SHARES[split])


def test_every_position_is_shown_with_some_shape():
    for split in PUBLISHED:
        held = ImageReconstruction(split).held_out
        places = held.grid.combinations(("shape", "position_x", "position_y"))
        assert (~held(places)).reshape(3, -1).any(0).all()


@pytest.mark.parametrize(("split", "shape"), [("sqr2tx", "square"), ("r2r-1", "heart")])
def test_one_shape_is_held_out_in_the_right_half(split, shape):
    task = ImageReconstruction(split)
    for condition in ("train", *task.conditions):
        factors = task.grid.rows(task.draw_examples(condition, 500, generator()).squeeze(1))
        right = factors.has("shape", shape) & (factors.column("position_x") >= 16)
        assert (right == (condition == "ood")).all()


def test_objects_are_drawn_uniformly():
    task = ImageReconstruction("r2r-1")
    shapes = task.draw("train", 3000, generator(), torch.float32).groups["shape"].bincount() / 3000
    torch.testing.assert_close(shapes, torch.tensor([0.4, 0.4, 0.2]), atol=0.03, rtol=0)


def test_what_is_given():
    image, fillers = (ImageReconstruction(angles=3, given=given) for given in ("image", "fillers"))
    rows = image.draw_examples("ood", 20, generator())
    seen, told = (task.batch(rows, torch.float64) for task in (image, fillers))
    assert torch.equal(seen.inputs[0], seen.target)
    assert torch.equal(told.target, seen.target)
    assert torch.equal(told.inputs[0], true_fillers(fillers.grid.rows(rows.squeeze(1)), torch.float64))
    assert image.stack_key != fillers.stack_key
    assert fillers.sizes == {**image.sizes, "filler_dim": 8}


def test_a_perfect_answer_has_all_factors_right():
    task = ImageReconstruction(angles=2)
    batch = task.draw("ood", 30, generator(), torch.float32)
    found = task.measure_finally(batch.target, batch)
    assert found["factors"].min() == found["exact"].min() == 1
    assert found["loss"].max() == 0
    assert all(each["target"].startswith("shape square") for each in task.words(batch))


def test_floors_are_in_order():
    floors = ImageReconstruction(angles=2).floors()
    assert floors["in_distribution"]["nearest"] == 0 < floors["ood"]["nearest"]
    assert all(losses["mean"] < losses["black"] for losses in floors.values())


def test_floors_by_other_metrics(as_users_run_it):
    task = ImageReconstruction(angles=2)
    exact, iou = task.floors("exact"), task.floors("iou")
    assert exact["in_distribution"]["nearest"] == iou["in_distribution"]["nearest"] == 1
    assert exact["ood"]["nearest"] == 0 < iou["ood"]["nearest"] < 1
    with pytest.raises(ValueError, match=r"^metric: expected one of"):
        task.floors("factors")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "r2r"}, "split: expected one of"),
        ({"given": "labels"}, "given: expected one of"),
        ({"split": "builtins:len"}, "split: "),
        ({"split": "r2e", "angles": 3}, "split: expected one that holds out some objects and not all, got 0 of 55,296"),
    ],
)
def test_other_options_are_refused(options, message, as_users_run_it):
    with pytest.raises(ValueError, match=f"^{message}"):
        ImageReconstruction(**options)
