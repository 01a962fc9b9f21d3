"""What fillers of images stand for: codes that are found without labels. Nothing is imported here."""

__all__: list[str] = []
