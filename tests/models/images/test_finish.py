"""What image models do when training has ended: codes are found, taught and used."""

import copy
import itertools

import pytest
import torch

from tpr_attention.models.images import image_model, teaching
from tpr_attention.models.images.composer import ImageComposer
from tpr_attention.nn.images.codes.pose_memory import PoseMemory
from tpr_attention.nn.images.second_look import second_look

from .cases import SIZES, seeded

QUICKLY = {
    "LOOKED_AT": 50,
    "FITTED": 3,
    "FIRST_REFINED": (1, 15),
    "REFINED": (2, 15),
    "ALIGNED": 20,
    "MORE_ALIGNED": 20,
    "FIRST_TAUGHT": 2,
    "TAUGHT": 2,
    "SHARPENED": 2,
    "FEWEST_READ": 0.0,
}


def shortened(patch, **changes):
    """Finishing in a few steps, with templates as they are; codes are taught, whatever they draw."""
    patch.setattr(image_model, "align", lambda decoder, objects, masks: torch.cat(objects))
    for name, value in (QUICKLY | changes).items():
        patch.setattr(image_model, name, value)
    patch.setattr(teaching, "COMPOSED", 2)


def go_through(model, stage, batch):
    return len(list(model.finish(stage, itertools.repeat(batch), torch.Generator().manual_seed(stage))))


@pytest.fixture(scope="module")
def finished(batch):
    """A model before it is finished, after both stages, and after them once more, and how often it paused."""
    with pytest.MonkeyPatch.context() as patch:
        shortened(patch)
        models, pauses = [seeded(ImageComposer, 5, **SIZES, clean_up=True).eval()], []
        assert models[0].finishing_steps == (2 + 3 + 2 + 15 + 2, 1)
        for stage in range(2):
            models.append(copy.deepcopy(models[-1]))
            pauses.append(go_through(models[-1], stage, batch))
        models.append(copy.deepcopy(models[0]))
        for stage in range(2):
            go_through(models[-1], stage, batch)
    return models, pauses


@pytest.mark.parametrize("keeps", [False, True])
def test_codes_that_draw_worse_are_not_used(keeps, finished, batch, monkeypatch):
    """Worse are those that draw fewer images rightly: here all of them, or none where fillers draw all."""
    model = copy.deepcopy(finished[0][1])
    images = torch.cat([batch.inputs[0], batch.inputs[1], batch.target])
    drawn = (images, 1 - images) if keeps else (1 - images, images)
    monkeypatch.setattr(model.memory, "draw", lambda codes: drawn[0])
    monkeypatch.setattr(model.decoder, "forward", lambda objects: drawn[1])
    go_through(model, 1, batch)
    assert model.memory.is_used == keeps
    assert model.memory.counts["shapes"] > 0  # and so images are not looked at from other directions


def test_codes_that_draw_few_images_are_not_taught(batch, monkeypatch):
    shortened(monkeypatch, FEWEST_READ=1.1)
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
    torch.testing.assert_close(after.memory.spread, torch.tensor(image_model.FIRST_SPREAD))
    with torch.no_grad():
        given = after.decoder, after.encoder(batch.target), batch.target.sum(1), after.memory.spread
        assert torch.equal(after.read(batch.target), second_look(*given, directions=24))
        assert not torch.equal(after.read(batch.target), second_look(*given))


def test_what_was_taught_is_forgotten_with_the_codes(batch, monkeypatch):
    shortened(monkeypatch, FEWEST_READ=1.1)
    monkeypatch.setattr(image_model, "sharpen", lambda *_: iter(()))
    before = seeded(ImageComposer, 5, **SIZES, clean_up=True).eval()
    after = copy.deepcopy(before)
    go_through(after, 0, batch)
    for (name, one), (_, other) in zip(before.named_parameters(), after.named_parameters(), strict=True):
        assert torch.equal(one, other), name


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


def test_angles_that_look_alike_are_read_by_drawing(finished, batch, monkeypatch):
    """Where no angles do, images are not drawn."""
    model = copy.deepcopy(finished[0][2])
    model.memory.is_used.fill_(True)
    images, wanted = batch.inputs[0][:3], torch.zeros(3, 6, dtype=torch.long)
    monkeypatch.setattr(image_model, "codes_of", lambda *_: wanted)
    for orders, is_drawn in ((1, False), (1_000, True)):
        model.memory.angles[:2], model.memory.orders[:] = torch.tensor([0.1, 0.2]), orders
        with torch.no_grad():
            read = model.read(images)
            assert torch.equal(read, model.encoder(images)) != is_drawn
            assert not is_drawn or torch.equal(model.memory.read(read, model.decoder)[:, :-1], wanted[:, :-1])


@pytest.mark.parametrize(("alike", "seen", "refined"), [(False, [6], [2]), (True, [6, 12], [1, 2])])
def test_where_angles_look_alike_more_images_align_and_outlines_are_refined_twice(
    alike, seen, refined, batch, monkeypatch
):
    """The second time templates are aligned as training left them. Codes are those that drawing tells."""
    shortened(monkeypatch, ALIGNED=6, MORE_ALIGNED=12)
    monkeypatch.setattr(PoseMemory, "look_alike", property(lambda memory: torch.full((8,), alike)))
    told = torch.tensor([[0, 0, 0, 0, 0, 0]])
    for module in (image_model, teaching):
        monkeypatch.setattr(module, "codes_of", lambda memory, decoder, objects, masks: told.expand(len(masks), -1))
    model = seeded(ImageComposer, 5, **SIZES, clean_up=True).eval()
    before = [tensor.detach().clone() for tensor in (*model.encoder.parameters(), model.decoder.base)]
    counts, gathered, composed = [], [], []

    def align(decoder, objects, masks):
        now = (*model.encoder.parameters(), decoder.base)
        assert all(torch.equal(one, other) for one, other in zip(before, now, strict=True))
        assert model.memory.counts["shapes"] == 0
        decoder.base.data += 1e-3
        counts.append(sum(map(len, masks)))
        return torch.cat(objects)

    def refine(memory, examples, count, iterations, generator):
        gathered.append(count)
        assert (next(examples)[1] == 0).all()
        yield

    def error(given):
        composed.append(all(torch.equal(one, one[:1].expand_as(one)) for one in given[:3]))
        return sum(tensor.sum() for tensor in model.composition.parameters()).square().expand(len(given[0]))

    monkeypatch.setattr(image_model, "align", align)
    monkeypatch.setattr(image_model, "refine", refine)
    monkeypatch.setattr(model, "composition_error", error)
    go_through(model, 0, batch)
    assert (counts, gathered) == (seen, refined)
    assert composed
    assert all(composed)
    drawn = []
    monkeypatch.setattr(model.memory, "draw", lambda codes: drawn.append(codes) or torch.zeros(len(codes), 3, 64, 64))
    go_through(model, 1, batch)
    assert (drawn[0] == 0).all()


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
        assert torch.equal(model.read(few[0]), model.encoder(few[0]))  # one look is enough to tell codes
        objects = model.composed(*few)[0]
        codes = model.memory.read(objects, model.decoder)
        assert torch.equal(model(*few), model.memory.draw(codes))
        assert not torch.equal(model(*few), model.decoder(objects))
        model.train()
        assert torch.equal(model(*few), model.decoder(model.composed(*few)[0]))
        model.eval()


def test_what_finishing_changes(finished):
    """All that objects are read, composed and drawn by, but what fillers say of poses and colours; then one buffer."""
    (before, taught, after, _), pauses = finished
    assert pauses == [1 + 2 + 2 + 3 + 2 + 2 + 1, 1]  # no image was read well enough to be fitted
    kept = {f"decoder.{part}.{name}" for part in ("scale", "orientation", "colour") for name in ("weight", "bias")}
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
