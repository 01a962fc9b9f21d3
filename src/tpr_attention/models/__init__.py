"""Models by name. `build` makes one for a task; `check_contract` tells what a model of your own still lacks.

`MODELS` names them by import path, so that names can be listed without loading torch. A model of your own joins by its
path: `model=my_package.my_module:MyModel`.
"""

__all__ = ["MODELS"]

_COMPOSITION = "tpr_attention.models.composition"
_RECALL = "tpr_attention.models.recall"
_IMAGES = "tpr_attention.models.images"

MODELS: dict[str, str] = {
    "tpr": f"{_COMPOSITION}.tpr:TPR",
    "classical": f"{_COMPOSITION}.classical:Classical",
    "resnet": f"{_COMPOSITION}.resnet:ResNet",
    "classical-roles": f"{_COMPOSITION}.classical_roles:ClassicalRoles",
    "classical-matched": f"{_COMPOSITION}.matched:classical_matched",
    "classical-roles-matched": f"{_COMPOSITION}.matched:classical_roles_matched",
    "resnet-matched": f"{_COMPOSITION}.matched:resnet_matched",
    "tpr-second": f"{_COMPOSITION}.tpr_stack:tpr_second",
    "tpr-stack": f"{_COMPOSITION}.tpr_stack:tpr_stack",
    "tpr-laws": f"{_COMPOSITION}.tpr_laws:TPRLaws",
    "tpr-deep": f"{_COMPOSITION}.deep:tpr_deep",
    "classical-deep": f"{_COMPOSITION}.deep:classical_deep",
    "resnet-deep": f"{_COMPOSITION}.deep:resnet_deep",
    "linear": f"{_COMPOSITION}.montero:Linear",
    "interpolate": f"{_COMPOSITION}.montero:Interpolate",
    "linear-floor": f"{_COMPOSITION}.linear_floor:LinearFloor",
    "oracle": f"{_COMPOSITION}.oracle:Oracle",
    "recall-tpr": f"{_RECALL}.tpr:RecallTPR",
    "recall-softmax": f"{_RECALL}.softmax:RecallSoftmax",
    "recall-linear": f"{_RECALL}.linear:RecallLinear",
    "recall-dpfp": f"{_RECALL}.linear:RecallDPFP",
    "recall-delta": f"{_RECALL}.delta:RecallDelta",
    "contextual-tpr": f"{_RECALL}.contextual_tpr:ContextualTPR",
    "contextual-attention": f"{_RECALL}.contextual_attention:ContextualAttention",
    "hops-tpr": f"{_RECALL}.hops:HopsTPR",
    "images-composer": f"{_IMAGES}.composer:ImageComposer",
    "images-labelled": f"{_IMAGES}.labelled:ImageLabelled",
    "images-autoencoder": f"{_IMAGES}.autoencoder:ImageAutoencoder",
    "images-decoder": f"{_IMAGES}.autoencoder:ImageDecoder",
}
"""Name to the constructor's import path. What a constructor asks for by name and the task has, it is given."""
