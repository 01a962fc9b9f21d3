"""Pictures of answers: every image has its place, and wrong pixels are marked."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tpr_attention.report.document import Drawing
from tpr_attention.report.drawings import AnswerGrid
from tpr_attention.report.drawings.comparisons import MISSING, WRONG, ShownAnswers
from tpr_attention.report.drawings.pictures import encoded, image_grid

COUNT, SIDE = 3, 4


def images(value):
    """Images of a grey value, one an example."""
    return np.full((COUNT, SIDE, SIDE, 3), value, dtype=np.uint8)


@pytest.fixture
def shown():
    """A target that is white on the left, one answer that is nearly right, and one that is wrong in three pixels."""
    target = images(0)
    target[:, :, :2] = 255
    near = np.where(target > 0, 130, 120).astype(np.uint8)
    wrong = target.copy()
    wrong[1, 2, 3, 0] = 200
    wrong[1, 3, 0] = 0
    wrong[2, 0, 0, 1] = 0
    return ShownAnswers(
        [("turn", "known"), ("turn", "held out"), ("move", "known")],
        {"before": images(7), "after": images(9)},
        {"good": near, "bad": wrong},
        target,
    )


def test_answers_are_rounded_and_wrong_pixels_marked(shown):
    rows = shown.by_example()
    assert list(rows) == ["1: turn, known", "2: turn, held out", "3: move, known"]
    for place, row in enumerate(rows.values()):
        assert list(row) == ["before", "after", "good", "bad", "target"]
        assert all(one.shape == (1, SIDE, SIDE, 3) for one in row.values())
        assert (row["before"] == 7).all()
        assert (row["good"] == row["target"]).all()
        expected = shown.target[place].copy()
        if place == 1:
            expected[2, 3], expected[3, 0] = WRONG, MISSING
        if place == 2:
            expected[0, 0] = WRONG
        assert (row["bad"][0] == expected).all()


def test_what_is_wrong_is_enlarged(shown):
    rows = replace(shown, window=2).by_model()
    assert list(rows) == ["before", "after", "good", "good, enlarged", "bad", "bad, enlarged", "target"]
    right, both, one = (images[0] for images in rows["bad, enlarged"].values())
    whole = [images[0] for images in rows["bad"].values()]
    assert (right == whole[0][1:3, 1:3]).all()  # the middle, as nothing is wrong
    assert (both == whole[1][1:3, 1:3]).all()  # between two wrong pixels
    assert (one == whole[2][:2, :2]).all()  # in a corner, and no further
    assert tuple(one[0, 0]) == WRONG


def test_a_row_for_each_model_has_the_same_images(shown):
    rows, by_example = shown.by_model(), shown.by_example()
    assert list(rows) == ["before", "after", "good", "bad", "target"]
    for name, row in rows.items():
        assert list(row) == ["1: turn\nknown", "2: turn\nheld out", "3: move\nknown"]
        for image, example in zip(row.values(), by_example.values(), strict=True):
            assert (image == example[name]).all()


def test_it_is_a_drawing_for_another_process(shown):
    block = AnswerGrid("answers", shown, "Answers.")
    assert isinstance(block, Drawing)
    figure = pickle.loads(pickle.dumps(block)).draw()  # noqa: S301
    drawn = [axes.images[0].get_array() for axes in figure.axes]
    expected = [image[0] for row in shown.by_model().values() for image in row.values()]
    assert len(drawn) == len(expected) == 5 * COUNT
    assert all((one == other).all() for one, other in zip(drawn, expected, strict=True))
    assert {"good", "bad", "target", "2: turn\nheld out"} <= {text.get_text() for text in figure.texts}
    assert encoded(figure, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(("side", "apart"), [(0.95, 0.22), (0.5, 0.06)])
def test_images_do_not_overlap_each_other_or_names(shown, side, apart):
    long = "a model, with an encoder, with a decoder, and with a rather long name"
    figure = image_grid(shown.by_model() | {long: {}}, side=side, apart=apart)
    figure.canvas.draw()
    assert "a model, with an encoder, with\na decoder, and with a rather\nlong name" in [
        text.get_text() for text in figure.texts
    ]
    boxes = [axes.get_window_extent() for axes in figure.axes]
    assert all(box.width == pytest.approx(side * figure.dpi) == box.height for box in boxes)
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])
        assert not any(box.overlaps(text.get_window_extent()) for text in figure.texts)
        assert figure.bbox.containsx(box.x0)
        assert figure.bbox.containsy(box.y0)
