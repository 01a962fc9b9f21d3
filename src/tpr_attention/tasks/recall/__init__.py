"""Recall over sequences of structured objects: capacity, compound keys, contextual retrieval, pointer chasing, SAR."""

__all__: list[str] = []
