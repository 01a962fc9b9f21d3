"""What each command does, one module a command: `command(..., console)` does it and gives the exit code.

Nothing is imported here: a command needs only what it uses, and help needs nothing.
"""

__all__: list[str] = []
