"""What the page shows, one module a room.

Each has `data(trained)`: plain values and numpy arrays for the room of the same name in `modules`, or None if the room
has nothing to show.
"""

__all__: list[str] = []
