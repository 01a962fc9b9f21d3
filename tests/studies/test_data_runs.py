"""Which runs the map over numbers of training pairs needs, and how their learning rates are chosen."""

import numpy as np
import pytest
import torch

from tests.studies.stored import is_broken, plans_of, rows, save
from tpr_attention.report.markdown import markdown
from tpr_attention.report.results import Results
from tpr_attention.studies import STUDIES, Setup
from tpr_attention.studies.compose import compose, infer_setup, is_planned
from tpr_attention.studies.contestants import CONTESTANTS, FLOORS, PAPER
from tpr_attention.studies.data import DATA
from tpr_attention.studies.data.rates import RATES
from tpr_attention.studies.data.search import search
from tpr_attention.studies.data.specs import MODELS, SIZES
from tpr_attention.studies.rate_search import GRID
from tpr_attention.studies.study import SEARCH_SEEDS
from tpr_attention.training.prepare import prepare
from tpr_attention.training.spec import RunSpec

SETUP = Setup(seeds=2, steps=10)


def test_every_model_has_the_same_budget_and_fresh_seeds():
    specs = plans_of(["data"], Setup())
    trained = [spec for spec in specs if spec.model.name not in FLOORS]
    assert len(specs) == 5 * (5 * 7 * 9 + 2 * 9)
    assert {spec.seed for spec in specs} == {100, 101, 102, 103, 104}
    assert {spec.training.steps for spec in specs} == {3_000}
    assert {spec.training.train_examples for spec in trained} == {30, 100, 300, 1_000, 3_000, 10_000, 50_000}
    for spec in trained:
        size = spec.training.train_examples
        assert spec.training.batch_size == min(100, size)
        assert spec.training.learning_rate == RATES[spec.model.name][size]
        assert {key: spec.model.options[key] for key in CONTESTANTS[spec.model.name].options} == dict(
            CONTESTANTS[spec.model.name].options
        )
    options = {(spec.model.name, str(spec.model.options)) for spec in trained}
    assert len(options) == len(MODELS)  # one set of options in all cells
    assert {spec.training.steps for spec in plans_of(["data"], SETUP)} == {10}


def test_the_thin_part_is_in_the_whole_and_trained_by_default():
    thin = plans_of(["data-thin"], Setup())
    trained = [spec for spec in thin if spec.model.name not in FLOORS]
    assert len(trained) == 135
    assert {spec.model.name for spec in trained} == {*PAPER}
    assert {spec.training.train_examples for spec in trained} == {100, 1_000, 10_000}
    assert {spec.task.options["split"] for spec in thin} == {"square_red"}
    assert len(thin) - len(trained) == 30  # floors, which are solved and not trained
    assert set(thin) < set(plans_of(["data"], Setup()))
    assert DATA.by_default == ("data-thin",)
    assert [*STUDIES][:2] == ["paper", "data"]


def by_rate(spec, condition):
    """The best rate is 0.03 with 30 pairs and 0.003 with more; at 0.1 everything diverges but for one run."""
    rate, best = spec.training.learning_rate, 0.03 if spec.training.train_examples == 30 else 0.003
    if rate == 0.1 and (spec.seed, spec.task.options["interaction"]) != (1000, None):
        return np.inf
    return 0.0 if rate == 0.1 else 1e-4 if rate == best else 1e-3


def test_the_search_has_one_rule_for_all():
    specs = plans_of(["data-search"], Setup())
    assert len(specs) == 5 * 7 * 5 * 3 * len(SEARCH_SEEDS)
    assert {spec.seed for spec in specs} == {*SEARCH_SEEDS}
    assert {spec.task.options["split"] for spec in specs} == {"square_red"}
    assert {spec.training.learning_rate for spec in specs} == {*GRID}
    assert {spec.training.steps for spec in specs} == {3_000}
    assert not set(specs) & set(plans_of(["data"], Setup()))
    assert {rate for rates in RATES.values() for rate in rates.values()} <= {*GRID}
    assert {tuple(rates) for rates in RATES.values()} == {SIZES}


def test_the_search_tells_the_table_of_rates(store):
    save(store, plans_of(["data-search"], SETUP), by_rate)
    results = Results(store, DATA.specs(SETUP))
    found = search(SETUP).found(results)
    assert found == {(name, size): 0.03 if size == 30 else 0.003 for name in RATES for size in SIZES}
    document, _ = compose(store, SETUP)  # of the search alone
    (section,) = (one for one in document.sections if one.title == "Learning rates by number of training pairs")
    table = rows(section, "data-search")
    assert len(table) == 35
    for row in table:
        used = RATES[row["model"]][int(row["pairs"].replace(",", ""))]
        assert row["used"] == f"{used:g}"
        assert row["is the one used"] == ("yes" if float(row["best"]) == used else "no")
        assert row["0.001"] == "0.0010"
    assert not is_broken(markdown(document))


def test_a_search_of_which_a_run_is_missing_finds_nothing(store):
    specs = plans_of(["data-search"], SETUP)
    kept = [spec for spec in specs if spec.model.name == "tpr" and spec.training.train_examples == 100]
    save(store, kept[:-1], by_rate)
    assert search(SETUP).found(Results(store, specs)) == {}
    save(store, kept[-1:], by_rate)
    assert search(SETUP).found(Results(store, specs)) == {("tpr", 100): 0.003}


@pytest.mark.parametrize("size", [30, 10_000])
def test_rates_are_chosen_on_pairs_that_are_not_trained_on(size):
    """Pairs in distribution are drawn afresh: none of them is a training pair."""
    spec = RunSpec.of(
        {"train_examples": size, "batch_size": min(size, 100), "interaction": "shape_col", "seed": SEARCH_SEEDS[0]}
    )
    run = prepare(spec)
    pairs = [{row.numpy().tobytes() for row in _rows(part)} for part in (run.pool, run.tests["in_distribution"])]
    assert len(pairs[0]) > 0.9 * size
    assert len(pairs[1]) == spec.training.test_examples
    assert not pairs[0] & pairs[1]


def _rows(batch):
    """Reference, transform and action of each pair in one row."""
    parts = [tensor.flatten(0, 1).flatten(1) for tensor in batch.inputs]
    return torch.cat(parts, 1)


@pytest.mark.parametrize(
    ("names", "steps"), [(["data"], 10), (["data-thin"], 12_000), (["data-thin", "data-search"], 10)], ids=str
)
def test_the_setup_is_found_out_from_seeds_that_start_at_100(store, names, steps):
    save(store, [spec for spec in plans_of(names, Setup(3, steps)) if spec.model.name in ("tpr", "oracle")])
    assert infer_setup(store) == Setup(seeds=3, steps=min(steps, 3_000))


def test_the_setup_of_the_paper_is_not_that_of_the_map(store):
    """The map has fewer steps and other seeds; some of its kinds are those of the paper's figures."""
    setup = Setup(seeds=2, steps=12_000)
    save(store, (spec for spec in plans_of(["data"], setup) if spec.training.train_examples == 50_000))
    assert infer_setup(store) == Setup(seeds=2, steps=3_000)
    save(store, plans_of(["main-noninteracting"], setup))
    assert infer_setup(store) == setup


def test_the_setup_of_two_studies_with_other_steps(store):
    setup = Setup(seeds=2, steps=2_500)
    save(store, plans_of(["data-thin"], setup))
    save(store, plans_of(["scaling"], setup), lambda spec, _: 1e-3)
    assert infer_setup(store) == setup


def test_runs_of_one_kind_belong_to_the_study_of_their_seed():
    floor = plans_of(["data-thin"], SETUP)[-1]
    assert floor.model.name in FLOORS
    paper = STUDIES["paper"]
    assert is_planned(floor, [DATA])
    assert not is_planned(floor, [paper])
    assert is_planned(floor.with_seed(7), [paper])
    assert not is_planned(floor.with_seed(7), [DATA])
    assert is_planned(floor.with_seed(150), [DATA])
    longer = floor.changed({"training.steps": 10_000})
    assert is_planned(longer.with_seed(150), [paper])  # the map has no such run
