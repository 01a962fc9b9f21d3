"""From stored curves to pictures, tables and verdicts: `write.write_report` makes the report of a store.

Nothing is imported here, and nothing in this package needs torch.
"""

__all__: list[str] = []
