"""The image study: its runs, and what its report says of a part of them."""

import random

import numpy as np
import pytest

from tests.studies.image_runs import METRICS, conditions, save
from tests.studies.shown import check_forms
from tests.studies.stored import Remembered, is_broken, rows
from tpr_attention.report.markdown import markdown
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose, infer_setup
from tpr_attention.studies.images import IMAGES
from tpr_attention.studies.images.contestants import (
    FIRST_SEED,
    FRESH,
    LATER,
    LATEST,
    LONGER,
    MAIN,
    OTHERS,
    QUICK,
    STEPS,
    series_of,
)
from tpr_attention.training.curves import curve
from tpr_attention.training.points import Point
from tpr_attention.training.prepare import make_task

SETUP = Setup(seeds=2)
OWN = Setup(seeds=2, first_seed=FIRST_SEED)
SPECS = IMAGES.specs(SETUP)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = Remembered(tmp_path_factory.mktemp("images") / "store")
    for spec in SPECS:
        save(store, spec)
    return store


@pytest.fixture(scope="module")
def document(whole):
    return compose(whole, SETUP)[0]


def table_of(document, name):
    return next(table for table in document.tables if table.name == name)


def drawing_of(document, name):
    return next((drawing for drawing in document.drawings if drawing.name == name), None)


def test_tests_are_those_of_the_task():
    for task in {spec.task.name: spec for spec in SPECS}.values():
        assert set(make_task(task.task, 0).conditions) == set(conditions(task))


def test_the_worst_seed_and_the_worst_test_are_said(document):
    said = markdown(document)
    assert "80.0 % of the answers are exactly right in distribution, and 70.0 % in the worst of nine tests" in said
    assert "no training image has, both in the worst seed." in said
    assert "the worst of 6 trainings has 80.0 % in distribution, and the worst test of any 70.0 %; 0 of them" in said
    main = table_of(document, "images-main")
    assert [row[:2] for row in main.texts()[:2]] == [
        ["union", "in distribution"],
        ["union", "square_red, reference held out"],
    ]
    assert main.texts()[0][3:] == ["80.0 %", "100 %", "2.0", "0.5", "0.725", "0.7", "2"]


def test_numbers_are_no_texts(document):
    check_forms([table for table in document.tables if table.name.startswith("images-")])


def test_contestants_are_compared_before_the_clean_up(document):
    table = table_of(document, "images-others")
    assert len(table.rows) == 2 + len(OTHERS)  # with the quick version
    assert {tuple(row[1:5]) for row in table.texts()} == {("0.10", "0.10", "0.5", "0.25")}
    assert {tuple(row[5:9]) for row in table.texts()} == {("0.0 %", "0.0 %", "25.0 %", "25.0 %")}
    assert "IoU compares masks, which are where anything is drawn, and ignores colour." in table.caption
    assert {row[11] for row in table.rows} == {1.0, 1.5}  # CPU seconds: the quick version has one seed


def test_held_out_inputs_by_whether_the_answer_is_held_out(document):
    found = rows({section.title: section for section in document.sections}, "images-targets")
    assert len(found) == 2 * (3 * 2 + 6)  # two tests of three splits, and six of the union
    for row in found:
        assert row["test"].endswith(("reference held out", "transform held out"))
        half = row["answer"] == "held out"
        assert (row["exactly right"], row["worst seed"]) == (("37.5 %", "35.0 %") if half else ("75.0 %", "70.0 %"))
        assert (row["factors right"], row["wrong pixels"], row["seeds"]) == ("100 %", "2.0", "2")


def test_exactly_right_by_action(document):
    table = table_of(document, "images-actions")
    assert [column.title for column in table.columns] == ["held out", "test", "shape", "colour", "seeds"]
    assert len(table.rows) == 3 * 4 + 10
    assert {tuple(row[2:]) for row in table.texts()} == {("50.0 %", "25.0 %", "2")}


def test_each_factor_right(document):
    found = rows({section.title: section for section in document.sections}, "images-factors")
    assert [(row["held out"], row["test"]) for row in found[:3]] == [
        ("union", "in distribution"),
        ("union", "worst test"),
        ("square_red", "in distribution"),
    ]
    for row in found:
        is_worst = row["test"] == "worst test"
        assert {row[title] for title in ("shape", "scale", "place down", "colour")} == {"100 %"}
        assert (row["orientation"], row["place across"]) == ("50.0 %" if is_worst else "75.0 %", "87.5 %")
        assert (row["mean squared error"], row["seeds"]) == ("0.020" if is_worst else "0.010", "2")


def test_published_splits_after_training_and_finished(document):
    found = rows({section.title: section for section in document.sections}, "images-published")
    assert [(row["split"], row["test"]) for row in found[:2]] == [("sqr2tx", "in distribution"), ("sqr2tx", "held out")]
    for title, before, after in (("NLL", "9.0", "3.0"), ("SSE", "2.0", "1.0"), ("IoU", "0.5", "0.95")):
        assert {(row[title], row[f"{title}, finished"]) for row in found} == {(before, after)}
    assert [row["exactly right, finished"] for row in found[:2]] == ["85.0 %", "75.0 %"]
    decoders = table_of(document, "images-decoders")
    assert not any("finished" in column.title for column in decoders.columns)


def test_contestants_at_equal_time(document):
    curves = drawing_of(document, "images-cpu")
    assert curves.rows == ["error", "overlap"]  # no answer is exact during training
    assert curves.columns == ["in distribution", "square_pos, answer held out"]
    for panel in curves.panels:
        assert (panel.axis, panel.axis_scale) == ("CPU seconds", "log")
        places = {line.name: line.places.tolist() for line in panel.lines}
        assert set(places) == {"union", "quick", *OTHERS}
        alone = {name for name, one in {**QUICK, **OTHERS}.items() if one.seeds == 1}
        assert {name for name, place in places.items() if place == [1.0]} == alone & set(places)
        assert {tuple(places[name]) for name in set(places) - alone} == {(1.5,)}  # the mean of two seeds


def test_the_main_model_goes_on_after_training_where_its_time_is_told(tmp_path):
    """Two seconds for ten steps: the answers by fillers come one step before the end."""
    store, spec = Store(tmp_path / "store", create=True), series_of(MAIN, OWN)["union"].specs[0]
    save(store, spec, finishing_seconds=2.0)
    document = compose(store, SETUP)[0]
    assert "takes 1 seconds of one processor core for its steps and 2 for what comes after" in markdown(document)
    curves = drawing_of(document, "images-cpu")
    assert curves.rows == ["error", "overlap", "exactly right"]
    for panel in curves.panels:
        np.testing.assert_allclose(panel.lines[0].places, [1.0, 1.0 + 1.8, 1.0 + 2.0])
        assert panel.span[1] > 3.0
    assert curves.panels[2].lines[0].mean.tolist()[:2] == [0.5, 0.75]


def test_lines_end_where_training_ends(document):
    """Also where another contestant is trained longer."""
    for panel in drawing_of(document, "images-contestants").panels:
        ends = {line.name: line.places[-1] for line in panel.lines}
        assert {ends.pop(name) for name, one in OTHERS.items() if one.steps > STEPS} == {LONGER}
        assert set(ends.values()) == {STEPS}


def test_exact_answers_are_shown_where_there_are_some(tmp_path):
    store, spec = Store(tmp_path / "store", create=True), series_of(OTHERS, OWN)["swap"].specs[0]
    names = {"conditions": list(conditions(spec)), "metrics": list(METRICS), "groups": {}, "axes": {}}
    points = [
        Point("", step, test, None, (0.25 if test == "scale_pos.ood_reference" else 0.5,) * len(METRICS))
        for test in conditions(spec)
        for step in (0, spec.training.steps)
    ]
    store.save(spec, curve(points, METRICS), {"w": np.zeros(1)}, {"training_seconds": 4.0}, names)
    document = compose(store, SETUP)[0]
    assert drawing_of(document, "images-cpu").rows == ["error", "overlap", "exactly right"]
    (row,) = rows({section.title: section for section in document.sections}, "images-others")
    assert (row["exactly right"], row["exactly right, worst test"]) == ("50.0 %", "25.0 %")


def test_runs_that_do_not_tell_their_time_are_not_compared_by_it(tmp_path):
    store, (first, second) = Store(tmp_path / "store", create=True), series_of(OTHERS, OWN)["swap"].specs
    save(store, first, training_seconds=None)
    assert drawing_of(compose(store, SETUP)[0], "images-cpu") is None
    save(store, second)
    assert drawing_of(compose(store, SETUP)[0], "images-cpu").panels[0].lines[0].places.tolist() == [2.0]


def test_a_run_that_diverged_is_left_out_and_said(tmp_path):
    store, (first, second) = Store(tmp_path / "store", create=True), series_of(MAIN, OWN)["union"].specs
    save(store, first, diverged={"step": 3, "tensor": "loss"})
    assert not is_broken(markdown(compose(store, SETUP)[0]))
    save(store, second)
    document = compose(store, SETUP)[0]
    said = markdown(document)
    assert "with one seed; other seeds diverged." in said
    assert not is_broken(said)
    assert {row[-1] for row in table_of(document, "images-main").rows} == {1}


def test_labels_have_a_table_of_their_own(document):
    table = table_of(document, "images-labelled")
    assert [row[0] for row in table.texts()] == ["unbinding, template", "convolution, deconvolution"]
    assert {tuple(row[1:]) for row in table.texts()} == {("0.5", "0.25", "0.0 %", "0.0 %", "25.0 %", "25.0 %", "2")}
    labelled = {spec.digest for spec in SPECS if spec.task.options.get("factor_labels")}
    assert labelled == {spec.digest for spec in SPECS if spec.model.name == "images-labelled"}
    assert len(labelled) == 2 * SETUP.seeds


def test_all_angles_are_measured_modulo_symmetry_too(document):
    table = table_of(document, "images-angles")
    assert [column.title for column in table.columns][-3:-1] == [
        "factors right modulo symmetry",
        "factors right modulo symmetry, worst test",
    ]
    assert [row[1:] for row in table.texts()] == [["85.0 %", "75.0 %", "100 %", "100 %", "100 %", "100 %", "2"]]


def test_the_setup_that_is_found_out_shows_all_runs(whole):
    _, results = compose(whole, infer_setup(whole))
    assert set(results.specs.values()) == set(SPECS)


def test_seeds_after_those_of_searches_count(whole):
    """Searches have seeds from 1000 on, and the main model has later ones."""
    main = whole.part([spec for spec in SPECS if spec.seed >= FIRST_SEED + FRESH])
    assert infer_setup(main).seeds == SETUP.seeds


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_was_not_run_counts(whole, seed):
    draw = random.Random(seed)
    kept = [spec for spec in SPECS if draw.random() < draw.choice([0.05, 0.5, 0.95])]
    document, results = compose(whole.part(kept), SETUP)
    assert not is_broken(markdown(document))
    assert len(results.specs) == len(kept)
    counted = [row[-1] for table in document.tables for row in table.rows if table.name == "images-published"]
    assert sum(counted) == 2 * sum(spec.model.name == "images-autoencoder" for spec in kept)


def test_steps_may_be_fewer():
    assert {spec.training.steps for spec in IMAGES.specs(Setup(1, steps=7))} == {7}
    assert {spec.seed for spec in SPECS} == {
        FIRST_SEED + later + number for later in (0, LATER, LATEST, FRESH) for number in range(2)
    }


def test_models_that_finish_have_seeds_of_their_own():
    for spec in SPECS:
        assert (spec.seed >= FIRST_SEED + LATER) == bool(spec.model.options.get("clean_up"))


def test_some_contestants_are_trained_longer():
    """Beside the same ones that are trained as long as all others."""
    longer = [spec for spec in SPECS if spec.training.steps > STEPS]
    assert [spec.training.steps for spec in longer] == 3 * SETUP.seeds * [LONGER]
    assert {spec.changed({"steps": STEPS}) for spec in longer} <= set(SPECS)
    few = IMAGES.specs(Setup(1, steps=STEPS))
    assert len(few) == len(set(few)) == len(IMAGES.specs(Setup(1))) - 3  # with fewer steps they would be the same
