"""What the heads of a stored run do: its layers with their names, and the run that the report shows."""

from tpr_attention.report.document import Block, Text
from tpr_attention.report.drawings import HeadMaps
from tpr_attention.report.inspection import Inspection, Names, inspect_weights
from tpr_attention.report.panels import Series
from tpr_attention.report.results import Results
from tpr_attention.report.style import number
from tpr_attention.runner.store import Store
from tpr_attention.studies.contestants import CONTESTANTS, words
from tpr_attention.studies.paper.claims import SOLVED
from tpr_attention.studies.paper.figures import figure
from tpr_attention.studies.study import Setup
from tpr_attention.training.spec import RunSpec

__all__ = ["heads_of", "heads_of_one", "two_heads"]

NORMALISED = {"tpr-stack": ("stack.blocks.1.heads.1",)}
"""Layers that bring what they read to unit length, by model: weights do not tell."""
OBJECTS = ("reference", "transform")


def two_heads(setup: Setup) -> tuple[RunSpec, ...]:
    """The smallest model that solves the task (App. D), to look at."""
    return (RunSpec.of({"num_heads": 2, "learn_ids": False, "steps": setup.steps}),)


def heads_of(store: Store, digest: str) -> Inspection | None:
    """The layers of heads of a stored run; None if it has none."""
    spec, names = store.spec(digest), store.names(digest)
    name = words(spec.model.name) if spec.model.name in CONTESTANTS else spec.model.name
    told = ("split", "interaction", "factors", "filler_dim")
    task = [spec.task.name, *(str(spec.task.options[key]) for key in told if spec.task.options.get(key))]
    actions, roles = names["groups"].get("action", ()), names["axes"].get("role", ())
    return inspect_weights(
        store.weights(digest),
        Names(tuple(actions), OBJECTS, tuple(roles)),
        title=f"{name}: {', '.join(task)}, seed {spec.seed} ({digest})",
        normalised=NORMALISED.get(spec.model.name, ()),
    )


def heads_of_one(results: Results, setup: Setup) -> list[Block]:
    """One run without interaction: solved rather than not, with two heads rather than more."""
    runs = dict.fromkeys([*two_heads(setup), *figure("main-noninteracting", setup).specs])
    stored = [spec for spec in runs if spec.digest in results.specs and spec.model.name == "tpr"]
    lost = {spec: float(results.final(Series("", (spec,)), "in_distribution")[0]) for spec in stored}
    best = min(stored, key=lambda spec: (lost[spec] > SOLVED, _heads(spec), spec.seed), default=None)
    inspection = heads_of(results.store, best.digest) if best else None
    if best is None or inspection is None:
        return []
    text = (
        f"The weights of one run, `{best.digest}`: {_heads(best)} heads, seed {best.seed}, in-distribution loss "
        f"{number(lost[best])}. Of any run: `tpr-attention show {best.digest} --figure heads.png`."
    )
    caption = (
        "Above: the map of all heads together. Its update is added to a copy of the reference, so that -1 at "
        "(reference, acted role) erases what is there, and +1 at (transform, acted role) writes what is to be there. "
        "Below: which role each head reads under each action, of which object, how it maps the filler, and to which "
        "role it writes. Heads may share the work in many ways: only their sum is determined, and that only as far as "
        "the fillers of the task can tell. Those of shape and colour are one-hot and add up to 1, so what is the same "
        "for all components cancels between reference and transform."
    )
    return [Text(text), HeadMaps("heads", inspection, caption)]


def _heads(spec: RunSpec) -> int:
    return int(spec.model.options["num_heads"])
