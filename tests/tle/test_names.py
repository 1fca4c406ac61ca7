"""The names of TLE: one module under every path, names that are not there yet, the list of what there is."""

import importlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tilewright.experimental.tle.language as by_triton

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

PARTS = ("distributed", "dsa", "gpu", "raw")


def test_every_path_leads_to_the_same_modules():
    import tilewright.experimental.tle as short
    import tilewright.experimental.tle.language.gpu as gpu

    assert short is tle and by_triton is tle and gpu is tle.gpu
    for part in (*PARTS, "dsa.ascend", "raw.mlir"):
        ours = importlib.import_module(f"tilewright.tle.{part}")
        assert importlib.import_module(f"tilewright.experimental.tle.{part}") is ours
        assert importlib.import_module(f"tilewright.experimental.tle.language.{part}") is ours
    assert tle.jit is triton.jit
    assert tle.local_ptr is tle.gpu.local_ptr and tle.smem is tle.gpu.smem


def test_under_the_name_of_triton(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import tilewright.as_triton
            import triton
            import triton.experimental.tle.language as tle
            import triton.experimental.tle.language.gpu as gpu
            import triton.language as tl
            from triton.experimental.tle.raw import InOut, Input, dialect
            from triton.experimental.tle.raw.mlir import vassert, vprintf

            import tilewright.tle

            @triton.jit
            def kernel(x, out):
                at = tl.arange(0, 8)
                tl.store(out + at, tle.load(x + at) + triton.experimental.tle.language.load(x + at))

            x, out = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
            kernel[(1,)](x, out)
            assert (out == 2 * x).all()
            assert tle is tilewright.tle and gpu is tilewright.tle.gpu
            print("same")
            """
        )
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.stdout == "same\n", done.stderr


def test_a_name_that_the_reference_lacks_is_missing_at_once():
    with pytest.raises(AttributeError, match="no attribute 'laod'; did you mean `load`"):
        _ = tle.laod
    with pytest.raises(AttributeError, match="did you mean `wgmma_wait`"):
        _ = tle.gpu.wgmma_wiat
    with pytest.raises(ImportError):
        from tilewright.tle import nothing_like_it  # noqa: F401


def test_a_name_that_is_not_there_yet_can_be_held_but_not_called():
    assert tle.gpu.storage_kind.smem is tle.gpu.smem
    assert repr(tle.dsa.ascend.UB) == "tle.dsa.ascend.UB"
    with pytest.raises(NotImplementedError, match=r"not supported yet: tle\.gpu\.tensor_memory_layout"):
        tle.gpu.tensor_memory_layout(2)


@triton.jit
def by_module(x):
    tl.store(x, 1.0)
    buffer = tle.gpu.tensor_memory_layout(2)


held = tle.gpu.tensor_memory_layout


@triton.jit
def by_value(x):
    tl.store(x, held)


@triton.jit
def by_full_path(x):
    p = triton.experimental.tle.language.gpu.tensor_memory_layout(2)


@triton.jit
def by_another_name(x):
    tl.store(x, tle.cumsumm(x))


@pytest.mark.parametrize(
    ("kernel", "line", "message"),
    [
        (by_module, "tle.gpu.tensor_memory_layout", "not supported yet: tle.gpu.tensor_memory_layout"),
        (by_value, "held", "not supported yet: tle.gpu.tensor_memory_layout"),
        (by_full_path, "tensor_memory_layout", "not supported yet: tle.gpu.tensor_memory_layout"),
        (by_another_name, "tle.cumsumm", "did you mean `cumsum`"),
    ],
)
def test_kernels_say_what_is_not_there(kernel, line, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(1, np.float32))
    text = str(caught.value)
    assert message in text
    lines = text.splitlines()
    caret = next(i for i, shown in enumerate(lines) if set(shown.strip(" |")) == {"^"})
    at = lines[caret].index("^")
    assert line in lines[caret - 1][at : at + lines[caret].count("^")]


def test_the_support_list_tells_the_truth():
    for backend in ("cpu", "cuda"):
        supported = tle.get_supported_primitives(backend)
        assert "load" in supported
        for name in tle.TLE_PRIMITIVES:
            found = tle
            for part in name.split("."):
                found = getattr(found, part, None)
            there = found is not None and "not supported yet" not in repr(found)
            there = there and (backend == "cpu" or not name.startswith("dsa."))
            assert tle.is_primitive_supported(backend, name) == there, name
    assert tle.get_supported_primitives("npu") == []
    assert tle.primitive_name(tle.load) == "load" == tle.primitive_name("tle.load")
    assert tle.primitive_name(tle.gpu.alloc) == "gpu.alloc"
    assert tle.primitive_name(tle.remote) == "remote"
    assert (
        tle.primitive_name(tle.cumsum)
        == tle.primitive_name("triton.experimental.tle.language.cumsum")
        == "cumsum"
    )
    assert tle.primitive_name("language.gpu.core.alloc") == "gpu.alloc"
    assert tle.primitive_name(tle.pipe) == "pipe"
    assert tle.primitive_name(tle.pipe_writer.acquire) == tle.primitive_name(tle.pipe.writer.acquire)
    assert tle.primitive_name(tle.pipe.reader.wait) == "pipe.reader.wait"
    with pytest.raises(ValueError, match="no primitive"):
        tle.primitive_name("tle.nothing")
    tle.require_tle("cuda", tle.load)
    with pytest.raises(
        tle.TLEUnsupportedPrimitiveError, match=r"cuda does not support tle\.dsa\.add"
    ) as caught:
        tle.require_tle("cuda", tle.dsa.add)
    assert (caught.value.backend, caught.value.primitive) == ("cuda", "dsa.add")


def test_a_backend_may_list_its_own():
    class Backend:
        name = "mine"

        def __init__(self, primitives):
            self.tle_primitives = primitives

    assert tle.is_primitive_supported(Backend(["gpu.alloc"]), tle.gpu.alloc)
    assert not tle.is_primitive_supported(Backend([]), tle.load)
    with pytest.raises(TypeError, match="must be a list of strings"):
        tle.get_supported_primitives(Backend("load"))
    with pytest.raises(TypeError, match="must be a list of strings"):
        tle.get_supported_primitives(Backend([tle.load]))
