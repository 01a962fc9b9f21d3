"""What the heads of a stored run do: its layers with their names, and the run that the report shows."""

from tpr_attention.experiments.layout import Curve, Setup
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.experiments.studies import study
from tpr_attention.report.document import Block, Heads, Text
from tpr_attention.report.inside import Inside, look_inside
from tpr_attention.report.results import Results
from tpr_attention.report.style import number, styles

__all__ = ["NORMALISED", "heads_of", "heads_of_one"]

NORMALISED = {"tpr-stack": ("stack.blocks.1.heads.1",)}
"""Layers that bring what they read to unit length, by model: weights do not tell."""
SHOWN, FEW = "main-noninteracting", 2
SOLVED = 1e-6
"""A loss below which a run has found how the task is solved."""


def heads_of(store: Store, digest: str) -> Inside | None:
    """The layers of heads of a stored run; None if it has none."""
    spec, curve = store.spec(digest), store.curve(digest)
    actions = curve["action"].drop_nulls().unique(maintain_order=True).to_list()
    roles = [name.removeprefix("role_") for name in curve.columns if name.startswith("role_")]
    words = styles([spec.model])[spec.model].words
    task = f"{spec.place}, {spec.interaction}" if spec.interaction else spec.place
    return look_inside(
        store.weights(digest),
        title=f"{words}: {task}, seed {spec.seed} ({digest})",
        actions=actions,
        roles=roles,
        normalised=NORMALISED.get(spec.model, ()),
    )


def heads_of_one(results: Results, setup: Setup) -> list[Block]:
    """A section on one run without interaction: solved rather than not, with two heads rather than more."""
    runs = {*study(SHOWN, setup).specs, *(spec for spec in results.specs.values() if _heads(spec) == FEW)}
    usual = [
        spec for spec in runs if spec.model == "tpr" and not spec.interaction and not spec.noise and not spec.world
    ]
    stored = [spec for spec in usual if spec.digest in results.specs]
    lost = {spec: float(results.final(Curve("", (spec,)), "in_distribution")[0]) for spec in stored}
    best = min(stored, key=lambda spec: (lost[spec] > SOLVED, _heads(spec), spec.seed, spec.digest), default=None)
    inside = heads_of(results.store, best.digest) if best else None
    if best is None or inside is None:
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
    return [Text(text), Heads("heads", inside, caption)]


def _heads(spec: RunSpec) -> object:
    return spec.options.get("num_heads", 4)
