r"""Attention whose queries and new roles are read from an action (App. D), for torch tensors and numpy arrays alike.

    update = sum_h r_n^h(a) (x) (f_h^T H_h),    f_h = M[id_h, q_h(a)],    M = sum_t id^t (x) O_t            (App. D)

Ids are one-hot tags, so the memory M is the stack of the objects itself, `[t r f]`. `read` gives the fillers f_h and
`write` the update, where every example has its own action. `read_by_action` and `write_by_action` give the same for
many examples of each action: what depends on the action alone, `read_map` and `write_map`, is computed once for all of
them. `update_map` joins the two maps. Heads that read several fillers (App. C) combine them between `read` and `write`.

This module does not import torch.
"""

from typing import Any

from einops import einsum, rearrange
from jaxtyping import Float

__all__ = ["read", "read_by_action", "read_map", "update_map", "write", "write_by_action", "write_map"]


def read(
    objects: Float[Any, "*batch t r f"],
    action: Float[Any, "*batch a"],
    id_query: Float[Any, "q t"],
    query_map: Float[Any, "q a r"],
) -> Float[Any, "*batch q f"]:
    r"""Read fillers from tagged objects, each with its own id and the role that the action asks for.

    M[id, q(a)] = q(a)^T sum_t id[t] O_t,    q(a) = a^T H^q                                             (App. D)

    >>> import numpy as np
    >>> objects = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])  # two objects of two roles
    >>> same_role, second_object = np.eye(2)[None], np.array([[0.0, 1.0]])
    >>> read(objects, np.array([1.0, 0.0]), second_object, same_role)  # the first action: the first role
    array([[3.]])
    """
    _expect(
        objects=(objects, "*batch t r f"),
        action=(action, "*batch a"),
        id_query=(id_query, "q t"),
        query_map=(query_map, "q a r"),
    )
    return read_fitting(objects, action, id_query, query_map)


def read_fitting(objects: Any, action: Any, id_query: Any, query_map: Any) -> Any:
    """`read` for a caller who has checked what is given."""
    query = einsum(action, query_map, "... a, q a r -> ... q r")
    tagged_query = einsum(id_query, query, "q t, ... q r -> ... q t r")
    *batch, t, r, f = objects.shape
    return tagged_query.reshape(*batch, len(id_query), t * r) @ objects.reshape(*batch, t * r, f)


def write(
    found: Float[Any, "*batch h p"],
    action: Float[Any, "*batch a"],
    filler_map: Float[Any, "h p f_out"],
    role_map: Float[Any, "h a r_n"],
) -> Float[Any, "*batch r_n f_out"]:
    r"""Map what each head has found, and bind it to the role that the action asks for.

    update = sum_h r_n^h(a) (x) (f_h^T H_h),    r_n^h(a) = a^T H^r_h                                     (App. D)

    >>> import numpy as np
    >>> negated, same_role = -np.ones((1, 1, 1)), np.eye(2)[None]
    >>> write(np.array([[3.0]]), np.array([0.0, 1.0]), negated, same_role)  # the second action: the second role
    array([[ 0.],
           [-3.]])
    """
    _expect(
        found=(found, "*batch h p"),
        action=(action, "*batch a"),
        filler_map=(filler_map, "h p f_out"),
        role_map=(role_map, "h a r_n"),
    )
    return write_fitting(found, action, filler_map, role_map)


def write_fitting(found: Any, action: Any, filler_map: Any, role_map: Any) -> Any:
    """`write` for a caller who has checked what is given."""
    new_role = einsum(action, role_map, "... a, h a r_n -> ... r_n h")
    return new_role @ einsum(found, filler_map, "... h p, h p f_out -> ... h f_out")


def read_map(id_query: Float[Any, "*n q t"], query_map: Float[Any, "*n q a r"]) -> Float[Any, "*n a t r q"]:
    r"""How much each query reads of every role of every object, under every action.

    R[a, t, r, q] = id_q[t] H^q_q[a, r]                                                                  (App. D)

    >>> import numpy as np
    >>> read_map(np.array([[0.0, 1.0]]), np.array([[[5.0, 6.0]]]))[0, :, :, 0]  # of the second object only
    array([[0., 0.],
           [5., 6.]])
    """
    _expect(id_query=(id_query, "*n q t"), query_map=(query_map, "*n q a r"))
    return einsum(id_query, query_map, "... q t, ... q a r -> ... a t r q")


def write_map(
    filler_map: Float[Any, "*n h p f_out"], role_map: Float[Any, "*n h a r_n"]
) -> Float[Any, "*n a h p r_n f_out"]:
    r"""What each head writes of every number it has found, under every action.

    W[a, h, p, r_n, f_out] = H^r_h[a, r_n] H_h[p, f_out]                                                 (App. D)

    >>> import numpy as np
    >>> write_map(np.array([[[2.0, 3.0]]]), np.array([[[0.0, 1.0]]]))[0, 0, 0]  # to the second role only
    array([[0., 0.],
           [2., 3.]])
    """
    _expect(filler_map=(filler_map, "*n h p f_out"), role_map=(role_map, "*n h a r_n"))
    return einsum(filler_map, role_map, "... h p f_out, ... h a r_n -> ... a h p r_n f_out")


def update_map(
    reads: Float[Any, "*n a t r h"], writes: Float[Any, "*n a h f r_n f_out"]
) -> Float[Any, "*n a t r f r_n f_out"]:
    r"""All heads as one linear map under every action, from objects to the update.

    B[a, t, r, f, r_n, f_out] = sum_h id_h[t] q_h(a)[r] r_n^h(a)[r_n] H_h[f, f_out]                      (App. D)

    >>> import numpy as np
    >>> one = np.ones((1, 1, 1))
    >>> update_map(read_map(np.array([[0.0, 1.0]]), one), write_map(-one, one)).reshape(2)  # erase the second object
    array([ 0., -1.])
    """
    _expect(reads=(reads, "*n a t r h"), writes=(writes, "*n a h f r_n f_out"))
    return einsum(reads, writes, "... a t r h, ... a h f r_n f_out -> ... a t r f r_n f_out")


def read_by_action(
    objects: Float[Any, "*n a b t r f"], id_query: Float[Any, "*n q t"], query_map: Float[Any, "*n q a r"]
) -> Float[Any, "*n a b q f"]:
    r"""`read` for b examples of every action.

    f[a, b, q] = sum_{t, r} R[a, t, r, q] O[a, b, t, r]                                                  (App. D)

    >>> import numpy as np
    >>> objects = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(2, 1, 1, 2, 1)  # an example for each of two actions
    >>> read_by_action(objects, np.ones((1, 1)), np.eye(2)[None]).reshape(2)  # each reads its own role
    array([1., 4.])
    """
    _expect(objects=(objects, "*n a b t r f"), id_query=(id_query, "*n q t"), query_map=(query_map, "*n q a r"))
    rows = rearrange(objects, "... b t r f -> ... (b f) (t r)")
    found = rows @ rearrange(read_map(id_query, query_map), "... t r q -> ... (t r) q")
    return rearrange(found, "... (b f) q -> ... b q f", f=objects.shape[-1])


def write_by_action(
    found: Float[Any, "*n a b h p"], filler_map: Float[Any, "*n h p f_out"], role_map: Float[Any, "*n h a r_n"]
) -> Float[Any, "*n a b r_n f_out"]:
    r"""`write` for b examples of every action.

    update[a, b] = sum_{h, p} f[a, b, h, p] W[a, h, p]                                                   (App. D)

    >>> import numpy as np
    >>> found = np.array([1.0, 4.0]).reshape(2, 1, 1, 1)
    >>> write_by_action(found, np.ones((1, 1, 1)), np.eye(2)[None]).reshape(2, 2)  # each writes to its own role
    array([[1., 0.],
           [0., 4.]])
    """
    _expect(found=(found, "*n a b h p"), filler_map=(filler_map, "*n h p f_out"), role_map=(role_map, "*n h a r_n"))
    writes = rearrange(write_map(filler_map, role_map), "... h p r_n f_out -> ... (h p) (r_n f_out)")
    update = rearrange(found, "... h p -> ... (h p)") @ writes
    return rearrange(update, "... (r_n f_out) -> ... r_n f_out", f_out=filler_map.shape[-1])


def _expect(**arrays: tuple[Any, str]) -> None:
    """Check that an axis has one size throughout a call; `signature.expect` does it for tensors, and needs torch."""
    sizes: dict[str, Any] = {}
    for name, (array, axes) in arrays.items():
        shape = getattr(array, "shape", None)
        if shape is None:
            raise TypeError(f"{name}: expected an array [{axes}], got {type(array).__name__}")
        letters, parts = axes.split(), list(shape)
        if axes[0] == "*":  # what the others leave over
            lead = max(0, len(parts) - len(letters) + 1)
            parts[:lead] = [tuple(parts[:lead])]
        fits = len(parts) == len(letters)
        if not fits or any(sizes.setdefault(*pair) != pair[1] for pair in zip(letters, parts, strict=True)):
            raise ValueError(f"{name}: expected [{axes}] with {sizes}, got shape {list(shape)}")
