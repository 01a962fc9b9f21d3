"""The room "Composition" in a real browser: every control, numbers against Python, links, widths."""

import json
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pytest
import torch

from tpr_attention.explorer.page import write_page
from tpr_attention.explorer.trained import Trained, label_of, of_folder
from tpr_attention.models.build import build
from tpr_attention.tasks.composition.pairs import Pairs
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec

pytestmark = pytest.mark.browser

MODELS = Path(__file__).parents[2] / "docs" / "models" / "composition"
START = "#composition"
FACTORS = ("shape", "scale", "orientation", "position_x", "position_y", "colour")
REFERENCE, TRANSFORM = [2, 4, 5, 9, 20, 0], [0, 2, 0, 24, 8, 1]


@pytest.fixture(scope="module")
def trained():
    return of_folder(MODELS)


@pytest.fixture(scope="module")
def html(trained):
    return write_page(trained)


def link(**state):
    return START + "?" + "&".join(f"{name}={quote(json.dumps(value))}" for name, value in state.items())


def asked(trained, split, interaction, pairs):
    """The task of a cell, the question as a batch, and what each of its models answers."""
    cell = {"split": split, "interaction": interaction}
    here = [
        one
        for one in trained
        if one.spec.training.train_examples == pairs
        and all(one.spec.task.options[key] == value for key, value in cell.items())
    ]
    task = make_task(here[0].spec.task, here[0].spec.seed)
    question = Pairs(*(task.grid.table(torch.tensor([one])) for one in (REFERENCE, TRANSFORM)), torch.tensor([0]))
    batch = task.encode(question)
    outputs = {}
    for one in here:
        model = build(one.spec.model.name, task, **one.spec.model.options)
        model.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in one.weights.items()})
        with torch.no_grad():
            outputs[one.spec.model.name] = model(*batch.inputs)
    return task, batch, outputs


def cells(page, key):
    """The numbers of a figure, by row and column."""
    found = page.eval_on_selector_all(
        f'[data-cell^="{key}."]', "all => all.map((one) => [one.dataset.cell, Number(one.dataset.value)])"
    )
    places = {tuple(map(int, name.removeprefix(f"{key}.").split("."))): value for name, value in found}
    shape = tuple(max(place[axis] for place in places) + 1 for axis in range(len(next(iter(places)))))
    return np.array([places[place] for place in np.ndindex(shape)]).reshape(shape)


def wait_until(page, expression, *given):
    """Wait until an expression of JavaScript is true; the page's own policy forbids playwright's way of waiting."""
    for _ in range(100):
        if page.evaluate(expression, *given):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not true after five seconds: {expression}")


def condition(page):
    return page.get_attribute("#room [data-condition]", "data-condition")


@pytest.mark.parametrize(
    ("split", "interaction", "pairs"),
    [
        ("square_red", None, 100),
        ("square_red", None, 50_000),
        ("square_red", "shape_col", 50_000),
        ("square_pos", "scale_pos", 100),
    ],
)
def test_answers_and_errors_are_those_of_python(open_page, html, trained, split, interaction, pairs):
    task, batch, outputs = asked(trained, split, interaction, pairs)
    state = link(split=split, interaction=interaction or "none", pairs=pairs, reference=REFERENCE, transform=TRANSFORM)
    with open_page(html=html, fragment=state) as page:
        np.testing.assert_allclose(cells(page, "answer-target"), batch.target[0], atol=1e-6)
        assert set(outputs) == {"tpr", "classical", "resnet", "tpr-laws", *(["tpr-stack"] if interaction else [])}
        for name, output in outputs.items():
            np.testing.assert_allclose(cells(page, f"answer-{name}"), output[0], atol=2e-5)
            card = page.locator(f'[data-key="answer-{name}"]')
            measured = {key: value.item() for key, value in task.measure(output, batch).items()}
            loss = measured.pop("loss")
            assert float(card.get_attribute("data-loss")) == pytest.approx(loss, rel=1e-2, abs=1e-9)
            np.testing.assert_allclose(cells(page, f"error-{name}"), [*measured.values()], rtol=1e-2, atol=1e-9)
            decoded = task.encoding.decode(output).classes[0].tolist()
            assert [int(value) for value in card.get_attribute("data-decoded").split(",")] == decoded
        best = task.best_answer(*batch.inputs)
        floor = task.measure(best, batch)["loss"].item()
        shown = page.locator("[data-floor]")
        assert float(shown.get_attribute("data-floor")) == pytest.approx(floor, abs=1e-6)
        assert (floor > 0.01) == (interaction == "shape_col") == ("unknowable" in shown.inner_text())
        assert page.locator('[data-key="answer-best"]').count() == (interaction == "shape_col")


def test_every_control_changes_what_is_asked(open_page, html):
    with open_page(html=html, fragment=START) as page:
        for part in ("reference", "transform"):
            for name in ("scale", "orientation", "position_x", "position_y"):
                control = page.locator(f'[data-key="{part}-{name}"]')
                before = control.input_value()
                control.focus()
                page.keyboard.press("ArrowRight")
                changed = '([key, old]) => document.querySelector(`[data-key="${key}"]`).value !== old'
                wait_until(page, changed, [f"{part}-{name}", before])
                assert page.evaluate("document.activeElement.dataset.key") == f"{part}-{name}"
            for name, labels in (("shape", ("square", "ellipse", "heart")), ("colour", ("red", "green", "blue"))):
                for label in labels:
                    chosen = page.locator(f'[data-key="{part}-{name}-{label}"]')
                    chosen.click()
                    page.wait_for_selector(f'[data-key="{part}-{name}-{label}"][aria-pressed="true"]')
        for action in ("scale", "orientation", "position", "colour", "shape"):
            page.click(f'[data-key="action-{action}"]')
            page.wait_for_selector(f'[data-key="action-{action}"][aria-pressed="true"]')
        for wanted in ("train", "ood_reference", "ood_transform", "ood_composition"):
            page.click(f'[data-key="draw-{wanted}"]')
            page.wait_for_selector(f'[data-condition="{wanted}"]')
        for interaction in ("shape_col", "none"):
            page.select_option('[data-key="interaction"]', interaction)
            wait_until(page, f"document.querySelector('[data-key=interaction]').value === '{interaction}'")
            for model in ("tpr", "classical", "resnet", "tpr-laws", *(["tpr-stack"] if interaction != "none" else [])):
                page.click(f'[data-key="inside-{model}"]')
                page.wait_for_selector(f'[data-key="inside-{model}"][aria-pressed="true"]')
                assert page.locator('[data-figure^="inside-"]').count() > 0
        for pairs in ("50000", "100"):
            page.select_option('[data-key="pairs"]', pairs)
            wait_until(page, f"document.querySelector('.model-answers').textContent.includes('{int(pairs):,} tr')")
        page.select_option('[data-key="split"]', "square_pos")
        wait_until(page, "document.querySelector('[data-key=interaction]').value === 'scale_pos'")
        page.click('[data-key="inside-tpr"]')
        shown = page.locator(".head-row.aligned").count()
        page.check('[data-key="heads"]')
        wait_until(page, f"document.querySelectorAll('.head-row.aligned').length >= {shown}")


def test_held_out_values_are_marked(open_page, html, trained):
    task, _, _ = asked(trained, "square_pos", "scale_pos", 100)
    square = [0, *REFERENCE[1:]]
    with open_page(html=html, fragment=link(split="square_pos", reference=square, transform=TRANSFORM)) as page:
        rows = torch.tensor([[*square[:3], x, *square[4:]] for x in range(32)])
        held = task.pairing.held_out(task.grid.table(rows)).tolist()
        ticks = page.locator(
            '[data-key="card-reference"] .factor', has=page.locator('[data-key="reference-position_x"]')
        )
        marked = ticks.locator(".ticks i").evaluate_all("all => all.map((one) => one.classList.contains('held'))")
        assert marked == held
        plane = page.eval_on_selector_all(
            '[data-figure="plane"] [data-held]', "all => all.map((one) => one.dataset.held)"
        )
        assert plane.count("true") == int(task.pairing.held_out.table.sum())
        assert len(plane) == task.pairing.held_out.table.numel()
        kinds = page.locator('[data-key^="reference-shape-"].held').all_inner_texts()
        assert kinds == []  # this x is on the left
        assert condition(page) == "ood_transform"


def test_heads_are_those_of_python(open_page, html, trained):
    _, batch, outputs = asked(trained, "square_red", None, 100)
    state = link(pairs=100, reference=REFERENCE, transform=TRANSFORM, inside="tpr", heads=True)
    with open_page(html=html, fragment=state) as page:
        update = (outputs["tpr"] - batch.inputs[0])[0]
        np.testing.assert_allclose(cells(page, "inside-0-update"), update, atol=2e-5)
        heads = page.locator(".head-row.aligned").count()
        assert heads == 8
        written = sum(
            np.outer(cells(page, f"inside-0-{h}-role"), cells(page, f"inside-0-{h}-mapped")) for h in range(heads)
        )
        np.testing.assert_allclose(written, update, atol=2e-5)


def test_a_link_shows_the_same(open_page, html):
    with open_page(html=html, fragment=START) as page:
        page.select_option('[data-key="split"]', "square_pos")
        page.select_option('[data-key="pairs"]', "50000")
        page.click('[data-key="draw-ood_composition"]')
        page.wait_for_selector('[data-condition="ood_composition"]')
        page.click('[data-key="inside-tpr-laws"]')
        wait_until(page, "location.hash.includes('tpr-laws')")
        address, text = page.evaluate("location.hash"), page.inner_text("#room")
    assert "square_pos" in unquote(address)
    with open_page(html=html, fragment=address) as page:
        assert page.inner_text("#room") == text


@pytest.mark.parametrize(
    "state",
    [
        {"reference": [99, 0, 0, 0, 0, 0], "transform": [0]},
        {"reference": [0.5, 0, 0, 0, 0, None], "action": "eat"},
        {"split": "nowhere", "interaction": "none", "inside": "nobody", "variant": 7},
        {"reference": {"a": 1}, "heads": "yes"},
    ],
)
def test_malformed_links_fall_back(open_page, html, state):
    with open_page(html=html, fragment=link(**state)) as page:
        assert condition(page) == "ood_composition"
        assert page.locator(".error").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_nothing_is_wider_than_the_window(open_page, html, width, scheme):
    for inside in ("tpr", "tpr-stack", "tpr-laws", "classical", "resnet"):
        with open_page(
            html=html, fragment=link(interaction="shape_col", inside=inside), width=width, scheme=scheme
        ) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_of_runs_are_text(open_page):
    spec = RunSpec.of({"model": "tpr"})
    weights = {name: tensor.numpy() for name, tensor in build("tpr", make_task(spec.task, 0)).state_dict().items()}
    unknown = RunSpec.of({"model": "oracle"})
    runs = [
        Trained(spec, weights, "<b id=bold>tpr</b>"),
        Trained(unknown, {}, f"<i id=slanted>{label_of(unknown)}</i>"),
    ]
    with open_page(trained=runs, fragment=START) as page:
        assert page.locator("#bold, #slanted").count() == 0
        assert "<b id=bold>" in page.inner_text("#room")
        page.click("summary")
        assert (
            "<i id=slanted>oracle</i> (split square_red, interaction none): the page does not know"
            in page.inner_text("#room")
        )
