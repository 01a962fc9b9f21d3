"""Which run the report looks into, and what it says of it."""

import pytest

from tests.report.made_up import head_weights
from tests.studies.stored import ACTIONS, ROLES, save, sections
from tpr_attention.models import MODELS
from tpr_attention.models.build import build
from tpr_attention.report.document import Document
from tpr_attention.report.drawings import HeadMaps
from tpr_attention.report.drawings.pictures import encoded
from tpr_attention.report.write import write_report
from tpr_attention.studies import Setup
from tpr_attention.studies.compose import compose
from tpr_attention.studies.paper.figures import figure
from tpr_attention.studies.paper.heads import NORMALISED, heads_of, two_heads
from tpr_attention.tasks.composition.task import dsprites_composition
from tpr_attention.training.spec import RunSpec

SETUP = Setup(seeds=3, steps=10)
MAIN = [spec for spec in figure("main-noninteracting", SETUP).specs if spec.model.name == "tpr"]
(TWO,) = two_heads(SETUP)


def weights(spec):
    """Random heads, as many as the model has; those of a model without heads have another name."""
    if spec.model.name != "tpr":
        return {"update.weight": head_weights()["attention.id_query"]}
    return head_weights(heads=spec.model.options["num_heads"], seed=spec.seed)


def shown(store):
    return sections(store, SETUP)["What the heads do"].blocks


@pytest.mark.parametrize("name", [name for name, path in MODELS.items() if ".composition." in path])
def test_layers_that_normalise_are_known(name):
    model = build(name, dsprites_composition("square_red"), seed=0)
    found = [path for path, layer in model.named_modules() if getattr(layer, "normalise", False)]
    assert found == list(NORMALISED.get(name, ()))


def test_names_are_those_of_the_run(store):
    save(store, MAIN[:1], weights=weights)
    inspection = heads_of(store, MAIN[0].digest)
    (layer,) = inspection.layers
    assert layer.names == (ACTIONS, ("reference", "transform"), ROLES)
    assert inspection.title == f"TPR-Attention: composition, square_red, seed 0 ({MAIN[0].digest})"


@pytest.mark.parametrize(
    ("losses", "chosen"),
    [
        ({MAIN[2]: 1e-9, MAIN[1]: 1e-7, MAIN[0]: 1e-3}, MAIN[1]),
        ({MAIN[0]: 1e-9, TWO: 1e-8}, TWO),
        ({MAIN[0]: 1e-9, TWO: 1e-3}, MAIN[0]),
        ({MAIN[1]: 1e-2, MAIN[2]: 1e-3}, MAIN[1]),
        ({MAIN[0]: 1e-9, TWO.changed({"interaction": "shape_col"}): 1e-9}, MAIN[0]),
        ({MAIN[1]: 1e-9, MAIN[0].changed({"start_at_copy": False}): 1e-9}, MAIN[1]),
    ],
    ids=["solved", "two heads", "solved before two heads", "none solved", "no interaction", "no other reading"],
)
def test_the_run_that_is_shown(store, losses, chosen):
    save(store, losses, lambda spec, _: losses[spec], weights)
    heads, text = shown(store)
    assert f"`{chosen.digest}`" in text.text
    assert chosen.digest in heads.inspection.title


def test_without_such_a_run_there_is_no_section(store):
    save(store, [RunSpec.of({"model": "resnet", "steps": 10})], weights=weights)
    found = sections(store, SETUP)
    assert "Figures" in found
    assert "What the heads do" not in found


def test_the_picture_is_written_and_always_the_same(store, tmp_path):
    save(store, MAIN[:1], lambda spec, _: 1e-9, weights)
    document, _ = compose(store, SETUP)
    (section,) = (section for section in document.sections if section.title == "What the heads do")
    assert isinstance(section.blocks[0], HeadMaps)
    page = write_report(Document("Heads", [section]), tmp_path)
    assert "What the heads do" in page.read_text()
    assert "(figures/heads.png)" in (tmp_path / "report.md").read_text()
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"heads.png", "heads.svg", "heads.pdf"}
    assert encoded(section.blocks[0].draw(), "svg") == (tmp_path / "figures" / "heads.svg").read_bytes()
