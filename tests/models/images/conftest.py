"""Examples for image models."""

import pytest
import torch

from tpr_attention.tasks.images.composition import ImageComposition


@pytest.fixture(scope="package")
def batch():
    """Nine examples of the task; two angles, so that frames are drawn in no time."""
    return ImageComposition(angles=2).draw("train", 9, torch.Generator().manual_seed(0), torch.float32)
