"""Random kernels, run on two backends and compared: ``python tests/random_kernels --help``.

``program.py`` is a kernel as a tree of lines, ``generator.py`` and ``operations.py`` make one from a seed (``products.py`` and ``wide.py``
others), ``compare.py`` runs it,
``shrink.py`` removes lines while it still fails, ``command.py`` does so for many at once.
"""
