"""Image models: what they answer, what they are trained on, and what they do when training has ended."""

import copy
import itertools

import pytest
import torch
import torch.nn.functional as F

from tpr_attention.models.images import composer, image_model
from tpr_attention.models.images.autoencoder import ImageAutoencoder, ImageDecoder
from tpr_attention.models.images.composer import ImageComposer
from tpr_attention.models.images.parts import COMPOSITIONS, DECODERS, ENCODERS, TINY, Substitution, Swap
from tpr_attention.nn.images.pose_memory import PoseMemory
from tpr_attention.nn.images.second_look import second_look
from tpr_attention.tasks.images.composition import ImageComposition

SIZES = {"num_roles": 5, "side": 64, "channels": 3}


def seeded(make, *sizes, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(*sizes, **options)


@pytest.fixture(scope="module")
def batch():
    """Nine examples of the task; two angles, so that frames are drawn in no time."""
    return ImageComposition(angles=2).draw("train", 9, torch.Generator().manual_seed(0), torch.float32)


@pytest.mark.parametrize(
    ("encoder", "decoder", "composition"),
    [
        *(("unbinding", decoder, "tpr") for decoder in DECODERS),
        *(("convolution", "deconvolution", composition) for composition in COMPOSITIONS),
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


QUICKLY = {"LOOKED_AT": 50, "FITTED": 3, "REFINED": (2, 15), "TAUGHT": 2, "SHARPENED": 2, "FEWEST_READ": 0.0}


def shortened(patch, **changes):
    """Finishing in a few steps; codes are kept, whatever they draw."""
    for name, value in (QUICKLY | changes).items():
        patch.setattr(image_model, name, value)
    patch.setattr(PoseMemory, "forget", lambda memory: memory.is_used.fill_(True))


def go_through(model, stage, batch):
    return len(list(model.finish(stage, itertools.repeat(batch), torch.Generator().manual_seed(stage))))


@pytest.fixture(scope="module")
def finished(batch):
    """A model before it is finished, after both stages, and after them once more, and how often it paused."""
    with pytest.MonkeyPatch.context() as patch:
        shortened(patch)
        models, pauses = [seeded(ImageComposer, 5, **SIZES, clean_up=True).eval()], []
        assert models[0].finishing_steps == (3 + 2 + 15 + 2, 1)
        for stage in range(2):
            models.append(copy.deepcopy(models[-1]))
            pauses.append(go_through(models[-1], stage, batch))
        models.append(copy.deepcopy(models[0]))
        for stage in range(2):
            go_through(models[-1], stage, batch)
    return models, pauses


@pytest.mark.parametrize("keeps", [False, True])
def test_codes_that_draw_worse_are_forgotten(keeps, finished, batch, monkeypatch):
    """Worse are those that draw fewer images rightly: here all of them, or none where fillers draw all."""
    model = copy.deepcopy(finished[0][1])
    images = torch.cat([batch.inputs[0], batch.inputs[1], batch.target])
    drawn = (images, 1 - images) if keeps else (1 - images, images)
    monkeypatch.setattr(model.memory, "draw", lambda codes: drawn[0])
    monkeypatch.setattr(model.decoder, "forward", lambda objects: drawn[1])
    go_through(model, 1, batch)
    assert (model.memory.counts["shapes"] > 0) == keeps
    assert model.memory.is_used == keeps


def test_codes_that_draw_few_images_are_not_taught(batch, monkeypatch):
    forget = PoseMemory.forget
    shortened(monkeypatch, FEWEST_READ=1.1)
    monkeypatch.setattr(PoseMemory, "forget", forget)
    before = seeded(ImageComposer, 5, **SIZES, clean_up=True).eval()
    after = copy.deepcopy(before)
    for stage in range(2):
        go_through(after, stage, batch)
    assert after.memory.counts["shapes"] == 0
    assert not after.memory.is_used
    changed = {
        name
        for (name, one), (_, other) in zip(before.named_parameters(), after.named_parameters(), strict=True)
        if not torch.equal(one, other)
    }
    assert changed == {"decoder.base", "decoder.templates", "decoder.gain"}
    with torch.no_grad():
        objects = second_look(after.decoder, after.encoder(batch.target), batch.target.sum(1), after.memory.spread)
        assert torch.equal(after.read(batch.target), objects)


def test_verified_objects_are_read_as_the_codes_that_draw_the_images(finished, batch):
    """But for two pixels, and not in training."""
    model = copy.deepcopy(finished[0][2])
    images = batch.inputs[0][:3]
    with torch.no_grad():
        codes = model.memory.read(model.read(images), model.decoder)
        masks = (model.memory.field(codes) > 0).float()
        coloured = masks.unsqueeze(1) * images.amax((2, 3), keepdim=True)
        model.verify = True
        read = model.memory.read(model.read(coloured), model.decoder)
        drawn = (model.memory.field(read) > 0).float()
        assert torch.equal(model.train().read(coloured), model.encoder(coloured))  # nothing is verified in training
    assert ((drawn != masks).sum((1, 2)) <= 2).all()


def test_before_it_is_finished_a_model_draws_by_fillers_that_it_reads_at_once(finished, batch):
    before, few = finished[0][0], [given[:2] for given in batch.inputs]
    assert before.memory.counts["shapes"] == 0
    with torch.no_grad():
        objects = before.compose(before.encoder(few[0]), before.encoder(few[1]), few[2])
        assert torch.equal(before(*few), before.decoder(objects))


def test_when_it_is_taught_it_looks_twice_and_draws_by_fillers(finished, batch):
    model, few = finished[0][1], [given[:2] for given in batch.inputs]
    assert model.memory.counts["shapes"] >= 1
    with torch.no_grad():
        twice = [second_look(model.decoder, model.encoder(one), one.sum(1), model.memory.spread) for one in few[:2]]
        assert torch.equal(model(*few), model.decoder(model.compose(*twice, few[2])))
        assert torch.equal(model.train().read(few[0]), model.encoder(few[0]))
        model.eval()


def test_when_it_is_finished_it_draws_by_codes_but_not_in_training(finished, batch):
    model, few = finished[0][2], [given[:2] for given in batch.inputs]
    with torch.no_grad():
        objects = model.composed(*few)[0]
        codes = model.memory.read(objects, model.decoder)
        assert torch.equal(model(*few), model.memory.draw(codes))
        assert not torch.equal(model(*few), model.decoder(objects))
        model.train()
        assert torch.equal(model(*few), model.decoder(model.composed(*few)[0]))
        model.eval()


def test_what_finishing_changes(finished):
    """All that fillers are read, composed and drawn by but what they say of poses and colours, and then one buffer."""
    (before, taught, after, _), pauses = finished
    assert pauses == [2 + 3 + 2 + 2 + 1, 1]  # no image was read well enough to be fitted
    kept = {f"decoder.{part}.{name}" for part in ("scale", "orientation", "colour") for name in ("weight", "bias")}
    kept |= {"encoder.colour.weight", "encoder.colour.bias"}
    for (name, one), (_, other) in zip(before.named_parameters(), taught.named_parameters(), strict=True):
        assert torch.equal(one, other) == (name in kept), name
        assert other.isfinite().all()
        assert other.requires_grad
        assert other.grad is None
    for name, tensor in taught.named_buffers():
        assert tensor.isfinite().all(), name
        assert not tensor.requires_grad
        assert torch.equal(tensor, before.get_buffer(name)) == name.endswith(("is_used", "units")), name
    changed = {
        name for name, tensor in after.state_dict().items() if not torch.equal(tensor, taught.state_dict()[name])
    }
    assert changed == {"memory.is_used"}


def test_finishing_again_gives_the_same_bits(finished):
    _, _, after, again = finished[0]
    for (name, one), other in zip(after.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(one, other), name


def test_all_images_of_a_batch_are_looked_at(finished, batch):
    model = finished[0][0]
    images, objects = next(model._read([batch]))
    assert torch.equal(images, torch.cat([batch.inputs[0], batch.inputs[1], batch.target]))
    with torch.no_grad():
        assert torch.equal(objects, model.encoder(images))
