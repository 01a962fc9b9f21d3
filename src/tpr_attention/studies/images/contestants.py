"""Who takes part in the image study, on what, and how long."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tpr_attention.report.panels import Look, Series
from tpr_attention.studies.study import Setup, over_seeds
from tpr_attention.training.spec import RunSpec

__all__ = [
    "ANGLES",
    "BLOCKS",
    "CONTROLS",
    "DECODERS",
    "FIRST_SEED",
    "FRESH",
    "LABELLED",
    "LATEST",
    "MAIN",
    "OTHERS",
    "PUBLISHED",
    "QUICK",
    "SPLITS",
    "STEPS",
    "Contestant",
    "series_of",
]

FIRST_SEED = 300
"""Earlier seeds were looked at, out of distribution too, before models were as they are now."""
LATER = 500
"""How much later the seeds of models that finish begin: what comes after training was made when others were known."""
LATEST = 800
"""The same for the model with all angles: with seeds before 1000 it was seen to fail, and later ones were tried."""
FRESH = 1_000
"""The same for the main model: all earlier seeds had been seen when it was last changed."""
STEPS = 4_000
LONGER = 10_000
"""The steps of contestants that are trained for longer, to see whether that helps."""
MOST_SEEDS = 3
"""Of contestants that are not the main model."""
SPLITS = ("square_red", "square_pos", "scale_pos", "union")
RATE = 0.002
"""Chosen among this and 0.0005 by the loss in distribution after 300 steps, for each encoder and decoder, seed 1000."""
TRAINING = {"training.batch_size": 32, "training.train_examples": 100_000, "training.test_examples": 1_000}
COMPOSITION = {"task": "images-composition", "model": "images-composer", "training.learning_rate": RATE, **TRAINING}
RECONSTRUCTION = {"task": "images-reconstruction", "training.learning_rate": RATE, **TRAINING}


@dataclass(frozen=True)
class Contestant:
    """A model on a task.

    Args:
        words: What legends and tables call it.
        keys: What differs from the others of its part.
        seeds: How many it has at most.
        later: How much later than those of others they begin.
        steps: How many it has at most.
    """

    words: str
    look: Look
    keys: Mapping[str, object]
    seeds: int = MOST_SEEDS
    later: int = 0
    steps: int = STEPS


def _parts(encoder: str, decoder: str, composition: str = "tpr") -> dict[str, object]:
    return {
        **COMPOSITION,
        "task.split": "union",
        "model.encoder": encoder,
        "model.decoder": decoder,
        "model.composition": composition,
    }


_MAIN_LOOK = Look("#d1242f", (), "o")

MAIN = {
    split: Contestant(
        "unbinding, TPR-Attention, template, clean-up",
        _MAIN_LOOK,
        {**COMPOSITION, "task.split": split, "model.clean_up": True, "training.test_examples": 2_000},
        seeds=5,
        later=FRESH,
    )
    for split in ("union", *SPLITS[:3])
}
"""Split to the main model on it."""

ANGLES = {
    "union": Contestant(
        "unbinding, TPR-Attention, template, clean-up",
        _MAIN_LOOK,
        {**MAIN["union"].keys, "task.angles": 40, "training.test_examples": 1_000},
        later=LATEST,
    )
}
"""The main model with all 40 angles, some of which look alike."""

OTHERS = {
    "spectrum": Contestant(
        "unbinding, TPR-Attention, spectrum", Look("#7c3aed", (8, 1.5), "P"), _parts("unbinding", "spectrum")
    ),
    "swap": Contestant(
        "unbinding, oracle swap, template", Look("#0e8a9c", (2, 1), "*"), _parts("unbinding", "template", "swap")
    ),
    "attention": Contestant(
        "unbinding, attention over roles, template",
        Look("#b07800", (5, 2), "s"),
        _parts("unbinding", "template", "attention"),
    ),
    "mlp": Contestant(
        "unbinding, MLP, template", Look("#168a5b", (3, 1.5), "D"), _parts("unbinding", "template", "mlp")
    ),
    "linear": Contestant(
        "unbinding, linear map, template", Look("#2563c9", (6, 2, 1, 2), "^"), _parts("unbinding", "template", "linear")
    ),
    "interpolate": Contestant(
        "unbinding, interpolation, template",
        Look("#3d3a8c", (8, 3, 3, 3), ">"),
        _parts("unbinding", "template", "interpolate"),
    ),
    "unbinding-deconvolution": Contestant(
        "unbinding, TPR-Attention, deconvolution", Look("#c2477f", (2, 1), "v"), _parts("unbinding", "deconvolution")
    ),
    "unbinding-broadcast": Contestant(
        "unbinding, TPR-Attention, spatial broadcast",
        Look("#7a4a21", (5, 1, 1, 1), "<"),
        _parts("unbinding", "broadcast"),
    ),
    "slots": Contestant(
        "slot attention, TPR-Attention, spatial broadcast",
        Look("#4d7c0f", (1, 1.5), "h"),
        _parts("slots", "broadcast"),
    ),
    "convolution-template": Contestant(
        "convolution, TPR-Attention, template", Look("#8f8cd0", (1, 1), ">"), _parts("convolution", "template")
    ),
    "convolution-template-reencode": Contestant(
        "convolution, TPR-Attention, template, re-encoded",
        Look("#e08a5b", (5, 1.5), "d"),
        {**_parts("convolution", "template"), "model.reencode": True},
    ),
    "convolution": Contestant(
        "convolution, TPR-Attention, deconvolution",
        Look("#6b7280", (1, 1), "X"),
        _parts("convolution", "deconvolution"),
    ),
    "convolution-longer": Contestant(
        "convolution, TPR-Attention, deconvolution, longer",
        Look("#a8a29e", (3, 1), "x"),
        _parts("convolution", "deconvolution"),
        steps=LONGER,
    ),
    "spectrum-longer": Contestant(
        "unbinding, TPR-Attention, spectrum, longer",
        Look("#a78bda", (8, 1.5, 1, 1.5), "p"),
        _parts("unbinding", "spectrum"),
        steps=LONGER,
    ),
    "mlp-longer": Contestant(
        "unbinding, MLP, template, longer",
        Look("#5fb892", (3, 1.5, 1, 1.5), "H"),
        _parts("unbinding", "template", "mlp"),
        steps=LONGER,
    ),
    "unbinding-pixel": Contestant(
        "unbinding, TPR-Attention, MLP of each pixel",
        Look("#66b88f", (1, 1), "D"),
        _parts("unbinding", "pixel"),
    ),
}
"""Name to contestant, all on the union of the splits."""

CONTROLS = {
    name: Contestant(words, _MAIN_LOOK, {**_parts("unbinding", "template"), **changes})
    for name, words, changes in (
        ("shuffled", "actions shuffled", {"task.shuffle_actions": True}),
        ("warped", "canvas bent", {"task.distortion": "warped"}),
        ("smooth", "inputs softened", {"task.distortion": "smooth"}),
        ("noisy", "inputs with noise", {"task.distortion": "noisy"}),
    )
}
"""What was changed, to the main model on it, without clean-up."""

PUBLISHED = {
    split: Contestant(
        "unbinding, template, clean-up",
        _MAIN_LOOK,
        {**RECONSTRUCTION, "task.split": split, "model": "images-autoencoder", "model.clean_up": True},
        later=LATER,
    )
    for split in ("sqr2tx", "r2r-1", "r2r-2", "r2r-3", "r2e")
}
"""Published split of white sprites to the main encoder and decoder on it."""

DECODERS = {
    name: Contestant(
        words,
        look,
        {
            **RECONSTRUCTION,
            "task.split": "sqr2tx",
            "task.given": "fillers",
            "model": "images-decoder",
            "model.decoder": name,
        },
    )
    for name, words, look in (
        ("template", "template", _MAIN_LOOK),
        ("spectrum", "spectrum", OTHERS["spectrum"].look),
        ("deconvolution", "deconvolution", OTHERS["unbinding-deconvolution"].look),
        ("broadcast", "spatial broadcast", OTHERS["unbinding-broadcast"].look),
        ("pixel", "MLP of each pixel", OTHERS["unbinding-pixel"].look),
    )
}
"""Name of a decoder to it alone, given true fillers."""

LABELLED = {
    encoder: Contestant(
        f"{encoder}, {decoder}",
        look,
        {
            **COMPOSITION,
            "task.split": "union",
            "task.factor_labels": True,
            "model": "images-labelled",
            "model.encoder": encoder,
            "model.decoder": decoder,
        },
    )
    for encoder, decoder, look in (
        ("unbinding", "template", _MAIN_LOOK),
        ("convolution", "deconvolution", OTHERS["convolution"].look),
    )
}
"""Name of an encoder to it and a decoder, trained with factor labels on the union of the splits."""

QUICK = {
    "quick": Contestant("unbinding, TPR-Attention, template", _MAIN_LOOK, _parts("unbinding", "template"), seeds=1),
    "linear": OTHERS["linear"],
}
"""A part of the study that takes minutes: the main model without its clean-up, and one that does not compose."""

BLOCKS = {
    "main": MAIN,
    "others": OTHERS,
    "controls": CONTROLS,
    "published": PUBLISHED,
    "decoders": DECODERS,
    "labelled": LABELLED,
    "angles": ANGLES,
}
"""The parts of the study."""


def series_of(block: Mapping[str, Contestant], setup: Setup) -> dict[str, Series]:
    """The runs of each contestant, by name; without those that are trained longer, if the setup has no more steps."""

    def made() -> Iterator[tuple[str, Series]]:
        for name, one in block.items():
            if one.steps > STEPS >= setup.steps:
                continue
            seeds = min(setup.seeds, one.seeds)
            first = setup.first_seed + one.later
            own = replace(setup, seeds=seeds, steps=min(setup.steps, one.steps), first_seed=first)
            yield name, over_seeds(name, RunSpec.of(one.keys), own, one.words, one.look)

    return dict(made())
