"""A task gives batches whose targets are encoded from substituted factors, and knows what can be known."""

import pytest
import torch

from tpr_attention.data import (
    CONDITIONS,
    INTERACTIONS,
    MIXINGS,
    SPLITS,
    Composition,
    Encoding,
    FillerTable,
    HeldOut,
    Pairing,
    dsprites_composition,
    stream,
)

from .small import large_discs, small_encoding, small_grid


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
@pytest.mark.parametrize("split", SPLITS)
def test_batches_hold_the_encoded_pairs(split, interaction):
    task = dsprites_composition(split, interaction)
    pairs = task.pairing.draw("train", 500, stream(0, "a"))
    batch = task.draw("train", 500, stream(0, "a"), torch.float64)
    assert torch.equal(batch.reference, task.encoding.encode(pairs.reference, torch.float64))
    assert torch.equal(batch.transform, task.encoding.encode(pairs.transform, torch.float64))
    assert torch.equal(batch.target, task.encoding.encode(pairs.target, torch.float64))
    assert torch.equal(batch.action.argmax(-1), pairs.action)
    assert torch.equal(batch.action.sum(-1), torch.ones(500, dtype=torch.float64))
    # In the roles of the five factors, the target is the reference but for the acted one.
    chosen = torch.where(batch.action[..., None] > 0, batch.transform[:, :5], batch.reference[:, :5])
    assert torch.equal(batch.target[:, :5], chosen)


@pytest.mark.parametrize("interaction", INTERACTIONS)
def test_the_interaction_of_the_target_is_neither_that_of_the_reference_nor_of_the_transform(interaction):
    batch = dsprites_composition("square_red", interaction).draw("train", 2000, stream(0, "a"), torch.float64)
    other = [(batch.target[:, 5] - given[:, 5]).abs().amax(-1) > 1e-6 for given in (batch.reference, batch.transform)]
    assert (other[0] & other[1]).double().mean() > 0.1


def test_the_mixing_tensor_has_a_stream_of_its_own():
    def fillers(**fields):
        return dsprites_composition("square_red", "shape_col", **fields).encoding.tables[-1].fillers

    assert torch.equal(fillers(seed=1), fillers(seed=1))
    assert torch.equal(fillers(seed=1), fillers(seed=1, position_range=(0.0, 2.0)))
    assert not torch.equal(fillers(seed=1), fillers(seed=2))
    uniform = MIXINGS["uniform"]((100_000,), stream(0, "a"))
    assert -1 <= uniform.min() < -0.999
    assert 0.999 < uniform.max() <= 1
    assert fillers(mixing="uniform").abs().max() <= 1
    for draw in MIXINGS.values():
        assert draw((100_000,), stream(0, "a")).mean().abs() < 0.02  # the guess of what is unknown is zero


@pytest.mark.parametrize("interaction", [None, *INTERACTIONS])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_answer_is_the_target_wherever_it_can_be_known(split, interaction, condition):
    task = dsprites_composition(split, interaction)
    batch = task.draw(condition, 1000, stream(0, "a"), torch.float64)
    error = (task.best_answer(*batch[:3]) - batch.target).square().sum((-1, -2))
    if (split, interaction, condition) == ("square_red", "shape_col", "ood_composition"):
        unknown = task.encoding.tables[-1].fillers[0]  # square and red: nobody has seen it
        torch.testing.assert_close(error, unknown.square().sum().expand(1000))
    elif (split, interaction, condition) == ("square_red", "shape_col", "ood_transform"):
        # A red square as the transform carries the mixing, also where the target needs it.
        red_squares = (SPLITS[split](task.pairing.draw(condition, 1000, stream(0, "a")).target)).sum()
        assert red_squares > 0
        assert error.max() < 1e-20
    else:
        assert error.max() < 1e-20


def test_what_training_shows():
    task = dsprites_composition("square_red", "shape_col")
    assert task.shown[:-9].all()
    assert task.shown[-9:].tolist() == [False] + [True] * 8
    assert dsprites_composition("square_pos", "shape_col").shown.all()
    assert dsprites_composition("scale_pos", "scale_pos").shown.all()


def test_fields_reach_the_task():
    task = dsprites_composition("square_red", "shape_col", interaction_action=True, target_of_tests=True)
    assert task.num_actions == 6
    assert task.grid.actions["shape_col"] == ("shape", "colour")
    for test in ("ood_reference", "ood_transform"):
        assert SPLITS["square_red"](task.pairing.draw(test, 500, stream(0, "a")).target).all()
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
    task = dsprites_composition("square_red", "scale_pos", roles=roles)
    batch = task.draw("ood_composition", 100, generator, torch.float64)
    torch.testing.assert_close(task.best_answer(*batch[:3]), batch.target)


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
    encoding = small_encoding(grid, stream(0, "a"))
    fillers = torch.randn(len(grid.combinations(names)), 3, generator=stream(0, "b"), dtype=torch.float64)
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
    monkeypatch.setattr("tpr_attention.data.composition.MOST_COMBINATIONS", 5)
    with pytest.raises(ValueError, match=r"split: expected at most 5 combinations of \['kind', 'size'\]"):
        Composition(one_role_for("kind", "size", alike=(1, 2), grid=grid), pairing)


def test_a_task_on_a_world_of_ones_own(generator):
    grid = small_grid()
    task = Composition(small_encoding(grid, generator), Pairing(HeldOut(grid, large_discs)))
    batch = task.draw("ood_composition", 64, generator, torch.float64)
    torch.testing.assert_close(task.best_answer(*batch[:3]), batch.target)
    assert batch.to("meta").reference.is_meta
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
        ({"position_range": (-2.0, -1.0), "split": "square_pos"}, "leaves no pairs for the condition 'ood_reference'"),
    ],
)
def test_bad_fields_are_refused(fields, message, as_users_run_it):
    with pytest.raises(ValueError, match=message):
        dsprites_composition(**fields)
