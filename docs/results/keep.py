"""Keep the numbers of a store without its weights, but for codes: `python docs/results/keep.py STORE FOLDER`.

The folder is a store as well, of some kilobytes a run: `tpr-attention report --store FOLDER` writes its report again,
but for pictures that need weights, and `tpr-attention runs --store FOLDER` lists and compares its runs.
"""

import sys

from tpr_attention.runner.store import Store
from tpr_attention.studies.images.codes import codes_in

if __name__ == "__main__":
    found, kept = Store(sys.argv[1]), Store(sys.argv[2], create=True)
    for digest in sorted(set(found) - set(kept)):
        spec, codes = found.check(digest), codes_in(found.weights(digest))
        kept.save(spec, found.curve(digest), codes, found.provenance(digest), found.names(digest))
