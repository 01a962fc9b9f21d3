"""Re-encoding: what is recombined, what an error is, and who is trained by it."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from tpr_attention.models.images import composer
from tpr_attention.models.images.composer import ImageComposer
from tpr_attention.models.images.reencoding import recombined, reencoding_error
from tpr_attention.tasks.images.composition import ImageComposition

SIZES = {"num_actions": 5, "num_roles": 5, "side": 64, "channels": 3}


def made(seed=0, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ImageComposer(**SIZES, encoder="convolution", **options).double()


@pytest.fixture(scope="module")
def inputs():
    return ImageComposition(angles=2).draw("train", 7, torch.Generator().manual_seed(0), torch.float64).inputs


class Averaging(nn.Module):
    """Reads the mean of all images in each."""

    def forward(self, images):
        return images.mean(0).expand_as(images)


def test_every_role_comes_from_another_example(normal):
    objects = normal(6, 4, 3)
    found = recombined(objects)
    for example in range(6):
        for role in range(4):
            assert torch.equal(found[example, role], objects[(example - role) % 6, role])


def test_what_is_read_right_costs_nothing(generator):
    objects = torch.randint(2, (9, 5, 3), generator=generator).double()
    assert reencoding_error(nn.Identity(), nn.Identity(), objects) == 0


def test_a_role_that_is_not_read_costs_how_much_it_differs(generator):
    objects = torch.randint(2, (9, 5, 3), generator=generator).double()
    spread = (objects - objects.mean(0)).square().sum(-1).mean(0)
    expected = (spread / (1 + spread)).mean()
    torch.testing.assert_close(reencoding_error(Averaging(), nn.Identity(), objects), expected)


def test_the_encoder_reads_images_of_zeros_and_ones_and_is_trained_alone(inputs):
    model, read = made(), []
    model.encoder.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    objects = model.encoder(inputs[0])
    before = torch.get_rng_state()
    error = reencoding_error(model.encoder, model.decoder, objects)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(read[1], (model.decoder(recombined(objects)) > 0.5).double())
    error.backward()
    assert all(parameter.grad is None for parameter in model.decoder.parameters())
    assert all(parameter.grad.abs().max() > 0 for parameter in model.encoder.parameters())


def test_targets_have_no_gradient(inputs):
    model = made()
    objects = model.encoder(inputs[0]).detach().requires_grad_()
    reencoding_error(model.encoder, model.decoder, objects).backward()
    assert objects.grad is None


def test_a_composer_that_re_encodes_has_this_penalty_beside_the_others(inputs):
    plain, cured = made(), made(reencode=True)
    (answers, before), (same, after) = plain.with_penalty(*inputs), cured.with_penalty(*inputs)
    assert torch.equal(answers, same)
    error = reencoding_error(plain.encoder, plain.decoder, plain.encoder(inputs[0]))
    torch.testing.assert_close(after - before, composer.REENCODED * error)
    assert torch.equal(plain(*inputs), cured(*inputs))


def test_many_models_are_called_as_one_is(inputs):
    models = [made(seed, reencode=True, decoder="deconvolution") for seed in range(2)]
    weights, _ = stack_module_state(models)
    together = copy.deepcopy(models[0])
    together.forward = together.with_penalty
    _, penalties = vmap(lambda own: functional_call(together, own, inputs))(weights)
    for model, penalty in zip(models, penalties, strict=True):
        torch.testing.assert_close(penalty, model.with_penalty(*inputs)[1])


def test_other_values_are_refused(as_users_run_it):
    with pytest.raises(TypeError, match=r"^reencode: expected True or False, got 'yes'$"):
        made(reencode="yes")
