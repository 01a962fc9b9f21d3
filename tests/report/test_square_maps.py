"""A map of squares shows every square with its category and text, and all of it can be read."""

import pickle

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from tpr_attention.report.document import Document, Section
from tpr_attention.report.drawings import SquareMap
from tpr_attention.report.drawings.pictures import FORMATS, encoded
from tpr_attention.report.drawings.squares import Category, Square
from tpr_attention.report.tables import csv_text
from tpr_attention.report.write import write_report

CATEGORIES = {"cats": Category("cats of all kinds", "#d1242f"), "dogs": Category("dogs", "#2563c9")}
ROWS = (("north", "first street"), ("north", "second street"), ("south", "first street"))
SQUARES = {
    (0, 0): Square("cats", "cats x3.2"),
    (0, 1): Square("dogs", "dogs ≥1e3"),
    (1, 0): Square("dogs", "dogs x12", is_hatched=True),
    (2, 1): Square("cats", "cats tie", is_pale=True),
    (2, 0): Square(None, "nobody"),
}


def made(columns=("1,999", "2,000"), squares=SQUARES, rows=ROWS, **changes):
    values = {"title": "Who has more pets", "caption": "A caption.", "hatched": "not counted", "notes": "A note."}
    heads = ("part", "street")
    return SquareMap(
        "pets", heads=heads, rows=rows, axis="year", columns=columns, squares=squares, categories=CATEGORIES,
        **(values | changes),
    )  # fmt: skip


def texts_of(figure):
    return [text for text in figure.axes[0].texts if text.get_text()]


def boxes_of(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def around(figure, text):
    """The rectangle that a text is in, without its hatches."""
    middle = text.get_window_extent().get_points().mean(0)
    (found,) = (box for box in boxes_of(figure) if box.get_fill() and box.get_window_extent().contains(*middle))
    return found


def strongest(colour):
    """The number of the strongest of red, green and blue."""
    return max(range(3), key=lambda part: to_rgb(colour)[part])


def test_every_square_has_its_text_in_its_colour():
    figure = made().draw()
    by_text = {text.get_text(): text for text in texts_of(figure)}
    for square in SQUARES.values():
        box = around(figure, by_text[square.text])
        face = box.get_facecolor()[:3]
        if square.category:
            assert strongest(face) == strongest(CATEGORIES[square.category].colour)
            assert max(face) > min(face)
    strong, pale = (around(figure, by_text[text]).get_facecolor()[:3] for text in ("cats x3.2", "cats tie"))
    assert sum(pale) > sum(strong)
    hatched = [box for box in boxes_of(figure) if box.get_hatch()]
    assert len(hatched) == 2  # one square, and the legend
    legend = {"cats of all kinds", "dogs", "not counted"}
    assert legend < set(by_text)
    assert {"Who has more pets", "A note.", "year", "1,999", "2,000", "part", "street", "north", "south"} < set(by_text)
    assert [text.get_text() for text in texts_of(figure)].count("north") == 1  # said once for its rows


def test_what_is_nowhere_is_not_in_the_legend():
    figure = made(squares={(0, 0): Square("dogs", "dogs x2")}).draw()
    shown = {text.get_text() for text in texts_of(figure)}
    assert "dogs" in shown
    assert shown.isdisjoint({"cats of all kinds", "not counted"})


@pytest.mark.parametrize("columns", [("1",), ("30", "100", "300", "1,000", "3,000", "10,000", "50,000")], ids=len)
def test_nothing_overlaps_and_nothing_is_too_small(columns):
    rows = [(part, f"a rather long name {number}") for part in ("interaction", "none") for number in range(9)]
    squares = {
        (row, column): Square("cats", "a long name ≥1e3", is_hatched=row % 2 == 0)
        for row in range(len(rows))
        for column in range(len(columns))
    }
    figure = made(columns, squares, rows, notes="A note that is so long that it needs a line more. " * 5).draw()
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in texts_of(figure)]
    assert not [one for place, one in enumerate(boxes) for other in boxes[:place] if one.overlaps(other)]
    for box in boxes:
        assert figure.bbox.contains(box.x0, box.y0)
        assert figure.bbox.contains(box.x1, box.y1)
    for text in texts_of(figure):
        if text.get_text() == "a long name ≥1e3":
            inside, outer = text.get_window_extent(renderer), around(figure, text).get_window_extent()
            assert outer.x0 < inside.x0
            assert inside.x1 < outer.x1
    assert min(text.get_fontsize() for text in texts_of(figure)) >= 8


def test_pictures_are_the_same_bytes_whatever_the_settings():
    drawing = made(title="$\\frac$ is no formula")
    figure = drawing.draw()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.family": "serif"}):
        again = pickle.loads(pickle.dumps(drawing)).draw()  # noqa: S301
        assert [encoded(again, form) for form in FORMATS] == [encoded(figure, form) for form in FORMATS]


def test_the_table_says_the_same():
    table = made().table()
    assert [column.title for column in table.columns] == ["part", "street", "1,999 year", "2,000 year"]
    assert table.texts() == [
        ["north", "first street", "cats x3.2", "dogs ≥1e3"],
        ["north", "second street", "dogs x12 (not counted)", "-"],
        ["south", "first street", "nobody", "cats tie"],
    ]
    assert csv_text(table).splitlines()[2] == "north,second street,dogs x12 (not counted),"


def test_a_map_is_written_in_all_forms(tmp_path):
    found = made()
    write_report(Document("Pets", [Section("Map", [found, found.table()])]), tmp_path)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {f"pets.{form}" for form in FORMATS}
    assert (tmp_path / "tables" / "pets.csv").exists()
    page = (tmp_path / "index.html").read_text()
    assert 'alt="A caption."' in page
    assert "data:image/png;base64," in page
    text = (tmp_path / "report.md").read_text()
    assert "![A caption.](figures/pets.png)" in text
    assert "| north | first street | cats x3.2 | dogs ≥1e3 |" in text
