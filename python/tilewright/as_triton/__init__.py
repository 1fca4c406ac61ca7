"""Tilewright under Triton's name: after ``import tilewright.as_triton``, ``import triton`` and everything below it gives Tilewright.

``triton.language`` is ``tilewright.language``, the same module, and so on: nothing is imported twice, and what is pickled names
Tilewright. It makes no difference whether Triton is installed. ``triton.__version__`` and the metadata that
``importlib.metadata`` finds say the version of Triton whose behaviour we have. Three ways lead here::

    python -m tilewright.as_triton program.py     # or -m module, or -c text
    import tilewright.as_triton                   # before the first `import triton`
    TILEWRIGHT_AS_TRITON=1 python program.py      # where Tilewright is installed

What Triton has and Tilewright has not is a ``ModuleNotFoundError`` or an ``AttributeError`` that says so.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import tilewright

__all__ = ["TRITON_VERSION", "install"]

#: The version of Triton that ``triton.__version__`` says.
TRITON_VERSION = "3.6.0"

# Modules that have nothing to do with Triton.
_OURS = ("tilewright.as_triton", "tilewright._tilewright", "tilewright.__main__")


class _Triton(ModuleType):
    """The module ``triton``: what the package ``tilewright`` has, and Triton's version."""

    def __init__(self):
        super().__init__("triton", tilewright.__doc__)
        public = {name: value for name, value in vars(tilewright).items() if not name.startswith("__")}
        vars(self).update(public, __version__=TRITON_VERSION, __all__=list(tilewright.__all__))
        self.__file__ = tilewright.__file__
        self.__path__ = tilewright.__path__

    def __getattr__(self, name: str):
        try:
            # A program that has `triton` has its native half, too.
            return importlib.import_module("triton._C") if name == "_C" else getattr(tilewright, name)
        except AttributeError:
            raise AttributeError(_unsupported(f"triton.{name}")) from None

    def __dir__(self):
        return sorted({*vars(self), *dir(tilewright), *tilewright.__all__})


class _Root:
    """Loads ``triton`` itself."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Triton()

    def exec_module(self, module: ModuleType) -> None:
        _bind_loaded()


class _Same:
    """Loads a module below ``triton``: ours, as it is."""

    def __init__(self, module: ModuleType):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the other name's in its place.
        module.__spec__ = self._spec
        _bind_loaded()


class _Finder:
    """Answers for ``triton`` in front of all other finders."""

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        package, dot, rest = name.partition(".")
        if package != "triton":
            return None
        if not dot:
            spec = ModuleSpec(name, _Root(), origin=tilewright.__file__, is_package=True)
            spec.submodule_search_locations = list(tilewright.__path__)
            return spec
        try:
            module = importlib.import_module(f"tilewright.{rest}")
        except ModuleNotFoundError as error:
            if error.name is None or not f"tilewright.{rest}.".startswith(f"{error.name}."):
                raise
            # Who only asks whether it is there, by importlib.util.find_spec, is told that it is not.
            if sys._getframe(2).f_globals.get("__name__") == "importlib.util":
                return None
            raise ModuleNotFoundError(_unsupported(name), name=name) from None
        origin = getattr(module, "__file__", None)
        return ModuleSpec(name, _Same(module), origin=origin, is_package=hasattr(module, "__path__"))

    def find_distributions(self, context=None):
        """The metadata of a package `triton`, for ``importlib.metadata``."""
        from importlib.metadata import Distribution, DistributionFinder

        context = DistributionFinder.Context() if context is None else context
        if context.name is not None and context.name.lower() != "triton":
            return []

        class Metadata(Distribution):
            def read_text(self, filename):
                texts = {
                    "METADATA": f"Metadata-Version: 2.1\nName: triton\nVersion: {TRITON_VERSION}\n"
                    "Summary: Tilewright, under Triton's name\n",
                    "top_level.txt": "triton\n",
                }
                return texts.get(filename)

            def locate_file(self, path):
                from pathlib import Path

                return Path(tilewright.__path__[0]).parent / path

        return [Metadata()]

    def invalidate_caches(self) -> None:
        """Nothing is kept."""


def _unsupported(name: str) -> str:
    return f"not supported yet: {name} (`triton` is Tilewright {tilewright.__version__} here)"


def _bind_loaded() -> None:
    """Gives our loaded modules their names below ``triton``, so that importing them there finds them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tilewright.") and not name.startswith(_OURS):
            other = f"triton{name.removeprefix('tilewright')}"
            if sys.modules.get(other) is not module:
                sys.modules[other] = module
                _rename(module, other)
                _explain_missing(module, other)


def _rename(module: ModuleType, name: str) -> None:
    """Has the language's functions say that they are Triton's: PyTorch writes imports into programs by what they say."""
    from tilewright.language._marker import ConstexprFunction, _LanguageFunction
    from tilewright.language.core import constexpr

    for value in list(vars(module).values()):
        if isinstance(value, (ConstexprFunction, _LanguageFunction)) or value is constexpr:
            if value.__module__ == module.__name__:
                value.__module__ = name


def _explain_missing(module: ModuleType, name: str) -> None:
    def missing(attribute: str):
        raise AttributeError(_unsupported(f"{name}.{attribute}"))

    vars(module).setdefault("__getattr__", missing)


def install() -> None:
    """Has ``import triton`` give Tilewright from now on, in the processes that this one starts too.

    :raises ImportError: another package has been imported as ``triton`` already.
    """
    os.environ["TILEWRIGHT_AS_TRITON"] = "1"
    # TorchInductor's workers hand compiled kernels over as pickles, which ours are not yet.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    there = sys.modules.get("triton")
    if there is tilewright:
        del sys.modules["triton"]
    elif there is not None:
        raise ImportError(
            f"triton has been imported already, from {getattr(there, '__file__', '?')}: put `import tilewright.as_triton` in front of "
            "everything that imports it, or run `python -m tilewright.as_triton program.py`",
            name="triton",
        )
    sys.meta_path.insert(0, _Finder())


install()
