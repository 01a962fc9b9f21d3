"""Layers: parameters around `tpr_attention.functional`, ignorant of any task."""

from tpr_attention.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "action_attention": ["ActionTPRAttention"],
        "action_blocks": ["ActionTPRBlock", "ActionTPRStack"],
        "action_heads": ["ActionHeads"],
        "attention": ["TPRAttention"],
        "clean_up": ["CleanUp", "StoredCleanUp"],
        "embedding": ["EMPTY", "RoleEmbedding", "shifted"],
        "higher_order": ["HigherOrderActionTPRAttention"],
        "images.codes.pose_memory": ["PoseMemory"],
        "images.decoders": ["BoundTemplate", "BoundWaves", "SpectrumDecoder", "TemplateDecoder"],
        "images.encoder": ["UnbindingEncoder", "Unbound"],
        "images.poses": ["Pose"],
        "images.second_look": ["second_look"],
        "queries": ["FixedRoleQueries", "LinearQueries", "OwnFillerQueries", "Queries"],
        "reading": ["Inspection"],
        "role_laws": ["RoleLaws"],
        "sequence_blocks": ["FillerFeedForward", "TPRBlock", "WriteGate"],
        "sequence_models": ["DecoderState", "TPRDecoder", "TPREncoder"],
        "state": ["History", "State"],
    },
)
