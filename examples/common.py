"""What the examples share: where arrays live, and the command line."""

from __future__ import annotations

import argparse

import ml_dtypes  # noqa: F401  (NumPy knows these dtypes by name then)
import numpy as np

# What torch and NumPy do not hand each other, and travels as integers of the same size.
AS_INTEGERS = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"}


class Device:
    """Makes arrays on the CPU (NumPy) or on a CUDA device (torch), from and to NumPy."""

    def __init__(self, cuda: bool = False):
        self.cuda = cuda

    def array(self, values: np.ndarray):
        """A copy of the values as an array that kernels on this device take."""
        values = np.array(values, order="C")
        if not self.cuda:
            return values
        import torch

        name = values.dtype.name
        if name in AS_INTEGERS:
            return torch.from_numpy(values.view(f"i{values.itemsize}")).cuda().view(getattr(torch, name))
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

        name = str(array.dtype).removeprefix("torch.")
        if name in AS_INTEGERS:
            return array.view(getattr(torch, f"int{8 * array.itemsize}")).cpu().numpy().view(np.dtype(name))
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
