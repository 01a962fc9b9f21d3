"""Images are measured as literal loops would, also for many runs at once, and factors by reading."""

from dataclasses import replace
from math import log

import pytest
import torch

from tpr_attention.tasks.composition.factors import Column
from tpr_attention.tasks.images.frames import coloured_grid, draw_frames, white_grid
from tpr_attention.tasks.images.metrics import equal_modulo_symmetry, measure_factors, measure_images


def by_loops(output, target):
    """The metrics of one image, number by number."""
    nll = sse = wrong_numbers = wrong_pixels = both = either = 0
    channels, height, width = target.shape
    for row in range(height):
        for column in range(width):
            seen = there = wrong = False
            for channel in range(channels):
                p, t = output[channel, row, column].item(), target[channel, row, column].item()
                nll -= log(max(p if t == 1 else 1 - p, 1e-12))
                sse += (p - t) ** 2
                wrong_numbers += (p > 0.5) != (t == 1)
                seen, there, wrong = seen or p > 0.5, there or t == 1, wrong or (p > 0.5) != (t == 1)
            wrong_pixels += wrong
            both, either = both + (seen and there), either + (seen or there)
    size = channels * height * width
    return {
        "loss": nll / size,
        "nll": nll,
        "sse": sse,
        "mse": sse / size,
        "iou": both / either if either else 1,
        "wrong_numbers": wrong_numbers,
        "wrong_pixels": wrong_pixels,
        "exact": float(wrong_numbers == 0),
    }


@pytest.fixture
def images(generator):
    """Three runs of five small images: anything, nearly right, right, certainly wrong, both empty."""
    target = (torch.rand(3, 5, 3, 4, 6, generator=generator, dtype=torch.float64) < 0.2).double()
    target[:, 4] = 0
    output = torch.rand(target.shape, generator=generator, dtype=torch.float64)
    output[:, 1] = (target[:, 1] - 0.49 * output[:, 1]).abs()
    output[:, 2], output[:, 3], output[:, 4] = target[:, 2], 1 - target[:, 3], 0.3
    return output, target


def test_metrics_are_those_of_loops(images):
    output, target = images
    ways = [measure_images(output, target), torch.vmap(measure_images)(output, target)]
    for run in range(3):
        one_by_one = measure_images(output[run], target[run])
        for row in range(5):
            for name, value in by_loops(output[run, row], target[run, row]).items():
                assert one_by_one[name][row].item() == pytest.approx(value, rel=1e-9, abs=1e-12), name
                assert all(found[name][run, row].item() == pytest.approx(value, rel=1e-9, abs=1e-12) for found in ways)
        assert list(one_by_one) == list(by_loops(output[0, 0], target[0, 0]))
    assert ways[0]["exact"].tolist() == [[0, 1, 1, 0, 1]] * 3


def test_overlap_ignores_colour():
    target = torch.zeros(1, 3, 4, 4)
    target[:, 0, :2, :2] = 1
    found = measure_images(target.flip(1), target)  # blue in the place of red
    assert {name: found[name].item() for name in ("iou", "wrong_pixels", "exact")} == {
        "iou": 1,
        "wrong_pixels": 4,
        "exact": 0,
    }


def test_the_gradient_of_the_loss_is_that_of_the_binary_cross_entropy(images):
    output, target = (each[0, :2] for each in images)
    output.requires_grad_()
    found = measure_images(output, target)
    plain = torch.nn.functional.binary_cross_entropy(output, target)
    torch.testing.assert_close(found["loss"].mean(), plain)
    torch.testing.assert_close(*(torch.autograd.grad(loss, output)[0] for loss in (found["loss"].mean(), plain)))
    assert not any(values.requires_grad for name, values in found.items() if name != "loss")


def test_each_factor_is_right_or_wrong_by_itself():
    grid = coloured_grid(3)
    truth = grid.table(torch.tensor([[1, 3, 1, 10, 20, 0]] * 8))
    answers = truth.classes.clone()
    for row, column in enumerate((0, 1, 2, 3, 4, 5)):
        answers[row, column] = (answers[row, column] + 1) % 3
    images = draw_frames(grid.table(answers))
    images[6] = 0
    found = measure_factors(images, draw_frames(truth), grid, warped=False)
    assert list(found) == ["factors", *grid.names, "factors_modulo_symmetry"]
    right = torch.stack([found[name] for name in grid.names], 1)
    expected = (answers == truth.classes).float()
    expected[6] = 0  # of an empty image nothing is right, although an object is read
    assert torch.equal(right, expected)
    assert found["factors"].tolist() == [0, 0, 0, 0, 0, 0, 0, 1]


def test_symmetric_turns_are_told_from_others():
    grid = white_grid(40)
    truth = grid.table(torch.tensor([[shape, 5, 4, 9, 9, 0] for shape in range(3) for _ in range(40)]))
    found = grid.table(torch.tensor([[shape, 5, k, 9, 9, 0] for shape in range(3) for k in range(40)]))
    square, ellipse, heart = (
        each.nonzero().flatten().tolist() for each in equal_modulo_symmetry(found, truth).reshape(3, 40)
    )
    assert square == [4, 14, 23, 24, 33]
    assert ellipse == [4, 23, 24]
    assert heart == [4]


def test_a_quarter_turn_of_a_square_is_right_modulo_symmetry_only():
    grid = white_grid()
    turns = grid.columns[2].values[0], grid.columns[2].values[10]  # 0 and 92 degrees
    grid = replace(grid, columns=(*grid.columns[:2], Column("orientation", turns), *grid.columns[3:]))
    truth, turned = (draw_frames(grid.table(torch.tensor([[0, 5, k, 12, 20, 0]]))) for k in (0, 1))
    found = measure_factors(turned, truth, grid, warped=False)
    assert (found["factors"].item(), found["factors_modulo_symmetry"].item()) == (0, 1)
