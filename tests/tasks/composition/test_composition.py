"""A task gives batches whose targets are encoded from substituted factors, and knows what can be known."""

from dataclasses import replace

import pytest
import torch

from tpr_attention.generators import named_generator
from tpr_attention.tasks.composition import (
    CONDITIONS,
    INTERACTIONS,
    SPLITS,
    Composition,
    Encoding,
    FillerTable,
    HeldOut,
    Pairing,
    dsprites_composition,
)
from tpr_attention.tasks.composition.laws import MIXINGS
from tpr_attention.tasks.composition.sprites import colour, render

from .small import large_discs, small_encoding, small_grid


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
@pytest.mark.parametrize("split", SPLITS)
def test_batches_hold_the_encoded_pairs(split, interaction):
    task = dsprites_composition(split, interaction)
    pairs = task.pairing.draw("train", 500, named_generator(0, "a"))
    batch = task.draw("train", 500, named_generator(0, "a"), torch.float64)
    assert torch.equal(batch.inputs[0], task.encoding.encode(pairs.reference, torch.float64))
    assert torch.equal(batch.inputs[1], task.encoding.encode(pairs.transform, torch.float64))
    assert torch.equal(batch.target, task.encoding.encode(pairs.target, torch.float64))
    assert torch.equal(batch.inputs[2].argmax(-1), pairs.action)
    assert torch.equal(batch.inputs[2].sum(-1), torch.ones(500, dtype=torch.float64))
    # In the roles of the five factors, the target is the reference but for the acted one.
    chosen = torch.where(batch.inputs[2][..., None] > 0, batch.inputs[1][:, :5], batch.inputs[0][:, :5])
    assert torch.equal(batch.target[:, :5], chosen)


@pytest.mark.parametrize("interaction", INTERACTIONS)
def test_the_interaction_of_the_target_is_neither_that_of_the_reference_nor_of_the_transform(interaction):
    batch = dsprites_composition("square_red", interaction).draw("train", 2000, named_generator(0, "a"), torch.float64)
    other = [(batch.target[:, 5] - given[:, 5]).abs().amax(-1) > 1e-6 for given in batch.inputs[:2]]
    assert (other[0] & other[1]).double().mean() > 0.1


def test_the_mixing_tensor_has_a_generator_of_its_own():
    def fillers(**fields):
        return dsprites_composition("square_red", "shape_col", **fields).encoding.tables[-1].fillers

    assert torch.equal(fillers(seed=1), fillers(seed=1))
    assert torch.equal(fillers(seed=1), fillers(seed=1, position_range=(0.0, 2.0)))
    assert not torch.equal(fillers(seed=1), fillers(seed=2))
    uniform = MIXINGS["uniform"]((100_000,), named_generator(0, "a"))
    assert -1 <= uniform.min() < -0.999
    assert 0.999 < uniform.max() <= 1
    assert fillers(mixing="uniform").abs().max() <= 1
    for draw in MIXINGS.values():
        assert draw((100_000,), named_generator(0, "a")).mean().abs() < 0.02  # the guess of what is unknown is zero


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_answer_is_the_target_wherever_it_can_be_known(split, interaction, condition):
    task = dsprites_composition(split, interaction)
    batch = task.draw(condition, 400, named_generator(0, "a"), torch.float64)
    error = (task.best_answer(*batch.inputs) - batch.target).square().sum((-1, -2))
    if (split, interaction, condition) == ("square_red", "shape_col", "ood_composition"):
        unknown = task.encoding.tables[-1].fillers[0]  # square and red: nobody has seen it
        torch.testing.assert_close(error, unknown.square().sum().expand(400))
    elif (split, interaction, condition) == ("square_red", "shape_col", "ood_transform"):
        # A red square as the transform carries the mixing, also where the target needs it.
        red_squares = (SPLITS[split](task.pairing.draw(condition, 400, named_generator(0, "a")).target)).sum()
        assert red_squares > 0
        assert error.max() < 1e-20
    else:
        assert error.max() < 1e-20


def test_what_training_shows():
    task = dsprites_composition("square_red", "shape_col")
    assert task.known_rows[:-9].all()
    assert task.known_rows[-9:].tolist() == [False] + [True] * 8
    assert dsprites_composition("square_pos", "shape_col").known_rows.all()
    assert dsprites_composition("scale_pos", "scale_pos").known_rows.all()


def test_fields_reach_the_task():
    task = dsprites_composition("square_red", "shape_col", interaction_action=True, target_of_tests=True)
    assert task.num_actions == 6
    assert task.grid.actions["shape_col"] == ("shape", "colour")
    for test in ("ood_reference", "ood_transform"):
        assert SPLITS["square_red"](task.pairing.draw(test, 500, named_generator(0, "a")).target).all()
    turned = dsprites_composition(azimuth=0.0)
    scales = turned.encoding.encode(turned.grid.combinations(("scale",)))[:, 1]
    assert scales[:, 2].abs().max() == 0
    assert scales[:, 1].abs().max() == 1
    assert dsprites_composition(require_change=True).pairing.count(
        "train", "shape"
    ) < dsprites_composition().pairing.count("train", "shape")
    assert (
        dsprites_composition(lambda f: f.has("shape", "heart") & f.has("colour", "blue")).pairing.held_out.share
        == 1 / 9
    )


def test_the_answer_is_right_for_other_role_vectors(generator):
    roles = torch.linalg.qr(torch.randn(7, 7, generator=generator).double())[0][:6]
    plain = dsprites_composition("square_red", "scale_pos")
    task = Composition(Encoding(plain.grid, plain.encoding.tables, roles), plain.pairing)
    batch = task.draw("ood_composition", 100, generator, torch.float64)
    torch.testing.assert_close(task.best_answer(*batch.inputs), batch.target)


@pytest.mark.parametrize(
    ("split", "fields", "message"),
    [
        (
            lambda f: f.has("shape", "square") & (f.value("orientation") < 0.3),
            {},
            "{'shape': 'square', 'orientation': 0.0} and not {'shape': 'square', 'orientation': 6.28",
        ),
        ("scale_pos", {"scale_angles": [0.0] * 6}, "{'scale': 0.8, .* and not {'scale': 0.5, "),
    ],
)
def test_a_held_out_object_that_looks_like_one_in_training_is_refused(split, fields, message):
    with pytest.raises(ValueError, match=f"split: it holds out {message}.*, which have the same fillers"):
        dsprites_composition(split, **fields)


def one_role_for(*names, alike, grid):
    """The small world with one role for some columns, in which some rows of its table look alike."""
    encoding = small_encoding(grid, named_generator(0, "a"))
    fillers = torch.randn(len(grid.combinations(names)), 3, generator=named_generator(0, "b"), dtype=torch.float64)
    fillers[alike[1]] = fillers[alike[0]]
    rest = [table for table in encoding.tables if not {*table.columns} & {*names}]
    return Encoding(grid, (FillerTable("both", names, fillers), *rest))


def test_objects_that_look_alike_only_as_a_whole_are_refused_on_two_sides_of_a_split(monkeypatch):
    """Large discs are held out: rows 1 and 2 of six are such, rows 4 and 5 are rings."""
    grid = small_grid()
    pairing = Pairing(HeldOut(grid, lambda f: f.has("kind", "disc") & (f.column("size") > 0)))
    with pytest.raises(ValueError, match=r"out {'kind': 'disc', 'size': 0.2} and not {'kind': 'ring', 'size': 0.3}"):
        Composition(one_role_for("kind", "size", alike=(1, 5), grid=grid), pairing)
    for alike in ((1, 2), (4, 5)):
        Composition(one_role_for("kind", "size", alike=alike, grid=grid), pairing)
    monkeypatch.setattr("tpr_attention.tasks.composition.held_out.MOST_COMBINATIONS", 5)
    with pytest.raises(ValueError, match=r"split: expected at most 5 combinations of \['kind', 'size'\]"):
        Composition(one_role_for("kind", "size", alike=(1, 2), grid=grid), pairing)


def test_a_task_on_a_world_of_ones_own(generator):
    grid = small_grid()
    task = Composition(small_encoding(grid, generator), Pairing(HeldOut(grid, large_discs)))
    batch = task.draw("ood_composition", 64, generator, torch.float64)
    torch.testing.assert_close(task.best_answer(*batch.inputs), batch.target)
    assert batch.to("meta").inputs[0].is_meta
    with pytest.raises(ValueError, match="pairing: expected pairs of the encoding's grid"):
        Composition(small_encoding(grid, generator), dsprites_composition().pairing)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"split": "square_rd"}, "split: expected one of .*did you mean 'square_red'"),
        ({"interaction": "shape_color"}, "interaction: .*did you mean 'shape_col'"),
        ({"interaction": "shape_col", "mixing": "cauchy"}, "mixing: expected one of"),
        ({"mixing": "cauchy"}, "mixing: expected one of"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"target_of_tests": "yes"}, "target_of_tests: expected None, False or True"),
        ({"interaction": "shape_col", "seed": -1}, "seed: expected a whole number"),
        ({"position_range": (1.0, -1.0)}, "position_range: expected two growing"),
        ({"position_range": (1.0, 2.0, 3.0)}, "position_range: expected two growing"),
        ({"position_range": (-1e39, 1e39)}, "position_range: expected positions that are finite in float32"),
        ({"scale_angles": [0.0, float("nan")] * 3}, "scale_angles: expected 6 finite numbers"),
        ({"azimuth": float("inf")}, "azimuth: expected a finite number, got inf"),
        ({"scored": "some"}, r"scored: expected one of \['all', 'factors'\], got 'some'"),
        ({"position_range": (-2.0, -1.0), "split": "square_pos"}, "leaves no pairs for the condition 'ood_reference'"),
    ],
)
def test_bad_fields_are_refused(fields, message, as_users_run_it):
    with pytest.raises(ValueError, match=message):
        dsprites_composition(**fields)


def test_the_contract():
    task = dsprites_composition("square_red", "shape_col", interaction_action=True)
    assert task.sizes == {"num_actions": 6, "num_roles": 6, "filler_dim": 3}
    assert task.conditions == ("in_distribution", "ood_reference", "ood_transform", "ood_composition")
    assert task.group_names == {"action": ("shape", "scale", "orientation", "position", "colour", "shape_col")}
    assert task.axis_names == {"role": ("shape", "scale", "orientation", "position", "colour", "shape_col")}
    batch = task.draw("train", 300, named_generator(0, "a"))
    assert torch.equal(batch.groups["action"], batch.inputs[2].argmax(-1))


@pytest.mark.parametrize("scored", ["all", "factors"])
@pytest.mark.parametrize("interaction", [None, "scale_pos"])
def test_the_loss_is_the_mean_over_the_roles_that_count(scored, interaction, generator):
    task = dsprites_composition("square_red", interaction, scored=scored)
    batch = task.draw("train", 40, generator, torch.float64)
    output = torch.randn(batch.target.shape, generator=generator, dtype=torch.float64)
    found = task.measure(output, batch)
    assert tuple(found) == ("loss", *task.encoding.role_names)
    squares = (output - batch.target).square()
    for j, name in enumerate(task.encoding.role_names):
        torch.testing.assert_close(found[name], squares[:, j].mean(-1))
    counted = squares[:, :5] if scored == "factors" else squares
    torch.testing.assert_close(found["loss"], counted.mean((1, 2)))


@pytest.mark.parametrize("width", [6, 9])
@pytest.mark.parametrize("scored", [None, ("shape", "colour")])
def test_the_loss_of_turned_roles(scored, width, generator):
    """Roles are found whatever their vectors are; what is outside of all roles counts as further ones."""
    plain = dsprites_composition("square_red", "scale_pos")
    roles = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))[0]
    task = Composition(Encoding(plain.grid, plain.encoding.tables, roles[:6]), plain.pairing, scored=scored)
    error = torch.randn(40, width, 3, generator=generator, dtype=torch.float64)
    batch = task.draw("train", 40, generator, torch.float64)
    turned = torch.einsum("jr,njf->nrf", roles, error)
    found = task.measure(batch.target + turned, batch)
    torch.testing.assert_close(found["colour"], error[:, 4].square().mean(-1))
    counted = error if scored is None else error[:, [0, 4, *range(6, width)]]
    torch.testing.assert_close(found["loss"], counted.square().mean((1, 2)))
    assert task.stack_key != plain.stack_key


def test_evenly_drawn_batches_are_those_of_each_action():
    task = dsprites_composition("square_red", noise=0.1)
    random = named_generator(0, "a")
    expected = task.observe(task.pairing.draw_each("train", 20, random), random)
    found = task.draw_evenly("train", 20, named_generator(0, "a"))
    assert all(torch.equal(*pair) for pair in zip(found.tensors(), expected.tensors(), strict=True))
    assert task.even_group == "action"
    assert dsprites_composition(balance_actions=False).even_group is None


def test_an_action_without_pairs_cannot_be_drawn_evenly():
    with pytest.raises(ValueError, match=r"split: it leaves some action without pairs in the condition 'ood_comp"):
        dsprites_composition().draw_evenly("ood_composition", 1, named_generator(0, "a"))
    grid = small_grid()
    conditions = {name: CONDITIONS[name] for name in ("train", "ood_reference")}
    held_out = HeldOut(grid, lambda factors: factors.has("kind", "disc"))
    pairing = Pairing(held_out, conditions=conditions, require_change=True)
    task = Composition(small_encoding(grid, named_generator(0, "a")), pairing)
    with pytest.raises(ValueError, match=r"split: it leaves some action without pairs in training: \['kind'\]"):
        task.draw_evenly("train", 1, named_generator(0, "a"))


def test_tasks_stack_if_shapes_and_the_loss_are_the_same():
    same = [dsprites_composition(split, seed=seed) for split, seed in (("square_red", 0), ("scale_pos", 1))]
    assert len({task.stack_key for task in same}) == 1
    others = [
        {"interaction": "shape_col"},
        {"interaction": "shape_col", "scored": "factors"},
        {"interaction": "shape_col", "interaction_action": True},
        {"balance_actions": False},
    ]
    assert len({same[0].stack_key, *(dsprites_composition(**options).stack_key for options in others)}) == 5
    named = [dsprites_composition("square_red", name) for name in INTERACTIONS]
    assert named[0].stack_key == named[1].stack_key


def test_words_and_pictures_are_those_of_the_objects():
    task = dsprites_composition("square_red", "scale_pos", noise=0.001)
    pairs = task.pairing.draw("train", 30, named_generator(0, "a"))
    batch = task.draw("train", 30, named_generator(0, "a"), torch.float64)
    words, pictures = task.words(batch), task.pictures(batch)
    assert set(pictures) == {"reference", "transform", "target"}
    for part, images in pictures.items():
        factors = getattr(pairs, part)
        assert torch.equal(images, colour(render(factors), factors))
        for row in range(30):
            shape, paint = (factors.row(row)[name] for name in ("shape", "colour"))
            assert words[row][part].startswith(f"shape {shape}, scale ")
            assert words[row][part].endswith(f"colour {paint}")
    assert [example["action"] for example in words] == [list(task.grid.actions)[k] for k in pairs.action]


def test_a_task_that_cannot_be_measured_is_refused(generator):
    task = dsprites_composition()
    for scored in ((), ("size",)):
        with pytest.raises(ValueError, match=r"scored: expected one or more of \['shape', "):
            Composition(task.encoding, task.pairing, scored=scored)
    tables = (replace(task.encoding.tables[0], role="loss"), *task.encoding.tables[1:])
    with pytest.raises(ValueError, match="roles: expected other names than 'loss'"):
        Composition(Encoding(task.grid, tables), task.pairing)
