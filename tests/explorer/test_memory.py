"""The room "Memory and attention": every stage against `tpr_attention.functional`."""

import json

import numpy as np
import pytest
import torch

from tpr_attention.explorer.rooms import memory
from tpr_attention.functional import (
    attend,
    bind,
    extract,
    match,
    match_general,
    memorise,
    memorise_general,
    recall,
    recall_softmax,
    superpose,
)

DATA = memory.data(())
START = {
    "objects": DATA["objects"],
    "selected": 1,
    "matches": [[1, 1]],
    "target": 0,
    "map": "identity",
    "bound": 0,
    "overlap": 0,
    "temperature": 0.1,
    "dimension": 16,
    "seed": 1,
}
MANY = [[s % 4, (s // 2) % 4, (3 * s) % 4, (s // 4) % 4] for s in range(11)]
STATES = {
    "figure 1": {},
    "another role": {"target": 2, "bound": 3, "map": "next"},
    "overlap": {"overlap": 0.35, "map": "swap", "temperature": 0.5},
    "conjunction": {"objects": MANY, "matches": [[1, 1], [2, 3]], "overlap": 0.2},
    "crowded": {"objects": MANY, "overlap": 0.9, "map": "negate", "temperature": 1.0},
    "empty": {"objects": []},
}


def vectors(overlap):
    """Unit vectors with these inner products, whatever their coordinates."""
    gram = torch.full((4, 4), overlap, dtype=torch.float64)
    gram.fill_diagonal_(1)
    values, axes = torch.linalg.eigh(gram)
    return axes @ values.sqrt().diag() @ axes.T  # the symmetric root: each vector is nearest to its own axis


def stages(state):
    """What the page must show, by the functions of the package."""
    roles, fillers = torch.eye(4, dtype=torch.float64), vectors(state["overlap"])
    objects = torch.stack([superpose(bind(roles, fillers[list(one)])) for one in state["objects"]])
    matched = [(roles[role], fillers[filler]) for role, filler in state["matches"]]
    target, new_role = roles[state["target"]], roles[state["bound"]]
    filler_map = torch.from_numpy(memory.MAPS[state["map"]])
    full = memorise(objects)
    if len(matched) == 1:
        summed = match(full, *matched[0])
        bound = attend(full, *matched[0], target, filler_map, new_role)
    else:
        copies = len(matched) + 1
        summed = match_general(
            memorise_general(objects, order=2, copies=copies),
            [vector for pair in matched for vector in pair],
            order=2,
            copies=copies,
            free=2,
        )
        bound = bind(new_role, extract(summed, target) @ filler_map)
    query = torch.stack([pair[0] for pair in matched])[None], torch.stack([pair[1] for pair in matched])[None, None]
    sharp = torch.stack(
        [recall_softmax(objects, *query, role[None], temperature=state["temperature"])[0, 0] for role in roles]
    )
    return {"memory": full, "matched": summed, "bound": bound, "sharp": sharp, "map": filler_map, "target": target}


@pytest.mark.parametrize("name", [name for name in STATES if name != "empty"])
def test_every_stage_is_that_of_the_package(engine, name):
    state = START | STATES[name]
    found, expected = engine.run("memoryStages(state, data)", state=state, data=DATA), stages(state)
    np.testing.assert_allclose(found["memory"], expected["memory"], atol=1e-9)
    for way, matched in (("sum", expected["matched"]), ("softmax", expected["sharp"])):
        extracted = extract(matched, expected["target"])
        np.testing.assert_allclose(found[way]["matched"], matched, atol=1e-9)
        np.testing.assert_allclose(found[way]["extracted"], extracted, atol=1e-9)
        np.testing.assert_allclose(found[way]["mapped"], extracted @ expected["map"], atol=1e-9)
    np.testing.assert_allclose(found["sum"]["bound"], expected["bound"], atol=1e-9)
    assert found["softmax"]["bound"].shape == (4, 4)
    assert sum(found["softmax"]["weights"]) == pytest.approx(1)


def test_figure_1_finds_the_triangle(engine):
    found = engine.run("memoryStages(state, data)", state=START, data=DATA)
    assert found["sum"]["weights"] == [0, 1, 0]
    for way in ("sum", "softmax"):
        assert memory.FILLERS["shape"][found[way]["answer"]] == "triangle"
    assert found["truth"] == {"matching": [1], "answers": [1]}


def test_an_empty_memory_answers_nothing(engine):
    found = engine.run("memoryStages(state, data)", state=START | {"objects": []}, data=DATA)
    assert found["sum"]["answer"] is None
    assert not found["memory"].any()
    assert found["truth"] == {"matching": [], "answers": []}


@pytest.mark.parametrize("overlap", [0, 0.35, 0.9])
def test_fillers_overlap_as_much_as_asked(engine, overlap):
    found = engine.run("fillerVectors(4, overlap)", overlap=overlap)
    np.testing.assert_allclose(found, vectors(overlap), atol=1e-9)


def test_objects_are_added_until_the_sum_is_wrong(engine):
    """Without overlap nothing that does not match disturbs; with overlap, enough of it does."""
    run = "crowded(state, data, seeded(seed))"
    full = engine.run(run, state=START, data=DATA, seed=3)
    assert len(full) == engine.run("MOST_OBJECTS") == 24
    state = START | {"overlap": 0.4}
    crowd = engine.run(run, state=state, data=DATA, seed=3)
    assert 3 < len(crowd) < 24
    assert all(one[1] != 1 and one[0] != 1 for one in crowd[3:])
    right = [
        engine.run(
            "(({sum, truth}) => isRight(sum, truth))(memoryStages(s, data))", s=state | {"objects": some}, data=DATA
        )
        for some in (crowd[:-1], crowd)
    ]
    assert right == [True, False]


@pytest.mark.parametrize("overlap", [0, 0.3])
def test_capacity_is_that_of_recall(engine, overlap):
    count, size, temperature = 24, 12, 0.1
    keys, values = engine.run(f"drawnPairs({count}, {size}, {overlap}, seeded(5))")
    keys, values = torch.from_numpy(keys), torch.from_numpy(values)
    torch.testing.assert_close(keys.norm(dim=-1), torch.ones(count, dtype=torch.float64))
    objects = torch.stack([keys, values], 1)  # roles: key and value
    role, target = torch.eye(2, dtype=torch.float64)[:1][None], torch.eye(2, dtype=torch.float64)[1:]
    read = {
        "sum": recall(objects, role, keys[:, None, None], target, causal=False)[0][:, 0],
        "softmax": recall_softmax(objects, role, keys[:, None, None], target, temperature=temperature)[:, 0],
    }
    right = {way: int(((found @ values.T).argmax(-1) == torch.arange(count)).sum()) for way, found in read.items()}
    found = engine.run("recalled(keys, values, temperature)", keys=keys, values=values, temperature=temperature)
    assert found == right
    assert right["sum"] < right["softmax"]


def test_the_curve_falls_with_the_objects_and_is_the_same_again(engine):
    settings = {"dimension": 8, "overlap": 0, "temperature": 0.1, "seed": 4}
    curve = engine.run("capacityCurve(s)", s=settings)
    assert curve == engine.run("capacityCurve(s)", s=settings)
    assert curve[0]["sum"] == curve[0]["softmax"] == 1
    assert curve[-1]["sum"] < 0.5 < curve[-1]["softmax"]


def test_keys_share_what_they_are_asked_to(engine):
    keys = engine.run("unitVectors(60, 64, 0.5, seeded(1))")
    cosines = (keys @ keys.T)[~np.eye(60, dtype=bool)]
    assert cosines.mean() == pytest.approx(0.5, abs=0.08)


BROKEN = {
    "objects": [[9, 0, 0, 0], [0, 0], ["x"] * 4, None, [0.5, 0, 0, 0]],
    "matches": [[7, 0], [0, 9], "x", [0]],
    "target": [9, -1, 0.5],
    "map": ["missing"],
    "bound": [4],
    "overlap": [-1, 5],
    "temperature": [0, -2, 1e9],
    "dimension": [0, 1000],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in BROKEN.items() for value in values], ids=str
)
def test_what_a_link_breaks_is_repaired(engine, key, value):
    given = START | {key: [value] if key in ("objects", "matches") else value}
    checked = engine.run("memoryChecked(state, data)", state=given, data=DATA)
    assert checked == START


def test_a_link_may_ask_for_half_a_number(engine):
    checked = engine.run("memoryChecked(state, data)", state=START | {"dimension": 3.4, "selected": 0.6}, data=DATA)
    assert (checked["dimension"], checked["selected"]) == (3, 1)


def test_a_link_has_the_state_and_only_what_differs(engine):
    state = START | {"matches": [[0, 2], [3, 1]], "map": "swap", "overlap": 0.25}
    link = engine.run('hashOf("memory", state, usual)', state=state, usual=START)
    assert link.startswith("#memory?")
    assert "objects" not in link
    assert engine.run("roomOf(link)", link=link) == "memory"
    assert engine.run("stateOf(link, usual)", link=link, usual=START) == state
    assert engine.run('hashOf("memory", usual, usual)', usual=START) == "#memory"


@pytest.mark.parametrize(
    "link",
    ["", "#", "#%E0%A4%A", "#memory?", "#memory?overlap", "#memory?overlap=%", "#memory?overlap={", "#memory?nothing=1"]
    + [
        f"#memory?{key}={value}"
        for key, value in [
            ("overlap", '"x"'),
            ("overlap", "null"),
            ("objects", "{}"),
            ("objects", "null"),
            ("map", "[]"),
        ]
    ],
)
def test_a_malformed_link_is_the_start(engine, link):
    assert engine.run("stateOf(link, usual)", link=link, usual=START) == START


def test_data_are_plain_values_and_maps():
    plain = json.loads(json.dumps(DATA, default=lambda array: array.tolist()))
    assert [len(names) for names in plain["fillers"]] == [4] * len(plain["roles"])
    for name, filler_map in memory.MAPS.items():
        assert filler_map.shape == (4, 4), name
    np.testing.assert_array_equal(np.eye(4)[0] @ memory.MAPS["next"], np.eye(4)[1])
    np.testing.assert_array_equal(np.eye(4)[3] @ memory.MAPS["next"], np.eye(4)[0])
    np.testing.assert_array_equal(np.eye(4)[0] @ memory.MAPS["swap"], np.eye(4)[3])
