"""What the examples share: where arrays live, and the command line."""

from __future__ import annotations

import argparse

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Device:
    """Makes arrays on the CPU (NumPy) or on a CUDA device (torch), from and to NumPy."""

    def __init__(self, cuda: bool = False):
        self.cuda = cuda

    def array(self, values: np.ndarray):
        """The values as an array that kernels on this device take."""
        values = np.ascontiguousarray(values)
        if not self.cuda:
            return values
        import torch

        if values.dtype == BFLOAT16:
            return torch.from_numpy(values.view(np.int16)).cuda().view(torch.bfloat16)
        return torch.from_numpy(values).cuda()

    def empty(self, shape, dtype):
        """An array filled with a pattern that no test takes for a result."""
        dtype = np.dtype(dtype)
        filler = 117 if dtype.kind in "iub" else np.nan
        return self.array(np.full(shape, filler, dtype))

    def zeros(self, shape, dtype):
        """An array of zeros."""
        return self.array(np.zeros(shape, dtype))

    def numpy(self, array) -> np.ndarray:
        """A NumPy copy."""
        if not self.cuda:
            return np.array(array)
        import torch

        if array.dtype == torch.bfloat16:
            return array.view(torch.int16).cpu().numpy().view(BFLOAT16)
        return array.cpu().numpy()


def stride(array, dim: int) -> int:
    """The distance in elements between neighbours along a dimension, for NumPy and torch alike."""
    if isinstance(array, np.ndarray):
        return array.strides[dim] // array.itemsize
    return array.stride(dim)


def run(example) -> None:
    """The command line of an example: calls ``example(device)`` and says that it passed."""
    parser = argparse.ArgumentParser(description=example.__doc__)
    parser.add_argument("--cuda", action="store_true", help="run on a CUDA device through torch")
    example(Device(parser.parse_args().cuda))
    print("ok")
