"""What a picture of answers shows, before it is drawn: images of examples, and where answers are wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

__all__ = ["ShownAnswers"]

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
    """

    examples: Sequence[Sequence[str]]
    given: Mapping[str, Images]
    answers: Mapping[str, Images]
    target: Images

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
        answers = {name: _marked(images, self.target) for name, images in self.answers.items()}
        return {**self.given, **answers, "target": self.target}


def _marked(answer: Images, target: Images) -> Images:
    """An answer after rounding, with wrong pixels in a colour of their own."""
    answer = np.where(answer > 127, 255, 0).astype(np.uint8)
    is_wrong = (answer != np.where(target > 127, 255, 0)).any(-1, keepdims=True)
    mark = np.where(answer.any(-1, keepdims=True), np.array(WRONG, np.uint8), np.array(MISSING, np.uint8))
    return np.where(is_wrong, mark, answer)
