"""Tables are sorted by value, in a browser, from a file and under the page's own policy."""

import os
import shutil

import numpy as np
import pytest

from tpr_attention.report.document import Document, Section, Text
from tpr_attention.report.html import page
from tpr_attention.report.statistics import Interval
from tpr_attention.report.tables import Badge, Column, Linked, Table

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

COLUMNS = [
    Column("name"),
    Column("loss", "number"),
    Column("seeds", "count"),
    Column("mean", "mean_and_error"),
    Column("ratio", "interval"),
    Column("verdict", "badge"),
    Column("solvable", "yes_no"),
]
ROWS = [
    ["run 10", 3.2e-6, 1_200, np.array([1.0, 2.0]), Interval(10.0, 1.0, 20.0), Badge("does not hold", "bad"), True],
    ["run 9", 0.5, 30, np.array([np.inf, 10.0]), Interval(9.0, None, None), Badge("holds", "good"), False],
    ["run 9", None, 900, np.array([0.5]), None, None, None],
    ["Run 1", float("inf"), 4, np.array([np.inf]), Interval(100.0, 1.0, 2.0), Badge("in part", "fair"), True],
]
"""Texts would be sorted otherwise: 1,200 before 30, 3.2e-06 after 0.50, 10 before 9."""
ORDERS = {
    "name": [3, 1, 2, 0],
    "loss": [0, 1, 3, 2],
    "seeds": [3, 1, 2, 0],
    "mean": [2, 0, 1, 3],
    "ratio": [1, 0, 3, 2],
    "verdict": [1, 3, 0, 2],
    "solvable": [1, 0, 3, 2],
}
EMPTY = {"loss": 1, "ratio": 1, "verdict": 1, "solvable": 1}
"""Rows without a value stay last in both orders."""


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="needs the wheel playwright, of the extra dev")
    if not CHROMIUM:
        pytest.skip("no Chromium is installed (or named by the variable CHROMIUM): tables are not sorted in a browser")
    with sync.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def shown(browser, tmp_path):
    """A page with two tables, and what its console says."""
    table = Table("runs", "All runs.", COLUMNS, ROWS, row_names=[f"run-{place}" for place in range(len(ROWS))])
    best = Table("best", "The best.", [Column("loss", "number")], [[Linked(0.5, "run-1")], [0.25]], "open")
    path = tmp_path / "index.html"
    path.write_text(page(Document("Sorted", [Section("Runs", [Text("Words."), table])], opening=[best]), {}))
    said = []
    found = browser.new_page()
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.goto(path.as_uri())
    yield found
    found.close()
    assert said == []


def order(shown):
    ids = shown.locator("details tbody tr").evaluate_all("rows => rows.map((row) => row.id)")
    return [int(one.removeprefix("run-")) for one in ids]


@pytest.mark.parametrize("title", ORDERS)
def test_a_click_sorts_by_value_the_second_downwards_the_third_as_it_was(shown, title):
    shown.locator("summary").click()
    head = shown.locator("details th").filter(has_text=title)
    upwards, last = ORDERS[title], len(ROWS) - EMPTY.get(title, 0)
    head.get_by_role("button").click()
    assert (order(shown), head.get_attribute("aria-sort")) == (upwards, "ascending")
    head.get_by_role("button").click()
    downwards = order(shown)
    assert head.get_attribute("aria-sort") == "descending"
    assert downwards[last:] == upwards[last:]
    keys = shown.locator("details tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.cells[place].textContent)", [*ORDERS].index(title)
    )
    head.get_by_role("button").click()
    assert (order(shown), head.get_attribute("aria-sort")) == ([0, 1, 2, 3], None)
    texts = shown.locator("details tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.cells[place].textContent)", [*ORDERS].index(title)
    )
    assert keys[:last] == [texts[place] for place in upwards[:last]][::-1]  # rows that are equal may keep their order


def test_another_column_begins_anew(shown):
    shown.locator("summary").click()
    for title in ("loss", "seeds"):
        shown.locator("details th").filter(has_text=title).get_by_role("button").click()
    assert order(shown) == ORDERS["seeds"]
    assert shown.locator("th[aria-sort]").count() == 1


def test_the_keyboard_sorts(shown):
    shown.locator(".opening th button").focus()
    shown.keyboard.press("Enter")
    assert shown.locator(".opening td").all_inner_texts() == ["0.25", "0.50"]
    shown.keyboard.press("Space")
    assert shown.locator(".opening td").all_inner_texts() == ["0.50", "0.25"]


def test_a_link_to_a_row_opens_what_is_folded(shown):
    assert not shown.locator("#run-1").is_visible()
    shown.locator(".opening td a").click()
    shown.locator("#run-1").wait_for(state="visible")
    shown.locator("summary").click()  # folded again: the same link opens it once more
    assert not shown.locator("#run-1").is_visible()
    shown.locator(".opening td a").click()
    shown.locator("#run-1").wait_for(state="visible")
