"""Words that several studies use."""

from collections.abc import Sequence

from tpr_attention.report.style import percent

__all__ = ["listed", "percent"]


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence with commas and a last "and".

    >>> listed(["one", "two", "three"])
    'one, two and three'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
