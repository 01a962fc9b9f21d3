"""Computation in chunks, with a backward of its own."""

__all__: list[str] = []
