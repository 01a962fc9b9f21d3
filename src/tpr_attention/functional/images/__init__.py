"""Images as functions: waves whose phases are positions, and how likely an image is. Nothing is imported here."""

__all__: list[str] = []
