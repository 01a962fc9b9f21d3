"""What models of images share: an encoder, a decoder, and the memory that may be found when both are trained."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import choose, expect_bool
from tpr_attention.models.contract import Examples
from tpr_attention.models.images.parts import DECODERS, ENCODERS
from tpr_attention.models.images.teaching import Images, Objects, Pupil, images_of, sharpen, teach
from tpr_attention.nn.images.alignment import align
from tpr_attention.nn.images.codes.outlines import outlines_of
from tpr_attention.nn.images.codes.pose_memory import Codes, PoseMemory
from tpr_attention.nn.images.codes.refinement import fit, refine
from tpr_attention.nn.images.codes.regularity import complete
from tpr_attention.nn.images.codes.verification import MOST_WRONG, codes_of, verified
from tpr_attention.nn.images.decoders import BindingDecoder, TemplateDecoder
from tpr_attention.nn.images.pixels import Masks
from tpr_attention.nn.images.registration import find_symmetries
from tpr_attention.nn.images.second_look import DIRECTIONS, second_look

__all__ = ["ImageModel", "Images", "Objects"]

LOOKED_AT = 8_000  # images whose fillers those of codes are made of; in which codes are sought, if nothing is aligned
FITTED = 600  # steps: see `fit`
ALIGNED = 1_536  # images that templates are aligned by
MORE_ALIGNED = 6_144  # images that they are aligned by anew, if angles look alike
FEWEST_READ = 0.8  # the share of images that must be read rightly, for codes to be taught
FIRST_TAUGHT, TAUGHT = 1_500, 4_500  # steps: see `teach`, before outlines are refined and after that
SHARPENED = 1_000  # steps: see `sharpen`, without codes
REFINED = (3_000, 1_080)  # steps: see `refine`
FIRST_REFINED = (1_000, 1_080)  # further ones before these, if angles look alike
FIRST_SPREAD = (0.1, 0.03, 0.01)  # how far poses may be off that are read by an encoder that nothing has taught


@runtime_checkable
class StartsAtObject(Protocol):
    """An encoder that can be made to read about one object of every image, until it has learned.

    A decoder that binds draws where this object is. If that is beside all objects, it learns to draw nothing before the
    encoder has learned where they are.
    """

    def start_at(self, obj: Float[Tensor, "r f"]) -> None: ...


class ImageModel(nn.Module):
    """An encoder and a decoder by name; with a clean-up, also a memory of codes, empty until training has ended."""

    def __init__(
        self,
        side: int,
        channels: int,
        num_roles: int,
        filler_dim: int,
        encoder: str,
        decoder: str,
        clean_up: bool,
        verify: bool,
    ) -> None:
        super().__init__()
        expect_bool(clean_up=clean_up, verify=verify)
        if verify and not clean_up:
            raise ValueError("verify: expected clean_up=True beside it, since what is verified are codes")
        self.verify = verify
        sizes = side, channels, num_roles, filler_dim
        self.encoder = choose("encoder", encoder, ENCODERS)(*sizes)
        self.decoder = choose("decoder", decoder, DECODERS)(*sizes)
        if clean_up and not isinstance(self.decoder, TemplateDecoder):
            raise ValueError(f"clean_up: expected the decoder 'template', got {decoder!r}")
        if isinstance(self.decoder, BindingDecoder) and isinstance(self.encoder, StartsAtObject):
            self.encoder.start_at(self.decoder.middle())
        self.memory = PoseMemory(self.decoder) if clean_up and isinstance(self.decoder, TemplateDecoder) else None

    def read(self, images: Images) -> Objects:
        """The objects of images.

        When a model is finished, poses are corrected by a second look, unless codes are used: these are so far apart
        that the first look tells them, but for angles that look alike; see `codes_of`. With verification, objects that
        are read wrongly have the codes that draw them best.
        """
        objects: Tensor = self.encoder(images)
        if self.memory is None or self.training or not self.memory.spread.any():
            return objects
        decoder, memory = self._template_decoder, self.memory
        if not memory.is_used:
            directions = 1 if memory.counts["shapes"] else DIRECTIONS
            return second_look(decoder, objects, images.sum(1), memory.spread, directions)
        if not (self.verify or memory.look_alike.any()):
            return objects
        masks, codes = images.sum(1), memory.read(objects, decoder)
        better = codes_of(memory, decoder, objects, masks)
        better = verified(memory, better, masks) if self.verify else better
        is_new = (better != codes).any(1)[:, None, None]
        return torch.where(is_new, memory.objects(better, objects, decoder), objects)

    def drawn(self, objects: Objects) -> Images:
        """The images of objects: by their codes if these are used, by their fillers in training and before."""
        memory = self.memory
        if memory is None or self.training or not memory.is_used:
            images: Tensor = self.decoder(objects)
            return images
        return memory.draw(memory.read(objects, self._template_decoder))

    @property
    def _template_decoder(self) -> TemplateDecoder:
        assert isinstance(self.decoder, TemplateDecoder)
        return self.decoder

    @property
    def finishing_steps(self) -> tuple[int, ...]:
        """The steps that find codes, refine what they draw and teach them, and the one that decides on their use.

        What is done besides, where angles look alike, is not counted.
        """
        return () if self.memory is None else (FIRST_TAUGHT + FITTED + sum(REFINED) + TAUGHT, 1)

    def finish(self, stage: int, batches: Iterable[Examples], generator: torch.Generator) -> Iterator[None]:
        """Find the codes of training images and teach them to the rest; then use them, if they draw images better.

        Codes that draw few images nearly rightly are forgotten, and the decoder is sharpened instead.
        """
        if self.memory is None:
            return
        if stage == 0:
            yield from self._learn_codes(self.memory, iter(batches), generator)
        elif self.memory.counts["shapes"]:
            self._use_codes(self.memory, iter(batches))
        yield

    def _learn_codes(
        self, memory: PoseMemory, batches: Iterator[Examples], generator: torch.Generator
    ) -> Iterator[None]:
        """Find codes, refine what they draw, and teach them."""
        encoder, decoder = self.encoder, self._template_decoder
        memory.spread.copy_(memory.spread.new_tensor(FIRST_SPREAD))
        before = [tensor.detach().clone() for part in (encoder, decoder) for tensor in part.parameters()]
        aligned = self._aligned(memory, batches, ALIGNED, generator)
        yield
        if memory.look_alike.any():  # there are many angles, and each must be seen; if it fails now, nothing is aligned
            self._forget(memory, before)
            aligned = self._aligned(memory, batches, MORE_ALIGNED, generator)
            yield
        if aligned is not None:
            pupil = Pupil(encoder, decoder, (), self.composition_error)
            yield from teach(pupil, memory, aligned, batches, FIRST_TAUGHT, generator)
        read = self._read(batches)
        found: list[Tensor] = []
        while sum(map(len, found)) < LOOKED_AT:
            found.append(next(read)[1])
            yield
        objects = torch.cat(found)
        if aligned is None:
            memory.find(objects, decoder, generator)
            complete(memory)
        examples = ((images.sum(1), codes_of(memory, decoder, some, images.sum(1))) for images, some in read)
        yield from fit(memory, examples, FITTED, generator)
        if _are_read(memory, *next(examples)):
            if memory.look_alike.any():  # coarse outlines do not tell all of them apart
                yield from refine(memory, examples, *FIRST_REFINED, generator)
            yield from refine(memory, examples, *REFINED, generator)
            pupil = Pupil(encoder, decoder, self.composition_parameters(), self.composition_error)
            yield from teach(pupil, memory, objects, batches, TAUGHT, generator)
        else:
            self._forget(memory, before)
            memory.spread.copy_(memory.spread.new_tensor(FIRST_SPREAD))
            yield from sharpen(encoder, decoder, memory.spread, batches, SHARPENED)

    def _aligned(
        self, memory: PoseMemory, batches: Iterator[Examples], count: int, generator: torch.Generator
    ) -> Objects | None:
        """Align templates by as many images, and find codes in them, if that can be done."""
        decoder = self._template_decoder
        aligned = align(decoder, *self._of_examples(batches, count))
        if aligned is not None:
            memory.find(aligned, decoder, generator)
            complete(memory)
            find_symmetries(memory, decoder, aligned)
        return aligned

    @torch.no_grad()
    def _forget(self, memory: PoseMemory, before: Sequence[Tensor]) -> None:
        """Forget all codes, and let encoder and decoder be as they were before."""
        memory.forget()
        for tensor, old in zip((*self.encoder.parameters(), *self.decoder.parameters()), before, strict=True):
            tensor.copy_(old)

    def _use_codes(self, memory: PoseMemory, batches: Iterator[Examples]) -> None:
        """Use codes if they draw as many images rightly as fillers do."""
        images, found = next(self._read(batches))
        decoder = self._template_decoder
        with torch.no_grad():
            drawn = memory.draw(codes_of(memory, decoder, found, images.sum(1))), decoder(found)
        by_codes, by_fillers = (((some > 0.5) == (images > 0.5)).flatten(1).all(1).sum() for some in drawn)
        memory.is_used.copy_(by_codes >= by_fillers)

    def composition_parameters(self) -> Sequence[nn.Parameter]:
        """The parameters of what is done with objects."""
        return ()

    def composition_error(self, given: Sequence[Tensor]) -> Tensor:
        """How wrong what is composed is, given the objects of all images, and the inputs that are no images."""
        return given[0].new_zeros(len(given[0]))

    def _of_examples(self, batches: Iterator[Examples], count: int) -> tuple[list[Objects], list[Masks]]:
        """Objects and masks of training examples with as many images: one of each for every image of an example."""
        parts: list[list[Images]] = []
        while sum(map(len, itertools.chain(*parts))) < count:
            parts.append(images_of(next(batches))[0])
        images = [torch.cat(some)[: -(-count // len(parts[0]))] for some in zip(*parts, strict=True)]
        with torch.no_grad():
            return [self.encoder(some) for some in images], [(some.sum(1) > 0.5).to(some) for some in images]

    def _read(self, batches: Iterable[Examples]) -> Iterator[tuple[Images, Objects]]:
        """All images of training batches, and their objects."""
        for batch in batches:
            images = torch.cat(images_of(batch)[0])
            with torch.no_grad():
                objects = self.encoder(images)
            yield images, objects


def _are_read(memory: PoseMemory, masks: Masks, codes: Codes) -> bool:
    """Whether codes draw most images nearly as they are."""
    counts = outlines_of(memory, masks, codes).counts
    return bool((counts <= MOST_WRONG).sum() >= FEWEST_READ * len(masks))
