"""Every operation of tensors.js and algebra.js against torch, on random inputs."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tpr_attention import functional
from tpr_attention.explorer.packing import pack
from tpr_attention.functional import action as by_action

CLOSE = {"atol": 1e-9, "rtol": 1e-9}


@pytest.fixture
def draw(generator):
    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return normal


def close(found, expected):
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found, expected.numpy(), **CLOSE)


UNARY = {
    "relu(x)": torch.relu,
    "gelu(x)": F.gelu,
    "sigmoid(x)": torch.sigmoid,
    "softmax(x)": lambda x: x.softmax(-1),
    "layerNorm(x)": lambda x: F.layer_norm(x, x.shape[-1:]),
    "scaled(x, -2.5)": lambda x: -2.5 * x,
    "permute(x, 2, 0, 1)": lambda x: x.permute(2, 0, 1),
    "reshape(x, -1, 5)": lambda x: x.reshape(-1, 5),
    "at(x, 1)": lambda x: x[1],
    "stack([x, x])": lambda x: torch.stack([x, x]),
    "tensor([2, 4, 5], Float64Array.from(toNested(x).flat(2)))": lambda x: x,
    'einsum("a b c -> c a", x)': lambda x: torch.einsum("abc->ca", x),
}


@pytest.mark.parametrize("expression", UNARY)
def test_functions_of_one_tensor(engine, draw, expression):
    x = 3 * draw(2, 4, 5)
    close(engine.run(expression, x=x), UNARY[expression](x))


BINARY = {
    "add(a, b)": torch.add,
    "subtract(a, b)": torch.sub,
    "multiply(a, b)": torch.mul,
    "matmul(a, c)": lambda a, b: a @ b.mT,
}


@pytest.mark.parametrize("expression", BINARY)
@pytest.mark.parametrize("shape", [(4, 5), (2, 4, 5)], ids=["shared", "each its own"])
def test_functions_of_two_tensors(engine, draw, expression, shape):
    a, b = draw(2, 4, 5), draw(*shape)
    close(engine.run(expression, a=a, b=b, c=b.mT.contiguous()), BINARY[expression](a, b))


def test_layers(engine, draw):
    x, weight, bias = draw(3, 2, 5), draw(4, 5), draw(4)
    close(engine.run("linear(x, w, b)", x=x, w=weight, b=bias), F.linear(x, weight, bias))
    close(engine.run("linear(x, w)", x=x, w=weight), F.linear(x, weight))
    scale, shift = draw(5), draw(5)
    close(engine.run("layerNorm(x, w, b)", x=x, w=scale, b=shift), F.layer_norm(x, (5,), scale, shift))


def test_the_error_function_over_its_whole_range(engine):
    x = torch.linspace(-7, 7, 561, dtype=torch.float64)
    found = engine.run("mapped(x, errorFunction)", x=x)
    np.testing.assert_allclose(found, torch.erf(x), atol=1e-12)


def test_softmax_of_large_numbers(engine):
    x = torch.tensor([[1e4, 1e4 - 1], [-1e4, 3.0]], dtype=torch.float64)
    close(engine.run("softmax(x)", x=x), x.softmax(-1))


@pytest.mark.parametrize(
    "expression", ["matmul(a, a)", 'einsum("x y, y z -> x z", a, a)', "add(a, b)", "tensor([2, 2], [1, 2, 3])"]
)
def test_shapes_that_do_not_fit_are_refused(engine, draw, expression):
    with pytest.raises(Exception, match=r"matmul|einsum|zipped|tensor"):
        engine.run(expression, a=draw(2, 3), b=draw(2))


def test_the_algebra_of_the_paper(engine, draw):
    roles, fillers, objects = draw(4), draw(5), draw(6, 4, 5)
    memory = functional.memorise(objects)
    target, new_role, filler_map = draw(4), draw(3), draw(5, 7)
    query = {"r": roles, "f": fillers}
    close(engine.run("bind(r, f)", **query), functional.bind(roles, fillers))
    close(engine.run("superpose(o)", o=objects), functional.superpose(objects))
    close(engine.run("memorise(o)", o=objects), memory)
    matched = functional.match(memory, roles, fillers)
    close(engine.run("match(m, r, f)", m=memory, **query), matched)
    close(engine.run("weighted(o, scores(o, r, f))", o=objects, **query), matched)
    extracted = functional.extract(matched, target)
    close(engine.run("extract(o, t)", o=matched, t=target), extracted)
    bound = functional.rebind(extracted, filler_map, new_role)
    close(engine.run("rebind(f, h, n)", f=extracted, h=filler_map, n=new_role), bound)
    found = engine.run(
        "attend(m, r, f, t, h, n)", m=memory, **query, t=target, h=filler_map, n=new_role
    )  # one head, from the memory to the answer
    close(found, functional.attend(memory, roles, fillers, target, filler_map, new_role))


def test_attention_by_action(engine, draw):
    objects, action = draw(2, 4, 3), draw(5)
    id_query, query_map, filler_map, role_map = draw(6, 2), draw(6, 5, 4), draw(6, 3, 3), draw(6, 5, 4)
    found = by_action.read(objects, action, id_query, query_map)
    close(engine.run("actionRead(o, a, i, q)", o=objects, a=action, i=id_query, q=query_map), found)
    update = by_action.write(found, action, filler_map, role_map)
    close(engine.run("actionWrite(f, a, h, r)", f=found, a=action, h=filler_map, r=role_map), update)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "uint8"])
def test_packed_arrays_come_back(engine, dtype):
    import zlib
    from base64 import b64decode

    array = np.concatenate([np.linspace(0, 200, 13), [6e-8 if dtype == "float16" else 1]]).astype(dtype).reshape(2, 7)
    packed = pack({"first": np.ones(3, np.uint8), "rest": [array, "text", None, 2.5]})
    numbers = list(zlib.decompress(b64decode(packed["bytes"])))
    found = engine.run("withArrays(v, new Uint8Array(b).buffer)", v=packed["values"], b=numbers)
    np.testing.assert_array_equal(found["rest"][0], array.astype(np.float64))
    assert found["rest"][1:] == ["text", None, 2.5]


@pytest.mark.parametrize("array", [np.array([math.nan]), np.array([1j]), np.array([2**40])], ids=str)
def test_arrays_that_a_page_cannot_hold_are_refused(array):
    with pytest.raises((TypeError, ValueError), match="array: expected"):
        pack([array])


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        (0, 2, "0"),
        (-1e-17, 2, "0"),
        (0.5, 2, "0.5"),
        (-0.25, 2, "\N{MINUS SIGN}0.25"),
        (10, 2, "10"),
        (100.04, 1, "100"),
        (120, 0, "120"),
        (0.2, 0, "0"),
    ],
)
def test_numbers_for_people(engine, value, digits, said):
    assert engine.run("numeral(value, digits)", value=value, digits=digits) == said
