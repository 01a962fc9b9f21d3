"""Write the trained weights that the page "Pixels" uses: `python docs/models/pixels.py STORE`.

They are those of the main model on the union of the splits, with the first seed of the study. All but the clean-up
memory is stored with 16 bits, as the explorer's page has them.
"""

import sys
from pathlib import Path

from safetensors.numpy import save_file

from tpr_attention.explorer.packing import shortened
from tpr_attention.runner.store import Store
from tpr_attention.studies.images.contestants import FIRST_SEED, MAIN, series_of
from tpr_attention.studies.study import Setup

if __name__ == "__main__":
    store = Store(sys.argv[1])
    spec = series_of({"union": MAIN["union"]}, Setup(first_seed=FIRST_SEED))["union"].specs[0]
    weights = {
        name: array if name.startswith("memory.") else shortened(array)
        for name, array in store.weights(spec.digest).items()
    }
    path = Path(__file__).with_suffix(".safetensors")
    save_file(weights, path, {"spec": spec.to_json()})
