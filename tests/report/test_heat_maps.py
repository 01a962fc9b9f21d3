"""What is on the picture of heads is what is in the weights, and all of it can be read."""

import pickle

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection, QuadMesh

from tests.report.made_up import head_weights as weights
from tpr_attention.report.drawings import HeadMaps
from tpr_attention.report.drawings.heat_maps import draw
from tpr_attention.report.drawings.pictures import FORMATS, encoded
from tpr_attention.report.inspection import Names, inspect_weights

ACTIONS = ("shape", "scale", "orientation", "position", "colour")
ROLES = (*ACTIONS, "both")
NAMES = Names(ACTIONS, ("left object", "right object"), ROLES)


def inspected(*orders, heads=2):
    stored = [weights(order, heads, f"stack.{place}.", seed=place) for place, order in enumerate(orders)]
    small = {name: part / 3 for each in stored for name, part in each.items()}
    return inspect_weights(small, NAMES, title="a made-up model, seed 0 (9f)")


def middle(text):
    return text.get_window_extent().get_points().mean(0)


def within(box, outer):
    return outer.contains(box.x0, box.y0) and outer.contains(box.x1, box.y1)


def maps_of(figure):
    return [part for part in figure.axes[0].collections if isinstance(part, QuadMesh)]


def names_beside(figure, mesh):
    """Names of rows, names of columns and title of a heat map, found by where they are."""
    box, found = mesh.get_window_extent(), {"rows": [], "columns": [], "title": []}
    for text in figure.axes[0].texts:
        (x, y), size = middle(text), text.get_fontsize()
        if size == 9.5 and box.x0 < x < box.x1 and 0 < y - box.ymax < 60:
            found["title"].append(text.get_text())
        if size == 8.5 and box.x0 < x < box.x1 and 0 < box.ymin - y < 40:
            found["columns"].append(text.get_text())
        if size == 8.5 and box.ymin < y < box.ymax and 0 < box.x0 - x < 50:
            found["rows"].append(text.get_text())
    return found


def test_maps_are_those_of_the_weights():
    inspection = inspected(1)
    (layer,) = inspection.layers
    figure = draw(inspection)
    maps = maps_of(figure)
    shown = [copied.reshape(12, 6) for copied in layer.combined.copied]
    for head in layer.heads:
        shown += [head.queries[0], head.ids, head.filler_map, head.new_role]
    for mesh, values in zip(maps, shown, strict=True):
        np.testing.assert_array_equal(mesh.get_array(), values)
    for place, mesh in enumerate(maps[:5]):
        rows = [*ROLES, *ROLES] if place == 0 else []
        assert names_beside(figure, mesh) == {"rows": rows, "columns": list(ROLES), "title": [ACTIONS[place]]}
    first, last = maps[5:9], maps[9:]
    titles = ["reads role", "of object", "filler map", "writes to role"]
    assert [names_beside(figure, mesh)["title"] for mesh in first] == [[title] for title in titles]
    for mesh in (first[0], last[0]):
        assert names_beside(figure, mesh)["rows"] == list(ACTIONS)
    below = [names_beside(figure, mesh)["columns"] for mesh in last]
    assert below == [list(ROLES), list(NAMES.objects), ["1", "2", "3"], list(ROLES)]


def test_the_scale_is_one_and_centred_on_zero():
    figure = draw(inspected(1, 2))
    assert figure.axes[1].get_xlim() == (-1, 1)
    assert {(mesh.norm.vmin, mesh.norm.vmax) for mesh in maps_of(figure)} == {(-1, 1)}


def test_what_is_copied_and_what_is_mixed_are_both_told():
    stored = weights(heads=1)
    roles = np.eye(5, 6)[None]
    turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0.0]])
    stored |= {"attention.query_map": roles, "attention.role_map": roles, "attention.id_query": np.array([[-1.0, 1.0]])}
    for filler_map, numbers, dots in ((np.eye(3), {"-1", "+1"}, 0), (turn, set(), 10)):
        inspection = inspect_weights(stored | {"attention.filler_map": filler_map[None]}, NAMES)
        figure = draw(inspection)
        page, boxes = figure.axes[0], [mesh.get_window_extent() for mesh in maps_of(figure)[:5]]
        inside = [text.get_text() for text in page.texts if any(box.contains(*middle(text)) for box in boxes)]
        assert set(inside) == numbers
        assert sum(len(part.get_offsets()) for part in page.collections if isinstance(part, PathCollection)) == dots


@pytest.mark.parametrize("orders", [(1,), (2,), (1, 2), (3,)], ids=str)
def test_nothing_overlaps_and_nothing_is_too_small(orders):
    figure = draw(inspected(*orders))
    renderer = FigureCanvasAgg(figure).get_renderer()
    page, bar = figure.axes
    maps = [mesh.get_window_extent() for mesh in maps_of(figure)]
    texts = [text.get_window_extent(renderer) for text in page.texts]
    inside = [box for box in texts if any(within(box, mesh) for mesh in maps)]
    parts = [*maps, *(box for box in texts if box not in inside), bar.get_tightbbox(renderer)]
    for place, part in enumerate(parts):
        assert not [other for other in parts[:place] if part.overlaps(other)]
        assert within(part, figure.bbox)
    assert not [one for place, one in enumerate(inside) for other in inside[:place] if one.overlaps(other)]
    sizes = [text.get_fontsize() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(sizes) >= 8


def test_pictures_are_the_same_bytes_whatever_the_settings():
    drawing = HeadMaps("heads", inspected(1), "A caption.")
    figure = drawing.draw()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.family": "serif"}):
        again = pickle.loads(pickle.dumps(drawing)).draw()  # noqa: S301
        assert [encoded(again, form) for form in FORMATS] == [encoded(figure, form) for form in FORMATS]


def test_a_dollar_is_no_formula():
    names = Names(["$\\no$"] * 5, ["$y"] * 2, ["$x"] * 6)
    assert encoded(draw(inspect_weights(weights(), names, title="$\\frac$")), "png")


def test_a_layer_without_heads_is_drawn_in_sum_alone():
    inspection = inspected(1)
    (layer,) = inspection.layers
    figure = draw(inspection._replace(layers=[layer._replace(heads=())]))
    shown = [mesh.get_array().reshape(12, 6) for mesh in maps_of(figure)]
    np.testing.assert_allclose(shown, [copied.reshape(12, 6) for copied in layer.combined.copied])
    assert not any("head by head" in text.get_text() for text in figure.axes[0].texts)
