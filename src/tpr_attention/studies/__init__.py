"""Studies: what is trained for a figure, how it is drawn and what is said of it, each in one file or folder.

`STUDIES` is the one table of them.
"""

from tpr_attention.studies.beyond import BEYOND
from tpr_attention.studies.data import DATA
from tpr_attention.studies.depth import DEPTH
from tpr_attention.studies.images import IMAGES
from tpr_attention.studies.laws import LAWS
from tpr_attention.studies.paper import PAPER_STUDY
from tpr_attention.studies.recall import RECALL
from tpr_attention.studies.scaling import SCALING
from tpr_attention.studies.study import Setup, Study

__all__ = ["STUDIES", "Setup", "Study"]

_ALL = (PAPER_STUDY, DATA, BEYOND, LAWS, DEPTH, SCALING, RECALL, IMAGES)

STUDIES: dict[str, Study] = {study.name: study for study in _ALL}
"""Name to study, in the order of the report."""
