"""Nothing that was not run counts in the map over numbers of training pairs: stores of a part of it."""

import random
import re

import pytest

from tests.studies.shown import check_forms, check_opening
from tests.studies.stored import Remembered, is_broken, plans_of, rows, save, summary
from tpr_attention.report.drawings import SquareMap
from tpr_attention.report.markdown import markdown
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.contestants import FLOORS, PAPER
from tpr_attention.studies.data import TITLE
from tpr_attention.studies.data.specs import MODELS

SETUP = Setup(seeds=1, steps=10)
RUNS = plans_of(["data"], SETUP)
SETTINGS = {"none": "Without interaction", "scale_pos": "With the numerical", "shape_col": "With the categorical"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = Remembered(tmp_path_factory.mktemp("whole") / "store")
    save(store, RUNS)
    return store


def place_of(spec):
    options = spec.task.options
    return options["interaction"] or "none", options["split"], spec.training.train_examples


def stored_at(kept, names):
    """Tasks and sizes at which all of some models are stored."""
    found = [{place_of(spec) for spec in kept if spec.model.name == name} for name in names]
    return set.intersection(*found) if found else set()


@pytest.mark.parametrize("seed", range(6))
def test_any_part_of_the_map(whole, seed):
    """Runs, models and sizes are left out at random; everything is counted here in another way."""
    draw = random.Random(seed)
    share, models = draw.choice([0.05, 0.3]), draw.sample(MODELS, draw.randint(1, 5))
    sizes = draw.sample(sorted({place_of(spec)[2] for spec in RUNS}), draw.randint(1, 7))
    kept = [
        spec
        for spec in RUNS
        if spec.model.name in FLOORS or (spec.model.name in models and place_of(spec)[2] in sizes)
        if draw.random() > share
    ]
    trained = [spec for spec in kept if spec.model.name not in FLOORS]
    present = [name for name in MODELS if any(spec.model.name == name for spec in trained)]
    document, _ = compose(whole.part(kept), SETUP)
    assert not is_broken(markdown(document))
    check_opening(document)
    check_forms(document.tables)
    (section,) = (section for section in document.sections if section.title == TITLE)
    papers, every = stored_at(trained, PAPER), stored_at(trained, present)
    maps = {block.name: block for block in section.blocks if isinstance(block, SquareMap)}
    assert len(maps["data-paper"].squares if papers else ()) == 3 * len(papers)
    assert ("data-all" in maps) == (bool(every) and len(present) > 1 and set(present) != {*PAPER})
    if "data-all" in maps:
        assert len(maps["data-all"].squares) == 3 * len(every)
        assert set(maps["data-all"].categories) == {*present}
    table = rows(section, "data")
    assert {(row["interaction"], row["split"], int(row["pairs"].replace(",", ""))) for row in table} == {
        place_of(spec) for spec in trained
    }
    assert sum(row[name] != "-" for row in table for name in present) == 3 * len(trained)
    said = summary(document) if papers or "tpr-laws" in present else ""
    for interaction, words in SETTINGS.items():
        cells = [3 * sum((interaction, split, size) in papers for split in SPLITS) for size in sizes]
        stored = {count for count in cells if count}
        found = re.findall(rf"{words}.*?, the claim that .*?(?:\((.*?) of its 9 cells are stored\))?\.$", said, re.M)
        few = f"{min(stored)} to {max(stored)}" if len(stored) > 1 else f"{max(stored, default=0)}"
        assert found == ([few if stored != {9} else ""] if stored else [])
    solvable = stored_at([spec for spec in kept if spec.model.name == "oracle"], ["oracle"])
    known = sum((one, split) in {place[:2] for place in solvable} for one, split, _ in every)
    counted = re.findall(r"`tpr-laws` is lowest in \d+ of (\d+) solvable", said)
    expected = [str(3 * known)] if "tpr-laws" in present and len(present) > 1 and known else []
    assert counted == expected


SPLITS = {place_of(spec)[1] for spec in RUNS}
