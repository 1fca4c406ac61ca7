"""``nvvm``: the thread's number, the program's, and barriers. Of blocks and threads there is one dimension, x."""

from ....language import core
from ....language._marker import jit
from ._threads import count, number


@jit
def read_ptx_sreg_tid_x(res=None):
    return number()


@jit
def ThreadIdXOp(res=None):
    return number()


@jit
def read_ptx_sreg_ntid_x(res=None):
    return core.full([], count(), core.int32)


@jit
def BlockDimXOp(res=None):
    return core.full([], count(), core.int32)


@jit
def read_ptx_sreg_ctaid_x(res=None):
    return core.program_id(0)


@jit
def BlockIdXOp(res=None):
    return core.program_id(0)


@jit
def read_ptx_sreg_nctaid_x(res=None):
    return core.num_programs(0)


@jit
def GridDimXOp(res=None):
    return core.num_programs(0)


@jit
def barrier0():
    core.debug_barrier()


@jit
def Barrier0Op():
    core.debug_barrier()
