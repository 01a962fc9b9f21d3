"""The room "Pixels" in a real browser: every control, drag and drop, the keyboard, links, and numbers against torch."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.explorer.images_page import codes_of, drag, frame_of, object_of, picture_of, pressed, settle, slide
from tpr_attention.explorer.page import write_page
from tpr_attention.explorer.trained import of_file
from tpr_attention.models.build import build
from tpr_attention.tasks.composition.factors import substitute
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.tasks.images.frames import as_pictures, draw_frames

pytestmark = pytest.mark.browser

PIXELS = Path(__file__).parents[2] / "docs" / "models" / "pixels.safetensors"
ROLES = ("shape", "scale", "orientation", "position", "colour")
REFERENCE, TRANSFORM = [1, 4, 4, 7, 13, 0], [0, 1, 2, 12, 20, 1]


@pytest.fixture(scope="module")
def trained():
    return of_file(PIXELS)


@pytest.fixture(scope="module")
def html(trained):
    return write_page([trained])


@pytest.fixture(scope="module")
def task(trained):
    return ImageComposition(**trained.spec.task.options)


@pytest.fixture(scope="module")
def model(trained, task):
    made = build("images-composer", task, **trained.spec.model.options).eval().double()
    made.load_state_dict({name: torch.from_numpy(array).double() for name, array in trained.weights.items()})
    made.memory.spread.zero_()  # the page looks at images once
    return made


def _check_against_torch(page, model, task, reference, transform, action):
    """All numbers and pictures of the page are those of the model."""
    factors = [task.grid.table(torch.tensor([classes])) for classes in (reference, transform)]
    frames = [draw_frames(one, torch.float64) for one in factors]
    target = draw_frames(substitute(*factors, torch.tensor([action])), torch.float64)
    with torch.no_grad():
        composed, read = model.composed(*frames, torch.eye(5, dtype=torch.float64)[[action]])
        codes = model.memory.read(composed, model.decoder)
        by_fillers, by_codes = model.decoder(composed), model.memory.draw(codes)
    for name, frame in zip(("reference", "transform", "truth"), (*frames, target), strict=True):
        assert (picture_of(page, name) == as_pictures(frame)[0].numpy()).all()
    np.testing.assert_allclose(object_of(page, "reference"), read[0], atol=1e-5)
    np.testing.assert_allclose(object_of(page, "answer"), composed[0], atol=1e-5)
    assert codes_of(page) == codes[0].tolist()
    for name, image in (("fillers", by_fillers), ("codes", by_codes)):
        wrong = ((image > 0.5) != (target > 0.5)).any(1)[0]
        assert int(page.get_attribute(f"[data-answer={name}]", "data-wrong")) == int(wrong.sum())
        found, wanted = picture_of(page, name).astype(int), as_pictures(image)[0].numpy().astype(int)
        assert np.abs(found - wanted)[~wrong.numpy()].max() <= 1
        assert (found[wrong.numpy()] == [255, 170, 240]).all()


def test_numbers_are_those_of_torch(open_page, html, model, task):
    with open_page(html=html, fragment="#images") as page:
        for action in range(5):
            page.click(f"[data-key=action-{action}]")
            settle(page)
            _check_against_torch(page, model, task, REFERENCE, TRANSFORM, action)


def test_every_factor_has_a_control(open_page, html, model, task):
    reference, transform = [2, 2, 8, 31, 0, 2], [1, 5, 0, 3, 30, 0]
    with open_page(html=html, fragment="#images") as page:
        for side, classes in (("reference", reference), ("transform", transform)):
            for name, number in zip(task.grid.names, classes, strict=True):
                if name in ("shape", "colour"):
                    page.select_option(f"[data-key={side}-{name}]", str(number))
                else:
                    slide(page, f"{side}-{name}", number)
        page.click("[data-key=action-3]")
        settle(page)
        _check_against_torch(page, model, task, reference, transform, 3)
        page.focus("[data-key=reference-position_x]")
        page.keyboard.press("ArrowLeft")
        settle(page)
        _check_against_torch(page, model, task, [2, 2, 8, 30, 0, 2], transform, 3)
        assert page.evaluate("document.activeElement.dataset.key") == "reference-position_x"


def test_badges_say_what_is_held_out(open_page, html):
    with open_page(html=html, fragment="#images") as page:
        said = page.inner_text("#room")
        assert "answer held out: square_red" in said
        assert "Test 3: held-out composition" in said
        assert said.count("seen in training") == 2
        page.click("[data-key=action-1]")
        settle(page)
        assert "answer seen in training" in page.inner_text("#room")
        page.select_option("[data-key=reference-shape]", "0")
        settle(page)
        said = page.inner_text("#room")
        assert "Test 1: held-out reference" in said
        assert "held out: square_red" in said


def test_roles_are_dragged_and_dropped(open_page, html, model, task):
    with open_page(html=html, fragment="#images?action=4") as page:
        drag(page, "[data-key=take-transform-position]", "[data-drop=answer]")
        assert page.is_visible(".pixel-ghost")
        page.mouse.up()
        settle(page)
        assert page.locator(".pixel-ghost").count() == 0
        assert pressed(page, "transform") == [False, False, False, True, True]
        with torch.no_grad():
            one, other = (model.encoder(frame_of(task, classes))[0] for classes in (REFERENCE, TRANSFORM))
            mixed = one.clone()
            mixed[[3, 4]] = other[[3, 4]]
            codes = model.memory.read(mixed[None], model.decoder)
        np.testing.assert_allclose(object_of(page, "answer"), mixed, atol=1e-5)
        assert codes_of(page) == codes[0].tolist()
        assert (picture_of(page, "truth") == as_pictures(frame_of(task, [1, 4, 4, 12, 20, 1]))[0].numpy()).all()
        drag(page, "[data-key=take-reference-colour]", "[data-drop=answer]")
        page.mouse.up()
        settle(page)
        assert pressed(page, "transform") == [False, False, False, True, False]
        drag(page, "[data-key=take-transform-shape]", "h1")  # dropped elsewhere: nothing changes
        page.mouse.up()
        settle(page)
        assert pressed(page, "transform") == [False, False, False, True, False]


def test_roles_are_taken_by_keyboard(open_page, html):
    with open_page(html=html, fragment="#images") as page:
        page.focus("[data-key=take-transform-scale]")
        page.keyboard.press("Enter")
        settle(page)
        assert pressed(page, "transform") == [True, True, False, False, False]
        page.focus("[data-key=take-reference-shape]")
        page.keyboard.press("Space")
        settle(page)
        assert pressed(page, "transform") == [False, True, False, False, False]
        assert page.get_attribute("[data-key=action-hand]", "aria-pressed") == "true"
        page.click("[data-key=action-0]")
        settle(page)
        assert pressed(page, "transform") == [True, False, False, False, False]


def test_fingers_drag_by_the_grip(open_page, html):
    with open_page(html=html, fragment="#images", width=400, has_touch=True) as page:
        page.tap("[data-key=take-transform-colour]")
        settle(page)
        assert pressed(page, "transform") == [True, False, False, False, True]
        page.locator("[data-drop=answer]").scroll_into_view_if_needed()
        page.evaluate(
            """() => {
              const answer = document.querySelector("[data-drop=answer]").getBoundingClientRect();
              const finger = { pointerType: "touch", pointerId: 1, button: 0, bubbles: true };
              const at = (x, y) => ({ ...finger, clientX: x, clientY: y });
              const row = document.querySelector("[data-key=take-reference-shape]");
              row.setPointerCapture = () => {};  // this pointer is made up
              row.dispatchEvent(new PointerEvent("pointerdown", at(10, 10)));  // not by the grip: the page scrolls
              row.dispatchEvent(new PointerEvent("pointermove", at(40, 40)));
              if (document.querySelector(".pixel-ghost")) throw new Error("dragged without the grip");
              row.querySelector(".pixel-grip").dispatchEvent(new PointerEvent("pointerdown", at(10, 10)));
              row.dispatchEvent(new PointerEvent("pointermove", at(40, 40)));
              row.dispatchEvent(new PointerEvent("pointerup", at(answer.left + 50, answer.top + 50)));
            }"""
        )
        settle(page)
        assert pressed(page, "transform") == [False, False, False, False, True]


def test_pixels_are_drawn_by_pointer_and_keyboard(open_page, html, model, task):
    with open_page(html=html, fragment="#images") as page:
        page.click("[data-key=drawing]")
        settle(page)
        box = page.locator("[data-key=canvas]").bounding_box()
        pixel = box["width"] / 64
        page.mouse.move(box["x"] + 40.5 * pixel, box["y"] + 50.5 * pixel)
        page.mouse.down()
        page.mouse.move(box["x"] + 49.5 * pixel, box["y"] + 50.5 * pixel, steps=3)
        page.mouse.up()
        page.focus("[data-key=canvas]")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        settle(page)
        page.keyboard.press("Space")
        settle(page)
        wanted = frame_of(task, REFERENCE)
        wanted[0, 0, 50, 40:50] = 1
        wanted[0, 0, 33, 33] = 1
        assert (picture_of(page, "reference") == as_pictures(wanted)[0].numpy()).all()
        with torch.no_grad():
            np.testing.assert_allclose(object_of(page, "reference"), model.encoder(wanted)[0], atol=1e-5)
        assert "no true answer" in page.inner_text("#room")
        link = page.url
        page.click("[data-key=undraw]")
        settle(page)
        assert (picture_of(page, "reference") == as_pictures(frame_of(task, REFERENCE))[0].numpy()).all()
    with open_page(html=html, fragment=link[link.index("#") :]) as page:
        assert (picture_of(page, "reference") == as_pictures(wanted)[0].numpy()).all()


def test_links_reproduce_the_view(open_page, html):
    with open_page(html=html, fragment="#images") as page:
        page.click("[data-key=random-held-out]")
        page.click("[data-key=take-transform-colour]")
        page.click("[data-key=marked]")
        settle(page)
        link, seen, said = page.url, object_of(page, "answer"), page.inner_text("#room")
        pictures = {key: picture_of(page, key) for key in ("reference", "transform", "fillers", "codes", "truth")}
    with open_page(html=html, fragment=link[link.index("#") :]) as page:
        np.testing.assert_array_equal(object_of(page, "answer"), seen)
        assert page.inner_text("#room") == said
        assert not page.is_checked("[data-key=marked]")
        for key, picture in pictures.items():
            assert (picture_of(page, key) == picture).all()


@pytest.mark.parametrize(
    "fragment", ["#images?reference=[9,9]", "#images?drawn=%22!%22", "#images?action=77", "#images?%%%"]
)
def test_malformed_links_show_the_first_view(open_page, html, task, fragment):
    with open_page(html=html, fragment=fragment) as page:
        assert (picture_of(page, "reference") == as_pictures(frame_of(task, REFERENCE))[0].numpy()).all()


def test_random_pairs(open_page, html):
    with open_page(html=html, fragment="#images") as page:
        for _ in range(3):
            page.click("[data-key=random-held-out]")
            settle(page)
            assert "Test 3: held-out composition" in page.inner_text("#room")
            page.click("[data-key=random]")
            settle(page)
            assert "answer seen in training" in page.inner_text("#room")


def test_without_a_memory_fillers_draw_the_answer(open_page, trained):
    weights = {name: array for name, array in trained.weights.items() if not name.startswith("memory.")}
    plain = replace(trained, spec=trained.spec.changed({"clean_up": False}), weights=weights)
    with open_page(trained=[plain], fragment="#images") as page:
        assert page.locator("[data-answer]").count() == 1
        assert "Cleaned up" not in page.inner_text("#room")


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_fits_the_window(open_page, html, width, scheme):
    with open_page(html=html, fragment="#images", width=width, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.eval_on_selector_all(
            "#room button, #room select, #room input[type=range]",
            "all => all.filter((one) => one.getBoundingClientRect().height < 39).map((one) => one.outerHTML)",
        )
        assert small == []
        spilled = page.eval_on_selector_all(
            ".pixel-cell",
            "all => all.filter((one) => one.scrollWidth > one.clientWidth + 3).map((one) => one.textContent)",
        )
        assert spilled == []
        unnamed = page.eval_on_selector_all(
            "#room input, #room select, #room button",
            "all => all.filter((one) => !(one.labels?.length || one.textContent || one.ariaLabel)).length",
        )
        assert unnamed == 0
