"""Every option of TPRAttention, alone and together, against loops over positions and heads."""

import pytest
import torch

from tpr_attention.nn import (
    CleanUp,
    FixedRoleQueries,
    History,
    LinearQueries,
    StoredCleanUp,
    TPRAttention,
    WriteGate,
)

ROLES, SIZE, HEADS = 4, 3, 2


def made(kind, **options):
    torch.manual_seed(0)
    sizes = (ROLES, SIZE, HEADS, options.get("num_matches", 1))
    if kind is not None:
        options["queries"] = kind(*sizes)
    layer = TPRAttention(*sizes[:3], **options).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer


LAYERS = {
    "default": lambda: made(None),
    "two matches": lambda: made(None, num_matches=2),
    "literal, not causal": lambda: made(LinearQueries, causal=False, normalise=None),
    "literal, others only": lambda: made(LinearQueries, exclude_self=True, normalise="count"),
    "others only, not causal": lambda: made(FixedRoleQueries, exclude_self=True, causal=False, normalise="count"),
    "own gate": lambda: made(None, gate=WriteGate(ROLES, SIZE, HEADS), normalise=None),
    "unit fillers": lambda: made(LinearQueries, unit_fillers=True, normalise="unit"),
    "softmax": lambda: made(None, match="softmax", normalise=None),
    "softmax, varying roles": lambda: made(LinearQueries, match="softmax", temperature=0.7, num_matches=2),
    "softmax, others only": lambda: made(None, match="softmax", exclude_self=True, causal=False, normalise=None),
    "softmax, own gate": lambda: made(None, match="softmax", gate=WriteGate(ROLES, SIZE), exclude_self=True),
    "delta": lambda: made(FixedRoleQueries, write="delta", normalise=None, unit_fillers=True),
    "delta, two matches": lambda: made(None, write="delta", num_matches=2, exclude_self=True, normalise="count"),
    "delta, not causal": lambda: made(None, write="delta", causal=False, unit_fillers=True),
    "replace": lambda: made(None, write="replace", id_role=1, normalise=None, unit_fillers=False),
    "replace, varying roles": lambda: made(LinearQueries, write="replace", exclude_self=True),
    "code book": lambda: made(None, clean_up=CleanUp(HEADS, SIZE, 5)),
    "stored fillers": lambda: made(None, clean_up=StoredCleanUp(2.0), exclude_self=True),
}


def direction(x):
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def read_one(layer, objects, gate, match_role, match_filler, target_role):
    """What one head of one position reads of the objects that it sees, in order, by its definition."""
    keys = direction(objects) if layer.unit_fillers else objects
    fillers = direction(match_filler) if layer.unit_fillers else match_filler
    values = torch.einsum("r,srf->sf", target_role, objects)
    if layer.write == "replace":
        memory = objects.new_zeros(ROLES, SIZE, ROLES, SIZE)
        for obj, write in zip(objects, gate, strict=True):
            found = torch.einsum(
                "rfpg,p,g->rf", memory, torch.eye(ROLES)[layer_id(layer)].double(), obj[layer_id(layer)]
            )
            change = torch.einsum("rf,pg->rfpg", obj, obj) - torch.einsum("rf,pg->rfpg", found, found)
            memory = memory + write * change
        return torch.einsum("rfpg,p,g,r->f", memory, match_role[0], fillers[0], target_role)
    features = []
    for key in keys:
        product = key.new_ones(1)
        for role in match_role:
            product = torch.outer(product, role @ key).flatten()
        features.append(product)
    query = objects.new_ones(1)
    for filler in fillers:
        query = torch.outer(query, filler).flatten()
    if layer.write == "delta":
        memory = objects.new_zeros(SIZE ** len(match_role), SIZE)
        for key, value, write in zip(features, values, gate, strict=True):
            memory = memory + write * torch.outer(key, value - key @ memory)
        return query @ memory
    if not len(objects):
        return objects.new_zeros(SIZE)
    if layer.match == "linear":
        return (gate * torch.stack([query @ key for key in features])) @ values
    scores = torch.einsum("mr,srf,mf->s", match_role, keys, fillers) / layer._reader.memory.temperature
    weights = gate * scores.exp()
    return weights @ values / weights.sum()


def layer_id(layer):
    return layer._reader.memory.id_role


def by_definition(layer, objects, mask=None, gate=None, memory=None):
    """The update of one sequence `[t r f]`."""
    stored = objects if memory is None else memory
    queries = layer.queries(objects)
    match_role = queries.match_role.expand(len(objects), HEADS, layer.num_matches, ROLES)
    target_role = queries.target_role.expand(len(objects), HEADS, ROLES)
    counted = torch.ones(len(stored), dtype=torch.bool) if mask is None else mask
    gates = stored.new_ones(len(stored), HEADS)
    gates = gates if layer.gate is None else gates * layer.gate(stored)
    gates = gates if gate is None else gates * gate.reshape(len(stored), -1)
    rows = []
    for t in range(len(objects)):
        seen = counted.clone()
        if memory is None:
            places = torch.arange(len(stored))
            if layer.causal:
                seen &= places <= t
            if layer.exclude_self:
                seen &= places != t
        heads = []
        for h in range(HEADS):
            found = read_one(
                layer, stored[seen], gates[seen, h], match_role[t, h], queries.match_filler[t, h], target_role[t, h]
            )
            if layer.normalise == "count":
                found = found / max(int(seen.sum()), 1)
            elif layer.normalise == "rms":
                found = found / found.square().mean().clamp(min=1e-300).sqrt()
            elif layer.normalise == "unit":
                found = direction(found)
            if isinstance(layer.clean_up, StoredCleanUp):
                values = torch.einsum("r,srf->sf", target_role[t, h], stored[seen])
                nearness = gates[seen, h] * (-2.0 * (found - values).square().sum(-1)).exp()
                found = nearness @ values / nearness.sum() if len(values) else found * 0
            heads.append(found)
        fillers = torch.stack(heads)
        fillers = layer.clean_up(fillers) if isinstance(layer.clean_up, CleanUp) else fillers
        row = torch.einsum("hf,hfg,hr->rg", fillers, layer.filler_map, layer.new_role)
        rows.append(row if memory is not None or counted[t] else row * 0)
    return torch.stack(rows)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_its_definition_with_masks_and_gates(name, normal, generator):
    layer, objects = LAYERS[name](), normal(2, 7, ROLES, SIZE)
    mask = torch.tensor([[False, True, True, True, False, True, True], [True] * 5 + [False] * 2])
    gate = torch.rand(2, 7, generator=generator, dtype=torch.float64).requires_grad_()
    for options in ({}, {"mask": mask}, {"mask": mask, "gate": gate}):
        each = [{key: value[k] for key, value in options.items()} for k in range(2)]
        expected = torch.stack([by_definition(layer, objects[k], **each[k]) for k in range(2)])
        output = layer(objects, **options)
        torch.testing.assert_close(output, expected)
        weights = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        inputs = [objects, *layer.parameters(), *([gate] if "gate" in options else [])]
        wanted, found = (
            torch.autograd.grad((weights * x).sum(), inputs, allow_unused=True) for x in (expected, output)
        )
        for gradient, by_hand in zip(found, wanted, strict=True):
            torch.testing.assert_close(gradient, torch.zeros_like(gradient) if by_hand is None else by_hand)


@pytest.mark.parametrize("name", LAYERS)
def test_another_sequence_and_chosen_positions(name, normal):
    layer, objects, memory = LAYERS[name](), normal(2, 5, ROLES, SIZE), normal(2, 6, ROLES, SIZE)
    mask = torch.tensor([[True, True, False, True, True, True], [False, False, True, True, True, True]])
    expected = torch.stack([by_definition(layer, objects[k], mask[k], memory=memory[k]) for k in range(2)])
    torch.testing.assert_close(layer(objects, memory=memory, mask=mask), expected)
    whole = layer(objects)
    torch.testing.assert_close(layer(objects, positions=torch.tensor([4, 0, -2])), whole[:, [4, 0, 3]])
    each = torch.tensor([[1, 1], [0, -1]])
    torch.testing.assert_close(layer(objects, positions=each), torch.stack([whole[0, [1, 1]], whole[1, [0, 4]]]))
    last = layer(objects, positions=torch.tensor([-1]), memory=memory, mask=mask)
    torch.testing.assert_close(last, expected[:, -1:])
    masked = layer(objects, mask=mask[:, 1:])
    torch.testing.assert_close(
        layer(objects, mask=mask[:, 1:], positions=each), masked.take_along_dim(each[..., None, None] % 5, 1)
    )


@pytest.mark.parametrize("name", [name for name, make in LAYERS.items() if make().causal])
def test_stretches_with_masks_are_the_whole(name, normal):
    """Padding on either side, and in the middle of a stream."""
    layer, objects = LAYERS[name](), normal(2, 9, ROLES, SIZE)
    mask = torch.tensor([[False, False] + [True] * 7, [True] * 4 + [False, True] + [False] * 3])
    expected = layer(objects, mask=mask)
    state, outputs = None, []
    for start, stop in ((0, 4), (4, 5), (5, 9)):
        output, state = layer.stream(objects[:, start:stop], state, mask=mask[:, start:stop])
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), expected)
    assert state.length.tolist() == [7, 5]
    assert isinstance(state, History) == (layer.match == "softmax" or isinstance(layer.clean_up, StoredCleanUp))
    seen = layer.inspect(objects, mask=mask)
    torch.testing.assert_close(seen.output, expected)
    if layer.write == "sum" and layer.normalise is None:
        read = torch.einsum(
            "bhts,bthr,bsrf->bthf", seen.match_weights, seen.target_role, objects * mask[..., None, None]
        )
        torch.testing.assert_close(seen.extracted, read)


@pytest.mark.parametrize("name", LAYERS)
def test_padding_is_as_if_it_were_not_there(name, normal):
    """Neither its numbers, which may be anything, nor its place matter to outputs and gradients."""
    layer, objects = LAYERS[name](), normal(1, 5, ROLES, SIZE)
    expected = layer(objects)
    wanted = torch.autograd.grad(expected.square().sum(), list(layer.parameters()))
    for before, after in ((0, 3), (2, 0), (1, 1)):
        shape = (1, before + 5 + after, ROLES, SIZE)
        padded = torch.full(shape, torch.nan, dtype=torch.float64).slice_scatter(objects, 1, before, before + 5)
        mask = torch.zeros(shape[:2], dtype=torch.bool)
        mask[:, before : before + 5] = True
        output = layer(padded, mask=mask)
        torch.testing.assert_close(output[:, before : before + 5], expected)
        assert output[~mask].abs().sum() == 0
        found = torch.autograd.grad(output.square().sum(), list(layer.parameters()))
        torch.testing.assert_close(found, wanted)


def test_unrolling_feeds_outputs_back(normal):
    layer, obj = LAYERS["default"](), normal(2, ROLES, SIZE)
    outputs, state = layer.unroll(obj, 4)
    expected, before = [obj], None
    for _ in range(4):
        output, before = layer.step(expected[-1], before)
        expected.append(output)
    torch.testing.assert_close(outputs, torch.stack(expected[1:], 1))
    seen = layer.inspect(torch.stack(expected[:-1], 1))
    torch.testing.assert_close(seen.output, outputs)
    more, _ = layer.unroll(outputs[:, -1], 2, state)
    torch.testing.assert_close(more, layer.unroll(obj, 6)[0][:, 4:])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"match": "hard"}, ValueError, "match: expected one of .'linear', 'softmax'., got 'hard'"),
        ({"write": "add"}, ValueError, "write: expected one of .'sum', 'delta', 'replace'., got 'add'"),
        ({"match": "softmax", "write": "delta"}, ValueError, "write: expected 'sum' with match='softmax'"),
        ({"match": "softmax", "normalise": "count"}, ValueError, "normalise: expected another with match='softmax'"),
        ({"match": "softmax", "form": "chunked"}, ValueError, "form: expected 'auto' with match='softmax'"),
        ({"match": "softmax", "temperature": 0}, ValueError, "temperature: expected a finite number above 0, got 0"),
        ({"temperature": 1.0}, ValueError, "temperature: expected None with match='linear'"),
        ({"write": "replace", "num_matches": 2}, ValueError, "write: expected 'sum' or 'delta' with several matches"),
        ({"write": "replace", "form": "chunked"}, ValueError, "form: expected one that write='replace' has"),
        ({"write": "replace", "id_role": 4}, ValueError, "id_role: expected at most 3, got 4"),
        ({"write": "delta", "clean_up": StoredCleanUp()}, ValueError, "clean_up: expected another with write='delta'"),
        ({"write": "delta", "causal": False, "exclude_self": True}, ValueError, "exclude_self: expected False with"),
        ({"dropout": 1.5}, ValueError, "dropout: expected a number from 0 to 1, got 1.5"),
        ({"gate": torch.sigmoid}, TypeError, "gate: expected a module from objects to numbers"),
        ({"clean_up": "stored"}, TypeError, "clean_up: expected a module from fillers to fillers, got str"),
        ({"new_roles": [0]}, ValueError, "new_roles: expected a role for each of 2 heads, got"),
        ({"new_roles": [0, 4]}, ValueError, "new_roles: expected at most 3, got 4"),
        ({"start": "zero"}, ValueError, "start: expected one of"),
    ],
)
def test_options_that_make_no_layer(options, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        TPRAttention(ROLES, SIZE, HEADS, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mask": torch.ones(2, 7)}, TypeError, r"mask: expected a tensor .* of torch.bool, got torch.float32"),
        ({"mask": torch.ones(7, dtype=torch.bool)}, ValueError, r"mask: expected .* got shape \[7\]"),
        ({"gate": torch.ones(2, 7, 3)}, ValueError, "gate: expected one for each object, or one for each of 2 heads"),
        ({"gate": torch.ones(2, 6)}, ValueError, r"gate: expected .* got shape \[2, 6\]"),
        ({"memory": torch.ones(1, 5, ROLES, SIZE)}, ValueError, r"memory: expected .* got shape \[1, 5, 4, 3\]"),
        ({"memory": torch.ones(2, 5, ROLES, SIZE).double()}, TypeError, "memory: expected torch.float32 on cpu"),
        ({"positions": [0]}, TypeError, "positions: expected whole numbers .* got list"),
        ({"positions": torch.tensor([7])}, ValueError, "positions: expected -7 to 6, got 7"),
        ({"positions": torch.tensor([])}, TypeError, "positions: expected whole numbers"),
        ({"positions": torch.ones(3, 1, dtype=torch.long)}, ValueError, r"positions: .* got shape \[3, 1\]"),
    ],
)
def test_calls_that_make_no_sense(options, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        TPRAttention(ROLES, SIZE, HEADS)(torch.ones(2, 7, ROLES, SIZE), **options)


def test_delta_needs_fixed_roles(as_users_run_it):
    layer = TPRAttention(ROLES, SIZE, HEADS, write="delta", queries=LinearQueries(ROLES, SIZE, HEADS))
    with pytest.raises(ValueError, match="match_role: expected"):
        layer(torch.ones(2, 7, ROLES, SIZE))


def test_dropout_acts_in_training_only(generator):
    layer, objects = TPRAttention(ROLES, SIZE, HEADS, dropout=0.5), torch.randn(2, 50, ROLES, SIZE, generator=generator)
    plain = layer.eval()(objects)
    torch.manual_seed(0)
    dropped = layer.train()(objects)
    share = (dropped[plain != 0] == 0).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.1)
    torch.testing.assert_close(dropped[dropped != 0], 2 * plain[dropped != 0])
