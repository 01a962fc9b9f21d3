"""Image models: what they answer, and what they are trained on."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from tpr_attention.functional.images.phases import angles_of
from tpr_attention.models.images import composer
from tpr_attention.models.images.autoencoder import ImageAutoencoder, ImageDecoder
from tpr_attention.models.images.composer import ImageComposer
from tpr_attention.models.images.parts import COMPOSITIONS, DECODERS, ENCODERS, TINY, Substitution, Swap

from .cases import SIZES, seeded


@pytest.mark.parametrize(
    ("encoder", "decoder", "composition"),
    [
        *(("unbinding", decoder, "tpr") for decoder in DECODERS),
        *(("convolution", "deconvolution", composition) for composition in COMPOSITIONS),
        ("slots", "broadcast", "tpr"),
    ],
)
def test_every_choice_answers_with_probabilities(encoder, decoder, composition, batch):
    model = seeded(ImageComposer, 5, **SIZES, encoder=encoder, decoder=decoder, composition=composition).eval()
    with torch.no_grad():
        answer = model(*(given[:2] for given in batch.inputs))
    assert answer.shape == batch.target[:2].shape
    assert ((answer > 0) & (answer < 1)).all()
    assert model.finishing_steps == ()
    assert list(model.finish(0, [batch], torch.Generator())) == []


@pytest.mark.parametrize("encoder", ENCODERS)
def test_an_autoencoder_draws_what_its_decoder_draws_of_what_its_encoder_reads(encoder, batch):
    model, images = seeded(ImageAutoencoder, **SIZES, encoder=encoder, decoder="spectrum"), batch.target[:2]
    assert torch.equal(model(images), model.decoder(model.encoder(images)))


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_decoder_alone_draws_fillers(decoder, generator):
    model = seeded(ImageDecoder, **SIZES, filler_dim=6, decoder=decoder)
    objects = torch.randn(2, 5, 6, generator=generator)
    images = model(objects)
    assert images.shape == (2, 3, 64, 64)
    assert torch.equal(images, model.decoder(objects))


@pytest.mark.parametrize("encoder", [name for name in ENCODERS if name != "unbinding"])
@pytest.mark.parametrize("decoder", ["template", "spectrum"])
def test_what_is_bound_is_in_the_middle_until_places_are_learned(encoder, decoder, batch):
    """For any seed: where nothing is near the objects of images, nothing would be learned of them."""
    for seed in range(5):
        model = seeded(ImageAutoencoder, **SIZES, encoder=encoder, decoder=decoder, seed=seed)
        angles = angles_of(model.encoder(batch.target[:4])[:, 3])
        assert (angles.remainder(2 * torch.pi) - torch.pi).abs().max() < 0.5  # radians: five pixels


def test_an_encoder_is_left_alone_where_nothing_is_bound():
    model = seeded(ImageAutoencoder, **SIZES, encoder="slots", decoder="broadcast")
    assert not model.encoder.fillers.any()


def test_an_answer_is_drawn_from_what_is_composed(batch):
    model = seeded(ImageComposer, 5, **SIZES, composition="swap").eval()
    reference, transform, action = batch.inputs
    objects = model.encoder(reference)
    rows = torch.arange(len(objects))
    objects[rows, action.argmax(1)] = model.encoder(transform)[rows, action.argmax(1)]
    with torch.no_grad():
        torch.testing.assert_close(model(*batch.inputs), model.decoder(objects))


def test_swap_takes_the_role_that_the_action_names(normal):
    reference, transform = normal(5, 5, 3), normal(5, 5, 3)
    found = Swap(5, 5, 3)(reference, transform, torch.eye(5).double())
    for example in range(5):
        for role in range(5):
            source = transform if role == example else reference
            torch.testing.assert_close(found[example, role], source[example, role])


@pytest.mark.parametrize(("count", "redrawn"), [(9, 2), (8, 2), (3, 1), (1, 1)])
@pytest.mark.parametrize("composition", ["swap", "tpr"])
def test_a_penalty_is_the_loss_of_references_that_are_drawn_again(count, redrawn, composition, batch):
    """Of the first quarter, weighed as if they were further examples of the batch, and what roles have of others."""
    model = seeded(ImageComposer, 5, **SIZES, composition=composition).double()
    if composition == "tpr":
        torch.nn.init.normal_(model.composition.attention.role_map, generator=torch.Generator().manual_seed(0))
    few = batch.map(lambda tensor: tensor[:count].double() if tensor.is_floating_point() else tensor[:count])
    answers, penalty = model.with_penalty(*few.inputs)
    torch.testing.assert_close(answers, model(*few.inputs))
    total = torch.zeros((), dtype=torch.float64)
    for reference in few.inputs[0][:redrawn]:
        drawn = model.decoder(model.encoder(reference.unsqueeze(0)))[0]
        total += F.binary_cross_entropy(drawn, reference)
    expected = total / count
    if composition == "tpr":
        expected = expected + composer.APART * model.composition.across_roles()
    torch.testing.assert_close(penalty, expected, rtol=1e-6, atol=1e-9)


def test_what_roles_have_of_others_is_the_sum_over_blocks(normal, generator):
    """Of the map from both objects to the update, found by calling the layer, one block after the other."""
    layer = seeded(Substitution, 3, 4, 2).double()
    torch.nn.init.normal_(layer.attention.role_map, generator=generator)
    expected = 0.0
    for action, source in itertools.product(range(3), range(2)):
        for read, written in itertools.permutations(range(4), 2):
            total = TINY
            for filler in range(2):
                objects = torch.zeros(1, 2, 4, 2, dtype=torch.float64)
                objects[0, source, read, filler] = 1
                update = layer.attention(objects, torch.eye(3)[[action]].double())
                total += float(update[0, written].detach().square().sum())
            expected += total**0.5
    assert float(layer.across_roles().detach()) == pytest.approx(expected, rel=1e-10)


def test_a_pure_substitution_has_nothing_of_other_roles(normal):
    """A constructed solution: one head takes the reference's role away, another puts in the transform's."""
    layer = seeded(Substitution, 4, 4, 3).double()
    attention = layer.attention
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.zero_()
        attention.filler_map.copy_(torch.eye(3))
        attention.id_query[0, 0], attention.id_query[1, 1] = 1, 1
        attention.query_map[:2] = torch.eye(4)
        attention.role_map[0], attention.role_map[1] = -torch.eye(4), torch.eye(4)
    reference, transform, action = normal(4, 4, 3), normal(4, 4, 3), torch.eye(4).double()
    torch.testing.assert_close(layer(reference, transform, action), Swap(4, 4, 3)(reference, transform, action))
    blocks = 4 * 2 * 4 * 3
    assert float(layer.across_roles().detach()) == pytest.approx(blocks * TINY**0.5, rel=1e-6)
    gradients = torch.autograd.grad(layer.across_roles(), list(layer.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_what_makes_the_update_zero_is_known():
    model = seeded(ImageComposer, 5, **SIZES)
    (role_map,) = model.output_map()
    assert role_map is model.composition.attention.role_map
    assert seeded(ImageComposer, 5, **SIZES, composition="swap").output_map() == ()


@pytest.mark.parametrize(
    "make", [lambda **o: ImageComposer(5, **SIZES, **o), lambda **o: ImageAutoencoder(**SIZES, **o)]
)
def test_errors_name_the_argument(make, as_users_run_it):
    for decoder in DECODERS:
        if decoder != "template":
            with pytest.raises(ValueError, match=f"^clean_up: expected the decoder 'template', got '{decoder}'$"):
                make(decoder=decoder, clean_up=True)
    with pytest.raises(TypeError, match=r"^clean_up: expected True or False, got 'no'$"):
        make(clean_up="no")
    with pytest.raises(ValueError, match=r"^verify: expected clean_up=True beside it"):
        make(verify=True)
    with pytest.raises(ValueError, match=r"^decoder: expected one of .* did you mean 'template'"):
        make(decoder="templates")
    with pytest.raises(ValueError, match=r"^encoder: expected one of "):
        make(encoder="x")


def test_a_composition_is_one_of_those_there_are(as_users_run_it):
    with pytest.raises(ValueError, match=r"^composition: expected one of .* did you mean 'swap'"):
        ImageComposer(5, **SIZES, composition="swop")


def test_every_role_counts_alike_when_a_composition_is_fitted(generator):
    """However large its fillers are: an error is measured by how much they differ."""
    model = seeded(ImageComposer, 5, **SIZES, composition="swap")
    reference, transform = torch.randn(2, 40, 5, 8, generator=generator)
    action = torch.eye(5)[torch.arange(40) % 5]
    target = model.compose(reference, transform, action)
    assert model.composition_error((reference, transform, target, action)).max() == 0
    sizes = torch.tensor([100.0, 1.0, 1.0, 0.01, 1.0])[:, None]
    off = [torch.zeros(5, 1).index_fill(0, torch.tensor([role]), 0.5) for role in (0, 3)]
    errors = [
        model.composition_error((sizes * reference, sizes * transform, sizes * target + sizes * one, action)).mean()
        for one in off
    ]
    assert 0.1 < errors[0] < 10
    assert errors[0].item() == pytest.approx(errors[1].item(), rel=0.5)
