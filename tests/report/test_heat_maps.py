"""What is on the picture of heads is what is in the weights, and all of it can be read."""

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.report.test_inside import weights
from tpr_attention.report.heat_maps import draw, save
from tpr_attention.report.inside import look_inside

ACTIONS = ("shape", "scale", "orientation", "position", "colour")
ROLES = (*ACTIONS, "scale_pos")


def look(*orders, heads=2):
    stored = [weights(order, heads, f"stack.{place}.", seed=place) for place, order in enumerate(orders)]
    together = {name: part / 3 for each in stored for name, part in each.items()}
    return look_inside(together, title="a made-up model: square_red, seed 0 (9f)", actions=ACTIONS, roles=ROLES)


def drawn(axes):
    return np.asarray(axes.collections[0].get_array())


def test_maps_are_those_of_the_weights():
    inside = look(1)
    (layer,) = inside.layers
    *maps, _ = draw(inside).axes
    for place, axes in enumerate(maps[:5]):
        assert axes.get_title() == ACTIONS[place]
        np.testing.assert_array_equal(drawn(axes), layer.together.copied[place].reshape(12, 6))
        assert [label.get_text() for label in axes.get_xticklabels()] == list(ROLES)
    assert [label.get_text() for label in maps[0].get_yticklabels()] == [*ROLES, *ROLES]
    for place, head in enumerate(layer.heads):
        shown = maps[5 + 4 * place : 9 + 4 * place]
        for axes, values in zip(shown, (head.queries[0], head.ids, head.filler_map, head.new_role), strict=True):
            np.testing.assert_array_equal(drawn(axes), values)
        assert [label.get_text() for label in shown[0].get_yticklabels()] == list(ACTIONS)


def test_the_scale_is_one_and_centred_on_zero():
    *maps, bar = draw(look(1, 2)).axes
    norms = [axes.collections[0].norm for axes in maps]
    assert bar.get_xlim() == (-1, 1)
    assert {(norm.vmin, norm.vmax) for norm in norms} == {(-1, 1)}


def test_what_is_copied_and_what_is_mixed_are_both_told():
    stored = weights(heads=1)
    roles = np.eye(5, 6)[None]
    turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0.0]])
    stored |= {"attention.query_map": roles, "attention.role_map": roles, "attention.id_query": np.array([[-1.0, 1.0]])}
    for filler_map, numbers, dots in ((np.eye(3), {"-1", "+1"}, 0), (turn, set(), 10)):
        inside = look_inside(stored | {"attention.filler_map": filler_map[None]}, actions=ACTIONS, roles=ROLES)
        maps = draw(inside).axes[:5]
        assert {text.get_text() for axes in maps for text in axes.texts} == numbers
        assert sum(len(axes.collections[-1].get_offsets()) for axes in maps) == dots


@pytest.mark.parametrize("orders", [(1,), (2,), (1, 2), (3,)], ids=str)
def test_nothing_overlaps_and_nothing_is_too_small(orders):
    figure = draw(look(*orders))
    renderer = FigureCanvasAgg(figure).get_renderer()
    outside = [*figure.texts]
    for axes in figure.axes:
        outside += [axes.title, *axes.get_xticklabels(), *axes.get_yticklabels()]
    parts = [text.get_window_extent(renderer) for text in outside if text.get_text()]
    parts += [axes.get_window_extent(renderer) for axes in figure.axes]
    for place, part in enumerate(parts):
        assert not [other for other in parts[:place] if part.overlaps(other)]
        assert figure.bbox.x0 <= part.x0
        assert part.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= part.y0
        assert part.y1 <= figure.bbox.y1
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) >= 8


def test_pictures_are_the_same_bytes_whatever_the_settings(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, own in zip(folders, ({}, {"axes.facecolor": "black", "font.family": "serif"}), strict=True):
        folder.mkdir()
        with matplotlib.rc_context(own):
            paths = save(look(1), folder, "heads")
    assert [path.name for path in paths] == ["heads.png", "heads.svg", "heads.pdf"]
    for path in paths:
        assert path.read_bytes() == (folders[0] / path.name).read_bytes()


def test_a_dollar_is_no_formula(tmp_path):
    inside = look_inside(weights(), title="$\\frac$", actions=["$\\no$"] * 5, roles=["$x"] * 6)
    assert len(save(inside, tmp_path, "heads")) == 3
