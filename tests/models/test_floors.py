"""The closed form is the least squares solution, and its losses are the known floors."""

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.models.composition.linear_floor import LinearFloor
from tpr_attention.tasks.composition import CONDITIONS, dsprites_composition


def test_the_fit_is_the_least_squares_solution_for_each_action():
    task = dsprites_composition("square_red", "shape_col")
    batch = task.draw("train", 3000, named_generator(0, "a"), torch.float64)
    parts = [batch.map(lambda tensor, rows=rows: tensor[rows]) for rows in torch.arange(3000).split(700)]
    model = LinearFloor(5, 6, 3).double().fit(parts)
    (reference, transform, _), output = batch.inputs, model(*batch.inputs)
    for action in range(5):
        rows = batch.groups["action"] == action
        inputs = torch.cat([reference[rows].flatten(1), transform[rows].flatten(1)], 1)
        inputs = torch.cat([inputs, torch.ones(len(inputs), 1).double()], 1)
        wanted = (batch.target - reference)[rows].flatten(1)
        solution = torch.linalg.lstsq(inputs, wanted, driver="gelsd").solution  # the shortest of all solutions
        torch.testing.assert_close(model.weight[action], solution, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close((output - reference)[rows].flatten(1), inputs @ solution, rtol=0, atol=1e-8)


def test_no_layer_of_appendix_d_goes_below_it(as_users_run_it):
    """Train the paper's model on the very pairs that the closed form is fitted to."""
    task = dsprites_composition("scale_pos", "scale_pos")
    batch = task.draw("train", 600, named_generator(0, "a"), torch.float64)
    floor = (LinearFloor(5, 6, 3).double().fit([batch])(*batch.inputs) - batch.target).square().mean()
    model = build("tpr", task, num_heads=8).double()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(500):
        optimiser.zero_grad()
        loss = (model(*batch.inputs) - batch.target).square().mean()
        loss.backward()
        optimiser.step()
    assert floor < loss < 10 * floor


@pytest.mark.parametrize(
    ("split", "known"),
    [
        ("scale_pos", (1.1e-3, 1.4e-3, 1.4e-3, 6.2e-3)),
        ("square_pos", (1.2e-3, 8.8e-4, 9.3e-4, 8.7e-4)),
        ("square_red", (1.1e-3, 1.1e-3, 1.1e-3, 0.0)),
    ],
)
def test_floors_of_the_numerical_interaction(split, known):
    """Known to two digits, for pairs that are all equally likely."""
    task = dsprites_composition(split, "scale_pos", balance_actions=False)
    model = LinearFloor(5, 6, 3).double().fit([task.draw("train", 100_000, named_generator(0, "fit"), torch.float64)])
    for condition, expected in zip(list(CONDITIONS)[:1] + list(CONDITIONS)[2:], known, strict=True):
        batch = task.draw(condition, 30_000, named_generator(0, condition), torch.float64)
        loss = (model(*batch.inputs) - batch.target).square().mean().item()
        assert loss == pytest.approx(expected, rel=0.06, abs=1e-20)


def test_before_it_is_fitted_it_has_no_answer(generator):
    batch = dsprites_composition().draw("train", 10, generator)
    model = LinearFloor(5, 5, 3)
    assert model(*batch.inputs).isnan().all()
    empty, wrong = batch.map(lambda tensor: tensor[:0]), batch._replace(target=batch.target * torch.nan)
    for bad in ([], [empty], [wrong]):
        with pytest.raises(ValueError, match="batches: expected at least one pair, and finite numbers"):
            model.fit(bad)


@pytest.mark.parametrize("split", ["scale_pos", "square_pos", "square_red"])
def test_without_interaction_the_floor_is_zero(split):
    task = dsprites_composition(split)
    model = LinearFloor(5, 5, 3).double().fit([task.draw("train", 20_000, named_generator(0, "fit"))])
    for condition in CONDITIONS:
        batch = task.draw(condition, 2000, named_generator(0, condition), torch.float64)
        assert (model(*batch.inputs) - batch.target).square().mean() < 1e-12
