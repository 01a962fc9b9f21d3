"""Words that several studies use."""

from collections.abc import Sequence

__all__ = ["listed", "percent"]


def percent(share: float) -> str:
    """A share with one digit behind the point, rounded down: 100 % is all.

    >>> percent(0.99951), percent(1.0)
    ('99.9 %', '100 %')
    """
    tenths = int(1000 * share + 1e-4)  # shares are means of 32 bits
    return "100 %" if tenths == 1000 else f"{tenths / 10:.1f} %"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence with commas and a last "and".

    >>> listed(["one", "two", "three"])
    'one, two and three'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
