"""Compile every layer into one graph and compare with eager mode, values and gradients.

Run by `test_torch_citizens.py` in an interpreter of its own: the checks of the import hook do not compile.
"""

import sys
import warnings

import torch

from tests.nn.test_torch_citizens import CASES, LAYERS, inputs_of, randomise
from tpr_attention.nn import ActionHeads


def check(name, length, backend):
    generator = torch.Generator().manual_seed(0)
    layer = randomise(LAYERS[name](), generator)
    inputs = inputs_of(layer, generator)
    if not isinstance(layer, ActionHeads):
        inputs = (torch.randn(2, length, 4, 3, generator=generator),)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    expected, output = layer(*inputs), compiled(*inputs)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)
    wanted = torch.autograd.grad(expected.square().mean(), list(layer.parameters()))
    found = torch.autograd.grad(output.square().mean(), list(layer.parameters()))
    for gradient, by_eager in zip(found, wanted, strict=True):
        scale = by_eager.abs().max()
        torch.testing.assert_close(gradient / scale, by_eager / scale, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", ".*should not be instantiated", DeprecationWarning)  # the tracer's own doing
    for name, length in CASES:
        check(name, length, backend="aot_eager")
        sys.stdout.write(f"{name} {length}\n")
