"""The room "Memory and attention": the words that its objects are made of."""

from collections.abc import Sequence
from typing import Any

from tpr_attention.explorer.trained import Trained

__all__ = ["data"]


def data(trained: Sequence[Trained]) -> dict[str, Any] | None:
    """Roles and their fillers."""
    return {"roles": {"shape": ["disc", "triangle", "square"], "colour": ["red", "yellow", "green"]}}
