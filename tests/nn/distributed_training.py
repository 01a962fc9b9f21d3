"""Train a model in several processes, each with a part of the batch, and compare with one that has all of it.

Run by `test_distributed.py` under torchrun, with the names of ways as its arguments. Everything is float64: sums in
another order differ by 1e-15, and 1e-10 is allowed.
"""

import copy
import faulthandler
import itertools
import os
import sys
import warnings

import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from tests.nn.test_torch_citizens import LAYERS, inputs_of, randomise
from tpr_attention.nn import HigherOrderActionTPRAttention, TPRAttention


class Model(nn.Module):
    """A user's own: a linear map of every filler, a layer, and a linear answer."""

    def __init__(self, layer):
        super().__init__()
        self.encoder, self.layer, self.answer = nn.Linear(3, 3), layer, nn.Linear(3, 2)

    def forward(self, objects, *action):
        return self.answer(self.layer(self.encoder(objects), *action))


def shard(model):
    """FSDP2, with a group of parameters for the layer and another for the rest."""
    fully_shard(model.layer)
    return fully_shard(model)


WAYS = {"replicated": DistributedDataParallel, "sharded": shard}


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def train(model, inputs):
    """Every gradient of five steps, and the parameters after them."""
    parameters = list(model.parameters())
    optimiser = torch.optim.Adam(parameters, lr=1e-2)
    seen = []
    for _ in range(5):
        optimiser.zero_grad()
        model(*inputs).square().mean().backward()
        seen += [whole(parameter.grad).clone() for parameter in parameters]
        optimiser.step()
    return seen + [whole(parameter.detach()) for parameter in parameters]


def check_training(make, way):
    generator = torch.Generator().manual_seed(0)
    model = randomise(Model(make()), generator).double()
    batch = inputs_of(model.layer, generator, torch.float64, batch=4 * distributed.get_world_size())
    part = [x.chunk(distributed.get_world_size())[distributed.get_rank()] for x in batch]
    found = train(way(copy.deepcopy(model)), part)
    torch.testing.assert_close(found, train(model, batch), rtol=1e-10, atol=1e-10)


def check_late_start(make):
    """No process ever holds all parameters: made on meta, sharded, and only then drawn."""
    layer = fully_shard(make(device="meta")).to_empty(device="cpu")
    torch.manual_seed(0)
    layer.reset_parameters()
    for name, parameter in layer.named_parameters():
        drawn = whole(parameter.detach())
        assert drawn.isfinite().all()
        if isinstance(layer, HigherOrderActionTPRAttention):
            continue
        rows = drawn.reshape(-1, drawn.shape[-1])[: drawn.shape[-1]]
        if name in ("filler_map", "new_role", "queries.target_role"):
            torch.testing.assert_close(rows @ rows.T, torch.eye(len(rows)))
        elif name == "queries.match_role":
            torch.testing.assert_close(rows.norm(dim=-1), torch.ones(len(rows)))


def check_stream(make):
    """Methods other than forward gather the parameters once FSDP2 knows of them."""
    layer = randomise(make(), torch.Generator().manual_seed(0))
    (objects,) = inputs_of(layer, torch.Generator().manual_seed(1))
    expected = layer(objects)
    register_fsdp_forward_method(fully_shard(layer), "stream")
    first, state = layer.stream(objects[:, :4])
    rest, _ = layer.stream(objects[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, rest], 1), expected, rtol=1e-4, atol=1e-4)


def say(line):
    if distributed.get_rank() == 0:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)  # a process that waits for another that failed
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", ".*returned a view tensor", UserWarning)  # as torch's own Linear does
    warnings.filterwarnings("ignore", "DTensor random operators may not", UserWarning)  # equal seeds are enough here
    distributed.init_process_group("gloo")
    for way, (name, make) in itertools.product(sys.argv[1:], LAYERS.items()):
        check_training(make, WAYS[way])
        if way == "sharded":
            check_late_start(make)
            if isinstance(make(device="meta"), TPRAttention):
                check_stream(make)
        say(f"{name} {way}")
    distributed.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # at times, threads of torch that still run abort a process that ends as usual
