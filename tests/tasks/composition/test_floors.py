"""Floors are those of all pairs, listed one by one, and those of the models that are fitted to samples."""

from itertools import product

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import (
    CONDITIONS,
    INTERACTIONS,
    SPLITS,
    Composition,
    Condition,
    Encoding,
    FillerTable,
    HeldOut,
    Pairing,
    Pairs,
    dsprites_composition,
)
from tpr_attention.tasks.composition.floors import REFERENCE, TRANSFORM, Term, mean

from .small import large_discs, small_encoding, small_grid

TESTS = ("ood_reference", "ood_transform", "ood_composition")
EVERY = {**CONDITIONS, "anything": Condition(None, None, None), "all": Condition(True, True, True)}


def discs(factors):
    return factors.has("kind", "disc")


def discs_of_two_sizes(factors):
    """Read from two columns: x and y are free, though an action replaces them."""
    return factors.has("kind", "disc") & (factors.value("size") > 0.15)


def small_task(split, generator, interacting=True, roles=None, scored=None, **how):
    """Roles that depend on columns of one action, of two and of three; most of them follow no law."""
    grid = small_grid()
    tables = small_encoding(grid, generator).tables
    for columns in (("kind", "size"), ("y", "size", "kind"), ("x", "kind", "size"), ("x", "y", "size")) * interacting:
        count = torch.Size(grid.sizes[grid.index(name)] for name in columns).numel()
        guess = None if columns[:2] == ("x", "y") else torch.randn(3, generator=generator)
        fillers = torch.randn(count, 3, generator=generator, dtype=torch.float64)
        tables += (FillerTable("-".join(columns), columns, fillers, guess),)
    if roles is not None:
        roles = torch.linalg.qr(torch.randn(roles, len(tables), generator=generator, dtype=torch.float64)).Q.T
    return Composition(Encoding(grid, tables, roles), Pairing(HeldOut(grid, split), **how), scored=scored)


def every_pair(task, split, condition, action, require_change=False):
    """By definition: go through all references and transforms."""
    everything, grid = task.grid.all(), task.grid
    first, second = torch.tensor([*product(range(len(everything)), repeat=2)]).T
    pairs = Pairs(everything[first], everything[second], torch.full_like(first, list(grid.actions).index(action)))
    keep = torch.ones(len(pairs), dtype=torch.bool)
    for part in ("reference", "transform", "target"):
        wanted = getattr(condition, part)
        keep &= wanted is None or split(getattr(pairs, part)) == wanted
    if require_change:
        keep &= (pairs.reference.classes != pairs.target.classes).any(1)
    return Pairs(pairs.reference[keep], pairs.transform[keep], pairs.action[keep])


def shaken(batch, noise):
    """Every pair in many copies, whose inputs have the mean and the covariance of inputs with noise."""
    size = batch.inputs[0][0].numel()
    steps = noise * (2 * size) ** 0.5 * torch.eye(2 * size, dtype=torch.float64)
    steps = torch.cat([steps, -steps]).repeat(len(batch.target), 1)
    many = batch.map(lambda tensor: tensor.repeat_interleave(4 * size, 0))
    first, second = (part.reshape(many.target.shape) for part in steps.split(size, 1))
    return many._replace(inputs=(many.inputs[0] + first, many.inputs[1] + second, many.inputs[2]))


def linear_problem(batch):
    """What a linear map is given, and what it should add to the reference."""
    reference, transform, _ = batch.inputs
    ones = torch.ones(len(reference), 1, dtype=reference.dtype)
    return torch.cat([reference.flatten(1), transform.flatten(1), ones], 1), (batch.target - reference).flatten(1)


def values(both):
    return dict(zip(("linear", "knowable"), both, strict=True))


def listed(task, split, require_change=False, balance_actions=True):
    """Both floors from all pairs, by least squares and by the task's own best answer."""
    solutions, found = {}, {}
    for name, condition in {"train": CONDITIONS["train"], **task.pairing.conditions}.items():
        losses, counts = [], []
        for action in task.grid.actions:
            pairs = every_pair(task, split, condition, action, require_change)
            clean = task.encode(pairs, torch.float64)
            batch = shaken(clean, task.noise) if task.noise else clean
            inputs, update = linear_problem(batch)
            if name == "train":
                empty = torch.zeros(inputs.shape[1], update.shape[1]).double()
                fit = torch.linalg.lstsq(inputs, update, driver="gelsd").solution if len(pairs) else empty
                solutions[action] = fit
            if len(pairs):
                answer = (inputs @ solutions[action]).reshape(batch.target.shape) + batch.inputs[0]
                both = (answer, batch), (task.best_answer(*clean.inputs), clean)
                losses.append(torch.stack([task.measure(*pair)["loss"].mean() for pair in both]))
                counts.append(1 if balance_actions else len(pairs))
        weights = torch.tensor(counts).double()
        found[name] = values((torch.stack(losses) * (weights / weights.sum())[:, None]).sum(0).tolist())
    return found


HOWS = [
    {},
    {"require_change": True},
    {"balance_actions": False},
    {"require_change": True, "balance_actions": False},
]


@pytest.mark.parametrize("how", HOWS, ids=lambda how: "-".join(how) or "plain")
@pytest.mark.parametrize("split", [large_discs, discs_of_two_sizes])
def test_floors_are_those_of_all_pairs(split, how, generator):
    task = small_task(split, generator, conditions=EVERY, **how)
    found, expected = task.floors(), listed(task, split, **how)
    assert list(found) == list(EVERY)
    for name in EVERY:
        assert found[name] == pytest.approx(expected[name], rel=1e-7, abs=1e-12), name
        assert (found[name]["knowable"] == 0) == (expected[name]["knowable"] < 1e-12)
    assert found["train"] == found["in_distribution"]
    assert found["train"]["knowable"] == 0
    assert all(found[name]["linear"] > 0.01 for name in EVERY)
    assert found["ood_composition"]["knowable"] > 0.01  # there is something to guess
    assert found["anything"]["knowable"] < found["ood_composition"]["knowable"]


@pytest.mark.parametrize("roles", [None, 9])
def test_only_roles_that_count_are_in_the_floors(roles, generator):
    scored = ("place", "kind-size", "x-y-size")
    task = small_task(large_discs, generator, roles=roles, scored=scored)
    expected, found = listed(task, large_discs), task.floors()
    for name, both in found.items():
        assert both == pytest.approx(expected[name], rel=1e-7, abs=1e-12), name
    assert Composition(task.encoding, task.pairing).floors() != found


@pytest.mark.parametrize("roles", [7, 9])
def test_turned_roles_leave_the_squared_error_as_it_is(roles, generator):
    """More roles than are used make an object larger, and so the mean over it smaller."""
    task = small_task(large_discs, generator, roles=roles)
    plain = Composition(Encoding(task.grid, task.encoding.tables), task.pairing)
    expected, unturned = listed(task, large_discs), plain.floors()
    for name, both in task.floors().items():
        assert both == pytest.approx(expected[name], rel=1e-7, abs=1e-12)
        assert both == pytest.approx(values(loss * 7 / roles for loss in unturned[name].values()), rel=1e-9)


@pytest.mark.parametrize("split", [large_discs, discs_of_two_sizes])
def test_what_is_only_copied_has_no_floor(split, generator):
    task = small_task(split, generator, interacting=False)
    assert all(both == {"linear": 0, "knowable": 0} for both in task.floors().values())


def test_rounding_is_far_below_any_loss_that_matters(generator):
    """Fillers of size 1e-4 have a loss of about 1e-9, and are right to six digits."""
    task = small_task(large_discs, generator, interacting=False)
    fillers = torch.randn(6, 3, generator=generator, dtype=torch.float64) / 1e4
    tables = (*task.encoding.tables, FillerTable("small", ("kind", "size"), fillers))
    tiny = Composition(Encoding(task.grid, tables), task.pairing)
    expected = listed(tiny, large_discs)
    for name, both in tiny.floors().items():
        assert 1e-11 < expected[name]["linear"] < 1e-8
        assert both["linear"] == pytest.approx(expected[name]["linear"], rel=1e-6)


@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_noise_on_the_inputs_raises_the_linear_floor(noise, generator):
    task = small_task(large_discs, generator, interacting=False)
    columns, fillers = ("kind", "size"), torch.randn(6, 3, generator=generator, dtype=torch.float64)
    encoding = Encoding(task.grid, (*task.encoding.tables, FillerTable("both", columns, fillers)))
    plain = Composition(encoding, task.pairing).floors()
    noisy = Composition(encoding, task.pairing, noise)
    expected = listed(noisy, large_discs)
    found = noisy.floors()
    for name, both in found.items():
        assert both["linear"] == pytest.approx(expected[name]["linear"], rel=1e-7)
        assert both["knowable"] == plain[name]["knowable"]
    assert found["train"]["linear"] > plain["train"]["linear"]


def test_an_action_that_training_does_not_have_keeps_the_copy(generator):
    conditions = {name: CONDITIONS[name] for name in ("train", "ood_reference")}
    task = small_task(discs, generator, conditions=conditions, require_change=True)
    assert task.pairing.actions("train") == ("size", "place")
    assert "kind" in task.pairing.actions("ood_reference")
    expected = listed(task, discs, require_change=True)
    for name, both in task.floors().items():
        assert both == pytest.approx(expected[name], rel=1e-7, abs=1e-12)
    conditions.pop("ood_reference")  # now no condition has that action
    alone = Pairing(HeldOut(task.grid, discs), conditions=conditions, require_change=True)
    found = Composition(task.encoding, alone).floors()
    assert list(found) == ["train"]
    assert found["train"] == pytest.approx(expected["train"], rel=1e-7, abs=1e-12)


def test_a_task_without_training_has_no_floors(generator):
    task = small_task(large_discs, generator, conditions={"ood_reference": CONDITIONS["ood_reference"]})
    with pytest.raises(ValueError, match=r"condition: expected one of .*, got 'train'"):
        task.floors()


@pytest.mark.parametrize("require_change", [False, True])
def test_means_are_those_of_all_pairs(require_change, generator):
    task = small_task(large_discs, generator, require_change=require_change)
    values = torch.randn(2, 3, 2, 5, generator=generator, dtype=torch.float64)
    other = torch.randn(3, 2, 4, generator=generator, dtype=torch.float64)
    columns = ((TRANSFORM, "kind"), (REFERENCE, "size"), (REFERENCE, "y"))
    terms = [Term(values.numpy(), columns), Term(other.numpy(), ((TRANSFORM, "size"), (TRANSFORM, "y")))]
    for action, equal in product(task.grid.actions, ((), ("y",), ("kind", "x"))):
        pairs = every_pair(task, large_discs, CONDITIONS["ood_transform"], action, require_change)
        ours, theirs = pairs.reference.columns, pairs.transform.columns
        same = torch.stack([ours[name] == theirs[name] for name in (*equal, "x")])[: len(equal)].all(0)
        found = values[theirs["kind"], ours["size"], ours["y"]]
        expected = torch.einsum("nf,ng,n->fg", found, other[theirs["size"], theirs["y"]], same.double()) / len(pairs)
        exact = torch.from_numpy(mean([task.pairing.chain("ood_transform", action)], terms, equal)[0])
        torch.testing.assert_close(exact, expected, rtol=1e-12, atol=1e-12)


KNOWN = {
    ("scale_pos", "scale_pos"): (1.1e-3, 1.4e-3, 1.4e-3, 6.2e-3),
    ("scale_pos", "square_pos"): (1.2e-3, 8.8e-4, 9.3e-4, 8.7e-4),
    ("scale_pos", "square_red"): (1.1e-3, 1.1e-3, 1.1e-3, 0.0),
    ("shape_col", "scale_pos"): (1.6e-2, 1.6e-2, 1.6e-2, 0.0),
    ("shape_col", "square_pos"): (1.6e-2, 1.7e-2, 1.9e-2, 2.8e-2),
    ("shape_col", "square_red"): (1.5e-2, 2.3e-2, 2.3e-2, 1.5e-1),
}
"""Known to two digits, for pairs that are all equally likely; with shape and colour, for one draw of the tensor."""


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
@pytest.mark.parametrize("split", SPLITS)
def test_floors_of_the_paper(split, interaction):
    task = dsprites_composition(split, interaction, balance_actions=False)
    found = task.floors()
    for name, known in zip(("train", *TESTS), KNOWN.get((interaction, split), (0.0,) * 4), strict=True):
        if interaction == "shape_col" and known:
            assert known / 10 < found[name]["linear"] < known * 10
        else:
            assert found[name]["linear"] == pytest.approx(known, rel=0.1, abs=0)
    unsolvable = {name for name in found if found[name]["knowable"]}
    hard = (interaction, split) == ("shape_col", "square_red")
    assert unsolvable == ({"ood_composition"} if hard else set())
    if hard:
        red_square = task.encoding.tables[-1].fillers[0]
        assert found["ood_composition"]["knowable"] == pytest.approx(red_square.square().sum().item() / 18, rel=1e-12)


CHANGES = [
    ("shape_col", "square_red", {"require_change": True}),
    ("scale_pos", "scale_pos", {"require_change": True, "target_of_tests": True}),
    ("shape_col", "square_pos", {"balance_actions": False, "target_of_tests": False}),
    ("scale_pos", "square_pos", {"interaction_action": True}),
]


@pytest.mark.parametrize(("interaction", "split", "changes"), CHANGES)
def test_a_fitted_map_and_the_best_answer_agree_within_sampling_error(interaction, split, changes):
    """Five standard errors of 4,000 pairs, and one percent for a fit to 40,000."""
    task = dsprites_composition(split, interaction, **changes)
    batch = task.draw("train", 40_000, named_generator(0, "fit"), torch.float64)
    inputs, update = linear_problem(batch)
    solutions = [
        torch.linalg.lstsq(inputs[rows], update[rows], driver="gelsd").solution
        for rows in (batch.groups["action"] == action for action in range(task.num_actions))
    ]
    for name, exact in task.floors().items():
        batch = task.draw(name, 4000, named_generator(0, name), torch.float64)
        inputs, _ = linear_problem(batch)
        updates = torch.stack([inputs @ solution for solution in solutions], 1)
        chosen = updates[torch.arange(4000), batch.groups["action"]]
        outputs = {
            "linear": batch.inputs[0] + chosen.reshape(batch.target.shape),
            "knowable": task.best_answer(*batch.inputs),
        }
        for kind, output in outputs.items():
            losses = task.measure(output, batch)["loss"]
            error = 5 * losses.std().item() / 4000**0.5
            assert losses.mean().item() == pytest.approx(exact[kind], rel=0.01, abs=error + 1e-12), (name, kind)
