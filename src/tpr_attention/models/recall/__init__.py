"""The contestants of the recall tasks. Those for pairs are called as `model(pairs, queries)`.

A memory is a small class; what pairs become keys and values is an encoder, which all memories may have. Nothing is
imported here.
"""

__all__: list[str] = []
