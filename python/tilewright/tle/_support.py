"""Which primitives of TLE there are, and which of them a backend has: for libraries that go another way where one is missing."""

from ..language._marker import NotSupportedYet

#: The primitives of the reference by name: a function, or a function and what is called on its result.
TLE_PRIMITIVES = (
    "load",
    "concat_dot_fragments",
    "cumsum",
    "extract_tile",
    "insert_tile",
    "range",
    "pipe",
    "pipe.writer",
    "pipe.writer.acquire",
    "pipe.writer.close",
    "pipe.writer.commit",
    "pipe.writer.cursor",
    "pipe.reader",
    "pipe.reader.release",
    "pipe.reader.wait",
    "device_mesh",
    "shard_id",
    "sharding",
    "make_sharded_tensor",
    "reshard",
    "remote",
    "distributed_barrier",
    "distributed_dot",
    "signal",
    "signal_wait",
    "n_pes",
    "gpu.alloc",
    "gpu.alloc_barrier",
    "gpu.alloc_barriers",
    "gpu.async_commit_group",
    "gpu.async_wait_group",
    "gpu.barrier_arrive",
    "gpu.barrier_wait",
    "gpu.buffered_tensor.extract_tile",
    "gpu.buffered_tensor.insert_tile",
    "gpu.buffered_tensor.load",
    "gpu.buffered_tensor.reshape",
    "gpu.buffered_tensor.slot",
    "gpu.buffered_tensor.store",
    "gpu.buffered_tensor.subslice",
    "gpu.copy",
    "gpu.local_ptr",
    "gpu.memory_space",
    "gpu.pipeline",
    "gpu.rematerialize_index",
    "gpu.set_layout",
    "gpu.warp_specialize",
    "gpu.wgmma",
    "gpu.wgmma_wait",
    "dsa.add",
    "dsa.alloc",
    "dsa.copy",
    "dsa.cumsum",
    "dsa.div",
    "dsa.extract_element",
    "dsa.extract_slice",
    "dsa.extract_tile",
    "dsa.hint",
    "dsa.insert_slice",
    "dsa.insert_tile",
    "dsa.local_ptr",
    "dsa.max",
    "dsa.memory_space",
    "dsa.min",
    "dsa.mul",
    "dsa.parallel",
    "dsa.pipeline",
    "dsa.sub",
    "dsa.subview",
    "dsa.to_buffer",
    "dsa.to_tensor",
    "raw.call",
    "raw.call_smem",
)

# Backends that run kernels, with what of the names that are there they lack.
_BACKENDS = {"cpu": "", "cuda": "dsa."}


class TLEUnsupportedPrimitiveError(NotImplementedError):
    """A backend lacks a primitive; ``backend`` and ``primitive`` name them."""

    def __init__(self, backend, primitive):
        super().__init__(f"the backend {backend} does not support tle.{primitive}")
        self.backend = backend
        self.primitive = primitive


def primitive_name(x):
    """The name of a primitive, given it or its name (``tle.load`` and ``"tle.load"`` are ``"load"``).

    :raises ValueError: the reference has no such primitive.
    """
    if isinstance(x, str):
        name = x
        for prefix in ("triton.", "tilewright.", "experimental.", "tle.", "language."):
            name = name.removeprefix(prefix)
        name = name.replace("core.", "")
    else:
        module = getattr(x, "__module__", "").partition(".")[2].removeprefix("experimental.")
        path = f"{module}.{getattr(x, '__qualname__', '')}".removeprefix("tle.")
        # What stands in `tle.distributed` and in the files of pipes and tiles is in `tle`, too.
        name = (
            path.removeprefix("language.")
            .removeprefix("distributed.")
            .removeprefix("_pipe.")
            .removeprefix("_standard.")
            .removeprefix("_tile.")
        )
        name = name.replace("pipe_value.", "pipe.")
        for end in ("writer", "reader"):
            name = name.replace(f"pipe_{end}.", f"pipe.{end}.")
    if name not in TLE_PRIMITIVES:
        raise ValueError(f"{x!r} is no primitive of TLE")
    return name


def _name_of(backend):
    if isinstance(backend, str):
        return backend
    return getattr(backend, "backend", None) or getattr(backend, "name", None) or type(backend).__name__


def get_supported_primitives(backend):
    """The names of the primitives that a backend has: ``"cpu"``, ``"cuda"``, a ``GPUTarget``, or what lists its own as ``tle_primitives``.

    :raises TypeError: its own list is no list of strings.
    """
    own = getattr(backend, "tle_primitives", None)
    if own is not None:
        if not isinstance(own, list) or not all(isinstance(name, str) for name in own):
            raise TypeError(
                f"the primitives of the backend {_name_of(backend)} must be a list of strings, not {own!r}"
            )
        return list(own)
    lacks = _BACKENDS.get(_name_of(backend))
    if lacks is None:
        return []
    return [name for name in TLE_PRIMITIVES if _is_there(name) and not (lacks and name.startswith(lacks))]


def _is_there(name):
    from tilewright import tle

    found = tle
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None or isinstance(found, NotSupportedYet):
            return False
    return True


def is_primitive_supported(backend, x):
    """Whether a backend has a primitive."""
    return primitive_name(x) in get_supported_primitives(backend)


def require_tle(backend, x):
    """Checks that a backend has a primitive.

    :raises TLEUnsupportedPrimitiveError: it has not.
    """
    if not is_primitive_supported(backend, x):
        raise TLEUnsupportedPrimitiveError(_name_of(backend), primitive_name(x))
