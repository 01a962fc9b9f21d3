r"""Match and extract over a whole sequence without building the memory of each position.

For every position t and head h, `recall` computes what `extract(match(M_t, r_m, f_m), r_t)` defines:

    f_th = sum_{s <= t} [ prod_m (r_m^T O_s f_m) ] r_t^T O_s,    s over the whole sequence if not causal     (App. B, C)

Without a softmax this is linear attention. Key and value are the object itself, the query is role (x) filler, and all
heads share one memory. Three forms give the same numbers, and `recall` takes the
cheaper of the first two unless told otherwise:

- "parallel": all scores at once, then a weighted sum; T^2 work, best for short sequences;
- "chunked": scores inside chunks, a memory between them; linear in T with a state of constant size;
- "recurrent": one object after another, the plainest statement of the recurrence.

Roles given once for each head instead of at each position (`[h m r]`, `[h r]`) shrink key
and value to the filler: the memory of a head then has f^(m+1) entries instead of (r f)^(m+1).

Sums are kept in float32, or in float64 for float64 inputs: a bfloat16 running sum stalls at 256 equal objects.
"""

from collections.abc import Callable, Sequence
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from tpr_attention.functional.layout import Reading, by_head, by_sequence
from tpr_attention.functional.monomials import MOST_MATCHES, key_features, num_features, query_features
from tpr_attention.functional.precision import full_precision, sum_dtype
from tpr_attention.functional.signature import checked, expect_bool, expect_positive, expect_room, expect_whole
from tpr_attention.functional.sweep import causal_mask, chunk_size, extract_each, sweep

__all__ = ["FORMS", "expect_form", "recall", "state_shape"]

MatchRole = Float[Tensor, "*batch t h m r"] | Float[Tensor, "h m r"]
TargetRole = Float[Tensor, "*batch t h r"] | Float[Tensor, "h r"]
Recalled = tuple[Float[Tensor, "*batch t h f"], Float[Tensor, "*state p v"] | None]

_SWEEP_OVERHEAD = 5_000_000  # multiplications in the time that the chunked form's kernel launches take
_LARGE = 10**8  # a memory of more numbers than that might not fit
_PASS = 16  # multiplications in a matrix product in the time of one in a pass over memory


def state_shape(num_roles: int, filler_dim: int, *, num_matches: int = 1, heads: int | None = None) -> tuple[int, ...]:
    """Shape of the state of one sequence; `heads` where roles are given once for each head.

    With one match and roles that vary, this is the paper's memory with its axes r, f joined on both sides.

    >>> state_shape(6, 3), state_shape(6, 3, num_matches=2), state_shape(6, 3, heads=4)
    ((18, 18), (171, 18), (4, 3, 3))
    """
    num_roles, filler_dim = expect_positive(num_roles=num_roles, filler_dim=filler_dim)
    num_matches = expect_whole("num_matches", num_matches, 1, MOST_MATCHES)
    return _state_shape(num_roles, filler_dim, num_matches, *(() if heads is None else expect_positive(heads=heads)))


def _state_shape(num_roles: int, filler_dim: int, num_matches: int, heads: int | None = None) -> tuple[int, ...]:
    width = num_roles * filler_dim if heads is None else filler_dim
    features = num_features(width, num_matches, shared_key=heads is None)
    return (features, width) if heads is None else (heads, features, width)


@checked
def recall(
    objects: Float[Tensor, "*batch t r f"],
    match_role: MatchRole,
    match_filler: Float[Tensor, "*batch t h m f"],
    target_role: TargetRole,
    state: Float[Tensor, "*state p v"] | None = None,
    *,
    causal: bool = True,
    final_state: bool = True,
    form: str = "auto",
) -> Recalled:
    r"""Match and extract at every position of a sequence.

    E_prop(M_obj(M_t, r_m, f_m), r_t),    M_t = state + sum_{s <= t} O_s (x) O_s                        (App. B, C)

    Args:
        match_role: One role for each of the m matches of each head, or `[h m r]` where it is the same everywhere.
        match_filler: The filler to find in that role; an object counts as the product of its m scores.
        target_role: The role to read, or `[h r]` where it is the same everywhere.
        state: The memory of the objects that came before, as an earlier call returned it.
        causal: Position t sees the objects up to and including t; otherwise all of them.
        final_state: Also return the memory after the last object (None otherwise, which can save work).
        form: "auto" for the cheaper of "parallel" and "chunked", or one of these or "recurrent". All give the same.

    >>> red, yellow = torch.eye(2)
    >>> objects = torch.stack([torch.stack([red, red]), torch.stack([yellow, red])])
    >>> colour, shape = torch.eye(2)
    >>> fillers, state = recall(objects, colour[None, None], yellow.expand(2, 1, 1, 2), shape[None])
    >>> fillers[:, 0]  # nothing yellow at first, then one whose shape is the first
    tensor([[0., 0.],
            [1., 0.]])
    """
    expect_form(form)
    expect_bool(causal=causal, final_state=final_state)
    batch, (length, roles, filler_dim) = objects.shape[:-3], objects.shape[-3:]
    heads, matches = match_filler.shape[-3:-1]
    for axis, size in (("t", length), ("r", roles), ("f", filler_dim), ("h", heads), ("m", matches)):
        if size == 0:
            raise ValueError(f"objects and queries: expected at least one entry along {axis}, got none")
    fixed = match_role.ndim == 3 and target_role.ndim == 2
    precise = sum_dtype(objects)
    each = _state_shape(roles, filler_dim, matches, heads if fixed else None)
    if (final_state or form in ("chunked", "recurrent")) and prod(each) > _LARGE:
        expect_room(prod(each), objects.device, precise, num_roles=roles, filler_dim=filler_dim, num_matches=matches)
    shape = (*batch, *each)
    if state is not None and (tuple(state.shape) != shape or state.dtype != precise or state.device != objects.device):
        raise ValueError(
            f"state: expected {precise} on {objects.device} of shape {list(shape)} for these objects and queries, "
            f"got {state.dtype} on {state.device} of shape {list(state.shape)}"
        )
    if 0 in batch:  # no sequence: an empty answer, of which every input still has a gradient
        nothing = 0 * (objects.sum() + match_role.sum() + target_role.sum())
        empty = objects.new_zeros(shape, dtype=precise) + nothing if final_state else None
        return match_filler.sum(-2) + nothing, empty
    with full_precision(objects.device):
        exact = objects.to(precise), match_role.to(precise), match_filler.to(precise), target_role.to(precise)
        reading = by_head(*exact, state) if fixed else by_sequence(*exact, state)
        compute = FORMS[_cheapest(reading, causal, final_state) if form == "auto" else form]
        fillers, after = compute(reading, causal, final_state)
    if fixed:
        fillers = fillers.reshape(*batch, heads, length, filler_dim).movedim(-3, -2)
    else:
        fillers = fillers.reshape(*batch, length, heads, filler_dim)
    return fillers.to(objects.dtype), after.reshape(shape) if final_state and after is not None else None


def _parallel(reading: Reading, causal: bool, final_state: bool) -> tuple[Tensor, Tensor | None]:
    memories, length, readers, matches, filler_dim = reading.match_filler.shape
    if reading.match_role is not None and reading.state is None and length < filler_dim:
        fillers = _parallel_short(reading, causal)
    else:
        queries = reading.queries()
        keys = [*_each(reading.key, 2)] * (matches if reading.shared_key() else 1)
        rows = [query.reshape(memories, length * readers, -1) for query in _each(queries, 3)]
        scores = _product([query @ key.mT for query, key in zip(rows, keys, strict=True)])
        readout = (scores * causal_mask(length, reading.match_filler) if causal else scores) @ reading.values()
        if reading.state is not None:
            features = query_features(queries, shared_key=reading.shared_key())
            readout = readout + features.reshape(memories, length * readers, -1) @ reading.state
        fillers = _extract(readout.reshape(memories, length, readers, -1), reading)
    return fillers, _after(reading) if final_state else None


def _parallel_short(reading: Reading, causal: bool) -> Tensor:
    """Filler first, role second: cheaper while t r < r f, when a score costs less to store than a query."""
    memories, length, readers, _, filler_dim = reading.match_filler.shape
    assert reading.match_role is not None
    assert reading.target_role is not None
    roles = reading.target_role.shape[3]
    rows = length * readers
    held = reading.key.reshape(memories, length * roles, filler_dim)
    factors = []
    for role, filler in zip(_each(reading.match_role, 3), _each(reading.match_filler, 3), strict=True):
        met = filler.reshape(memories, rows, filler_dim) @ held.mT
        factors.append((met.reshape(memories, rows, length, roles) * role.reshape(memories, rows, 1, roles)).sum(-1))
    scores = _product(factors)
    if causal:
        scores = scores * causal_mask(length, reading.match_filler)
    weights = scores.unsqueeze(-1) * reading.target_role.reshape(memories, rows, 1, roles)
    return (weights.reshape(memories, rows, length * roles) @ held).reshape(memories, length, readers, filler_dim)


def _chunked(reading: Reading, causal: bool, final_state: bool) -> tuple[Tensor, Tensor | None]:
    if not causal:
        memory = _after(reading)
        return _read(reading, slice(None), memory), memory
    match_role, query, key, value = reading.match_role, reading.match_filler, reading.key, reading.value
    if reading.num_matches() == 1:
        rank_one = None if match_role is None else match_role.squeeze(3)
        return sweep(rank_one, query.squeeze(3), key.squeeze(2), value, reading.target_role, reading.start())
    features = query_features(reading.queries(), shared_key=reading.shared_key())
    keys = key_features(key, reading.num_matches())
    return sweep(None, features, keys, reading.values(), reading.target_role, reading.start())


def _recurrent(reading: Reading, causal: bool, final_state: bool) -> tuple[Tensor, Tensor | None]:
    keys, values = key_features(reading.key, reading.num_matches()), reading.values()
    memory = reading.start()
    readouts = []
    for t in range(keys.shape[1]):
        memory = memory + keys[:, t].unsqueeze(-1) * values[:, t].unsqueeze(-2)
        if causal:
            readouts.append(_read(reading, slice(t, t + 1), memory))
    return torch.cat(readouts, 1) if causal else _read(reading, slice(None), memory), memory


FORMS: dict[str, Callable[[Reading, bool, bool], tuple[Tensor, Tensor | None]]] = {
    "parallel": _parallel,
    "chunked": _chunked,
    "recurrent": _recurrent,
}


def expect_form(form: object) -> None:
    """Check that there is such a form."""
    if not isinstance(form, str) or form not in ("auto", *FORMS):
        raise ValueError(f"form: expected one of {['auto', *FORMS]}, got {form!r}")


def _cheapest(reading: Reading, causal: bool, final_state: bool) -> str:
    """The form that should take less time, in units of multiplications."""
    memories, length, readers, matches, _ = reading.match_filler.shape
    width, value = reading.key.shape[3], reading.values().shape[2]
    memory = reading.num_features() * value
    parallel = memories * length * readers * length * (matches * width + value)
    parallel += memories * length * memory * (final_state + (reading.state is not None) * readers)
    if parallel <= _SWEEP_OVERHEAD:
        return "parallel"
    chunked = memories * length * (1 + readers) * memory
    if causal:
        chunk = min(length, chunk_size(max(reading.num_features(), value), readers))
        chunked += memories * length * readers * chunk * (reading.num_features() + value)
        chunked += _SWEEP_OVERHEAD
    if matches > 1:
        chunked += memories * length * readers * reading.num_features() * matches * 2 ** (matches - 1) * _PASS
    return "parallel" if parallel <= chunked else "chunked"


def _after(reading: Reading) -> Tensor:
    """The memory once all objects are in it."""
    memory = key_features(reading.key, reading.num_matches()).mT @ reading.values()
    return memory if reading.state is None else reading.state + memory


def _read(reading: Reading, at: slice, memory: Tensor) -> Tensor:
    """Every reader's extracted filler from one memory, for the positions given."""
    queries = reading._replace(
        match_role=None if reading.match_role is None else reading.match_role[:, at],
        match_filler=reading.match_filler[:, at],
        target_role=None if reading.target_role is None else reading.target_role[:, at],
    )
    features = query_features(queries.queries(), shared_key=reading.shared_key())
    readout = features.flatten(1, 2) @ memory
    return _extract(readout.reshape(*features.shape[:3], -1), queries)


def _each(x: Tensor, axis: int) -> Sequence[Tensor]:
    """The slices along an axis, without the cost of slicing where there is only one."""
    return (x.squeeze(axis),) if x.shape[axis] == 1 else x.unbind(axis)


def _product(factors: Sequence[Tensor]) -> Tensor:
    product, *others = factors
    for other in others:
        product = product * other
    return product


def _extract(readout: Tensor, reading: Reading) -> Tensor:
    return readout if reading.target_role is None else extract_each(readout, reading.target_role)
