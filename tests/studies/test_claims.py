"""Verdicts on made-up curves, where the answer is known."""

import pytest

from tests.studies.stored import plans_of, save
from tpr_attention.report.results import Results
from tpr_attention.studies import Setup
from tpr_attention.studies.contestants import PAPER
from tpr_attention.studies.paper.claims import CLAIMS, judge
from tpr_attention.studies.paper.figures import FIGURES, figure

SETUP = Setup(seeds=5, steps=100)
BY_NAME = {claim.name: claim for claim in CLAIMS}


def results(store, names, loss):
    """A store whose contestants end with `loss(spec, condition)`; claims do not ask for floors."""
    specs = [spec for spec in plans_of(names, SETUP) if spec.model.name in PAPER]
    save(store, specs, loss)
    return Results(store, specs)


def verdict(store, claim, loss):
    claim = BY_NAME[claim]
    return judge(claim, results(store, claim.figures, loss), SETUP)


def noise(spec, condition):
    """The same for all models, but not for all seeds and tests: pairs cancel it."""
    return 10.0 ** (spec.seed - 2) * (1 + len(condition))


def test_lower_everywhere_holds(store):
    found = verdict(
        store, "main figure, no interaction", lambda s, c: noise(s, c) * (1e-3 if s.model.name == "tpr" else 1e-2)
    )
    assert (found.badge.word, found.favourable, found.cells) == ("holds", 3, 3)
    assert [one.ratio.value for one in found.evidence] == pytest.approx([10] * 6)
    assert [one.ratio.low for one in found.evidence] == pytest.approx([10] * 6)
    assert {one.against for one in found.evidence} == {"classical", "resnet"}


def test_higher_everywhere_does_not_hold(store):
    found = verdict(
        store, "main figure, no interaction", lambda s, c: noise(s, c) * (1e-1 if s.model.name == "tpr" else 1e-2)
    )
    assert (found.badge.word, found.favourable) == ("does not hold", 0)


@pytest.mark.parametrize(("lost", "word"), [(1, "holds in part"), (2, "does not hold")])
def test_a_cell_is_lost_to_one_baseline(store, lost, word):
    """Two of three cells are more than half, one of three is less."""
    tests = ("ood_reference", "ood_transform", "ood_composition")[:lost]

    def loss(spec, condition):
        return noise(spec, condition) * {"tpr": 1e-3, "resnet": 1e-4 if condition in tests else 1.0}.get(
            spec.model.name, 1.0
        )

    found = verdict(store, "main figure, no interaction", loss)
    assert (found.badge.word, found.favourable) == (word, 3 - lost)
    assert sum(not one.favourable for one in found.evidence) == lost


def test_a_difference_that_seeds_do_not_agree_on_is_none(store):
    """Lower on average, but not for every resample of seeds."""
    factor = [10, 10, 0.5, 0.5, 0.5]
    found = verdict(store, "main figure, no interaction", lambda s, c: 1.0 if s.model.name == "tpr" else factor[s.seed])
    assert found.evidence[0].ratio.value == pytest.approx((100 / 8) ** 0.2)
    assert found.evidence[0].ratio.low < 1 < found.evidence[0].ratio.high
    assert found.badge.word == "does not hold"


@pytest.mark.parametrize(("factor", "word"), [(2.5, "holds"), (1.5, "does not hold")])
def test_substantially_means_twice(store, factor, word):
    found = verdict(store, "main figure, interactions", lambda s, c: 1.0 if s.model.name == "tpr" else factor)
    assert (found.badge.word, found.cells) == (word, 6)


@pytest.mark.parametrize(("worst", "word"), [(9e-7, "holds"), (2e-6, "does not hold")])
def test_solved_means_every_seed(store, worst, word):
    found = verdict(store, "substitution is learned", lambda s, c: worst if s.seed == 3 else 1e-9)
    assert (found.badge.word, found.cells) == (word, 18)


@pytest.mark.parametrize(
    ("inside", "outside", "word"), [(1e-2, 1.9e-2, "holds"), (1e-2, 2.1e-2, "does not hold"), (1e-12, 9e-7, "holds")]
)
def test_generalising_is_being_as_good_outside(store, inside, outside, word):
    found = verdict(store, "generalises under interaction", lambda s, c: inside if c == "in_distribution" else outside)
    assert (found.badge.word, found.cells) == (word, 18)


@pytest.mark.parametrize(("advantage", "word"), [(20.0, "holds"), (5.0, "does not hold")])
def test_advantage_with_and_without_interaction(store, advantage, word):
    """Ten without; the other baseline is further away and must not matter."""

    def loss(spec, condition):
        better = advantage if spec.task.options["interaction"] else 10.0
        return noise(spec, condition) * {"tpr": 1.0, "classical": better, "resnet": 100.0}.get(spec.model.name, 1.0)

    found = verdict(store, "particularly when factors interact", loss)
    assert (found.badge.word, found.cells) == (word, 18)
    assert found.evidence[0].ratio.value == pytest.approx(advantage / 10)
    assert found.evidence[0][2:4] == pytest.approx((advantage, 10.0))


def test_what_is_not_stored_is_not_judged(store):
    claim = BY_NAME["no interaction, everywhere"]
    found = judge(claim, results(store, ("main-noninteracting",), lambda s, c: 1.0), SETUP)
    assert found.badge.word == "not run"


def test_one_missing_seed_is_enough_not_to_judge(store):
    claim = BY_NAME["main figure, no interaction"]
    specs = figure("main-noninteracting", SETUP).specs
    save(store, specs[1:])
    assert judge(claim, Results(store, specs), SETUP).badge.word == "not run"
    save(store, specs[:1])
    assert judge(claim, Results(store, specs), SETUP).badge.word != "not run"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_who_diverges_loses(store, bad):
    """One seed is enough to lose, and a baseline that diverges is beaten."""

    def ours_diverges(spec, condition):
        return bad if (spec.model.name, spec.seed) == ("tpr", 2) else 1e-9

    found = verdict(store, "substitution is learned", ours_diverges)
    assert (found.badge.word, found.favourable) == ("does not hold", 0)


def test_a_baseline_that_diverges_is_beaten(store):
    def theirs_diverge(spec, condition):
        return 1e-3 if spec.model.name == "tpr" else float("nan")

    assert verdict(store, "main figure, no interaction", theirs_diverge).badge.word == "holds"


def test_rounding_is_no_advantage(store):
    """Both losses are below what counts: nobody is lower."""
    found = verdict(store, "main figure, no interaction", lambda s, c: 1e-15 if s.model.name == "tpr" else 1e-12)
    assert {one.ratio.value for one in found.evidence} == {1.0}
    assert found.badge.word == "does not hold"


def test_every_claim_names_its_source():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.source and claim.statement and claim.test for claim in CLAIMS)


def test_the_number_of_cells_does_not_depend_on_what_is_stored(store, reproduced):
    """Nothing is stored, one figure, or all."""
    setup = Setup(seeds=3, steps=10)
    whole = Results(reproduced, plans_of(FIGURES, setup))
    part = Results(reproduced, plans_of(["noninteracting"], setup))
    for claim in CLAIMS:
        judged, half, none = (judge(claim, found, setup) for found in (whole, part, Results(store, [])))
        assert judged.cells == judged.stored == half.cells == none.cells
        assert none.stored == 0
        assert half.stored in (0, half.cells)
    assert {claim.name: judge(claim, part, setup).badge.word == "not run" for claim in CLAIMS} == {
        claim.name: claim.figures not in (("noninteracting",), ("main-noninteracting",)) for claim in CLAIMS
    }


def test_losses_of_the_evidence_and_their_ratio_are_the_same_kind_of_mean(store):
    """Geometric: one bad seed does not make a mean that contradicts the ratio beside it."""
    bad = {"tpr": [1e-3] * 5, "classical": [1e-4, 1e-4, 1e-4, 1e-4, 1.0], "resnet": [1e-2] * 5}
    found = verdict(store, "main figure, no interaction", lambda s, c: bad[s.model.name][s.seed])
    for one in found.evidence:
        assert one.ratio.value == pytest.approx(one.theirs / one.ours)
    assert {one.against for one in found.evidence if one.theirs < one.ours} == {"classical"}
