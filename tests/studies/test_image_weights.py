"""What the report of the image study shows where weights are stored."""

import numpy as np
import pytest

from tests.studies.image_runs import CODES, save
from tests.studies.shown import check_forms
from tests.studies.stored import ACTIONS, rows
from tpr_attention.models.build import build
from tpr_attention.models.images.composer import EAGER
from tpr_attention.nn.images.codes.pose_memory import FAR as MEMORY_FAR
from tpr_attention.report.drawings import AnswerGrid
from tpr_attention.report.markdown import markdown
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.images.codes import FAR, codes_in
from tpr_attention.studies.images.contestants import FIRST_SEED, MAIN, OTHERS, series_of
from tpr_attention.studies.images.figures import FAILURES, UPDATE_SCALE
from tpr_attention.training.prepare import make_task

SETUP = Setup(seeds=2)
OWN = Setup(seeds=2, first_seed=FIRST_SEED)


def drawing_of(document, name):
    return next((drawing for drawing in document.drawings if drawing.name == name), None)


@pytest.fixture(scope="module")
def with_weights(tmp_path_factory):
    """The oracle with weights of its model, another contestant with those of an earlier version, one trained longer."""
    store = Store(tmp_path_factory.mktemp("answers") / "store", create=True)
    series = series_of(OTHERS, OWN)
    for name in ("swap", "linear", "mlp-longer"):
        spec = series[name].specs[0]
        model = build(spec.model.name, make_task(spec.task, spec.seed), spec.seed, **spec.model.options)
        weights = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
        save(store, spec, None if name == "linear" else weights)
    return store


def test_answers_are_shown(with_weights):
    document, _ = compose(with_weights, SETUP)
    grid = drawing_of(document, "images-answers")
    assert isinstance(grid, AnswerGrid)
    assert list(grid.shown.given) == ["reference", "transform"]
    assert list(grid.shown.answers) == [OTHERS["swap"].words]
    assert f"as no weights of this version are stored: {OTHERS['linear'].words}." in grid.caption
    assert {words[1] for words in grid.shown.examples} == {"held out"}
    assert list(grid.shown.by_model()) == ["reference", "transform", OTHERS["swap"].words, "target"]
    assert "(figures/images-answers.png)" in markdown(document)


def test_a_contestant_has_the_first_seed_whose_weights_are_stored(tmp_path):
    store, specs = Store(tmp_path / "store", create=True), series_of(OTHERS, OWN)["swap"].specs
    model = build(specs[1].model.name, make_task(specs[1].task, 0), specs[1].seed, **specs[1].model.options)
    save(store, specs[0], {})
    save(store, specs[1], {key: tensor.numpy() for key, tensor in model.state_dict().items()})
    grid = drawing_of(compose(store, SETUP)[0], "images-answers")
    assert list(grid.shown.answers) == [OTHERS["swap"].words]
    assert "Left out" not in grid.caption


def test_no_answers_without_weights(tmp_path):
    store = Store(tmp_path / "store", create=True)
    save(store, series_of(OTHERS, OWN)["swap"].specs[0])
    assert drawing_of(compose(store, SETUP)[0], "images-answers") is None


def test_what_the_layer_became(tmp_path):
    """A layer of one head that does the whole work of an action, with an update that is learned eagerly."""
    store, spec = Store(tmp_path / "store", create=True), series_of(MAIN, OWN)["union"].specs[0]
    layer = {"query_map": np.eye(5)[None], "id_query": np.array([[-1.0, 1.0]]), "filler_map": np.eye(8)[None]}
    layer["role_map"] = np.eye(5)[None] / EAGER
    save(store, spec, {f"composition.attention.{name}": array for name, array in layer.items()})
    maps = drawing_of(compose(store, SETUP)[0], "images-layer")
    (found,) = maps.inspection.layers
    assert (found.names.actions, found.names.roles, found.heads) == (ACTIONS, ACTIONS, ())
    for action in range(5):
        np.testing.assert_allclose(found.combined.copied[action, 1], np.diag(np.eye(5)[action]))
        np.testing.assert_allclose(found.combined.copied[action, 0], -np.diag(np.eye(5)[action]))
    assert spec.digest in maps.inspection.title


def test_codes_that_were_found(tmp_path):
    """A row for each seed with a memory, also where it found nothing."""
    store = Store(tmp_path / "store", create=True)
    for spec, weights in zip(series_of(MAIN, OWN)["union"].specs, (CODES, memory_of_a_new_model()), strict=True):
        save(store, spec, weights)
    document = compose(store, SETUP)[0]
    first, second = rows({section.title: section for section in document.sections}, "images-codes")
    assert first == {
        "seed": "1300",
        "shapes": "2",
        "scales": "2",
        "fewest scales of a shape": "1",
        "angles": "3",
        "colours": "2",
        "places across": "4",
        "places down": "1",
        "degrees between angles": "10.5",
        "pixels between places across": "1.4167",
        "pixels between places down": "-",
        "first place across": "7.25",
        "first place down": "3.125",
        "codes are used": "yes",
    }
    assert (second.pop("seed"), second.pop("codes are used")) == ("1301", "no")
    assert set(second.values()) == {"0", "-"}
    check_forms([table for table in document.tables if table.name.startswith("images-")])


def memory_of_a_new_model():
    spec = series_of(MAIN, OWN)["union"].specs[0]
    model = build(spec.model.name, make_task(spec.task, spec.seed), spec.seed, **spec.model.options)
    return {name: tensor.numpy() for name, tensor in model.state_dict().items() if name.startswith("memory.")}


def test_codes_are_those_of_the_memory():
    memory = memory_of_a_new_model()
    assert codes_in(memory).keys() == CODES.keys()
    assert {name: array.shape for name, array in codes_in(memory).items()} == {
        name: array.shape for name, array in CODES.items()
    }
    assert FAR == MEMORY_FAR
    assert codes_in({"memory.angles": memory["memory.angles"]}) == {}


def test_answers_that_are_not_exact(tmp_path):
    """A model that learned nothing fails from the first example on."""
    store, spec = Store(tmp_path / "store", create=True), series_of(MAIN, OWN)["union"].specs[0]
    model = build(spec.model.name, make_task(spec.task, spec.seed), spec.seed, **spec.model.options)
    save(store, spec, {name: tensor.numpy() for name, tensor in model.state_dict().items()})
    document = compose(store, SETUP)[0]
    grid = drawing_of(document, "images-failures")
    assert isinstance(grid, AnswerGrid)
    assert len(grid.shown.examples) == FAILURES
    assert "where it is exact least often: square_red, reference held out." in grid.caption
    assert list(grid.shown.by_model()) == ["reference", "transform", "answer", "answer, enlarged", "target"]
    answer, target = grid.shown.answers["answer"] > 127, grid.shown.target > 127
    for row, (action, _, said) in enumerate(grid.shown.examples):
        assert action in ACTIONS
        assert said == f"{(answer[row] != target[row]).any(-1).sum():,} wrong" != "0 wrong"
    assert "(figures/images-failures.png)" in markdown(document)


def test_nothing_of_weights_without_weights(tmp_path):
    store = Store(tmp_path / "store", create=True)
    save(store, series_of(MAIN, OWN)["union"].specs[0])
    document = compose(store, SETUP)[0]
    assert not {"images-failures", "images-layer"} & {drawing.name for drawing in document.drawings}
    assert "images-codes" not in {table.name for table in document.tables}


def test_updates_have_the_scale_of_the_model():
    assert UPDATE_SCALE == EAGER
