"""The room "Memory and attention" in a real browser: every control, and numbers against Python."""

import json
import re
import struct
from urllib.parse import quote, unquote

import numpy as np
import pytest

from tests.explorer.conftest import settled
from tests.explorer.test_memory import DATA, START, stages
from tpr_attention.functional import extract

pytestmark = pytest.mark.browser


def link(**changes):
    return "#memory?" + "&".join(f"{key}={quote(json.dumps(value))}" for key, value in changes.items())


def matrix(page, key):
    """The numbers of a heat map."""
    cells = page.eval_on_selector_all(
        f'[data-cell^="{key}."]', "(cells) => cells.map((cell) => [cell.dataset.cell, Number(cell.dataset.value)])"
    )
    rows, columns = (max(int(name.split(".")[axis]) for name, _ in cells) + 1 for axis in (-2, -1))
    assert len(cells) == rows * columns
    return np.array([value for _, value in cells]).reshape(rows, columns)


def check_numbers(page, **changes):
    """What the page shows is what the functions of the package give for this state."""
    state = START | changes
    expected = stages(state)
    settled(page)
    np.testing.assert_allclose(matrix(page, "memory"), expected["memory"].reshape(16, 16), atol=1e-9)
    for way, matched in (("sum", expected["matched"]), ("softmax", expected["sharp"])):
        np.testing.assert_allclose(matrix(page, f"{way}.matched"), matched, atol=1e-9)
        extracted = extract(matched, expected["target"])
        np.testing.assert_allclose(matrix(page, f"{way}.extracted")[0], extracted, atol=1e-9)
        mapped = extracted @ expected["map"]
        np.testing.assert_allclose(matrix(page, f"{way}.mapped")[0], mapped, atol=1e-9)
        bound = np.zeros((4, 4))
        bound[state["bound"]] = mapped
        np.testing.assert_allclose(matrix(page, f"{way}.bound"), bound, atol=1e-9)


def control(page, key):
    return page.locator(f'[data-key="{key}"]')


def answers(page):
    return [page.inner_text(f"[data-answer={way}]") for way in ("sum", "softmax")]


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_figure_1(open_page, width, scheme):
    with open_page(width=width, scheme=scheme) as page:
        assert answers(page) == ["triangle", "triangle"]
        check_numbers(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        names = page.locator("button, select, input").evaluate_all(
            "(all) => all.filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim())).length"
        )
        assert names == 0  # every control has a name


def test_touch_targets_are_large_enough(open_page):
    with open_page(width=400, has_touch=True) as page:
        low = page.locator("#room button, #room select, #room input, #tools button").evaluate_all(
            "(all) => all.filter((one) => one.getBoundingClientRect().height < 40).map((one) => one.dataset.key)"
        )
        assert low == []
        control(page, "object-0").tap()
        page.wait_for_selector('[data-key="object-0"][aria-pressed=true]')


def test_the_question(open_page):
    with open_page() as page:
        control(page, "match-role-0").select_option("2")
        check_numbers(page, matches=[[2, 1]])
        control(page, "match-filler-0").select_option("3")
        check_numbers(page, matches=[[2, 3]])
        assert answers(page) == ["no single answer"] * 2  # a disc and a triangle are large
        control(page, "target").select_option("1")
        control(page, "map").select_option("swap")
        control(page, "bound").select_option("3")
        check_numbers(page, matches=[[2, 3]], target=1, map="swap", bound=3)
        control(page, "conjunction").click()
        control(page, "match-role-1").select_option("0")
        control(page, "match-filler-1").select_option("0")
        check_numbers(page, matches=[[2, 3], [0, 0]], target=1, map="swap", bound=3)
        assert answers(page) == ["bottom", "bottom"]  # red, swapped with the last, as a position
        control(page, "conjunction").click()
        check_numbers(page, matches=[[2, 3]], target=1, map="swap", bound=3)


def test_objects_are_edited_added_and_removed(open_page):
    with open_page() as page:
        control(page, "object-2").click()
        page.wait_for_selector('[data-key="object-2"][aria-pressed=true]')  # or another object would be edited
        for role, value in (("shape", 3), ("colour", 1), ("size", 0), ("position", 3)):
            control(page, f"edit-{role}").select_option(str(value))
            settled(page)
        changed = [*DATA["objects"][:2], [3, 1, 0, 3]]
        check_numbers(page, objects=changed)
        control(page, "add").click()
        check_numbers(page, objects=[*changed, [3, 1, 0, 3]])
        assert answers(page) == ["heart", "heart"]  # two hearts outvote a triangle
        control(page, "remove").click()
        check_numbers(page, objects=changed)
        control(page, "random").click()
        page.wait_for_selector('[data-key="object-3"][aria-pressed=true]')
        for _ in range(4):
            control(page, "remove").click()
        page.wait_for_selector("text=The memory is empty.")
        assert control(page, "remove").is_disabled()
        control(page, "add").click()
        check_numbers(page, objects=DATA["objects"][:1])


def test_crowding(open_page):
    with open_page(fragment=link(overlap=0.4)) as page:
        control(page, "crowd").click()
        page.wait_for_selector("text=the sum is wrong")
        assert page.locator(".card").count() < 24
    with open_page() as page:
        control(page, "crowd").click()
        page.wait_for_selector("text=With 24 objects the sum is right")
        assert control(page, "add").is_disabled()


def test_sliders_work_with_the_keyboard(open_page):
    """And keep the focus while everything is drawn anew."""
    with open_page() as page:
        control(page, "overlap").focus()
        for _ in range(6):
            page.keyboard.press("ArrowRight")
        check_numbers(page, overlap=0.3)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.key") == "temperature"
        page.keyboard.press("End")
        check_numbers(page, overlap=0.3, temperature=1.0)


def test_buttons_and_choices_work_with_the_keyboard(open_page):
    with open_page() as page:
        control(page, "conjunction").focus()
        page.keyboard.press("Space")
        page.wait_for_selector('[data-key="match-role-1"]')
        assert page.evaluate("document.activeElement.dataset.key") == "conjunction"
        page.keyboard.press("Enter")
        page.wait_for_selector('[data-key="match-role-1"]', state="detached")
        control(page, "target").focus()
        page.keyboard.press("ArrowDown")
        check_numbers(page, target=1)


def test_a_slider_is_dragged(open_page):
    with open_page() as page:
        slider = control(page, "overlap")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 8, middle)
        page.mouse.down()
        for share in (0.2, 0.5, 0.98):
            page.mouse.move(box["x"] + share * box["width"], middle)
            settled(page)
        page.mouse.up()
        check_numbers(page, overlap=0.9)


def test_capacity(open_page, engine):
    def shown(page):
        points = page.locator("[data-point]").evaluate_all("(all) => all.map((one) => Number(one.dataset.value))")
        return points[: len(points) // 2], points[len(points) // 2 :]

    def computed(**changes):
        curve = engine.run("capacityCurve(s)", s=START | changes)
        return [point["softmax"] for point in curve], [point["sum"] for point in curve]

    with open_page() as page:
        assert shown(page) == computed()
        control(page, "dimension").focus()
        page.keyboard.press("Home")
        settled(page)
        assert shown(page) == computed(dimension=2)
        control(page, "draw").click()
        settled(page)
        assert shown(page) == computed(dimension=2, seed=2)


def test_examples(open_page):
    with open_page() as page:
        for story in page.locator(".stories button").all():
            story.click()
            settled(page)
            assert story.get_attribute("aria-pressed") == "true"
            assert page.locator("#room .error").count() == 0
        assert answers(page) == ["disc", "triangle"]  # crowded: only the softmax is right


def test_a_link_has_the_view(open_page):
    with open_page() as page:
        for name in ("Conjunction", "Overlap"):
            page.get_by_role("button", name=name).click()
        control(page, "target").select_option("3")
        control(page, "object-0").click()
        page.wait_for_url(re.compile("selected=0.*target=3|target=3.*selected=0"))
        address, view = page.evaluate("location.hash"), page.inner_html("#room")
    assert "overlap=0.3" in unquote(address)
    with open_page(fragment=address) as page:
        assert page.inner_html("#room") == view
        control(page, "reset").click()
        check_numbers(page)
        page.wait_for_function("(hash) => location.hash !== hash", arg=address)  # which follows a little later
        page.evaluate("(hash) => { location.hash = hash; }", address)  # as when one edits the address
        page.wait_for_selector('[data-key="object-0"][aria-pressed=true]')
        assert page.inner_html("#room") == view


@pytest.mark.parametrize(
    "fragment",
    ["#nowhere", "#memory?objects=[[9,9,9,9]]", "#memory?matches=[]&overlap=7", "#%E0%A4%A", "#memory?map=<b>"],
)
def test_a_broken_link_shows_the_start(open_page, fragment):
    with open_page(fragment=fragment) as page:
        check_numbers(page)


def test_a_link_is_copied(open_page):
    with open_page(fragment=link(overlap=0.3), permissions=["clipboard-read", "clipboard-write"]) as page:
        control(page, "link").click()
        page.wait_for_selector("#said:not(:empty)")
        assert "overlap=0.3" in page.evaluate("location.hash")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_view_is_saved_as_a_picture(open_page, tmp_path, scheme):
    with open_page(scheme=scheme) as page:
        for form in ("svg", "png"):
            with page.expect_download() as download:
                control(page, f"picture-{form}").click()
            assert download.value.suggested_filename == f"tpr-attention-memory.{form}"
            download.value.save_as(tmp_path / f"view.{form}")
    text = (tmp_path / "view.svg").read_text(encoding="utf-8")
    for word in ("triangle", "Memory", "yellow"):
        assert f">{word}<" in text
    assert "var(" not in text
    assert "class=" not in text
    width, height = struct.unpack(">II", (tmp_path / "view.png").read_bytes()[16:24])
    assert width > 2000
    assert height > 2000


def test_the_theme_can_be_chosen(open_page):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    with open_page(scheme="dark") as page:
        dark = paper(page)
        control(page, "theme").click()
        light = paper(page)
        control(page, "theme").click()
        assert (paper(page), light) == (dark, "rgb(251, 251, 250)")
        assert control(page, "theme").inner_text() == "Theme: dark"
