"""The drop-in: programs that import ``triton`` get Tilewright. Each program runs in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

KERNEL = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def fill(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, i + triton.cdiv(7, 2))


def filled():
    x = np.zeros(4, np.int32)
    fill[(1,)](x, 4)
    return x.tolist()
"""


def run(*arguments, env=None, cwd=None, status=0):
    """What a Python process prints; its words on standard error where it should fail."""
    environment = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_AS_TRITON"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**environment, "TILEWRIGHT_BACKEND": "interp", **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def program(text):
    """Runs text with the hook in place."""
    return run("-c", f"import tilewright.as_triton\n{textwrap.dedent(text)}")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(f"import sys\n{KERNEL}\nprint(__name__, sys.argv[1:], sys.path[0], filled())\n")
    return path


def test_runs_a_program(script, tmp_path):
    expected = f"__main__ ['a', '-b'] {tmp_path} [4, 5, 6, 7]\n"
    assert run("-m", "tilewright.as_triton", script, "a", "-b") == expected


def test_runs_a_module_a_folder_and_text(script, tmp_path):
    (tmp_path / "__main__.py").write_text("import triton, sys; print(triton.__version__, sys.argv)")
    assert run("-m", "tilewright.as_triton", tmp_path) == f"3.6.0 ['{tmp_path}']\n"
    of_module = run("-m", "tilewright.as_triton", "-m", "program", "a", cwd=tmp_path)
    assert of_module == f"__main__ ['a'] {tmp_path} [4, 5, 6, 7]\n"
    text = "import sys, triton; print(triton.__version__, sys.argv)"
    assert run("-m", "tilewright.as_triton", "-c", text, "a") == "3.6.0 ['-c', 'a']\n"


def test_a_program_ends_as_it_would(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import triton\nraise SystemExit(7)")
    run("-m", "tilewright.as_triton", path, status=7)
    assert "no file" in run("-m", "tilewright.as_triton", tmp_path / "none.py", status=2)
    assert "no option -x" in run("-m", "tilewright.as_triton", "-x", status=2)
    assert "usage" in run("-m", "tilewright.as_triton", status=2)


def test_the_environment_switch(script):
    line = os.path.join(os.path.dirname(__file__), "../../python/wheel.data/purelib/tilewright_as_triton.pth")
    with open(line) as file:
        switch = file.read()
    text = f"{switch}\nimport sys; print('tilewright' in sys.modules)"
    assert run("-c", text) == "False\n"
    assert run("-c", text, env={"TILEWRIGHT_AS_TRITON": "0"}) == "False\n"
    assert run("-c", text, env={"TILEWRIGHT_AS_TRITON": "1"}) == "True\n"


def test_processes_that_a_program_starts_inherit_it(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import multiprocessing, sys\nimport triton\n"
        "def version(_): return triton.__version__, 'tilewright' in sys.modules\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(version, [0]))\n"
    )
    assert run("-m", "tilewright.as_triton", path) == "[('3.6.0', True)]\n"


def test_modules_are_the_same():
    text = """
        import importlib, pickle, sys
        import triton, triton.language as tl, triton.language.math, triton.runtime.driver
        import tilewright
        from triton.runtime.driver import driver
        from triton.language.extra import libdevice
        assert tl is tilewright.language and tl.math is tilewright.language.math
        assert libdevice is tilewright.language.extra.libdevice
        assert triton.jit is tilewright.jit and triton.runtime.driver is driver
        assert tl.__name__ == "tilewright.language" and tl.__spec__.name == "tilewright.language"
        assert b"triton.l" not in pickle.dumps(triton.Config({"A": 1}))
        assert importlib.reload(tl.math) is tl.math
        assert set(tilewright.__all__) <= set(dir(triton))
        from triton import *
        assert cdiv is triton.cdiv
        names = [n for n in sys.modules if n.startswith("triton.") and "as_triton" not in n]
        for n in names:
            assert sys.modules[n] is sys.modules["tilewright" + n.removeprefix("triton")]
        print(triton.__name__, triton.__spec__.name, len(names) > 10)
    """
    assert program(text) == "triton triton True\n"


def test_the_package_is_found():
    text = """
        import importlib.metadata as metadata, importlib.util as util
        print(util.find_spec("triton") is not None, util.find_spec("triton.language.math") is not None)
        print(metadata.version("triton"), metadata.distribution("Triton").metadata["Name"])
        print([d.version for d in metadata.distributions() if d.metadata["Name"] == "triton"][0])
        import triton
        print(util.find_spec("triton").name, util.find_spec("triton.nothing_like_it"))
        print(triton.__version__, len(list(triton.__path__)))
    """
    assert program(text).split() == [
        "True",
        "True",
        "3.6.0",
        "triton",
        "3.6.0",
        "triton",
        "None",
        "3.6.0",
        "1",
    ]


def test_what_is_missing_says_so():
    text = """
        import triton, triton.language as tl
        def says(f):
            try:
                f()
            except (ImportError, AttributeError) as error:
                print(type(error).__name__, str(error).split(" (")[0])
        says(lambda: __import__("triton.nothing.at.all"))
        says(lambda: triton.nothing)
        says(lambda: tl.nothing)
        print(hasattr(triton, "nothing"))
    """
    assert program(text).splitlines() == [
        "ModuleNotFoundError not supported yet: triton.nothing",
        "AttributeError not supported yet: triton.nothing",
        "AttributeError not supported yet: triton.language.nothing",
        "False",
    ]


def test_names_that_libraries_take_from_tritons_modules():
    text = """
        from triton.backends.nvidia.driver import libcuda_dirs
        from triton.compiler.compiler import driver, get_cache_invalidating_env_vars
        from triton.runtime.autotuner import PTXASError
        from triton.runtime.jit import compute_cache_key, find_paths_if, get_iterable_path, serialize_specialization_data
        from triton.testing import _summarize_statistics
        print(find_paths_if([1, (2, 3)], lambda path, x: x > 1), get_iterable_path([1, (2, 3)], (1, 1)))
        print(_summarize_statistics([3.0, 1.0, 2.0], None, "median"), isinstance(libcuda_dirs(), list))
        print(serialize_specialization_data("f", {}, {(0,): (1, "x")}, {(1,): "D"}, {"num_warps": 4}, "key"))
    """
    assert program(text).splitlines() == [
        "[(1, 0), (1, 1)] 3",
        "2.0 True",
        '{"name": "f", "signature": {}, "constant_keys": [[0]], "constant_vals": [[1, "x"]], "attrs_keys": [[1]], '
        '"attrs_vals": ["D"], "options": {"num_warps": 4}, "key": "key"}',
    ]


def test_an_installed_triton_makes_no_difference(tmp_path):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/__init__.py").write_text("__version__ = 'the real one'")
    env = {"PYTHONPATH": str(tmp_path)}
    text = "import triton; print(triton.__version__)"
    assert run("-c", text, env=env) == "the real one\n"
    assert run("-c", f"import tilewright.as_triton; {text}", env=env) == "3.6.0\n"
    late = run("-c", "import triton, tilewright.as_triton", env=env, status=1)
    assert "triton has been imported already" in late and str(tmp_path) in late


def test_a_name_bound_by_hand_gives_way():
    text = "import sys, tilewright; sys.modules['triton'] = tilewright; import tilewright.as_triton, triton; print(triton.__version__)"
    assert run("-c", text) == "3.6.0\n"


def test_torch_inductor_finds_what_it_looks_for():
    pytest.importorskip("torch")
    text = """
        import torch, tilewright
        import torch._inductor.runtime.triton_compat as compat
        import torch._inductor.runtime.triton_heuristics, torch._inductor.runtime.triton_helpers
        from torch.utils._triton import has_triton_package, triton_hash_with_backend
        assert compat.HAS_TRITON and compat.CompiledKernel is tilewright.CompiledKernel
        assert compat.ASTSource is not None and compat.libdevice is tilewright.language.extra.libdevice
        assert issubclass(torch._inductor.runtime.triton_heuristics.CachingAutotuner, tilewright.KernelInterface)
        print(has_triton_package(), len(triton_hash_with_backend()))
    """
    assert program(text) == "True 64\n"


INDUCTOR = """
import torch, triton, triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

props = DeviceProperties(type="cuda", index=0, multi_processor_count=132, cc=90, major=9, warp_size=32,
                         regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048)
aligned = {(i,): [["tt.divisibility", 16]] for i in range(3)}
signature = {"in_ptr0": "*bf16", "out_ptr0": "*fp32", "xnumel": "i32", "XBLOCK": "constexpr"}


@triton_heuristics.pointwise(
    size_hints={"x": 1024}, filename=__file__,
    triton_meta={"signature": signature, "device": props, "constants": {}, "configs": [aligned]},
    inductor_meta={"grid_type": "Grid1D", "kernel_name": "triton_poi", "mutated_arg_names": [], "backend_hash": "",
                   "autotune_local_cache": False},
)
@triton.jit
def triton_poi(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    value = tl.load(in_ptr0 + xindex, xmask).to(tl.float32)
    tl.store(out_ptr0 + xindex, triton_helpers.maximum(value, tl.full([1], 0, tl.int32)), xmask)


# There is no GPU: the simulator takes tensors of the CPU.
triton_helpers.set_driver_to_gpu = lambda: None
made = triton_poi._precompile_config(triton_poi.configs[0])
x, y = torch.randn(1024).bfloat16(), torch.zeros(1024)
made.make_launcher()(x, y, 1024, stream=0)
print(torch.equal(y, torch.relu(x.float())), made.kernel.src.signature == signature)
"""


def test_torch_inductor_compiles_and_launches(tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "program.py"
    path.write_text(INDUCTOR)
    env = {"TILEWRIGHT_BACKEND": "ptxsim", "TILEWRIGHT_CUBIN": "0", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    assert run("-m", "tilewright.as_triton", path, env=env).split() == ["True", "True"]


def test_triton_has_its_native_half():
    """PyTorch reads `triton._C.libtriton.ir` without importing it."""
    output = program("""
        import triton
        print(triton._C.libtriton.ir.module("").verify(), triton._C.libtriton.getenv_bool("nothing", True))
        for name in ("passes", "llvm"):
            try:
                getattr(triton._C.libtriton, name)
            except AttributeError as error:
                print(error)
    """)
    assert output.splitlines()[0] == "True True"
    assert output.count("not supported yet: triton._C.libtriton.") == 2


def test_the_languages_functions_say_that_they_are_tritons():
    """PyTorch writes `from triton.language.… import …` and annotations into programs by `__module__`."""
    output = program("""
        import triton, triton.language as tl
        from triton.language.extra.libdevice import fast_dividef
        print(fast_dividef.__module__, tl.load.__module__, tl.constexpr.__module__, repr(tl.float16))
        print(eval(repr(tl.bfloat16)) is tl.bfloat16)
    """)
    assert output.splitlines() == [
        "triton.language.extra.libdevice triton.language.core triton.language.core triton.language.float16",
        "True",
    ]
