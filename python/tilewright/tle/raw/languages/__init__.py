"""The languages of :mod:`tle.raw`, a file each; a new one is a file. Each has:

``NAME``, ``SUFFIX``
    the name in ``dialect(name=…)``, and what files in the language end with;
``OPTIONS``
    the keywords of ``dialect`` that it has of its own, with their defaults;
``IN_REGISTERS``
    whether tensors are handed over in registers where a call says nothing;
``check(options)``
    refuses options that don't go together, where the function is declared;
``compile(function, target)``
    a :class:`~tilewright.tle.raw._function.Code` for a target (``"cuda:90"``).
"""

import importlib
import pkgutil


def names():
    """The languages that there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def find(name):
    """The module of a language.

    :raises ValueError: there is none of this name.
    """
    if name not in names():
        raise ValueError(f"there is no language {name!r} for tle.raw; there are {', '.join(names())}")
    return importlib.import_module(f"{__name__}.{name}")
