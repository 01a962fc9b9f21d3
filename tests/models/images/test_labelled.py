"""A model that is trained with factor labels: it uses them in training, and answers without them."""

import pytest
import torch

from tpr_attention.models.images.labelled import ImageLabelled
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.tasks.images.fillers import true_fillers
from tpr_attention.tasks.images.reading import read_frames

CHOICES = [("unbinding", "template"), ("convolution", "deconvolution")]


@pytest.fixture(scope="module")
def task():
    return ImageComposition(angles=2, factor_labels=True)


@pytest.fixture(scope="module")
def batch(task):
    return task.draw("train", 6, torch.Generator().manual_seed(0), torch.float32)


def made(task, encoder="unbinding", decoder="template"):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return ImageLabelled(**task.sizes, encoder=encoder, decoder=decoder)


def with_other_labels(batch):
    return *batch.inputs[:3], *(labels + 1 for labels in batch.inputs[3:])


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize(("encoder", "decoder"), CHOICES)
def test_an_answer_is_read_exchanged_and_drawn_without_labels(encoder, decoder, is_training, task, batch):
    model = made(task, encoder, decoder).train(is_training)
    with torch.no_grad():
        answers = model(*batch.inputs)
        assert torch.equal(answers, model(*with_other_labels(batch)))
        reference, transform, action = batch.inputs[:3]
        rows, role = torch.arange(len(action)), action.argmax(1)
        objects = model.encoder(reference)
        objects[rows, role] = model.encoder(transform)[rows, role]
        torch.testing.assert_close(answers, model.decoder(objects))


@pytest.mark.parametrize(("encoder", "decoder"), CHOICES)
def test_training_draws_the_true_fillers_of_the_target_and_penalises_what_is_read(encoder, decoder, task, batch):
    model = made(task, encoder, decoder)
    drawn, penalty = model.with_penalty(*batch.inputs)
    target = true_fillers(read_frames(batch.target, task.grid).factors)
    torch.testing.assert_close(drawn, model.decoder(target))
    errors = [
        model.encoder(images) - fillers for images, fillers in zip(batch.inputs[:2], batch.inputs[3:], strict=True)
    ]
    torch.testing.assert_close(penalty, torch.stack(errors).square().mean())
    changed, other = model.with_penalty(*with_other_labels(batch))
    assert not torch.allclose(changed, drawn)
    assert not torch.allclose(other, penalty)


def test_encoder_and_decoder_are_trained_apart(task, batch):
    model = made(task)
    drawn, penalty = model.with_penalty(*batch.inputs)
    for objective, part, others in (
        (task.loss(drawn, batch).mean(), model.decoder, model.encoder),
        (penalty, model.encoder, model.decoder),
    ):
        parameters = [*part.parameters(), *others.parameters()]
        found = torch.autograd.grad(objective, parameters, allow_unused=True, retain_graph=True)
        reached = [gradient is not None for gradient in found]
        own = len(list(part.parameters()))
        assert all(reached[:own])
        assert not any(reached[own:])
