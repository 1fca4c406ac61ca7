"""The examples of the two documents of TLE that concern one device, made complete where they are fragments, on every backend.

========================================  ============================================================================
TLE Architecture Design                   where it is run
========================================  ============================================================================
3.2.1.1 tle.load                          test_load_with_a_hint, test_loads_of_products
3.2.2 tiles                               test_tiles
3.2.3.1 tle.cumsum                        test_cumsum
3.2.4.6 a pipe                            test_pipe.py::test_simple_example
3.2.5.1 tle.device_mesh                   test_mesh: the object; launches over nodes and devices in test_ranks.py
3.2.5.2 tle.sharding                      test_sharded.py::test_specifications
3.2.5.3 tle.shard_id                      test_ranks.py::test_coordinates; on blocks and clusters test_mesh.py
3.2.5.4 tle.distributed_barrier           a signature alone; test_cluster.py, test_mesh.py, test_ranks.py
3.2.5.5 tle.remote                        test_sharded.py::test_exchange_and_reshard; in a cluster test_remote_pointers
3.2.5.6 tle.reshard                       test_sharded.py::test_every_transition
3.2.5.7 tle.distributed_dot               a signature alone; test_sharded.py::test_distributed_dot, on devices
3.2.6.1 filter and compaction             test_pipe.py::test_filter_and_compact
3.2.6.2 post-processing                   test_pipe.py::test_post_processing (as it stands it never ends from three tiles on: one
                                          group of warps is to write all before it reads), test_post_processing_by_roles
3.2.6.3 selective readers                 test_pipe.py::test_selective_readers
3.2.6.4 exchange and reshard              test_sharded.py::test_exchange_and_reshard
3.3.1.1.1 tle.gpu.memory_space            test_layouts.py::test_memory_space
3.3.1.1.2 tle.gpu.alloc                   test_row_pointers
3.3.1.1.3 tle.gpu.local_ptr, row          test_row_pointers
3.3.1.1.3 examples 1, 2, 3, 4             test_slice, test_matrix_slice, test_gather, test_atomics
3.3.1.1.4 remote                          test_remote_pointers
3.3.1.1.5 tle.gpu.copy                    test_copy
3.3.1.2.1 warp_specialize                 test_producer_and_consumer, test_several_workers
3.3.2 DSA                                 test_dsa.py: see Use TLE-Struct
3.3.3.1, 3.3.3.2 staging, atomics         test_staging, test_shared_atomics
3.4.1.1 a function in MLIR                test_raw_mlir.py::test_the_documents_example
3.3.3.3 DSA local-buffer flow             test_dsa.py::test_buffers_become_tensors_and_buffers_again
4.1, 4.2, 4.3, 4.4                        tables without code; examples/tle/sparse_mla.py, moe_align.py, topk.py, topk_selector.py
========================================  ============================================================================

========================================  ============================================================================
Use TLE-Struct                            where it is run
========================================  ============================================================================
tle.gpu.alloc, local_ptr                  test_row_pointers; `tl.arrange` is a misprint, and an error that says so
local_ptr, examples 1, 2, 3, 4            the same tests, with the names `tle.alloc`, `tle.smem`, `tle.local_ptr`
local_ptr (for remote)                    test_remote_pointers
tle.gpu.copy                              test_copy
DSA: alloc, copy, in the examples below   test_dsa.py, on the CPU executor: no GPU has these memories
tle.dsa.local_ptr; for remote             test_dsa.py::test_pointers_into_a_buffer, test_remote_buffers
tle.dsa.to_tensor, to_buffer              test_dsa.py::test_buffers_become_tensors_and_buffers_again
vector operators, examples 1, 2           test_dsa.py::test_arithmetic_chain, test_clamp
loops and hints                           test_dsa.py::test_loops_and_hints
slicing and view                          test_dsa.py::test_slices, test_subviews_share_the_memory
========================================  ============================================================================
"""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

PAIR = tle.device_mesh({"block_cluster": 2})


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


def out_of(device, shape, dtype="float32"):
    return device.array(np.zeros(shape, dtype))


@triton.jit
def at(ptr, M: tl.constexpr, N: tl.constexpr):
    return ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def load_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    base = tl.program_id(0) * BLOCK
    offs = base + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tle.load(x_ptr + offs, mask=mask, other=0.0, is_async=True)
    tl.store(out_ptr + offs, x)


def test_load_with_a_hint(device):
    x, out = numbers(300), out_of(device, 512)
    load_kernel[(2,)](device.array(x), out, 300, 256)
    np.testing.assert_array_equal(device.numpy(out), np.pad(x, (0, 212)))


@triton.jit
def products_kernel(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    a_ptr += tl.arange(0, M)[:, None] * K + tl.arange(0, BK)[None, :]
    b_ptr += tl.arange(0, BK)[:, None] * N + tl.arange(0, N)[None, :]
    stride_a, stride_b = 1, N
    acc = tl.zeros((M, N), tl.float32)
    for k in tl.range(0, K, BK, num_stages=2):
        a = tle.load(a_ptr + k * stride_a, is_async=True)
        b = tle.load(b_ptr + k * stride_b, is_async=True)
        acc = tl.dot(a, b, acc)
    tl.store(at(c_ptr, M, N), acc)


def test_loads_of_products(device):
    a, b, c = numbers((64, 96), "float16"), numbers((96, 64), "float16", 1), out_of(device, (64, 64))
    products_kernel[(1,)](device.array(a), device.array(b), c, 96, 64, 64, 32)
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def tiles_kernel(x_ptr, out_ptr):
    x = tl.load(at(x_ptr, 4, 4))
    sub = x.extract_tile(index=[1, 0], shape=[2, 2])  # rows [2:4], cols [0:2]
    sub = tl.maximum(sub, 0.0)
    x = x.insert_tile(sub, index=[1, 0])
    tl.store(at(out_ptr, 4, 4), x)


def test_tiles(device):
    x, out = numbers((4, 4)), out_of(device, (4, 4))
    tiles_kernel[(1,)](device.array(x), out)
    x[2:, :2] = np.maximum(x[2:, :2], 0)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, total_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    exclusive, total = tle.cumsum(x, axis=0)
    inclusive = exclusive + x
    tl.store(out_ptr + tl.arange(0, N), inclusive)
    tl.store(total_ptr, total)


def test_cumsum(device):
    x, out, total = numbers(200, "int32"), out_of(device, 200, "int32"), out_of(device, 1, "int32")
    cumsum_kernel[(1,)](device.array(x), out, total, 200)
    np.testing.assert_array_equal(device.numpy(out), np.cumsum(x))
    assert device.numpy(total)[0] == x.sum()


def test_mesh():
    topology = {
        "node": [("node_x", 2), ("node_y", 2)],
        "device": 4,
        "block_cluster": [("cluster_x", 2), ("cluster_y", 2)],
        "block": 4,
    }
    mesh = tle.device_mesh(topology=topology)
    assert mesh.shape == (2, 2, 4, 2, 2, 4) and mesh.ndim == 6 and mesh.flatten().shape == (256,)


@triton.jit
def tile_offset(t, rows, cols, N: tl.constexpr, BM: tl.constexpr):
    return (t * BM + rows) * N + cols


@triton.jit
def write_tiles(writer, x_ptr, M, n_tiles, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.arange(0, BM)[:, None]
    cols = tl.arange(0, BN)[None, :]
    for t in tl.range(0, n_tiles):
        slot = writer.acquire(t)
        mask = (t * BM + rows < M) & (cols < N)
        vals = tle.load(x_ptr + tile_offset(t, rows, cols, N, BM), mask=mask, other=0.0, is_async=True)
        tl.store(tle.gpu.local_ptr(slot.tile, (rows, cols)), vals)
        writer.commit(t)


@triton.jit
def process_tiles(reader, out_ptr, M, n_tiles, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.arange(0, BM)[:, None]
    cols = tl.arange(0, BN)[None, :]
    for t in tl.range(0, n_tiles):
        ready = reader.wait(t)
        tile = tl.load(tle.gpu.local_ptr(ready.slot.tile, (rows, cols)))
        sub = tile.extract_tile(index=[0, 0], shape=[BM // 2, BN // 2])
        sub = tl.maximum(sub, 0.0)
        tile = tile.insert_tile(sub, index=[0, 0])
        mask = (t * BM + rows < M) & (cols < N)
        tl.store(out_ptr + tile_offset(t, rows, cols, N, BM), tile, mask=mask)
        reader.release(t)


@triton.jit
def post_process(x_ptr, out_ptr, M, n_tiles, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    tile_buf = tle.gpu.alloc([2, BM, BN], dtype=tl.float32, scope=tle.gpu.smem)
    pipe = tle.pipe(capacity=2, scope="cta", name="post_pipe", tile=tile_buf)
    tle.gpu.warp_specialize(
        [
            (process_tiles, (pipe.reader(), out_ptr, M, n_tiles, N, BM, BN)),
            (write_tiles, (pipe.writer(), x_ptr, M, n_tiles, N, BM, BN)),
        ],
        [4],
        [40],
    )


def test_post_processing_by_roles(device):
    """The two loops of the document's example, one by the producer and one by the consumer."""
    x, out = numbers((70, 28)), out_of(device, (70, 28))
    post_process[(1,)](device.array(x), out, 70, 5, 28, 16, 32)
    for t in range(5):
        corner = x[t * 16 : t * 16 + 8, :16]
        np.maximum(corner, 0, out=corner)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def row_kernel(x_ptr, out_ptr, XBLOCK: tl.constexpr, YBLOCK: tl.constexpr):
    a_smem = tle.gpu.alloc(
        [XBLOCK, YBLOCK],
        dtype=tl.float32,
        layout=None,
        scope=tle.gpu.storage_kind.smem,
    )
    tl.store(tle.gpu.local_ptr(a_smem), tl.load(at(x_ptr, XBLOCK, YBLOCK)))
    # pointers for a_smem[0, :]: [(0, 0), (0, 1), ..., (0, YBLOCK-1)]
    a_smem_ptrs = tle.gpu.local_ptr(
        a_smem,
        indices=(tl.broadcast(0, [YBLOCK]), tl.arange(0, YBLOCK)),
    )
    tl.store(out_ptr + tl.arange(0, YBLOCK), tl.load(a_smem_ptrs))


def test_row_pointers(device):
    x, out = numbers((16, 64)), out_of(device, 64)
    row_kernel[(1,)](device.array(x), out, 16, 64)
    np.testing.assert_array_equal(device.numpy(out), x[0])


@triton.jit
def misprint(out_ptr):
    tl.store(out_ptr + tl.arrange(0, 16), 0.0)


def test_the_misprint(device):
    with pytest.raises(triton.CompilationError, match="did you mean `arange`"):
        misprint[(1,)](out_of(device, 16))


@triton.jit
def slice_kernel(x_ptr, out_ptr, offset, BLOCK: tl.constexpr, SLICE: tl.constexpr, SHORT: tl.constexpr):
    if SHORT:
        smem = tle.alloc([BLOCK], dtype=tl.float32, scope=tle.smem)
    else:
        smem = tle.gpu.alloc([BLOCK], dtype=tl.float32, scope=tle.gpu.smem)
    smem.store(tl.load(x_ptr + tl.arange(0, BLOCK)))
    # Slice [offset, offset + SLICE)
    idx = offset + tl.arange(0, SLICE)
    slice_ptr = tle.local_ptr(smem, (idx,)) if SHORT else tle.gpu.local_ptr(smem, (idx,))
    vals = tl.load(slice_ptr)
    tl.store(out_ptr + tl.arange(0, SLICE), vals)


@pytest.mark.parametrize("short", [False, True])
def test_slice(device, short):
    x, out = numbers(256), out_of(device, 32)
    slice_kernel[(1,)](device.array(x), out, 77, 256, 32, short)
    np.testing.assert_array_equal(device.numpy(out), x[77:109])


@triton.jit
def matrix_slice_kernel(a_ptr, out_ptr, k_start, BM: tl.constexpr, BK: tl.constexpr, KW: tl.constexpr):
    smem_a = tle.gpu.alloc([BM, BK], dtype=tl.float16, scope=tle.gpu.smem)
    smem_a.store(tl.load(at(a_ptr, BM, BK)))
    # Slice (BM, KW), where KW is K-dimension slice
    rows = tl.broadcast_to(tl.arange(0, BM)[:, None], (BM, KW))
    cols = tl.broadcast_to(tl.arange(0, KW)[None, :] + k_start, (BM, KW))
    a_slice = tle.gpu.local_ptr(smem_a, (rows, cols))
    a_vals = tl.load(a_slice)
    tl.store(at(out_ptr, BM, KW), a_vals)


def test_matrix_slice(device):
    a, out = numbers((64, 64), "float16"), out_of(device, (64, 16), "float16")
    matrix_slice_kernel[(1,)](device.array(a), out, 32, 64, 64, 16)
    np.testing.assert_array_equal(device.numpy(out), a[:, 32:48])


@triton.jit
def gather_kernel(x_ptr, out_ptr, H: tl.constexpr, W: tl.constexpr, SLICE: tl.constexpr):
    smem = tle.gpu.alloc([H, W], dtype=tl.float32, scope=tle.gpu.smem)
    smem.store(tl.load(at(x_ptr, H, W)))
    # Take an offset column per row
    rows = tl.broadcast_to(tl.arange(0, H)[:, None], (H, SLICE))
    cols = tl.broadcast_to(1 + tl.arange(0, SLICE)[None, :], (H, SLICE))
    gather_ptr = tle.gpu.local_ptr(smem, (rows, cols))
    out = tl.load(gather_ptr)
    tl.store(at(out_ptr, H, SLICE), out)


def test_gather(device):
    x, out = numbers((32, 48)), out_of(device, (32, 16))
    gather_kernel[(1,)](device.array(x), out, 32, 48, 16)
    np.testing.assert_array_equal(device.numpy(out), x[:, 1:17])


@triton.jit
def atomics_kernel(out_ptr, BLOCK: tl.constexpr):
    smem_i32 = tle.gpu.alloc([BLOCK], dtype=tl.int32, scope=tle.gpu.smem)
    ptr = tle.gpu.local_ptr(smem_i32, (tl.arange(0, BLOCK),))
    tl.store(ptr, tl.zeros([BLOCK], dtype=tl.int32))
    tl.atomic_add(ptr, 1)
    vals = tl.load(ptr)
    tl.store(out_ptr + tl.arange(0, BLOCK), vals)


def test_atomics(device):
    out = out_of(device, 256, "int32")
    atomics_kernel[(1,)](out, 256)
    assert (device.numpy(out) == 1).all()


@triton.jit
def remote_kernel(x_ptr, out_ptr, mesh: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    here = tl.program_id(0) * BM * BK
    smem = tle.gpu.alloc([BM, BK], dtype=tl.float16, scope=tle.gpu.storage_kind.smem)
    tl.store(tle.gpu.local_ptr(smem), tl.load(at(x_ptr + here, BM, BK)))
    next_program = (tle.shard_id(mesh, "block_cluster") + 1) % mesh.shape[0]
    remote_smem = tle.remote(smem, shard_id=(next_program,), scope=mesh)
    tle.distributed_barrier(mesh)

    rows = tl.broadcast_to(tl.arange(0, BM)[:, None], (BM, BK))
    cols = tl.broadcast_to(tl.arange(0, BK)[None, :], (BM, BK))
    remote_ptr = tle.gpu.local_ptr(remote_smem, (rows, cols))

    vals = tl.load(remote_ptr)
    tl.store(at(out_ptr + here, BM, BK), vals)


def test_remote_pointers(device):
    x, out = numbers((2, 16, 32), "float16"), out_of(device, (2, 16, 32), "float16")
    remote_kernel[(1,)](device.array(x), out, PAIR, 16, 32)
    np.testing.assert_array_equal(device.numpy(out), x[::-1])


@triton.jit
def copy_kernel(a_ptr, out_ptr, xstride_a, ystride_a, XBLOCK: tl.constexpr, YBLOCK: tl.constexpr):
    a_smem = tle.gpu.alloc([XBLOCK, YBLOCK], dtype=tl.float32)
    xoffs, yoffs = tl.arange(0, XBLOCK), tl.arange(0, YBLOCK)
    a_ptrs = a_ptr + xstride_a * xoffs[:, None]
    tle.gpu.copy(a_ptrs + ystride_a * yoffs[None, :], a_smem, [XBLOCK, YBLOCK])
    tl.store(at(out_ptr, XBLOCK, YBLOCK), a_smem.load())


@pytest.mark.parametrize("turned", [False, True])
def test_copy(device, turned):
    a, out = numbers((32, 32)), out_of(device, (32, 32))
    copy_kernel[(1,)](device.array(a), out, *((1, 32) if turned else (32, 1)), 32, 32)
    np.testing.assert_array_equal(device.numpy(out), a.T if turned else a)


@triton.jit
def producer(writer, x_ptr, n_tiles: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for i in tl.range(0, n_tiles):
        slot = writer.acquire(i)
        vals = tl.load(x_ptr + i * BLOCK + offs)
        tl.store(tle.gpu.local_ptr(slot.tile), vals)
        writer.commit(i)


@triton.jit
def consumer(reader, out_ptr, n_tiles: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for i in tl.range(0, n_tiles):
        ready = reader.wait(i)
        tile = tl.load(tle.gpu.local_ptr(ready.slot.tile))
        acc += tile
        reader.release(i)
    tl.store(out_ptr + offs, acc)


@triton.jit
def kernel(x_ptr, out_ptr, n_tiles: tl.constexpr, BLOCK: tl.constexpr):
    smem = tle.gpu.alloc([2, BLOCK], dtype=tl.float32, scope=tle.gpu.smem)
    pipe = tle.pipe(capacity=2, scope="cta", name="x_pipe", tile=smem)

    tle.gpu.warp_specialize(
        [
            (producer, (pipe.writer(), x_ptr, n_tiles, BLOCK)),
            (consumer, (pipe.reader(), out_ptr, n_tiles, BLOCK)),
        ],
        [4],  # consumer worker uses 4 warps
        [168],  # consumer worker requested registers
    )


@pytest.mark.parametrize("n_tiles", [1, 7])
def test_producer_and_consumer(device, n_tiles):
    x, out = numbers((n_tiles, 256)), out_of(device, 256)
    kernel[(1,)](device.array(x), out, n_tiles, 256)
    np.testing.assert_array_equal(device.numpy(out), x.sum(0))


@triton.jit
def load_tile_producer(writer, a_desc, n, BM: tl.constexpr, BK: tl.constexpr):
    for i in range(n):
        slot = writer.acquire(i)
        tle.gpu.copy(a_desc, slot.tile, [BM, BK], [i * BM, 0])
        writer.commit(i)


@triton.jit
def qk_consumer(reader, acc_qk, n, BM: tl.constexpr):
    acc = tl.zeros([BM, BM], tl.float32)
    for i in range(n):
        tile = reader.wait(i).slot.tile.load()
        acc = tl.dot(tile, tile.T, acc)
        reader.release(i)
    tl.store(at(acc_qk, BM, BM), acc)


@triton.jit
def value_consumer(reader, acc_v, n, BM: tl.constexpr, BK: tl.constexpr):
    acc = tl.zeros([BM, BK], tl.float32)
    for i in range(n):
        acc += reader.wait(i).slot.tile.load().to(tl.float32)
        reader.release(i)
    tl.store(at(acc_v, BM, BK), acc)


@triton.jit
def spmc_kernel(a_ptr, acc_qk, acc_v, n, BM: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [n * BM, BK], [BK, 1], [BM, BK])
    tile = tle.gpu.alloc([2, BM, BK], dtype=tl.float16, scope=tle.gpu.smem)
    pipe = tle.pipe(
        capacity=2,
        scope="cta",
        name="spmc_tile",
        readers=("qk", "value"),
        tile=tile,
    )

    tle.gpu.warp_specialize(
        [
            (load_tile_producer, (pipe.writer(), a_desc, n, BM, BK)),
            (qk_consumer, (pipe.reader("qk"), acc_qk, n, BM)),
            (value_consumer, (pipe.reader("value", fields=("tile",)), acc_v, n, BM, BK)),
        ],
        [4, 4],
        [240, 168],
    )


def test_several_workers(device):
    a, qk, v = numbers((5, 64, 32), "float16"), out_of(device, (64, 64)), out_of(device, (64, 32))
    spmc_kernel[(1,)](device.array(a), qk, v, 5, 64, 32)
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(qk), (wide @ wide.transpose(0, 2, 1)).sum(0))
    np.testing.assert_array_equal(device.numpy(v), wide.sum(0))


@triton.jit
def staging_kernel(a_ptr, out_ptr, BM: tl.constexpr, BK: tl.constexpr):
    a_ptrs = at(a_ptr, BM, BK)
    # 1) Allocate SMEM tile
    a_smem = tle.gpu.alloc([BM, BK], dtype=tl.float16, scope=tle.gpu.storage_kind.smem)

    # 2) Copy GMEM -> SMEM
    tle.gpu.copy(a_ptrs, a_smem, [BM, BK])

    # 3) Build local pointer view and load
    rows = tl.broadcast_to(tl.arange(0, BM)[:, None], (BM, BK))
    cols = tl.broadcast_to(tl.arange(0, BK)[None, :], (BM, BK))
    a_ptr_local = tle.gpu.local_ptr(a_smem, (rows, cols))
    a_tile = tl.load(a_ptr_local)
    tl.store(at(out_ptr, BM, BK), a_tile)


def test_staging(device):
    a, out = numbers((32, 64), "float16"), out_of(device, (32, 64), "float16")
    staging_kernel[(1,)](device.array(a), out, 32, 64)
    np.testing.assert_array_equal(device.numpy(out), a)


@triton.jit
def shared_atomics_kernel(out_ptr, BLOCK: tl.constexpr, bins: tl.constexpr):
    counts = tle.gpu.alloc([bins], dtype=tl.int32, scope=tle.gpu.storage_kind.smem)
    counts.store(tl.zeros([bins], tl.int32))
    idx = tl.arange(0, BLOCK) % bins
    count_ptr = tle.gpu.local_ptr(counts, (idx,))
    tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr + tl.arange(0, bins), counts.load())


def test_shared_atomics(device):
    out = out_of(device, 256, "int32")
    shared_atomics_kernel[(1,)](out, 1024, 256)
    assert (device.numpy(out) == 4).all()
