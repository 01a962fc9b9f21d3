"""The explorer: one HTML page in which memories and trained models can be tried."""

__all__: list[str] = []
