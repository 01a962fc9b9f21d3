"""The contestants of the image tasks: an encoder, what is done with objects, and a decoder, each chosen by name.

All are trained in one way, so that contestants differ in these parts only. Nothing is imported here.
"""

__all__: list[str] = []
