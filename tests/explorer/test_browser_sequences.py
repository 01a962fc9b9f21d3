"""The room "Sequences" in a real browser: every control, numbers against torch, links, widths and colours."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tpr_attention.explorer.trained import Trained, of_folder
from tpr_attention.models.build import build
from tpr_attention.training.prepare import make_task

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parents[2] / "docs" / "models" / "sequences"


@pytest.fixture(scope="module")
def trained():
    """The memories of the documentation."""
    return of_folder(FOLDER)


def by_digest(trained):
    return {run.spec.digest: run for run in trained}


def model_of(run):
    """The torch model of a run, in float64."""
    model = build(run.spec.model.name, make_task(run.spec.task, run.spec.seed), run.spec.seed, **run.spec.model.options)
    model.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in run.weights.items()})
    return model.double().eval()


def clicked(page, key):
    page.click(f'[data-key="{key}"]')
    settled(page)


def chosen(page, key, value):
    page.select_option(f'[data-key="{key}"]', str(value))
    settled(page)


def settled(page):
    """Wait for the next frame, and for the address, which follows later."""
    page.wait_for_timeout(350)


def state_of(page):
    """The pairs of the page, and its query."""
    pairs = page.eval_on_selector_all("[data-pair]", "all => all.map((one) => one.dataset.pair.split('.').map(Number))")
    return pairs, page.eval_on_selector_all('[data-key^="ask-"]', "all => all.map((one) => Number(one.value))")


def checked(page, trained):
    """Compare everything that the page shows of the memories with torch; returns the right answers by digest."""
    pairs, asked = state_of(page)
    wanted = [pair[-1] for pair in pairs if pair[:-1] == asked][-1]
    right = {}
    for card in page.query_selector_all("[data-model]"):
        digest = card.get_attribute("data-model")
        run = by_digest(trained)[digest]
        model, stored, query = model_of(run), torch.tensor(pairs), torch.tensor([asked])
        with torch.no_grad():
            output = model(stored, query)[0].numpy()
        np.testing.assert_allclose(json.loads(card.get_attribute("data-output")), output, rtol=1e-5, atol=1e-5)
        right[digest] = int(output.argmax()) == wanted
        assert ("right" in card.query_selector(".badge").inner_text()) == right[digest]
        if hasattr(model, "layer") and card.query_selector('[data-weight^="match-"]'):
            seen = model.layer.inspect(model.objects.queries(query), memory=model.objects.pairs(stored))
            np.testing.assert_allclose(weights(card, len(pairs)), seen.match_weights[:, 0].numpy(), atol=1e-5)
        recalled_as_in_torch(card, model, stored)
    assert f"{sum(right.values())} of {len(right)} memories" in page.inner_text('[data-figure="summary"]')
    return right


def weights(card, count):
    values = [float(one.get_attribute("data-value")) for one in card.query_selector_all("[data-weight]")]
    return np.array(values).reshape(-1, count)


def recalled_as_in_torch(card, model, stored):
    keys = [tuple(pair[:-1]) for pair in stored.tolist()]
    last = {key: place for place, key in enumerate(keys)}
    with torch.no_grad():
        answers = model(stored, stored[:, :-1]).argmax(-1)
    cells = [one.get_attribute("data-value") for one in card.query_selector_all("[data-recalled]")]
    for place, cell in enumerate(cells):
        right = str(bool(answers[place] == stored[place, -1])).lower()
        assert cell == (right if last[keys[place]] == place else "null")


def test_answers_and_weights_are_those_of_torch(open_page, trained):
    with open_page(trained, fragment="#sequences") as page:
        right = checked(page, trained)
        assert sum(right.values()) >= 4
        assert "new pairing" in page.inner_text('[data-figure="badges"]')
        for length in (24, 96):
            clicked(page, f"length-{length}")
            assert len(page.query_selector_all(".pair-chip")) == length
            right = checked(page, trained)
            tpr = [run.spec.digest for run in trained if run.label == "recall-tpr, filler dim 12"]
            assert all(right[digest] for digest in tpr)
        assert "longer than in training" in page.inner_text('[data-figure="badges"]')


def test_states_grow_or_are_constant(open_page, trained):
    with open_page(trained, fragment="#sequences") as page:
        read = "all => Object.fromEntries(all.map((one) => [one.dataset.state, Number(one.dataset.value)]))"
        short = page.eval_on_selector_all("[data-state]", read)
        clicked(page, "length-96")
        long = page.eval_on_selector_all("[data-state]", read)
        for digest, before in short.items():
            options = by_digest(trained)[digest].spec.model
            grows = "softmax" in (options.name, options.options.get("match")) or options.name == "recall-softmax"
            assert long[digest] == (before * 16 if grows else before)


def test_every_control_of_compound_keys(open_page, trained):
    with open_page(trained, fragment="#sequences") as page:
        before, _ = state_of(page)
        clicked(page, "pair-1")
        assert state_of(page)[1] == before[1][:2]
        checked(page, trained)
        chosen(page, "edit-value", 11)
        assert state_of(page)[0][1] == [*before[1][:2], 11]
        chosen(page, "edit-0", 0)
        chosen(page, "edit-1", 0)
        assert state_of(page) == ([before[0], [0, 0, 11], *before[2:]], [0, 0])
        checked(page, trained)
        clicked(page, "add")
        assert len(state_of(page)[0]) == 7
        clicked(page, "remove")
        assert len(state_of(page)[0]) == 6
        chosen(page, "ask-0", 11)
        chosen(page, "ask-1", 11)
        assert "not in the sequence" in page.inner_text('[data-figure="wanted"]')
        assert "no right answer" in page.inner_text("[data-model]")
        page.click('[data-plane="0.0"]')
        settled(page)
        assert state_of(page)[1] == [0, 0]
        clicked(page, "show-share")
        assert page.query_selector('[data-weight^="share-"]')
        clicked(page, "show-match")
        clicked(page, "drawn-known")
        clicked(page, "new")
        fresh, asked = state_of(page)
        assert len(fresh) == 6
        assert fresh != before
        assert not page.query_selector(".pair-chip.new-pairing")
        assert asked in [pair[:2] for pair in fresh]
        assert "seen in training" in page.inner_text('[data-figure="badges"]')
        checked(page, trained)
        clicked(page, "drawn-any")
        clicked(page, "new")
        assert page.query_selector(".pair-chip.new-pairing.asked-pair")
        checked(page, trained)


def test_keys_that_are_written_again(open_page, trained):
    with open_page(trained, fragment="#sequences") as page:
        chosen(page, "task", 1)
        checked(page, trained)
        clicked(page, "pair-0")
        clicked(page, "pair-3")
        key = page.input_value('[data-key="edit-0"]')
        clicked(page, "pair-0")
        chosen(page, "edit-0", key)
        assert "times: the last value counts" in page.inner_text('[data-figure="badges"]')
        clicked(page, "show-share")
        checked(page, trained)


def test_a_link_reproduces_the_view(open_page, trained):
    with open_page(trained, fragment="#sequences") as page:
        clicked(page, "length-24")
        clicked(page, "pair-5")
        chosen(page, "edit-value", 3)
        clicked(page, "show-share")
        fragment, shown = page.evaluate("location.hash"), page.inner_html("#room")
    with open_page(trained, fragment=fragment) as page:
        assert page.inner_html("#room") == shown


@pytest.mark.parametrize(
    "fragment",
    [
        "#sequences?pairs=%221.2%22",
        "#sequences?pairs=%22900.0.0%22&query=%5B77%2C-1%5D",
        "#sequences?query=%5B%22x%22%2C1%5D&chosen=-4",
        "#sequences?task=9&show=%22%3Cb%3E%22&drawn=3",
        "#sequences?pairs=%22%22",
        "#sequences?task=1&query=%5B1%2C2%5D",
    ],
)
def test_a_malformed_link_shows_something(open_page, trained, fragment):
    with open_page(trained, fragment=fragment) as page:
        assert page.query_selector_all("[data-model]")
        assert not page.query_selector(".error")


def test_pairs_are_chosen_by_keyboard_and_keep_the_focus(open_page, trained):
    with open_page(trained, fragment="#sequences") as page:
        page.focus('[data-key="pair-0"]')
        page.keyboard.press("Enter")
        settled(page)
        assert page.evaluate("document.activeElement.dataset.key") == "pair-0"
        assert page.get_attribute('[data-key="pair-0"]', "aria-pressed") == "true"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.key") == "pair-1"


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_nothing_is_wider_than_the_window(open_page, trained, width, scheme):
    with open_page(trained, fragment="#sequences", width=width, scheme=scheme) as page:
        for length in (6, 96):
            clicked(page, f"length-{length}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        sizes = page.eval_on_selector_all(
            "#room button, #room select", "all => all.map((one) => one.getBoundingClientRect().height)"
        )
        assert min(sizes) >= 40


def test_runs_that_cannot_be_shown_are_named(open_page, trained):
    broken = Trained(trained[0].spec.with_seed(3), {}, "<b>broken</b>")
    other = Trained(trained[0].spec.changed({"task": "recall-hops", "model": "hops-tpr"}), {}, "<i>other</i>")
    with open_page([*trained, other, broken], fragment="#sequences") as page:
        assert "<i>other</i> (recall-hops)" in page.text_content(".left-out")
