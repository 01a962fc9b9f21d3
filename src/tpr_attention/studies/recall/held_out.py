"""What training never showed: pairings of compound keys, kinds of pairs (SAR), combinations of searches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tpr_attention.report.document import Block, Section, Text
from tpr_attention.report.drawings import Curves
from tpr_attention.report.panels import Plan, Series
from tpr_attention.report.results import Results
from tpr_attention.report.style import number
from tpr_attention.studies.recall.contest import Contest, Entrant, contest_plan, contest_table, final_means
from tpr_attention.studies.recall.looks import LOOKS
from tpr_attention.studies.study import Setup
from tpr_attention.studies.words import listed, percent

__all__ = ["PARTS", "Part", "held_out_summary"]

Words = Callable[[Results, Mapping[str, Series]], Iterator[str]]


@dataclass(frozen=True)
class Part:
    """A contest whose curves over training are shown, with a panel for each test.

    Args:
        plan: The name, title and caption of the figure.
        tests: Condition to the titles of its row and column.
        metric: What is shown.
        words: Sentences on the contestants that are stored.
        explained: What a reader must know of the task and of the choices.
    """

    title: str
    plan: Plan
    contest: Contest
    tests: Mapping[str, tuple[str, str]]
    metric: str
    words: Words
    explained: str

    def figure(self, setup: Setup) -> Plan:
        """The figure with its runs."""
        return contest_plan(self.plan, self.contest, self.tests, self.metric, setup)

    def section(self, results: Results, setup: Setup) -> list[Section]:
        """The figure, the table and what they say; none if nothing is stored."""
        stored = self.contest.stored(results, setup)
        if not stored:
            return []
        said = " ".join(self.words(results, stored))
        blocks: list[Block] = [Text(said)] if said else []
        titles = {condition: _title(*titles) for condition, titles in self.tests.items()}
        rows = [((), series) for series in stored.values()]
        caption = f"{self.plan.title}: {self.metric} at the end of training."
        table = contest_table(self.plan.name, caption, results, rows, [], titles, self.metric)
        return [Section(self.title, [*blocks, Text(self.explained), Curves(self.figure(setup), results), table])]


def _title(row: str, column: str) -> str:
    return f"{row}, {column}" if column else row


TPR = {"model": "recall-tpr"}
SAME = {"model.encoder": "roles", "model.width": 256}
EQUAL = {"model.width": 181}
"""A state of about as many numbers as that of TPR-Attention with two matches of 32 numbers."""

COMPOSITIONAL = Contest(
    {
        "task": "recall-compositional",
        "training.batch_size": 32,
        "training.train_examples": 20_000,
        "training.test_examples": 48,
        "training.learning_rate": 0.003,
    },
    1_000,
    {
        "tpr": Entrant("TPR-Attention, two matches, sum", LOOKS["tpr"], TPR),
        "tpr-delta": Entrant(
            "TPR-Attention, two matches, delta", LOOKS["tpr-delta"], {**TPR, "model.write": "delta"}, 300
        ),
        "tpr-softmax": Entrant("TPR-Attention, softmax match", LOOKS["tpr-softmax"], {**TPR, "model.match": "softmax"}),
        "softmax": Entrant(
            "softmax attention",
            LOOKS["softmax"],
            {"model": "recall-softmax", "model.width": 128, "model.num_heads": 4},
        ),
        "linear": Entrant("linear attention", LOOKS["linear"], {"model": "recall-linear", **EQUAL}),
        "delta": Entrant("delta rule", LOOKS["delta"], {"model": "recall-delta", **EQUAL}),
        "linear-roles": Entrant(
            "linear attention, same encoder", LOOKS["linear-roles"], {"model": "recall-linear", **SAME}
        ),
        "delta-roles": Entrant("delta rule, same encoder", LOOKS["delta-roles"], {"model": "recall-delta", **SAME}),
    },
)
LENGTHS = {"": 16, "_x4": 64, "_x16": 256}
"""Ending of a condition to the number of pairs."""


def _compositional_words(results: Results, stored: Mapping[str, Series]) -> Iterator[str]:
    """Softmax first; then constant states, by length."""
    ood = {end: final_means(results, stored, f"ood{end}", "accuracy") for end in LENGTHS}
    growing = [name for name in ("softmax", "tpr-softmax") if name in stored]
    if growing:
        shares = [f"{percent(min(ood[end][name] for end in LENGTHS))} ({stored[name].label})" for name in growing]
        yield (
            "With a softmax over all pairs, the share of new pairings that are recalled is, at every length, at least "
            f"{listed(shares)}."
        )
    if "tpr" in stored:
        shares = [f"{percent(ood[end]['tpr'])} with {pairs} pairs" for end, pairs in LENGTHS.items()]
        yield f"With a constant state TPR-Attention recalls {listed(shares)}."
    for name in ("linear", "delta"):
        if name in stored and "tpr" in stored:
            behind = [f"{100 * (ood[end]['tpr'] - ood[end][name]):.1f}" for end in LENGTHS]
            label = stored[name].label
            yield f"{label[0].upper()}{label[1:]}, with a state of equal size, is {listed(behind)} points behind it."


SAR = Contest(
    {
        "task": "recall-sar",
        "task.queries": 50,
        "training.batch_size": 16,
        "training.train_examples": 4_000,
        "training.test_examples": 16,
        "training.learning_rate": 0.003,
    },
    500,
    {
        "tpr": Entrant("TPR-Attention, two matches, sum", LOOKS["tpr"], TPR),
        "tpr-softmax": Entrant("TPR-Attention, softmax match", LOOKS["tpr-softmax"], {**TPR, "model.match": "softmax"}),
        "softmax": Entrant(
            "softmax attention",
            LOOKS["softmax"],
            {"model": "recall-softmax", "model.width": 128, "model.num_heads": 4},
        ),
        "linear": Entrant("linear attention", LOOKS["linear"], {"model": "recall-linear", **EQUAL}),
        "linear-roles": Entrant(
            "linear attention, same encoder", LOOKS["linear-roles"], {"model": "recall-linear", **SAME}
        ),
    },
)


def _sar_words(results: Results, stored: Mapping[str, Series]) -> Iterator[str]:
    right = final_means(results, stored, "ood_long", "accuracy")
    if "softmax" in right:
        yield (
            f"Softmax attention recalls {percent(right['softmax'])} of 250 pairs of kinds that training never pairs; "
            "what the task separates are memories of constant size."
        )
    others = [f"{stored[name].label} {percent(share)}" for name, share in right.items() if name != "softmax"]
    if others:
        yield f"Others: {listed(others)}."


CONTEXTUAL = Contest(
    {
        "task": "recall-contextual",
        "training.batch_size": 128,
        "training.train_examples": 100_000,
        "training.test_examples": 200,
    },
    2_500,
    {
        "tpr": Entrant(
            "TPR-Attention, softmax match",
            LOOKS["tpr-softmax"],
            {"model": "contextual-tpr", "training.learning_rate": 0.003},
        ),
        "softmax": Entrant(
            "multi-head attention",
            LOOKS["softmax"],
            {"model": "contextual-attention", "training.learning_rate": 0.001},
            5_000,
        ),
    },
)


def _contextual_words(results: Results, stored: Mapping[str, Series]) -> Iterator[str]:
    known, new = (final_means(results, stored, condition, "loss") for condition in ("in_distribution", "ood"))
    for name, series in stored.items():
        yield (
            f"{series.label[0].upper()}{series.label[1:]} has an error of {number(known[name])} in combinations of "
            f"training and of {number(new[name])} in new ones."
        )


PARTS = {
    "compositional": Part(
        "Recall: keys of two parts in new pairings",
        Plan(
            "recall-compositional",
            "Compound keys",
            "Share of right values over training, for pairings of training (above) and held-out ones (below), in "
            "sequences of 16 pairs, as in training, and of 64 and 256.",
            (),
        ),
        COMPOSITIONAL,
        {
            f"{name}{end}": (words, f"{pairs} pairs")
            for name, words in (("in_distribution", "known pairings"), ("ood", "new pairings"))
            for end, pairs in LENGTHS.items()
        },
        "accuracy",
        _compositional_words,
        "A key has two parts of 32 kinds, and neither part is enough. A quarter of the pairings is held out. Linear "
        "attention and the delta rule have a width of 181, which makes their state as large as that of TPR-Attention. "
        "All contestants have the same learning rate, and all but the costly delta rule for two matches the same "
        "steps. The rate was chosen among 0.001 and 0.003 by the loss in distribution of linear attention and of the "
        "delta rule, on a seed that is not reported. The curves show who is still learning.",
    ),
    "sar": Part(
        "Recall: kinds of pairs that training lacks (SAR)",
        Plan("recall-sar", "Systematic associative recall", "Share of right values over training.", ()),
        SAR,
        {
            "in_distribution": ("SAR", "kinds of training, 100 pairs"),
            "ood": ("SAR", "new kinds, 100 pairs"),
            "ood_long": ("SAR", "new kinds, 250 pairs"),
        },
        "accuracy",
        _sar_words,
        "Training pairs keys X1 with values Y2 and X2 with Y1; tests pair X2 with Y2. The steps are enough for softmax "
        "and TPR-Attention; a contestant whose curve for the kinds of training is still low has not converged.",
    ),
    "contextual": Part(
        "Recall: searching by one field, returning another",
        Plan("recall-contextual", "Contextual retrieval", "Absolute error over training.", ()),
        CONTEXTUAL,
        {
            "in_distribution": ("contextual", "combinations of training"),
            "ood": ("contextual", "new combinations"),
            "ood_long": ("contextual", "new combinations, 40 objects"),
        },
        "loss",
        _contextual_words,
        "Ten objects; each finds the nearest other object by each of three search fields, and adds up the value fields "
        "that its task names. A fifth of the 27 tasks is held out. Both contestants match by a softmax and exclude "
        "themselves. Multi-head attention has more steps; published runs have 100,000. The curves show who is "
        "still learning. The learning rates, 0.003 and 0.001, were chosen among these two by the loss in distribution.",
    ),
}
"""Name of a plan to its contest."""


def held_out_summary(results: Results, setup: Setup) -> Iterator[str]:
    """A sentence for the first screen, on the longest sequences; none if they are not stored."""
    stored = COMPOSITIONAL.stored(results, setup)
    if "tpr" in stored:
        end, pairs = [*LENGTHS.items()][-1]
        share = final_means(results, stored, f"ood{end}", "accuracy")["tpr"]
        yield (
            f"Of pairings of keys that training never had, TPR-Attention recalls {percent(share)} in sequences of "
            f"{pairs} pairs."
        )
