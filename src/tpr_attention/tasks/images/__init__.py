"""Composition and reconstruction as pixels: images are drawn when they are needed and measured number by number.

`images-composition` is the task of `composition` seen as images, `images-reconstruction` the published one on white
sprites. Examples are numbers of objects in a grid; `frames` draws them, `reading` finds the object that an image shows,
and `floors` says what answers without learning cost.
"""

__all__: list[str] = []
