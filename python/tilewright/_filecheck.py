"""Checks of a kernel's ``tt`` IR by comments of FileCheck in its source, as tests of Triton's front end and of dialects have them.

They need the package ``filecheck``, LLVM's tool in Python.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import subprocess
import sys
import tempfile
from pathlib import Path

from .backends.compiler import GPUTarget
from .compiler import ASTSource
from .runtime.jit import JITFunction

__all__ = ["filecheck_test", "run_filecheck", "run_filecheck_test", "run_parser", "stub_target"]

#: For whom the front end works when nobody says so.
stub_target = GPUTarget("cuda", 100, 32)


def run_parser(kernel_fn: JITFunction, args=(), kwargs=None, target: GPUTarget = stub_target):
    """The ``tt`` module that a call with these arguments makes; constants of the kernel have their defaults."""
    bound = inspect.signature(kernel_fn.fn).bind(*args, **(kwargs or {}))
    bound.apply_defaults()
    constants = {(kernel_fn.arg_names.index(name),): value for name, value in bound.arguments.items()}
    source = ASTSource(kernel_fn, dict.fromkeys(bound.arguments, "constexpr"), constants, {})
    return source.make_ir(target, None)


def run_filecheck(name: str, module_str: str, check_template: str) -> None:
    """Holds IR text to a template.

    :raises ValueError: it is another one; the text says where
    """
    if importlib.util.find_spec("filecheck") is None:
        raise ImportError("checks of IR need the package `filecheck`: pip install filecheck")
    with tempfile.TemporaryDirectory() as folder:
        module, template = Path(folder, "module"), Path(folder, "expected")
        module.write_text(module_str)
        template.write_text(check_template)
        command = [sys.executable, "-m", "filecheck", str(template), "--input-file", str(module)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise ValueError(f"{name}: {found.stdout}{found.stderr}\n{module_str}")


def run_filecheck_test(kernel_fn: JITFunction) -> None:
    """Holds the IR of a kernel without arguments to the comments in its source."""
    run_filecheck(kernel_fn.__name__, str(run_parser(kernel_fn)), inspect.getsource(kernel_fn.fn))


def filecheck_test(fn: JITFunction):
    """A test of :func:`run_filecheck_test`, to be put above ``@triton.jit``."""

    @functools.wraps(fn)
    def test_fn():
        run_filecheck_test(fn)

    return test_fn
