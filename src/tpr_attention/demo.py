"""Figure 1 of the paper as a story in the terminal: `python -m tpr_attention.demo`.

Three objects are stored in one memory, which is then asked: what shape is the yellow one?
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional import bind, extract, match, memorise, rebind, superpose

__all__ = ["main", "story"]

FILLERS = {
    "shape": ("disc", "triangle", "square"),
    "colour": ("red", "yellow", "green"),
    "size": ("small", "medium", "large"),
}
OBJECTS = (("disc", "red", "large"), ("triangle", "yellow", "small"), ("square", "green", "large"))
NEXT = """Try next:
  from tpr_attention import TPRAttention                  the same with learned questions, as a torch layer
  pip install 'tpr-attention[bench]'
  tpr-attention explore --open                            such a memory in the browser: change objects and question
  tpr-attention reproduce --quick                         the paper's two main figures, small, in a minute"""


def main() -> int:
    """Print the story."""
    sys.stdout.write("\n".join(story()) + "\n")
    return 0


def story() -> Iterator[str]:
    """The lines of the story; every number in them is computed."""
    roles = torch.eye(len(FILLERS))
    shape, colour, _ = roles
    fillers = torch.eye(3)  # filler k of every role is axis k
    codes = torch.tensor(
        [[names.index(word) for word, names in zip(one, FILLERS.values(), strict=True)] for one in OBJECTS]
    )
    objects = superpose(bind(roles.expand(3, 3, 3), fillers[codes]))
    yellow = fillers[FILLERS["colour"].index("yellow")]

    yield "TPR-Attention, figure 1: three objects, one memory, one question."
    yield ""
    yield "Objects are sums of role (x) filler: a row for each role, the 1 says which filler it has."
    yield from _beside(
        [
            (f"O_{k + 1}: {obj_words(words)}", list(_matrix(obj, FILLERS)))
            for k, (words, obj) in enumerate(zip(OBJECTS, objects, strict=True))
        ]
    )
    memory = memorise(objects)
    yield ""
    size = " x ".join(map(str, memory.shape))
    yield f"They are stored together: M = sum_s O_s (x) O_s, {size} numbers, however many objects."
    yield ""
    yield "Question: what is the shape of the yellow object?"
    yield ""
    weights = [float(colour @ obj @ yellow) for obj in objects]
    matched = match(memory, colour, yellow)
    yield "1. Match     sum_s (colour^T O_s yellow) O_s"
    yield f"             weights: {', '.join(f'O_{k + 1} {weight:g}' for k, weight in enumerate(weights))}"
    yield from (f"             {line}" for line in _matrix(matched, FILLERS))
    found = extract(matched, shape)
    yield f"2. Extract   f = shape^T O               {_vector(found)}   {named('shape', found)}"
    swap = torch.eye(3)[[0, 2, 1]]
    yield f"3. Map       f^T H, H the identity       {_vector(found @ torch.eye(3))}   {named('shape', found)}"
    yield f"             or H swaps the last two     {_vector(found @ swap)}   {named('shape', found @ swap)}"
    answer = rebind(found, torch.eye(3), shape)
    yield "4. Bind      shape (x) f"
    yield from (f"             {line}" for line in _matrix(answer, FILLERS))
    yield ""
    yield f"Answer: the yellow object is a {named('shape', extract(answer, shape))}."
    yield ""
    yield NEXT


def obj_words(words: Sequence[str]) -> str:
    """An object as one says it.

    >>> obj_words(("disc", "red", "large"))
    'large red disc'
    """
    return " ".join(reversed(words))


def named(role: str, filler: Float[Tensor, "f"]) -> str:
    """The filler of a role that a vector is most like.

    >>> named("colour", torch.tensor([0.1, 0.9, 0.0]))
    'yellow'
    """
    return FILLERS[role][int(filler.argmax())]


def _matrix(obj: Float[Tensor, "r f"], roles: Iterable[str]) -> Iterator[str]:
    for role, row in zip(roles, obj, strict=True):
        word = f"  {named(role, row)}" if row.abs().max() > 0 else ""
        yield f"{role:<7}{_vector(row)}{word}"


def _vector(row: Float[Tensor, "f"]) -> str:
    return "[" + " ".join(f"{value:g}" if value else "." for value in row.tolist()) + "]"


def _beside(columns: Sequence[tuple[str, list[str]]], width: int = 29) -> Iterator[str]:
    """Titled blocks of lines, side by side."""
    for line in zip(*([title, *lines] for title, lines in columns), strict=True):
        yield "  " + "".join(f"{part:<{width}}" for part in line).rstrip()


if __name__ == "__main__":
    sys.exit(main())
