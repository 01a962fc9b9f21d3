"""Train and store runs: `run.run` plans groups of runs, an executor trains them, and a `store.Store` keeps them."""

__all__: list[str] = []
