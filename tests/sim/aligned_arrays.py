"""Arrays aligned as the CUDA driver aligns allocations."""

import numpy as np


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 256 bytes: how many sectors a kernel touches depends on it."""
    raw = np.empty(values.nbytes + 256, np.uint8)
    start = -raw.ctypes.data % 256
    copy = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy
