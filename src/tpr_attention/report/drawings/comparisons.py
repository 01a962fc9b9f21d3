"""What a picture of answers shows, before it is drawn: images of examples, and where answers are wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8

__all__ = ["ShownAnswers", "wrong_pixels"]

WRONG, MISSING = (255, 0, 200), (125, 0, 100)
"""The colours of pixels that are wrong after rounding: what is drawn there is wrong, or nothing is and should be."""

Images = UInt8[np.ndarray, "n h w 3"]
Grid = dict[str, dict[str, Images]]
"""Rows of images by name, and within each the images by name of their column."""


@dataclass(frozen=True, eq=False)
class ShownAnswers:
    """Examples with the answers of several models; answers are rounded and wrong pixels marked.

    Args:
        examples: What each example is, in some words.
        given: The images that models are given, by name.
        answers: The images that models answer with, by name of a model.
        target: What is right.
        window: If given, answers are also shown enlarged: so many rows and columns around what is wrong.
    """

    examples: Sequence[Sequence[str]]
    given: Mapping[str, Images]
    answers: Mapping[str, Images]
    target: Images
    window: int | None = None

    def by_example(self) -> Grid:
        """A row for each example: what is given, the answers, and the target."""
        return {
            f"{place + 1}: {', '.join(words)}": {name: one[place : place + 1] for name, one in self._images().items()}
            for place, words in enumerate(self.examples)
        }

    def by_model(self) -> Grid:
        """A column for each example; rows are what is given, the answers, and the target."""
        columns = ["\n".join([f"{place}: {words[0]}", *words[1:]]) for place, words in enumerate(self.examples, 1)]
        return {
            name: {column: images[place : place + 1] for place, column in enumerate(columns)}
            for name, images in self._images().items()
        }

    def _images(self) -> dict[str, Images]:
        answers: dict[str, Images] = {}
        for name, images in self.answers.items():
            answers[name] = _marked(images, self.target)
            if self.window is not None:
                wrong = wrong_pixels(images, self.target)
                answers[f"{name}, enlarged"] = _around(wrong, answers[name], self.window)
        return {**self.given, **answers, "target": self.target}


def wrong_pixels(answer: Images, target: Images) -> Bool[np.ndarray, "n h w"]:
    """Which pixels are wrong after rounding: those with a wrong channel.

    >>> wrong_pixels(np.array([[[[130, 0, 90], [0, 0, 0]]]], np.uint8), np.array([[[[255, 0, 0]] * 2]], np.uint8))
    array([[[False,  True]]])
    """
    found: Bool[np.ndarray, "n h w"] = ((answer > 127) != (target > 127)).any(-1)
    return found


def _around(chosen: Bool[np.ndarray, "n h w"], images: Images, size: int) -> UInt8[np.ndarray, "n size size 3"]:
    """A window of each image, as far inside as it fits: around the middle of the pixels chosen, or of the image."""
    cut = []
    for pixels, image in zip(chosen, images, strict=True):
        middle = np.argwhere(pixels if pixels.any() else np.ones_like(pixels)).mean(0).round().astype(int)
        top, left = np.clip(middle - size // 2, 0, np.array(pixels.shape) - size)
        cut.append(image[top : top + size, left : left + size])
    return np.stack(cut)


def _marked(answer: Images, target: Images) -> Images:
    """An answer after rounding, with wrong pixels in a colour of their own."""
    is_wrong, answer = wrong_pixels(answer, target)[..., None], np.where(answer > 127, 255, 0).astype(np.uint8)
    mark = np.where(answer.any(-1, keepdims=True), np.array(WRONG, np.uint8), np.array(MISSING, np.uint8))
    return np.where(is_wrong, mark, answer)
