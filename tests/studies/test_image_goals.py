"""What was wanted of the image study, and what is reached."""

import pytest

from tests.studies.image_runs import save
from tests.studies.stored import Remembered
from tpr_attention.report.results import Results
from tpr_attention.studies import Setup
from tpr_attention.studies.images.contestants import FIRST_SEED, MAIN, OTHERS, PUBLISHED, series_of
from tpr_attention.studies.images.goals import Goal, goals, goals_table

OWN = Setup(seeds=2, first_seed=FIRST_SEED)


def results_of(path, blocks, trained_iou=0.985, **provenance):
    store = Remembered(path)
    specs = [spec for block in blocks for series in series_of(block, OWN).values() for spec in series.specs]
    for spec in specs:
        save(store, spec, trained_iou=trained_iou, **provenance)
    return Results(store, specs)


def test_the_worst_seed_test_and_split_count(tmp_path):
    """The second seed has a tenth less, and one test of the union ends training with an IoU of 0.25."""
    found = {goal.words: goal for goal in goals(results_of(tmp_path / "s", [MAIN], finishing_seconds=598.5), OWN)}
    reached = {words: round(goal.reached, 4) for words, goal in found.items()}
    assert reached == {
        "union of the splits: exactly right in distribution": 0.8,
        "union of the splits: exactly right": 0.7,
        "union of the splits: all factors right": 1.0,
        "union of the splits: IoU by fillers": 0.7,
        "union of the splits: IoU after training alone in distribution": 0.985,
        "union of the splits: IoU after training alone": 0.25,
        "union of the splits: processor seconds of a training": 600.0,
        "union of the splits: processor seconds of its steps": 1.5,
        "splits apart: exactly right in distribution": 0.8,
        "splits apart: exactly right": 0.7,
        "splits apart: all factors right": 1.0,
        "splits apart: IoU by fillers": 0.7,
        "splits apart: IoU after training alone in distribution": 0.985,
        "splits apart: IoU after training alone": 0.985,
    }
    assert {goal.seeds for words, goal in found.items() if words.startswith("union")} == {2}
    assert {goal.seeds for words, goal in found.items() if words.startswith("splits")} == {6}
    met = {words for words, goal in found.items() if goal.badge.word == "met"}
    assert met == {
        "union of the splits: all factors right",
        "union of the splits: IoU after training alone in distribution",
        "union of the splits: processor seconds of a training",
        "union of the splits: processor seconds of its steps",
        "splits apart: all factors right",
        "splits apart: IoU after training alone in distribution",
        "splits apart: IoU after training alone",
    }


def test_published_splits_count_finished_and_after_training_alone(tmp_path):
    found = [*goals(results_of(tmp_path / "s", [PUBLISHED]), OWN)]
    assert [(goal.words, goal.wanted, goal.reached, goal.badge.word) for goal in found] == [
        ("sqr2tx, finished: summed loss held out", 10.0, 3.0, "met"),
        ("sqr2tx, finished: summed loss held out / in distribution", 1.1, 1.0, "met"),
        ("sqr2tx, after training alone: summed loss held out", 10.0, 9.0, "met"),
        ("sqr2tx, after training alone: summed loss held out / in distribution", 1.1, 1.0, "met"),
        ("r2r-1, finished: squared error held out", 1.0, 1.0, "met"),
        ("r2r-1, after training alone: squared error held out", 1.0, 2.0, "missed"),
    ]


def test_the_spectrum_decoder_has_goals_of_its_own(tmp_path):
    found = [*goals(results_of(tmp_path / "s", [{"spectrum": OTHERS["spectrum"]}]), OWN)]
    assert [(goal.wanted, goal.reached) for goal in found] == [(0.98, 0.25)]


@pytest.mark.parametrize(
    ("reached", "at_least", "word", "note"),
    [
        (0.9951, True, "met", ""),
        (0.99, True, "met", ""),
        (0.9876, True, "missed", "by 0.0024"),
        (0.99, False, "met", ""),
        (1.4, False, "missed", "by 0.4100"),
    ],
)
def test_what_is_missed_is_said_with_by_how_much(reached, at_least, word, note):
    badge = Goal("", 0.99, reached, 1, at_least).badge
    assert (badge.word, badge.note) == (word, note)


def test_without_runs_there_is_no_table(tmp_path):
    assert [*goals_table(results_of(tmp_path / "s", []), OWN)] == []
