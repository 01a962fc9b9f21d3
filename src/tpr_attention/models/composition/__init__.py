"""The contestants of the composition task: all of them are called as `model(reference, transform, action)`.

To write one, subclass `copy_and_update.CopyAndUpdate` and say what to add to the reference. Nothing is imported here.
"""

__all__: list[str] = []
