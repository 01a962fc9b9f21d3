"""Which run the report looks into, and what it says of it."""

from dataclasses import replace

import pytest

from tests.report.test_inside import weights
from tpr_attention.data import dsprites_composition, stream
from tpr_attention.experiments.curves import curve
from tpr_attention.experiments.layout import TESTS, Setup
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.studies import study
from tpr_attention.models import MODELS, build
from tpr_attention.report.compose import compose, gather
from tpr_attention.report.document import Heads
from tpr_attention.report.heads import NORMALISED, heads_of
from tpr_attention.report.write import write_report

SETUP = Setup(seeds=3, steps=10)
ROLES = ("shape", "scale", "orientation", "position", "colour", "shape_col")
MAIN = [spec for spec in study("main-noninteracting", SETUP).specs if spec.model == "tpr"]
TWO = [replace(spec, options={"num_heads": 2}) for spec in MAIN]


def save(store, spec, loss=1e-9, **origin):
    conditions = ("in_distribution", *TESTS)
    points = [Point("", step, name, (loss,) * 6) for step in (0, 10) for name in conditions]
    points += [Point("", 10, name, (loss,) * 6, action) for name in conditions for action in ROLES[:5]]
    heads = spec.options.get("num_heads", 4)
    stored = (
        weights(heads=heads, seed=spec.seed)
        if spec.model == "tpr"
        else {"update.weight": weights()["attention.id_query"]}
    )
    store.save(spec, curve(points, dict.fromkeys(ROLES, 1 / 6)), stored, origin)


def shown(store):
    (blocks,) = (
        section.blocks
        for section in compose(gather(store, SETUP)).sections
        if any(isinstance(block, Heads) for block in section.blocks)
    )
    return blocks


@pytest.mark.parametrize("name", MODELS)
def test_layers_that_normalise_are_known(name):
    model = build(name, dsprites_composition("square_red"), stream(0, "init"))
    found = [path for path, layer in model.named_modules() if getattr(layer, "normalise", False)]
    assert found == list(NORMALISED.get(name, ()))


def test_names_are_those_of_the_run(store):
    save(store, MAIN[0])
    (layer,) = heads_of(store, MAIN[0].digest).layers
    assert layer.names == (ROLES[:5], ("reference", "transform"), ROLES)


@pytest.mark.parametrize(
    ("losses", "chosen"),
    [
        ({MAIN[2]: 1e-9, MAIN[1]: 1e-7, MAIN[0]: 1e-3}, MAIN[1]),
        ({MAIN[0]: 1e-9, TWO[2]: 1e-9, TWO[1]: 1e-8}, TWO[1]),
        ({MAIN[0]: 1e-9, TWO[0]: 1e-3}, MAIN[0]),
        ({MAIN[1]: 1e-2, MAIN[2]: 1e-3}, MAIN[1]),
        ({TWO[0]: 1e-9, replace(TWO[0], interaction="shape_col"): 1e-9}, TWO[0]),
        ({MAIN[1]: 1e-9, replace(MAIN[0], start_at_copy=False): 1e-9}, MAIN[1]),
    ],
    ids=["solved", "two heads", "solved before two heads", "none solved", "no interaction", "no other reading"],
)
def test_the_run_that_is_shown(store, losses, chosen):
    for spec, loss in losses.items():
        save(store, spec, loss)
    text, heads = shown(store)
    assert f"`{chosen.digest}`" in text.text
    assert chosen.digest in heads.inside.title


def test_without_such_a_run_there_is_no_section(store):
    save(store, RunSpec(model="resnet", steps=10))
    titles = [section.title for section in compose(gather(store, SETUP)).sections]
    assert "Figures" in titles
    assert "What the heads do" not in titles


def test_the_picture_is_written_and_always_the_same(store, tmp_path):
    save(store, MAIN[0])
    for workers, name in enumerate(("one", "two")):
        page = write_report(store, tmp_path / name, SETUP, workers=workers)
    assert "What the heads do" in page.read_text()
    assert "(figures/heads.png)" in (tmp_path / "one" / "report.md").read_text()
    for ending in ("png", "svg", "pdf"):
        one, two = ((tmp_path / name / "figures" / f"heads.{ending}").read_bytes() for name in ("one", "two"))
        assert one == two
    assert (tmp_path / "one" / "index.html").read_bytes() == page.read_bytes()
