"""The largest elements of each row, in order, on the vector core: one after the other, each taken out of the row when it is found."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def top_k_kernel(x, values, indices, columns, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, N)
    left = tl.load(x + row * columns + j, j < columns, other=-float("inf"))
    for i in range(K):
        largest = tl.max(left, 0)
        index = tl.min(tl.where(left == largest, j, N), 0)
        tl.store(values + row * K + i, largest)
        tl.store(indices + row * K + i, index)
        left = tl.where(j == index, -float("inf"), left)


def top_k(x, count):
    """The ``count`` largest of each row, and where they stand; rows of at most 128."""
    rows, columns = x.shape
    values, indices = np.zeros((rows, count), np.float32), np.zeros((rows, count), np.int32)
    top_k_kernel[(rows,)](x, values, indices, columns, 128, count)
    return values, indices


def main():
    """Checks two rows."""
    x = np.random.default_rng(0).permutation(200).reshape(2, 100).astype(np.float32)
    values, indices = top_k(x, 5)
    order = np.argsort(-x, 1)[:, :5]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    print("top-k: right")


if __name__ == "__main__":
    main()
