//! Buffers that programs of a cluster reach of each other (`tle.remote`), and where they wait for each other.
//!
//! A core reaches no local memory of another one. So such a buffer is at home in global memory: in the workspace, where each program of a cluster has a row of it. A pointer to one of
//! its elements leads there, to the program's own row or to that of another one; what takes all of the buffer has a copy in UB, which is brought before and put back behind. Barriers are of all vector
//! cores (`hivm.hir.sync_block`): programs that wait for each other run at once.
//!
//! ```text
//! %a = ttg.local_alloc : () -> !ttg.memdesc<16xf32, ub>                   %h = ttg.local_alloc : () -> !ttg.memdesc<2x16xf32, gm> ; %a = ttg.local_alloc …
//! ttg.local_store %x, %a                                                  ttg.local_store %x, %a ; hivm.hir.store ins(%a) outs(%h[%rank, 0][1, 16])
//! tt.program_barrier cluster                                         =>   hivm.hir.pipe_barrier[<PIPE_ALL>] ; hivm.hir.sync_block[<ALL_VECTOR>, 0 : i16]
//! %p = ttg.remote_ptr (ttg.local_ptr %a[%i]), %member                     %p = ttg.local_ptr %h[%member, %i]
//! ```

use tilewright_ir::dialect::hivm::{self, Pipe};
use tilewright_ir::dialect::{arith, hivm_more, memref, tt, ttg, ttng};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{AttrKind, Builder, Module, Op, Opcode, Type, TypeKind, Value, ascend, launch};

use super::instructions::{load, store};
use super::unsupported;
use super::vectors::Result;

/// The attribute of an allocation in the workspace that all programs of a cluster have in common, with how many these are.
pub(super) const CLUSTER: &str = "cluster";

/// Gives buffers that other programs reach their homes.
///
/// # Errors
/// What is not supported yet.
pub(super) fn run(module: &mut Module) -> Result<()> {
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        let together = |m: &Module, op: Op| {
            ttg::RemotePtr::cast(m, op).is_some()
                || tt::ProgramBarrier::cast(m, op).is_some()
                || ttng::ClusterCtaRank::cast(m, op).is_some()
        };
        let ops = module.all_ops(func.0);
        let Some(&first) = ops.iter().find(|&&op| together(module, op)) else { continue };
        let [members, 1, 1] = launch::programs_of_cluster(module) else {
            return Err(unsupported(module, first, "clusters along more than the first axis of the grid"));
        };
        let entry = module.region_block(func.body(module));
        let Some(begin) = module.first_op(entry) else { continue };
        let mut b = Builder::before(module, begin);
        let block = hivm::GetBlockIdx::build(&mut b, Type::I64).result(b.module);
        let many = b.int(i64::from(members), Type::I64);
        let rank = arith::Remsi::build(&mut b, block, many).result(b.module);
        let rank = arith::Trunci::build(&mut b, rank, Type::I32).out(b.module);
        let mut remote = Remote { m: module, members, rank };
        remote.homes(&ops)?;
        ops.into_iter().try_for_each(|op| remote.meet(op))?;
    }
    Ok(())
}

struct Remote<'m> {
    m: &'m mut Module,
    /// How many programs a cluster has.
    members: u32,
    /// The program's number in its cluster.
    rank: Value,
}

impl Remote<'_> {
    /// Barriers, and the program's number.
    fn meet(&mut self, op: Op) -> Result<()> {
        match self.m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::ProgramBarrier)) => {
                let barrier = tt::ProgramBarrier(op);
                let all = barrier.count(self.m).is_none() && barrier.group(self.m) == 0;
                if !all {
                    return Err(unsupported(self.m, op, "a barrier of some of a cluster's programs"));
                }
                let ty = self.m.int_type(16);
                let flag = self.m.attr(AttrKind::Int(0, ty));
                let mut b = Builder::before(self.m, op);
                hivm::PipeBarrier::build(&mut b, Pipe::All);
                let (mode, pipe) = (hivm_more::SyncBlockMode::AllVector, Some(Pipe::Mte3));
                hivm_more::SyncBlock::build(&mut b, None, mode, Some(flag), None, None, pipe, pipe);
                self.m.erase_op(op);
            }
            Some(Opcode::Ttng(ttng::Kind::ClusterCtaRank)) => {
                let result = self.m.result(op);
                self.m.replace_all_uses(result, self.rank);
                self.m.erase_op(op);
            }
            // (The workspace is there as long as the launch.)
            Some(Opcode::Ttng(ttng::Kind::ClusterArrive | ttng::Kind::ClusterWait)) => self.m.erase_op(op),
            _ => {}
        }
        Ok(())
    }

    /// Gives each buffer that pointers of other programs lead to a home, and has its users go there.
    fn homes(&mut self, ops: &[Op]) -> Result<()> {
        let mut homes: Vec<(Value, Value)> = Vec::new();
        for &op in ops {
            let Some(remote) = ttg::RemotePtr::cast(self.m, op) else { continue };
            let local = self.m.defining_op(remote.src(self.m)).and_then(|d| ttg::LocalPtr::cast(self.m, d));
            let local = local.ok_or_else(|| {
                unsupported(
                    self.m,
                    op,
                    "pointers to another program's buffer that are not made by tle.dsa.local_ptr",
                )
            })?;
            let buffer = local.src(self.m);
            let home = match homes.iter().find(|(b, _)| *b == buffer) {
                Some(&(_, home)) => home,
                None => {
                    let home = self.home(op, buffer)?;
                    homes.push((buffer, home));
                    home
                }
            };
            let there = self.element_of(op, home, remote.rank(self.m), local);
            let result = remote.result(self.m);
            self.m.replace_all_uses(result, there);
            self.m.erase_op(op);
        }
        for (buffer, home) in homes {
            let users: Vec<Op> = self.m.uses(buffer).iter().map(|u| u.op).collect();
            users.into_iter().try_for_each(|user| self.user(user, buffer, home))?;
        }
        Ok(())
    }

    /// The home of a buffer, in front of its allocation: a row for each program.
    fn home(&mut self, at: Op, buffer: Value) -> Result<Value> {
        let alloc = self.m.defining_op(buffer).and_then(|d| ttg::LocalAlloc::cast(self.m, d));
        let of_ub = |m: &Module| match m.type_kind(m.value_type(buffer)) {
            TypeKind::MemDesc { memory_space, .. } => ascend::text(m, *memory_space) == ascend::UB,
            _ => false,
        };
        let alloc = alloc.filter(|alloc| of_ub(self.m) && alloc.src(self.m).is_none()).ok_or_else(|| {
            unsupported(self.m, at, "tle.remote of anything but a buffer that tle.dsa.alloc gave, in UB,")
        })?;
        let mut kind = self.m.type_kind(self.m.value_type(buffer)).clone();
        let space = self.m.attr(AttrKind::Opaque(ascend::GM.into()));
        if let TypeKind::MemDesc { shape, memory_space, .. } = &mut kind {
            *shape = std::iter::once(self.members).chain(shape.iter().copied()).collect();
            *memory_space = space;
        }
        let ty = self.m.ty(kind);
        let home = ttg::LocalAlloc::build(&mut Builder::before(self.m, alloc.0), None, ty);
        let members = self.m.attr(AttrKind::Int(i64::from(self.members), Type::I32));
        self.m.set_attr(home.0, CLUSTER, members);
        Ok(home.result(self.m))
    }

    /// Pointers to elements of the row of a program, as others are to those of the buffer.
    fn element_of(&mut self, op: Op, home: Value, rank: Value, local: ttg::LocalPtr) -> Value {
        let indices = local.indices(self.m).to_vec();
        let ty = self.m.value_type(local.result(self.m));
        let shape = self.m.shape(ty).map(<[u32]>::to_vec);
        let mut b = Builder::before(self.m, op);
        let row = match shape {
            Some(shape) => {
                let tensor = b.module.ty(TypeKind::Tensor {
                    shape: shape.as_slice().into(),
                    element: Type::I32,
                    encoding: None,
                });
                tt::Splat::build(&mut b, rank, tensor).result(b.module)
            }
            None => rank,
        };
        let all: Vec<Value> = std::iter::once(row).chain(indices).collect();
        ttg::LocalPtr::build(&mut b, home, &all, ty).result(b.module)
    }

    /// What uses a buffer goes to its home.
    fn user(&mut self, user: Op, buffer: Value, home: Value) -> Result<()> {
        use ttg::Kind as G;
        let (reads, writes) = match self.m.opcode(user) {
            Some(Opcode::Ttg(G::LocalPtr)) => {
                let there = self.element_of(user, home, self.rank, ttg::LocalPtr(user));
                let result = self.m.result(user);
                self.m.replace_all_uses(result, there);
                self.m.erase_op(user);
                return Ok(());
            }
            Some(Opcode::Ttg(G::LocalLoad | G::CopyLocalToGlobal)) => (true, false),
            Some(Opcode::Ttg(G::LocalStore)) => (false, true),
            // (A part of it may be written.)
            Some(Opcode::Ttg(G::CopyGlobalToLocal)) => (true, true),
            Some(Opcode::Ttg(G::CopyLocal)) => (true, self.m.operands(user)[1] == buffer),
            _ => {
                let what = format!("`{}` of a buffer that other programs reach", self.m.op_name(user));
                return Err(unsupported(self.m, user, what));
            }
        };
        if reads {
            let (own, row) = self.row(user, buffer, home);
            load(&mut Builder::before(self.m, user), row, own, false);
        }
        if let Some(next) = self.m.next_op(user).filter(|_| writes) {
            let (own, row) = self.row(next, buffer, home);
            store(&mut Builder::before(self.m, next), own, row, false, None);
        }
        Ok(())
    }

    /// All of a buffer, and the program's row of its home, with as many dimensions.
    fn row(&mut self, op: Op, buffer: Value, home: Value) -> (Value, Value) {
        let mut kind = self.m.type_kind(self.m.value_type(buffer)).clone();
        let mut extents = vec![1];
        if let TypeKind::MemDesc { shape, .. } = &mut kind {
            extents.extend(shape.iter().copied());
            *shape = extents.as_slice().into();
        }
        let ty = self.m.ty(kind);
        let element = self.m.element_type(ty);
        let row = MemRef { shape: vec![None; extents.len()], element, strided: true, space: &ascend::GLOBAL };
        let row = row.ty(self.m);
        let mut b = Builder::before(self.m, op);
        let own = ttg::MemdescReshape::build(&mut b, buffer, ty).result(b.module);
        let (zero, one) = (b.int(0, Type::INDEX), b.int(1, Type::INDEX));
        let mut offsets = vec![zero; extents.len()];
        offsets[0] = arith::IndexCast::build(&mut b, self.rank, Type::INDEX).out(b.module);
        let sizes: Vec<Value> = extents.iter().map(|&n| b.int(i64::from(n), Type::INDEX)).collect();
        let ones = vec![one; extents.len()];
        let row = memref::Subview::build(&mut b, home, &offsets, &sizes, &ones, None, None, None, row);
        (own, row.result(self.m))
    }
}
