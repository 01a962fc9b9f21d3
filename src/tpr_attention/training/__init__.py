"""From a spec to curves: `spec.RunSpec` says what to train, `train.train` trains many at once.

Nothing is imported here, so that a spec can be read without torch.
"""

__all__: list[str] = []
