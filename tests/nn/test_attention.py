"""TPRAttention is Algorithm 1, however it is called."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tpr_attention.functional import attend, match_general, memorise, memorise_general, rebind
from tpr_attention.functional.readout import READOUTS
from tpr_attention.nn import FixedRoleQueries, LinearQueries, Queries, State, TPRAttention

FORMS = ["auto", "parallel", "chunked", "recurrent"]


def layer_of(kind=LinearQueries, *, num_matches=1, **options):
    torch.manual_seed(0)
    queries = kind(4, 3, 5, num_matches, dtype=torch.float64)
    options = {"normalise": None, "unit_fillers": False, "start": "orthonormal"} | options
    return TPRAttention(4, 3, 5, num_matches=num_matches, queries=queries, dtype=torch.float64, **options)


def algorithm_1(layer, objects):
    """The paper's loop over objects and heads for one sequence `[t r f]`."""
    queries = layer.queries(objects)
    match_role = queries.match_role.expand(len(objects), 5, layer.num_matches, 4)
    target_role = queries.target_role.expand(len(objects), 5, 4)
    outputs = []
    for t in range(len(objects)):
        stored = objects[: t + 1] if layer.causal else objects
        heads = []
        for h in range(5):
            if layer.num_matches == 1:
                arguments = match_role[t, h, 0], queries.match_filler[t, h, 0], target_role[t, h]
                heads.append(attend(memorise(stored), *arguments, layer.filler_map[h], layer.new_role[h]))
            else:
                pairs = zip(match_role[t, h], queries.match_filler[t, h], strict=True)
                memory = memorise_general(stored, order=2, copies=layer.num_matches + 1)
                vectors = [vector for pair in pairs for vector in pair]
                found = match_general(memory, vectors, order=2, copies=layer.num_matches + 1, free=2)
                heads.append(rebind(target_role[t, h] @ found, layer.filler_map[h], layer.new_role[h]))
        outputs.append(sum(heads))
    return torch.stack(outputs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("num_matches", [1, 2])
@pytest.mark.parametrize("kind", [LinearQueries, FixedRoleQueries])
def test_the_layer_is_algorithm_1_with_its_gradients(kind, num_matches, causal, form, normal):
    layer = layer_of(kind, num_matches=num_matches, causal=causal, form=form)
    objects = normal(6, 4, 3)
    expected, output = algorithm_1(layer, objects), layer(objects)
    torch.testing.assert_close(output, expected)
    wanted = torch.autograd.grad(expected.square().sum(), [objects, *layer.parameters()])
    found = torch.autograd.grad(output.square().sum(), [objects, *layer.parameters()])
    for gradient, by_definition in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, by_definition, rtol=1e-8, atol=1e-8)
        assert gradient.abs().max() > 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalise", [None, *READOUTS])
@pytest.mark.parametrize("kind", [LinearQueries, FixedRoleQueries])
def test_forward_stream_and_step_agree(kind, normalise, form, normal):
    layer = layer_of(kind, normalise=normalise, form=form)
    objects = normal(2, 9, 4, 3)
    expected = layer(objects)
    first, state = layer.stream(objects[:, :4])
    rest, after = layer.stream(objects[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, rest], 1), expected)
    state, outputs = None, []
    for t in range(9):
        output, state = layer.step(objects[:, t], state)
        outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs, 1), expected)
    torch.testing.assert_close(state, after)
    assert state.length.tolist() == [9, 9]


def test_gradients_flow_through_a_state_until_it_is_detached(normal):
    layer = layer_of()
    objects = normal(2, 6, 4, 3)
    _, state = layer.stream(objects[:, :3])
    layer.stream(objects[:, 3:], state)[0].sum().backward(retain_graph=True)
    assert objects.grad[:, :3].abs().max() > 0
    objects.grad = None
    layer.stream(objects[:, 3:], state.detach())[0].sum().backward()
    assert objects.grad[:, :3].abs().max() == 0


def test_a_state_can_be_saved(tmp_path, normal):
    layer = layer_of(normalise="count")
    objects = normal(2, 6, 4, 3)
    _, state = layer.stream(objects[:, :3])
    save_file(state.detach()._asdict(), tmp_path / "state.safetensors")
    loaded = State(**load_file(tmp_path / "state.safetensors"))
    torch.testing.assert_close(layer.stream(objects[:, 3:], loaded), layer.stream(objects[:, 3:], state))


def test_the_current_object_is_in_the_memory_when_it_is_queried(normal):
    layer = layer_of()
    obj = normal(4, 3)
    assert layer(obj[None]).abs().max() > 0
    torch.testing.assert_close(layer.step(obj)[0], algorithm_1(layer, obj[None])[0])


@pytest.mark.parametrize("form", FORMS)
def test_the_future_does_not_matter(form, normal):
    layer, objects = layer_of(form=form), normal(70, 4, 3)
    changed = objects.detach().clone()
    changed[40:] += 1
    torch.testing.assert_close(layer(changed)[:40], layer(objects)[:40])
    assert (layer(changed)[40] - layer(objects)[40]).abs().max() > 1e-3
    seeing = layer_of(form=form, causal=False)
    assert (seeing(changed)[0] - seeing(objects)[0]).abs().max() > 1e-3


@pytest.mark.parametrize("shape", [(7, 4, 3), (2, 7, 4, 3), (2, 3, 7, 4, 3), (0, 7, 4, 3)])
def test_any_leading_batch_axes(shape, normal):
    layer, objects = layer_of(), normal(*shape)
    output = layer(objects)
    assert output.shape == objects.shape
    for index in torch.cartesian_prod(*map(torch.arange, (1, *shape[:-3]))).reshape(-1, len(shape) - 2):
        at = tuple(index.tolist()[1:])
        torch.testing.assert_close(output[at], layer(objects[at]))


@pytest.mark.parametrize("kind", [LinearQueries, FixedRoleQueries])
@pytest.mark.parametrize("causal", [True, False])
def test_inspect_names_what_every_head_did(kind, causal, normal):
    layer, objects = layer_of(kind, causal=causal), normal(2, 6, 4, 3)
    seen = layer.inspect(objects)
    extracted = torch.einsum("bhts,bthr,bsrf->bthf", seen.match_weights, seen.target_role, objects)
    torch.testing.assert_close(seen.extracted, extracted)
    torch.testing.assert_close(seen.mapped, torch.einsum("bthf,hfg->bthg", seen.extracted, layer.filler_map))
    torch.testing.assert_close(torch.einsum("bthf,hr->btrf", seen.mapped, seen.new_role), seen.output)
    torch.testing.assert_close(seen.output, layer(objects))
    assert seen.match_role.shape == (2, 6, 5, 1, 4)
    assert not any(x.requires_grad for x in seen)


def test_a_module_of_the_users_own_asks_the_queries(normal):
    class FromFirstRole(nn.Module):
        def forward(self, objects):
            role = torch.eye(4, dtype=objects.dtype)[:1]
            filler = objects[..., :1, :].unsqueeze(-2)
            return Queries(role.expand(*objects.shape[:-2], 1, 1, 4), filler, role.expand(*objects.shape[:-2], 1, 4))

    layer = TPRAttention(4, 3, 1, queries=FromFirstRole(), normalise=None, dtype=torch.float64)
    objects = normal(2, 5, 4, 3)
    first = objects[:, :, 0]
    weights = (first @ first.mT).tril()
    expected = torch.einsum("bts,bsf,fg,r->btrg", weights, first, layer.filler_map[0], layer.new_role[0])
    torch.testing.assert_close(layer(objects), expected)


def test_a_map_of_the_default_queries_can_be_replaced(normal):
    layer = layer_of()
    layer.queries.match_role = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 5 * 4)).double()
    objects = normal(6, 4, 3)
    torch.testing.assert_close(layer(objects), algorithm_1(layer, objects))


def test_normalised_readouts_do_not_grow_with_the_length():
    """The same object over and over: a plain sum doubles with the length."""
    objects = torch.ones(1, 64, 4, 3, dtype=torch.float64)
    sizes = {name: layer_of(normalise=name)(objects)[0].detach().norm(dim=(-2, -1)) for name in (None, *READOUTS)}
    growth = {name: float(size[63] / size[31]) for name, size in sizes.items()}
    assert growth == pytest.approx({None: 2, "count": 1, "rms": 1, "unit": 1}, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("normalise", READOUTS)
def test_normalisation_happens_in_the_precision_of_the_sum(normalise, dtype):
    """The plain sum of these objects overflows float16; what is normalised does not."""
    objects = torch.full((1, 400, 4, 3), 3.0, dtype=torch.float64)
    expected = layer_of(normalise=normalise)(objects)
    output = layer_of(normalise=normalise).to(dtype)(objects.to(dtype))
    torch.testing.assert_close(output.double(), expected, rtol=0.05, atol=0.05 * float(expected.abs().max().detach()))
    assert layer_of(normalise=normalise).to(dtype)(torch.zeros(1, 2, 4, 3, dtype=dtype)).abs().max() == 0


def test_the_rms_of_a_readout_is_one_at_any_scale(normal):
    objects = normal(1, 50, 4, 3).detach().float()
    for scale in (1e-3, 1.0, 1e2):
        torch.manual_seed(0)
        seen = TPRAttention(4, 3, 5, num_matches=3, normalise="rms").inspect(scale * objects)
        torch.testing.assert_close(seen.extracted.square().mean(-1), torch.ones(1, 50, 5))


@pytest.mark.parametrize("form", FORMS)
def test_a_state_has_a_past_only_where_the_objects_have_one(form, normal):
    """Queries are functions of the parameters, the memory is not."""
    objects = normal(2, 70, 4, 3)
    assert layer_of(form=form).stream(objects)[1].memory.requires_grad
    assert not layer_of(form=form).stream(objects.detach())[1].memory.requires_grad


def test_a_perfect_match_starts_with_a_score_of_about_one(generator):
    """The reason given for the initialisation: queries of unit length for objects with fillers of unit length."""
    objects = torch.randn(4096, 1, 6, 5, generator=generator)
    objects = objects / objects.norm(dim=-1, keepdim=True)
    for kind in (LinearQueries, FixedRoleQueries):
        torch.manual_seed(0)
        for vector in kind(6, 5, 32)(objects):
            assert vector.square().sum(-1).mean().item() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_roles": 0}, ValueError, "num_roles: expected at least 1, got 0"),
        ({"filler_dim": -3}, ValueError, "filler_dim: expected at least 1, got -3"),
        ({"num_heads": 2.0}, TypeError, "num_heads: expected a whole number, got 2.0"),
        ({"num_heads": True}, TypeError, "num_heads: expected a whole number, got True"),
        ({"num_matches": 0}, ValueError, "num_matches: expected at least 1, got 0"),
        (
            {"normalise": "softmax"},
            ValueError,
            "normalise: expected None or one of .'count', 'rms', 'unit'., got 'softmax'",
        ),
        ({"form": "fast"}, ValueError, "form: expected one of .*, got 'fast'"),
        ({"queries": lambda objects: None}, TypeError, "queries: expected a module"),
        ({"normalise": ["count"]}, ValueError, "normalise: expected None or one of"),
        ({"causal": "no"}, TypeError, "causal: expected True or False, got 'no'"),
        ({"dtype": torch.complex64}, TypeError, "dtype: expected a floating-point dtype .* got torch.complex64"),
        ({"queries": LinearQueries(4, 3, 2)}, ValueError, "queries: expected num_heads=5 as the layer has, got 2"),
    ],
)
def test_constructor_errors_name_the_argument(options, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        TPRAttention(**({"num_roles": 4, "filler_dim": 3, "num_heads": 5} | options))


@pytest.mark.parametrize(
    ("objects", "error", "message"),
    [
        (torch.ones(4, 3), ValueError, r"objects: expected \[\*batch t r f\] with r=4, f=3, got shape \[4, 3\]"),
        (torch.ones(2, 7, 3, 4), ValueError, r"objects: .* r=4, f=3, got shape \[2, 7, 3, 4\]"),
        (torch.ones(2, 7, 1, 3), ValueError, r"objects: .* got shape \[2, 7, 1, 3\]"),
        (torch.ones(2, 0, 4, 3), ValueError, "expected at least one entry along t, got none"),
        (torch.ones(2, 7, 4, 3, dtype=torch.long), TypeError, "objects: expected a floating-point tensor"),
        (torch.ones(2, 7, 4, 3).double(), TypeError, "objects: expected torch.float32 on cpu as filler_map has"),
        (torch.ones(2, 7, 4, 3).to_sparse(), TypeError, "objects: expected a dense tensor"),
        (torch.ones(2, 7, 4, 3, device="meta"), TypeError, "got torch.float32 on meta"),
        (None, TypeError, "objects: expected a tensor .* got NoneType"),
    ],
)
def test_bad_objects_are_refused(objects, error, message, as_users_run_it):
    layer = TPRAttention(4, 3, 5)
    for call in (layer, layer.stream, layer.inspect):
        with pytest.raises(error, match=message):
            call(objects)


def test_a_state_of_another_layer_is_refused(as_users_run_it):
    objects = torch.ones(2, 7, 4, 3)
    _, state = TPRAttention(4, 3, 5, queries=FixedRoleQueries(4, 3, 5)).stream(objects)
    layer = TPRAttention.literal(4, 3, 5)
    with pytest.raises(ValueError, match=r"state: expected torch.float32 on cpu of shape \[2, 12, 12\]"):
        layer.stream(objects, state)
    _, state = layer.stream(objects)
    with pytest.raises(ValueError, match=r"state: .* got torch.float32 on cpu of shape \[2, 12, 12\]"):
        layer.stream(objects[:1], State(state.memory, state.length[:1]))
    with pytest.raises(TypeError, match=r"state: expected a State .* got Tensor"):
        layer.stream(objects, state.memory)
    with pytest.raises(TypeError, match=r"state.memory: expected a tensor, got NoneType"):
        layer.stream(objects, State(None, torch.tensor([3, 3])))
    for length in (None, torch.tensor(6.5), torch.arange(6), torch.tensor(3, device="meta")):
        with pytest.raises(TypeError, match=r"state.length: expected whole numbers"):
            layer.stream(objects, State(state.memory, length))
    with pytest.raises(ValueError, match=r"obj: expected \[\*batch r f\] with r=4, f=3"):
        layer.step(torch.ones(2, 3, 4), state)


def test_a_layer_that_sees_the_future_cannot_stream():
    with pytest.raises(ValueError, match="causal: expected True to stream"):
        TPRAttention(4, 3, 5, causal=False).stream(torch.ones(2, 7, 4, 3))


def test_queries_that_break_the_contract_are_named(as_users_run_it):
    class Wrong(nn.Module):
        def __init__(self, answer):
            super().__init__()
            self.answer = answer

        def forward(self, objects):
            return self.answer

    role, filler, target = torch.ones(2, 7, 5, 1, 4), torch.ones(2, 7, 5, 1, 3), torch.ones(2, 7, 5, 4)
    for answer, error, message in (
        (None, TypeError, "queries: expected Wrong to return Queries"),
        ((role, filler), TypeError, "queries: expected Wrong to return Queries"),
        ((role, filler[:, :1], target), ValueError, "queries.match_filler: expected"),
        ((role, filler, target[..., :1]), ValueError, r"queries.target_role: expected \[\*batch t h r\] or \[h r\]"),
        ((role.long(), filler, target), TypeError, "queries.match_role: expected a floating-point"),
        ((role, filler.double(), target), TypeError, "queries.match_filler: expected torch.float32"),
    ):
        with pytest.raises(error, match=message):
            TPRAttention(4, 3, 5, queries=Wrong(answer))(torch.ones(2, 7, 4, 3))
