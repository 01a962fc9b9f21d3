"""Images of one object, taken apart into roles and fillers and drawn from them. Nothing is imported here."""

__all__: list[str] = []
