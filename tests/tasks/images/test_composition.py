"""Images of the composition task: what is new is where it must be, controls do what they say, the oracle is exact."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition.factors import substitute
from tpr_attention.tasks.composition.held_out import HeldOut
from tpr_attention.tasks.composition.splits import SPLITS
from tpr_attention.tasks.images import floors
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.tasks.images.fillers import true_fillers
from tpr_attention.tasks.images.floors import nearest_known
from tpr_attention.tasks.images.frames import draw_frames, numbers_of
from tpr_attention.tasks.images.reading import read_frames

from ..cases import generator

COUNT = 200
DISTORTIONS = ("none", "warped", "smooth", "noisy")
CONDITIONS = ("train", "in_distribution", "ood_reference", "ood_transform", "ood_composition")


def held_out(task, rows, held):
    """Which references, transforms and targets are held out."""
    first, second = (task.grid.rows(rows[:, k]) for k in range(2))
    return [held(each) for each in (first, second, substitute(first, second, rows[:, 2]))]


@pytest.mark.parametrize("split", SPLITS)
def test_conditions_of_a_split(split):
    task = ImageComposition(split)
    found = {name: held_out(task, task.draw_examples(name, COUNT, generator()), task.held_out) for name in CONDITIONS}
    for name, (reference, transform, target) in found.items():
        assert (reference == (name == "ood_reference")).all()
        assert (transform == (name == "ood_transform")).all()
        if name in ("train", "in_distribution", "ood_composition"):
            assert (target == (name == "ood_composition")).all()
        else:
            assert 0 < target.float().mean() < 1


def test_conditions_of_the_union():
    task = ImageComposition("union")
    assert task.held_out.share == pytest.approx(7 / 18)
    assert len(task.conditions) == 1 + 3 * 3
    for name in ("train", "in_distribution"):
        assert not any(
            each.any() for each in held_out(task, task.draw_examples(name, COUNT, generator()), task.held_out)
        )
    for name in task.conditions[1:]:
        split, test = name.split(".")
        rows = task.draw_examples(name, COUNT, generator())
        part, union = (held_out(task, rows, held) for held in (HeldOut(task.grid, SPLITS[split]), task.held_out))
        new = ("ood_reference", "ood_transform", "ood_composition").index(test)
        assert part[new].all()
        assert not any(union[k].any() for k in range(2) if k != new)


@pytest.mark.parametrize("distortion", DISTORTIONS)
def test_batches_are_the_frames_of_their_rows(distortion):
    task = ImageComposition("square_red", angles=2, distortion=distortion)
    rows = task.draw_examples("ood_reference", 40, generator())
    plain = ImageComposition("square_red", angles=2).draw_examples("ood_reference", 40, generator())
    assert torch.equal(rows[:, :4], plain[:, :4])
    batch = task.batch(rows, torch.float64)
    first, second = (task.grid.rows(rows[:, k]) for k in range(2))
    target = substitute(first, second, rows[:, 2])
    warped = distortion == "warped"
    assert torch.equal(batch.target, draw_frames(target, torch.float64, warped))
    assert torch.equal(batch.inputs[2].argmax(1), rows[:, 2])
    assert torch.equal(batch.groups["action"], rows[:, 2])
    assert torch.equal(batch.groups["target"].bool(), task.held_out(target))
    for given, factors in zip(batch.inputs[:2], (first, second), strict=True):
        exact = draw_frames(factors, torch.float64, warped)
        assert torch.equal(given, exact) == (distortion in ("none", "warped"))
        assert 0 <= (given - exact).square().mean().sqrt() < 0.11
        assert torch.equal(task.read(given).factors.classes, factors.classes)


def test_a_warp_changes_targets_too():
    rows = ImageComposition().draw_examples("train", 5, generator())
    plain, warped = (ImageComposition(distortion=name).batch(rows, torch.float32) for name in ("none", "warped"))
    assert not torch.equal(plain.target, warped.target)
    assert plain.target.unique().tolist() == warped.target.unique().tolist() == [0, 1]


def test_noise_is_of_its_own_for_each_image_and_row():
    task = ImageComposition(distortion="noisy")
    rows = task.draw_examples("train", 1, generator()).repeat(2, 1)
    rows[1, 4] += 1
    batch = task.batch(rows, torch.float32)
    assert not torch.equal(batch.inputs[0][0], batch.inputs[0][1])
    exact = draw_frames(task.grid.rows(rows[:, 0])), draw_frames(task.grid.rows(rows[:, 1]))
    noise = [given - frame for given, frame in zip(batch.inputs[:2], exact, strict=True)]
    assert (noise[0] - noise[1]).std() > 0.1


def test_shuffled_actions_say_nothing_in_training_and_the_truth_in_tests():
    task = ImageComposition(shuffle_actions=True)
    rows = task.draw_examples("train", 5000, generator())
    plain = ImageComposition().draw_examples("train", 5000, generator())
    assert torch.equal(rows[:, :3], plain[:, :3])
    table = torch.zeros(5, 5).index_put((rows[:, 2], rows[:, 3]), torch.ones(()), accumulate=True) / 5000
    torch.testing.assert_close(table, torch.full((5, 5), 0.04), atol=0.012, rtol=0)
    batch = task.batch(rows[:20], torch.float32)
    assert torch.equal(batch.inputs[2].argmax(1), rows[:20, 3])
    assert torch.equal(batch.groups["action"], rows[:20, 2])
    tests = task.draw_examples("ood_composition", 100, generator())
    assert torch.equal(tests[:, 2], tests[:, 3])


@pytest.mark.parametrize("distortion", DISTORTIONS)
@pytest.mark.parametrize("split", ["square_red", "union"])
def test_the_oracle_is_exact(split, distortion):
    """With all angles of the task and under all its conditions: read both images, substitute, and draw."""
    task = ImageComposition(split, distortion=distortion)
    for condition in ("train", *task.conditions):
        batch = task.draw(condition, 100, generator(), torch.float32)
        found = task.measure_finally(task.best_answer(*batch.inputs), batch)
        assert list(found)[:8] == list(task.measure(batch.target, batch))
        for name in ("exact", "iou", "factors", "factors_modulo_symmetry"):
            assert found[name].min() == 1, name
        assert found["loss"].max() == 0


def test_factor_labels_are_the_true_fillers_of_both_inputs():
    plain, labelled = (ImageComposition("union", angles=2, factor_labels=labels) for labels in (False, True))
    rows = plain.draw_examples("square_pos.ood_transform", 40, generator())
    assert torch.equal(rows, labelled.draw_examples("square_pos.ood_transform", 40, generator()))
    (*seen, reference, transform), target, *_ = labelled.batch(rows, torch.float64)
    for one, other in zip(seen, plain.batch(rows, torch.float64).inputs, strict=True):
        assert torch.equal(one, other)
    pair = [labelled.grid.rows(rows[:, k]) for k in range(2)]
    assert torch.equal(reference, true_fillers(pair[0], torch.float64))
    assert torch.equal(transform, true_fillers(pair[1], torch.float64))
    examples = torch.arange(40)
    reference[examples, rows[:, 2]] = transform[examples, rows[:, 2]]  # the role of an action is that of its factor
    assert torch.equal(reference, true_fillers(substitute(*pair, rows[:, 2]), torch.float64))
    assert labelled.sizes == {**plain.sizes, "filler_dim": 8}
    assert labelled.stack_key != plain.stack_key
    assert torch.equal(labelled.best_answer(*seen, reference, transform), target)


def test_floors_are_in_order():
    found = ImageComposition("square_pos", angles=2).floors()
    assert set(found) == set(CONDITIONS)
    for condition, losses in found.items():
        assert losses["oracle"] == 0
        assert losses["mean"] < losses["copy"]
        assert losses["mean"] < losses["black"]
        assert (losses["nearest"] > 0) == condition.startswith("ood")
        assert losses["nearest"] < losses["black"]


def test_floors_by_other_metrics():
    task = ImageComposition("square_pos", angles=2)
    iou, exact, wrong = map(task.floors, ("iou", "exact", "wrong_pixels"))
    assert task.floors() == task.floors("loss") != iou
    for condition in CONDITIONS:
        assert (iou[condition]["black"], iou[condition]["oracle"]) == (0, 1)
        assert (exact[condition]["black"], exact[condition]["oracle"]) == (0, 1)
        batch = task.draw(condition, floors.COUNT, named_generator(0, f"floors of {condition}"), torch.float32)
        there = (batch.target > 0).any(1)
        assert wrong[condition]["black"] == pytest.approx(there.sum((1, 2)).float().mean().item())
        copied = task.measure(batch.inputs[0], batch)
        assert iou[condition]["copy"] == pytest.approx(copied["iou"].mean().item())
        assert exact[condition]["copy"] == copied["exact"].mean().item()
        assert (exact[condition]["nearest"] == 1) == (not condition.startswith("ood"))


def test_floors_are_found_once(monkeypatch):
    task = ImageComposition("square_pos", angles=2)
    first = task.floors("exact")
    monkeypatch.setattr(task, "draw", None)
    assert task.floors("exact") == first
    task.floors("sse")


def test_floors_by_a_metric_that_there_is_not_are_refused(as_users_run_it):
    with pytest.raises(ValueError, match=r"^metric: expected one of \['loss', .*'exact'\], got 'exat'; did you mean"):
        ImageComposition("square_pos", angles=2).floors("exat")


def test_the_nearest_known_image_is_one_of_training():
    task = ImageComposition("square_red", angles=2)
    batch = task.draw("ood_composition", 30, generator(), torch.float32)
    answer = nearest_known(batch.target, task.grid, task.held_out, False)
    found = read_frames(answer, task.grid).factors
    assert not task.held_out(found).any()
    truth = read_frames(batch.target, task.grid).factors
    wrong = (answer != batch.target).flatten(1).sum(1)
    for other in range(1, 3):  # not worse than the same place and colour in another shape
        classes = truth.classes.clone()
        classes[:, 0] = other
        assert (wrong <= (draw_frames(task.grid.table(classes)) != batch.target).flatten(1).sum(1)).all()


def test_words_and_pictures_are_of_the_images():
    task = ImageComposition("square_red", angles=2, distortion="smooth")
    rows = task.draw_examples("train", 5, generator())
    batch = task.batch(rows, torch.float32)
    words = task.words(batch)
    for k, part in enumerate(("reference", "transform")):
        assert [each[part] for each in words] == [task.grid.rows(rows[:, k]).describe(row) for row in range(5)]
    assert [each["action"] for each in words] == [task.group_names["action"][k] for k in rows[:, 2].tolist()]
    pictures = task.pictures(batch)
    assert list(pictures) == ["reference", "transform", "target"]
    assert torch.equal(pictures["target"].permute(0, 3, 1, 2), (batch.target * 255).byte())


def test_stacks_are_of_tasks_with_the_same_tests():
    keys = {name: ImageComposition(name).stack_key for name in (*SPLITS, "union")}
    assert len(set(keys.values())) == 2
    assert ImageComposition(angles=8).stack_key != ImageComposition().stack_key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "square_rad"}, "split: expected one of .*'union'.*; did you mean 'square_red'"),
        ({"angles": 41}, "angles: expected at most 40, got 41"),
        ({"distortion": "bent"}, "distortion: expected one of"),
        ({"split": {"shape": "square"}}, "split: it leaves"),
    ],
)
def test_other_options_are_refused(options, message, as_users_run_it):
    with pytest.raises(ValueError, match=f"^{message}"):
        ImageComposition(**options)


def test_numbers_fit_the_grid():
    task = ImageComposition({"shape": "heart", "colour": "blue"}, angles=40)
    rows = task.draw_examples("ood_transform", 50, generator())
    transform = task.grid.rows(rows[:, 1])
    assert transform.has("shape", "heart").all()
    assert transform.has("colour", "blue").all()
    assert torch.equal(numbers_of(transform), rows[:, 1])
