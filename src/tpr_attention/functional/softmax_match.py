r"""Match with a softmax over objects, by fused attention.

The scores are those of the linear match, one for each object and added over the m matches, and a softmax over the
objects turns them into weights:

    f_th = sum_s w_s r_t^T O_s,    w = softmax_s( sum_m r_m^T K_s f_m / temperature + log g_s )

With roles given once for each head this is softmax attention on the extracted fillers: query (f_1 ... f_m), key
(r_1^T K ... r_m^T K), value r_t^T O. Where match roles vary, the query is sum_m r_m (x) f_m and the key the whole
object; where target roles vary, the value is the whole object, from which the filler is extracted afterwards.

A gate and the squared lengths of `clean_by_stored` are added to scores as one more entry of query and key, so that
`scaled_dot_product_attention` needs no mask for them. Memory is then linear in the number of objects.
"""

from math import inf

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from tpr_attention.functional.kernels.extraction import extract_all, keys_and_values
from tpr_attention.functional.precision import full_precision, is_transformed, sum_dtype
from tpr_attention.functional.signature import checked, expect_alike, expect_bool, expect_number, expect_some

__all__ = ["clean_by_stored", "recall_softmax"]

_NEVER = -1e25  # added to a score: less than any other, and finite, so that no gradient is NaN


@checked
def recall_softmax(
    objects: Float[Tensor, "*batch s r f"],
    match_role: Float[Tensor, "*batch q h m r"] | Float[Tensor, "h m r"],
    match_filler: Float[Tensor, "*batch q h m f"],
    target_role: Float[Tensor, "*batch q h r"] | Float[Tensor, "h r"],
    *,
    temperature: float,
    keys: Float[Tensor, "*batch s r f"] | None = None,
    gate: Float[Tensor, "*batch s g"] | None = None,
    visible: Bool[Tensor, "*batch q s"] | Bool[Tensor, "q s"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*batch q h f"]:
    r"""Match by softmax and extract, at q positions that read s objects.

    f_qh = sum_s w_s r_t^T O_s,    w = softmax_s( sum_m r_m^T K_s f_m / temperature + log g_s )

    A position that sees no object gets zeros.

    Args:
        match_role: One role for each of the m matches of each head, or `[h m r]` where it is the same everywhere.
        match_filler: The filler to find in that role; the m scores of an object are added.
        target_role: The role to read, or `[h r]` where it is the same everywhere.
        temperature: What scores are divided by; a small one leaves only the best match.
        keys: The objects as they are matched (default: `objects`).
        gate: How much an object counts, for all heads (g = 1) or for each (g = h): two equal objects with
            gate 1/2 count as one. Gates are at least zero; an object of gate zero has no weight and gives its gate no
            gradient, so that padding is a gate of zero.
        visible: Which objects a position sees (default: all).
        causal: Position q sees no object after its own, the last position being that of the last object.

    >>> red, yellow = torch.eye(2)
    >>> objects = torch.stack([torch.stack([red, red]), torch.stack([yellow, red]), torch.stack([yellow, yellow])])
    >>> colour, shape = torch.eye(2)
    >>> query = colour[None, None], yellow.expand(1, 1, 1, 2), shape[None]
    >>> recall_softmax(objects, *query, temperature=0.01)[0]  # the mean of the shapes of what is yellow
    tensor([[0.5000, 0.5000]])
    """
    expect_bool(causal=causal)
    scale = 1 / expect_number("temperature", temperature)
    batch, (seen, roles, filler_dim) = objects.shape[:-3], objects.shape[-3:]
    length, heads, matches = match_filler.shape[-4:-1]
    expect_some(q=length, r=roles, f=filler_dim, h=heads, m=matches)
    _expect_alike(objects, keys, gate, visible, heads)
    if 0 in batch or seen == 0:
        nothing = [x.sum() for x in (objects, match_role, target_role, keys, gate) if x is not None]
        return match_filler.sum(-2) * 0 + 0 * torch.stack([x.to(objects.dtype) for x in nothing]).sum()
    # the logarithm of a gate does not bear the rounding of 16 bits
    precise = objects.dtype if gate is None else sum_dtype(objects)
    held = _shaped(objects.to(precise), -1, seen, roles, filler_dim)
    matched = None if keys is None else _shaped(keys.to(precise), *held.shape)
    match_role, match_filler, target_role = (x.to(precise) for x in (match_role, match_filler, target_role))
    with full_precision(objects.device):
        key, value = _keys_and_values(held, matched, match_role, target_role)
        if match_role.ndim == 3:
            query = match_filler.reshape(-1, length, heads, matches * filler_dim).transpose(1, 2)
        else:
            match_role = _shaped(match_role, -1, length, heads, matches, roles)
            match_filler = _shaped(match_filler, -1, length, heads, matches, filler_dim)
            query = torch.einsum("bqhmr,bqhmf->bhqrf", match_role, match_filler).flatten(-2)
        found = _mean(query, key, value, _log(gate, precise), visible, causal, scale)
        if target_role.ndim > 2:
            target_role = _shaped(target_role, -1, length, heads, roles).transpose(1, 2)
            found = torch.einsum("bhqrf,bhqr->bhqf", found.reshape(*found.shape[:3], roles, filler_dim), target_role)
    return _shaped(found.transpose(1, 2), *batch, length, heads, filler_dim).to(objects.dtype)


@checked
def clean_by_stored(
    fillers: Float[Tensor, "*batch q h f"],
    stored: Float[Tensor, "*batch s h f"],
    *,
    sharpness: float,
    gate: Float[Tensor, "*batch s g"] | None = None,
    visible: Bool[Tensor, "*batch q s"] | Bool[Tensor, "q s"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "*batch q h f"]:
    r"""The mean of the fillers that are stored, weighted by how near they are to those that were found.

    clean(f) = sum_s w_s v_s,    w = softmax_s( -sharpness |f - v_s|^2 + log g_s )

    For stored fillers with normal noise of variance v, all equally likely, this is the best guess if sharpness is
    1 / (2 v). A position that sees no stored filler gets zeros.

    Args:
        stored: The fillers that a head could have found, for example the target role of every object.
        gate, visible, causal: What counts and what is seen, as in `recall_softmax`.

    >>> stored = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> clean_by_stored(torch.tensor([[[0.9, 0.2]]]), stored, sharpness=40.0).round()
    tensor([[[1., 0.]]])
    """
    expect_bool(causal=causal)
    scale = 2 * expect_number("sharpness", sharpness)
    batch, (length, heads, filler_dim) = fillers.shape[:-3], fillers.shape[-3:]
    seen = stored.shape[-3]
    expect_some(q=length, h=heads, f=filler_dim)
    _expect_alike(fillers, None, gate, visible, heads)
    if 0 in batch or seen == 0:
        return 0 * (fillers + stored.sum() + (0 if gate is None else gate.sum()))
    precise = sum_dtype(fillers)
    with full_precision(fillers.device):
        query = _shaped(fillers.to(precise), -1, length, heads, filler_dim).transpose(1, 2)
        key = _shaped(stored.to(precise), -1, seen, heads, filler_dim).transpose(1, 2)
        bias = -scale / 2 * key.square().sum(-1)  # |f|^2 changes nothing
        of_gate = _log(gate, precise)
        found = _mean(query, key, None, bias if of_gate is None else bias + of_gate, visible, causal, scale)
    return _shaped(found.transpose(1, 2), *fillers.shape).to(fillers.dtype)


def _keys_and_values(
    objects: Float[Tensor, "b s r f"], keys: Float[Tensor, "b s r f"] | None, match_role: Tensor, target_role: Tensor
) -> tuple[Float[Tensor, "b h_k s d"], Float[Tensor, "b h_v s v"] | None]:
    """What is matched, and what is read (None: the same): fillers of each head for fixed roles, else whole objects."""
    if match_role.ndim == 3 and target_role.ndim == 2:
        key, of_heads = keys_and_values(objects, keys, match_role, target_role)
        return _joined(key, match_role), of_heads
    matched = objects if keys is None else keys
    whole = None if match_role.ndim > 3 and keys is None else objects.flatten(-2).unsqueeze(1)
    value = extract_all(objects, target_role) if target_role.ndim == 2 else whole
    if match_role.ndim > 3:
        return matched.flatten(-2).unsqueeze(1), value
    return _joined(extract_all(matched, match_role.flatten(0, 1)), match_role), value


def _joined(fillers: Float[Tensor, "b p s f"], match_role: Float[Tensor, "h m r"]) -> Float[Tensor, "b h s d"]:
    """The fillers of all matches of a head, p = (h m), as one vector, d = (m f)."""
    if match_role.shape[1] == 1:
        return fillers
    return fillers.reshape(-1, *match_role.shape[:2], *fillers.shape[2:]).transpose(2, 3).flatten(-2)


def _shaped(x: Tensor, *shape: int) -> Tensor:
    """The tensor in this shape; as it is where it has that already, for a view would be one more step back."""
    return x if x.ndim == len(shape) else x.reshape(shape)


def _mean(
    query: Float[Tensor, "b h q d"],
    key: Float[Tensor, "b h_k s d"],
    value: Float[Tensor, "b h_v s v"] | None,
    bias: Float[Tensor, "b g s"] | None,
    visible: Bool[Tensor, "*batch q s"] | None,
    causal: bool,
    scale: float,
) -> Float[Tensor, "b h q v"]:
    """The mean of values (None: the keys), weighted by the softmax of `scale` query . key + bias.

    One head of keys, values or biases serves all heads of queries.
    """
    heads, length, seen = *query.shape[1:3], key.shape[2]
    visible = None if visible is None else visible.reshape(-1, 1, length, seen)
    width = (key if value is None else value).shape[-1]
    if length == 1:  # the last position sees everything
        causal = False
    if causal and (length != seen or visible is not None):
        order = torch.ones(length, seen, dtype=torch.bool, device=query.device).tril(seen - length)
        visible, causal = order if visible is None else visible & order, False
    sees = None  # nothing is a mean of nothing: such rows see everything, and their means are replaced by zeros
    if bias is not None:
        counts = bias.detach() > _NEVER / 2
        if visible is not None:
            sees = (visible & counts.unsqueeze(2)).any(-1)
        else:
            sees = counts.cummax(-1).values if causal else counts.any(-1, keepdim=True)
        if bias.shape[1] > key.shape[1]:
            key = key.expand(-1, bias.shape[1], -1, -1)
        column = (bias / scale).unsqueeze(-1)
        key = torch.cat([key, column.expand(*key.shape[:3], 1)], -1)
        query = torch.cat([query, torch.ones_like(query[..., :1])], -1)
    elif visible is not None:
        sees = visible.any(-1)
    if visible is not None:
        visible = visible | ~visible.any(-1, keepdim=True)
    wide = max(key.shape[-1], width)  # the fused kernels want one width
    query, key, value = (_widen(x, wide) for x in (query, key, key if value is None else value))
    key, value = (x if x.shape[1] == heads else x.expand(-1, heads, -1, -1) for x in (key, value))
    attend = _plain_attention if is_transformed() else F.scaled_dot_product_attention
    found = attend(query, key, value, attn_mask=visible, is_causal=causal, scale=scale)
    found = found if wide == width else found[..., :width]
    return found if sees is None else found.masked_fill(~sees.unsqueeze(-1), 0)


def _plain_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    """`scaled_dot_product_attention` as its definition: the fused kernels have no rule for `vmap`."""
    scores = scale * query @ key.mT
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -inf)
    return scores.softmax(-1) @ value


def _widen(x: Tensor, width: int) -> Tensor:
    return x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1]))


def _log(gate: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """The logarithm `[b g s]` of a gate, so low where it is zero that nothing is left of a weight."""
    if gate is None:
        return None
    gate = gate.to(dtype).reshape(-1, *gate.shape[-2:]).transpose(1, 2)
    counts = gate > 0
    return gate.where(counts, 1).log().where(counts, _NEVER)  # the first `where` keeps infinity out of the gradient


def _expect_alike(
    objects: Tensor, keys: Tensor | None, gate: Tensor | None, visible: Tensor | None, heads: int
) -> None:
    expect_alike({"objects": objects, "keys": keys, "gate": gate})
    if gate is not None and gate.shape[-1] not in (1, heads):
        raise ValueError(f"gate: expected [*batch s g] with g=1 or g={heads}, got shape {list(gate.shape)}")
    if visible is not None and visible.device != objects.device:
        raise TypeError(f"visible: expected torch.bool on {objects.device} as objects has, got {visible.device}")
