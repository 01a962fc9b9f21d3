"""The options of `TPRAttention` that exclude each other, and the memory that follows from them."""

from torch import nn

from tpr_attention.functional.factored import expect_form
from tpr_attention.functional.readout import READOUTS, expect_readout
from tpr_attention.functional.signature import expect_number
from tpr_attention.nn.clean_up import StoredCleanUp
from tpr_attention.nn.memories import DeltaMemory, Memory, ReplaceMemory, SoftmaxMatch, SumMemory

__all__ = ["expect_module", "expect_word", "make_memory"]

MATCHES = ("linear", "softmax")
WRITES = ("sum", "delta", "replace")


def expect_word(name: str, word: object, words: tuple[str, ...]) -> None:
    """Check that a word is one of those there are."""
    if not isinstance(word, str) or word not in words:
        raise ValueError(f"{name}: expected one of {list(words)}, got {word!r}")


def expect_module(name: str, module: object, does: str) -> None:
    """Check that something is a module or None."""
    if module is not None and not isinstance(module, nn.Module):
        raise TypeError(f"{name}: expected a module {does}, got {type(module).__name__}")


def make_memory(
    *,
    match: str,
    write: str,
    normalise: str | None,
    temperature: float | None,
    form: str,
    id_role: int,
    usual_temperature: float,
    num_matches: int,
    unit_fillers: bool,
    clean_up: nn.Module | None,
) -> Memory:
    """Check options that exclude each other, and make the memory they describe."""
    expect_word("match", match, MATCHES)
    expect_word("write", write, WRITES)
    expect_form(form)
    expect_readout(normalise, list(READOUTS))
    if isinstance(clean_up, StoredCleanUp) and write != "sum":
        raise ValueError(f"clean_up: expected another with write={write!r}: what was overwritten is still stored")
    if match == "softmax":
        if write != "sum":
            raise ValueError(f"write: expected 'sum' with match='softmax', which keeps every object, got {write!r}")
        if normalise == "count":
            raise ValueError("normalise: expected another with match='softmax', whose weights are a mean, got 'count'")
        if form != "auto":
            raise ValueError(f"form: expected 'auto' with match='softmax', which has no other, got {form!r}")
        return SoftmaxMatch(usual_temperature if temperature is None else expect_number("temperature", temperature))
    if temperature is not None:
        raise ValueError(f"temperature: expected None with match='linear', which has none, got {temperature!r}")
    if write == "sum":
        return SumMemory(form)
    if form == "parallel" or (write == "replace" and form == "chunked"):
        raise ValueError(f"form: expected one that write={write!r} has, got {form!r}")
    if write == "delta":
        return DeltaMemory(form)
    if num_matches > 1 or unit_fillers:
        raise ValueError("write: expected 'sum' or 'delta' with several matches or unit_fillers, got 'replace'")
    return ReplaceMemory(id_role)
