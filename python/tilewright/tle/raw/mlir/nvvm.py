"""``nvvm``: the thread's number, the program's, and barriers."""

from ....language import core
from ....language._marker import jit
from ._threads import count, number


@jit
def read_ptx_sreg_tid_x(res=None):
    return number(0)


@jit
def ThreadIdXOp(res=None):
    return number(0)


@jit
def read_ptx_sreg_tid_y(res=None):
    return number(1)


@jit
def ThreadIdYOp(res=None):
    return number(1)


@jit
def read_ptx_sreg_tid_z(res=None):
    return number(2)


@jit
def ThreadIdZOp(res=None):
    return number(2)


@jit
def read_ptx_sreg_ntid_x(res=None):
    return core.full([], count(0), core.int32)


@jit
def BlockDimXOp(res=None):
    return core.full([], count(0), core.int32)


@jit
def read_ptx_sreg_ntid_y(res=None):
    return core.full([], count(1), core.int32)


@jit
def BlockDimYOp(res=None):
    return core.full([], count(1), core.int32)


@jit
def read_ptx_sreg_ntid_z(res=None):
    return core.full([], count(2), core.int32)


@jit
def BlockDimZOp(res=None):
    return core.full([], count(2), core.int32)


@jit
def read_ptx_sreg_ctaid_x(res=None):
    return core.program_id(0)


@jit
def BlockIdXOp(res=None):
    return core.program_id(0)


@jit
def read_ptx_sreg_ctaid_y(res=None):
    return core.program_id(1)


@jit
def BlockIdYOp(res=None):
    return core.program_id(1)


@jit
def read_ptx_sreg_ctaid_z(res=None):
    return core.program_id(2)


@jit
def BlockIdZOp(res=None):
    return core.program_id(2)


@jit
def read_ptx_sreg_nctaid_x(res=None):
    return core.num_programs(0)


@jit
def GridDimXOp(res=None):
    return core.num_programs(0)


@jit
def read_ptx_sreg_nctaid_y(res=None):
    return core.num_programs(1)


@jit
def GridDimYOp(res=None):
    return core.num_programs(1)


@jit
def read_ptx_sreg_nctaid_z(res=None):
    return core.num_programs(2)


@jit
def GridDimZOp(res=None):
    return core.num_programs(2)


@jit
def barrier0():
    core.debug_barrier()


@jit
def Barrier0Op():
    core.debug_barrier()
