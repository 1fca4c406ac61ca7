"""What of a kernel's PTX keeps threads and asynchronous work in order, and what the simulator says without each line of it."""

import re
from collections import Counter

import numpy as np

from tilewright.testing import simulate_ptx, tensor_map

KINDS = (
    "bar.sync",
    "bar.red",
    "bar.warp.sync",
    "barrier.cluster.arrive",
    "barrier.cluster.wait",
    "mbarrier.init",
    "mbarrier.arrive.expect_tx",
    "mbarrier.arrive",
    "mbarrier.expect_tx",
    "mbarrier.try_wait",
    "mbarrier.test_wait",
    "cp.async.mbarrier.arrive",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "cp.async.bulk.wait_group",
    "fence.mbarrier_init",
    "fence.proxy.async",
    "wgmma.fence",
    "wgmma.wait_group",
)
_KIND = re.compile(rf"^\s*(?:@\S+ )?({'|'.join(map(re.escape, KINDS))})\b")
_LOOK = re.compile(r"mbarrier\.(?:try_wait|test_wait)\S* complete,.*")


def kind(line: str) -> str | None:
    """Which of :data:`KINDS` a line of PTX is."""
    found = _KIND.match(line) or re.search(r"(mbarrier\.(?:try_wait|test_wait))\S* complete,", line)
    return found and found.group(1)


def counts(ptx: str) -> dict[str, int]:
    """How many lines there are of each kind."""
    found = Counter(filter(None, map(kind, ptx.splitlines())))
    return {k: found[k] for k in KINDS if k in found}


def removals(ptx: str):
    """The PTX without each line that orders something: the line, and the text. A look at an mbarrier says that its phase is over.

    Left alone are

    - ``fence.mbarrier_init``, of which ``ptxas`` makes no instruction;
    - the ``bar.warp.sync`` before ``tensormap.cp_fenceproxy``, which all lanes run together;
    - the empty group of bulk copies behind ``fence.proxy.tensormap``, which keeps ``ptxas`` from moving copies before it.
    """
    lines = ptx.splitlines()
    for i, line in enumerate(lines):
        match kind(line):
            case None | "mbarrier.init" | "fence.mbarrier_init":
                continue
            case "bar.warp.sync" if "tensormap.cp_fenceproxy" in lines[i + 1]:
                continue
            case "cp.async.bulk.wait_group" if "fence.proxy.tensormap" in lines[i - 2]:
                continue
            case "mbarrier.try_wait" | "mbarrier.test_wait":
                without = _LOOK.sub("setp.eq.u32 complete, 0, 0;", line)
            case _:
                without = ""
        yield line.strip(), "\n".join([*lines[:i], without, *lines[i + 1 :]])


def _number(number: dict, arguments) -> int:
    """What the launch computes from the arguments: an address, an extent or a stride."""
    ((form, of),) = number.items()
    match form:
        case "Argument":
            value = arguments[of["index"]]
            return value.ctypes.data if isinstance(value, np.ndarray) else value
        case "Known":
            return of
        case "Signed" | "Unsigned":
            return _number(of["of"], arguments)
    x, y = (_number(n, arguments) for n in of)
    return {"Sum": x + y, "Difference": x - y, "Product": x * y, "Quotient": int(x / y) if y else 0,
            "Greatest": max(x, y), "Least": min(x, y)}[form]  # fmt: skip


_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")


def _map(param: dict, arguments) -> bytes:
    """The tensor map that a launch makes for a descriptor of the kernel's."""
    array = arguments[param["address"]["Argument"]["index"]]
    shape, strides = ([_number(n, arguments) for n in param[of]] for of in ("shape", "strides"))
    return tensor_map(
        array,
        shape[::-1],
        [n * param["element_bytes"] for n in strides[-2::-1]],
        param["box_dims"][::-1],
        element=_ELEMENTS[param["element"]],
        swizzle=param["swizzle_bytes"],
        nan_fill=param["nan"],
    )


def findings(compiled, ptx: str, arguments, grid: int = 1, seed: int = 0) -> list[dict]:
    """What the simulator reports of a run of this text, on copies of the arrays, with the tensor maps that a launch makes; memory for others
    is given where the kernel wants some."""
    metadata = compiled.metadata
    parameters = len(re.findall(r"\.param ", ptx.split(".entry")[1].split("{")[0]))
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    given += [_map(param, given) for param in metadata.tensor_maps if param["made"]]
    scratch = np.zeros(4096, np.uint8)
    given += [scratch[-scratch.ctypes.data % 128 :]] * (parameters - len(given))
    cluster = tuple(metadata.cluster_dims)
    launch = {"shared": metadata.shared, "cluster": None if cluster == (1, 1, 1) else cluster, "seed": seed}
    threads = 32 * metadata.total_num_warps
    return simulate_ptx(ptx, metadata.name, grid, threads, given, **launch)["findings"]


def reported(compiled, arguments, grid: int = 1) -> list[tuple[str, list[str]]]:
    """Each line that orders something with the kinds of what is reported without it; with all of them nothing is, in whatever order warps run."""
    ptx = compiled.asm["ptx"]
    assert [findings(compiled, ptx, arguments, grid, seed) for seed in range(4)] == [[]] * 4
    without = removals(ptx)
    return [(line, [f["kind"] for f in findings(compiled, text, arguments, grid)]) for line, text in without]
