"""Matrix multiplication by clusters whose programs share a matrix, c = a bᵀ with a of (M, K) and b of (N, K): ``tle.distributed_dot``.

The tile of a cluster is split over its programs, by rows or by columns, and so is the operand that has these; of the other one each has all. The
specifications say so, and what becomes of the product; the compiler's are copies that go ahead, and products under way while the next blocks come.
"""

from gemm import show, tile_of

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def sharded_gemm_kernel(
    a_desc, b_desc, c_desc, num_m, num_n, inner, mesh: tl.constexpr, BY_ROWS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A tile of a cluster has as many blocks as programs, one below the other, or side by side."""
    M: tl.constexpr = a_desc.block_shape[0]
    N: tl.constexpr = b_desc.block_shape[0]
    K: tl.constexpr = a_desc.block_shape[1]
    whole: tl.constexpr = tle.sharding(mesh)
    rows: tl.constexpr = tle.sharding(mesh, ["block_cluster"]) if BY_ROWS else whole
    columns: tl.constexpr = whole if BY_ROWS else tle.sharding(mesh, [None, "block_cluster"])
    me = tle.shard_id(mesh, 0)
    tile_m, tile_n = tile_of(tl.program_id(0) // mesh.size, num_m, num_n, GROUP)
    row = (tile_m * mesh.size + me if BY_ROWS else tile_m) * M
    column = (tile_n if BY_ROWS else tile_n * mesh.size + me) * N
    acc = tle.make_sharded_tensor(tl.zeros([M, N], tl.float32), rows if BY_ROWS else columns)
    for k in range(0, inner, K):
        a = tle.make_sharded_tensor(a_desc.load([row, k]), rows)
        b = tle.make_sharded_tensor(b_desc.load([column, k]).T, columns)
        acc = tle.distributed_dot(a, b, acc)
    c_desc.store([row, column], tl.load(acc).to(c_desc.dtype))


def gemm(a, b, c, block=(128, 128, 64), cluster=2, by_rows=True, group=8, **options):
    """``c = a @ b.T`` for matrices whose rows are multiples of 16 bytes, by clusters of ``cluster`` programs, a block each."""
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, k = block
    num_m, num_n = triton.cdiv(rows, m), triton.cdiv(columns, n)
    num_m, num_n = (triton.cdiv(num_m, cluster), num_n) if by_rows else (num_m, triton.cdiv(num_n, cluster))
    # The grid counts clusters.
    return sharded_gemm_kernel[(num_m * num_n,)](
        TensorDescriptor.from_tensor(a, [m, k]),
        TensorDescriptor.from_tensor(b, [n, k]),
        TensorDescriptor.from_tensor(c, [m, n]),
        num_m, num_n, inner, tle.device_mesh({"block_cluster": cluster}), by_rows, group, **options,
    )  # fmt: skip


def main():
    for cluster, by_rows in ((2, True), (2, False), (4, True)):
        print(f"clusters of {cluster}, by {'rows' if by_rows else 'columns'}:")
        show(lambda a, b, c: gemm(a, b, c, (32, 32, 32), cluster, by_rows))


if __name__ == "__main__":
    main()
