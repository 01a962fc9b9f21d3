"""The first screen: the map of verdicts, and sentences that are true of what was run."""

import random

import pytest

from tests.studies.stored import opening, plans_of, save
from tpr_attention.report.document import Document, Text
from tpr_attention.report.latex import latex_table
from tpr_attention.report.markdown import markdown
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.opening import NUMBER, first_screen, verdict_map, verdict_words
from tpr_attention.studies.paper.claims import FAILS, HOLDS, PARTLY, UNKNOWN
from tpr_attention.studies.study import Judged

NONE, NUMERICAL, CATEGORICAL = (
    "without interaction",
    "with the numerical interaction",
    "with the categorical interaction",
)
LETTERS = {"h": HOLDS, "p": PARTLY, "f": FAILS, "-": UNKNOWN}
SIZES = (30, 100, 300, 1_000, 3_000)
CLAIM = "The paper's claim of a lower loss than both baselines, substantially lower where factors interact, holds"


def judged(verdicts, *, is_whole=True):
    """Setting to verdicts as letters: the first is that of the paper's figures, the others are by size."""
    found = []
    for setting, letters in verdicts.items():
        for letter, size in zip(letters, (None, *SIZES), strict=False):
            condition = "the paper's figures" if size is None else f"{size:,} pairs"
            whole = is_whole and letter != "-"
            found.append(Judged(setting, "lower", condition, LETTERS[letter], "Evidence", setting, size, whole))
    return found


@pytest.mark.parametrize(
    ("verdicts", "holds", "fails"),
    [
        ({NONE: "h", NUMERICAL: "f"}, f"{NONE}.", f"It does not hold {NUMERICAL}."),
        (
            {NONE: "hhh", NUMERICAL: "ffff"},
            f"{NONE} at every number of pairs that was run.",
            f"It does not hold {NUMERICAL} at any number of pairs that was run.",
        ),
        (
            {NUMERICAL: "fhhf"},
            f"{NUMERICAL} up to 100 pairs.",
            f"It does not hold {NUMERICAL} at 300 pairs (also in the paper's figures).",
        ),
        (
            {NUMERICAL: "fhpff"},
            f"{NUMERICAL} at 30 pairs.",
            f"It does not hold, or only in part, {NUMERICAL} from 100 pairs on (also in the paper's figures).",
        ),
        (
            {NUMERICAL: "phh"},
            f"{NUMERICAL} at every other number of pairs that was run.",
            f"It holds only in part {NUMERICAL} in the paper's figures.",
        ),
        (
            {NUMERICAL: "hhfh"},
            f"{NUMERICAL} at some numbers of pairs (also in the paper's figures).",
            f"It does not hold {NUMERICAL} at 100 pairs.",
        ),
        ({NONE: "f"}, "nowhere.", f"It does not hold {NONE}."),
        ({NONE: "h", NUMERICAL: "h"}, f"{NONE} and {NUMERICAL}.", "Nothing that was run speaks against it."),
        (
            {NONE: "fhhf", NUMERICAL: "fhff", CATEGORICAL: "fhhf"},
            f"{NONE} up to 100 pairs, {NUMERICAL} at 30 pairs and {CATEGORICAL} with few pairs.",
            f"It does not hold {NONE} at 300 pairs (also in the paper's figures), {NUMERICAL} from 100 pairs on (also "
            f"in the paper's figures) and {CATEGORICAL} with many pairs (also in the paper's figures).",
        ),
    ],
)
def test_where_it_holds_and_where_it_does_not(verdicts, holds, fails):
    assert [*verdict_words(judged(verdicts))] == [f"{CLAIM} {holds}", fails]


def test_what_was_not_run_is_in_no_sentence():
    first, second = verdict_words(judged({NONE: "h-", NUMERICAL: "---"}))
    assert first == f"{CLAIM}, as far as it was run, {NONE}."
    assert second == f"Nothing that was run speaks against it; it was not run {NUMERICAL}."
    first, second = verdict_words(judged({NONE: "h", NUMERICAL: "f"}, is_whole=False))
    assert "as far as it was run" in first
    (only,) = verdict_words(judged({NONE: "--", NUMERICAL: "-"}))
    assert only.startswith("No claim of the paper can be judged yet")


@pytest.mark.parametrize("seed", range(50))
def test_any_verdicts_have_sentences_with_at_most_two_numbers(seed):
    draw = random.Random(seed)
    verdicts = {name: "".join(draw.choices("hpf-", k=6)) for name in (NONE, NUMERICAL, CATEGORICAL)}
    first, second = verdict_words(judged(verdicts))
    assert max(len(NUMBER.findall(sentence)) for sentence in (first, second)) <= 2
    for name, letters in verdicts.items():
        assert (name in first) == ("h" in letters)
        assert (name in second) == bool({"p", "f"} & {*letters})


def test_the_map_is_a_table_in_every_form():
    found = verdict_map(
        [*judged({NONE: "h-"}), Judged("other", "more", "30 pairs", FAILS._replace(note="1 of 9"), "Far")]
    )
    text = markdown(Document("", [], opening=[found]))
    assert f"| {NONE} | lower | holds | not run |" in text
    assert "| other | more | - | does not hold (1 of 9) |" in text
    assert r"does not hold (1 of 9) \\" in latex_table(found)


def test_without_claims_the_first_screen_has_at_most_three_sentences():
    assert first_screen([], ["One.", "Two.", "Three.", "Four."]) == [Text("One."), Text("Two."), Text("Three.")]
    *_, last = first_screen(judged({NONE: "h"}), [])
    assert last.text.startswith("What goes past the paper was not run")


def test_the_main_figures_are_spoken_of_only_where_there_is_no_more(reproduced, store):
    """With all splits the main figures are a part of them; alone they stand for them."""
    first, second, _ = opening(compose(reproduced, Setup(seeds=3, steps=10))[0])
    assert first == f"{CLAIM}, as far as it was run, {NONE}."
    assert second == f"It does not hold {NUMERICAL} and {CATEGORICAL}."
    save(store, plans_of(["main-interacting"], Setup(seeds=2, steps=10)))
    first, second, _ = opening(compose(store, Setup(seeds=2, steps=10))[0])
    assert first == f"{CLAIM}, as far as it was run, nowhere."
    assert second == "It does not hold where factors interact."
