"""The paper's first figure in a terminal: `python -m tpr_attention.demo`.

Three objects are stored in one memory. A question matches, extracts, maps and binds; every number is computed.
"""

import sys

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional import attend, bind, extract, match, memorise, rebind, superpose

__all__ = ["main", "story"]

ROLES = ("colour", "shape")
FILLERS = ("red", "yellow", "green", "circle", "triangle", "square")
OBJECTS = (("red", "circle"), ("yellow", "triangle"), ("green", "square"))

TEXT = """\
Of a red circle, a yellow triangle and a green square: what shape has the yellow one?

An object is a sum of role (x) filler bindings. The yellow triangle:

{object}

All three are stored in one memory, the sum of O (x) O, of {size} numbers.

1. Match: which has colour = yellow? Every object answers with a weight.

{weights}

2. Extract the shape of what was found:  {extracted}
3. Map it, here by the identity:         {mapped}
4. Bind it to the role shape of the answer:

{update}

That is one head of TPR-Attention: attend(memory, colour, yellow, shape, identity, shape).
As a layer of your model: TPRAttention(num_roles=2, filler_dim=6, num_heads=1).
"""


def story() -> str:
    """The question of figure 1 with all that a head computes on the way."""
    roles, fillers = torch.eye(len(ROLES)), torch.eye(len(FILLERS))
    colour, shape = roles
    yellow, identity = fillers[FILLERS.index("yellow")], torch.eye(len(FILLERS))
    named = [torch.stack([fillers[FILLERS.index(name)] for name in names]) for names in OBJECTS]
    objects = torch.stack([superpose(bind(roles, one)) for one in named])
    memory = memorise(objects)
    extracted = extract(match(memory, colour, yellow), shape)
    update = attend(memory, colour, yellow, shape, identity, shape)
    if not torch.equal(update, rebind(extracted, identity, shape)):
        raise ValueError("a head differs from its stages")
    return TEXT.format(
        object=_table(objects[1]),
        size=memory.numel(),
        weights="\n".join(
            _bar(names, extract(obj, colour) @ yellow) for names, obj in zip(OBJECTS, objects, strict=True)
        ),
        extracted=_name(extracted),
        mapped=_name(extracted @ identity),
        update=_table(update),
    )


def main() -> None:
    sys.stdout.write(story())


def _name(filler: Float[Tensor, "f"]) -> str:
    return FILLERS[int(filler.argmax())]


def _bar(names: tuple[str, ...], weight: Float[Tensor, ""]) -> str:
    return f"    {' '.join(names):16} {float(weight):.0f} {'#' * round(20 * float(weight))}".rstrip()


def _table(obj: Float[Tensor, "r f"]) -> str:
    """Roles as rows and fillers as columns."""
    lines = [" " * 12 + "".join(f"{name:>9}" for name in FILLERS)]
    lines += [
        f"    {role:8}" + "".join(f"{value:9.0f}" for value in row)
        for role, row in zip(ROLES, obj.tolist(), strict=True)
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
