"""What models of images share: an encoder, a decoder, and the memory that may be found when both are trained."""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tpr_attention.functional.signature import choose, expect_bool
from tpr_attention.models.contract import Examples
from tpr_attention.models.images.parts import DECODERS, ENCODERS
from tpr_attention.nn.images.decoders import TemplateDecoder
from tpr_attention.nn.images.pose_memory import PoseMemory
from tpr_attention.nn.images.refinement import refine

__all__ = ["ImageModel", "Images", "Objects"]

Images = Float[Tensor, "b channel height width"]
Objects = Float[Tensor, "b r f"]

LOOKED_AT = 8_000  # images in which codes are sought
REFINED = (600, 3_000, 1_080)  # steps: see `refine`


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
        self.memory = PoseMemory(self.decoder) if clean_up and isinstance(self.decoder, TemplateDecoder) else None

    def read(self, images: Images) -> Objects:
        """The objects of images; with verification, those that are read wrongly have the codes that draw them best."""
        objects: Tensor = self.encoder(images)
        memory = self._known
        if memory is None or not self.verify:
            return objects
        decoder = self._template_decoder
        codes = memory.read(objects, decoder)
        better = memory.verified(codes, images.sum(1))
        is_new = (better != codes).any(1)[:, None, None]
        return torch.where(is_new, memory.objects(better, objects, decoder), objects)

    def drawn(self, objects: Objects) -> Images:
        """The images of objects: by their codes if these are found, by their fillers in training and before."""
        memory = self._known
        if memory is None:
            images: Tensor = self.decoder(objects)
            return images
        return memory.draw(memory.read(objects, self._template_decoder))

    @property
    def _known(self) -> PoseMemory | None:
        """The memory, if it is used now: it has codes, and nothing is trained."""
        return None if self.memory is None or self.training or not self.memory.counts["shapes"] else self.memory

    @property
    def _template_decoder(self) -> TemplateDecoder:
        assert isinstance(self.decoder, TemplateDecoder)
        return self.decoder

    @property
    def finishing_steps(self) -> int:
        """The steps that refine what the memory draws."""
        return 0 if self.memory is None else sum(REFINED)

    def finish(self, batches: Iterable[Examples], generator: torch.Generator) -> Iterator[None]:
        """Find the codes of training images and refine what they draw; forget codes if fillers draw better."""
        if self.memory is None:
            return
        read = self._read(batches)
        objects: list[Tensor] = []
        while sum(map(len, objects)) < LOOKED_AT:
            objects.append(next(read)[1])
            yield
        decoder = self._template_decoder
        self.memory.find(torch.cat(objects), decoder, generator)
        memory = self.memory
        examples = ((images.sum(1), memory.read(found, decoder)) for images, found in read)
        yield from refine(memory, examples, REFINED, generator)
        images, found = next(read)
        with torch.no_grad():
            drawn = memory.draw(memory.read(found, decoder)), decoder(found)
        by_codes, by_fillers = (((some > 0.5) == (images > 0.5)).flatten(1).all(1).sum() for some in drawn)
        if by_codes < by_fillers:
            memory.forget()

    def _read(self, batches: Iterable[Examples]) -> Iterator[tuple[Images, Objects]]:
        """All images of training batches, and their objects."""
        for batch in batches:
            images = torch.cat([tensor for tensor in (*batch.inputs, batch.target) if tensor.ndim == 4])
            with torch.no_grad():
                objects = self.encoder(images)
            yield images, objects
