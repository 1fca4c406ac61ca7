//! What each operation compiles to.

use std::sync::Arc;

use tilewright_ir::attrs::DefaultTrue;
use tilewright_ir::dialect::{arith, llvm, math, tt, ttg, ttng};
use tilewright_ir::{Attr, AttrKind, FloatKind, Op, Opcode, Type, Value, marks};
use tilewright_libdevice as libdevice;

use super::{Builder, Res, warps_beside};
use crate::elem::Elem;
use crate::exec::inline_asm;
use crate::float::Rounding;
use crate::kernels::{Kernel, cast, float, int, math as mathk, select};
use crate::program::{DotScaled, Instr, Map, Microscaled, Rule, V};
use crate::races::Message;

/// The group of the barrier of a cluster in hardware, of which there is one; those of the language are numbered from 0.
const OF_THE_CLUSTER: i32 = -1;

fn narrow(elem: Elem) -> Option<(FloatKind, Rounding)> {
    match elem {
        Elem::Float(k) if !matches!(k, FloatKind::F32 | FloatKind::F64) => Some((k, Rounding::Nearest)),
        _ => None,
    }
}

fn axis_of(dim: tt::ProgramDim) -> usize {
    match dim {
        tt::ProgramDim::X => 0,
        tt::ProgramDim::Y => 1,
        tt::ProgramDim::Z => 2,
    }
}

impl Builder<'_, '_> {
    /// A barrier: one flow of control needs none, and warps that have each their own wait for each other.
    fn barrier(&mut self, op: Op) -> Res<()> {
        let of_all = self.m.op_attr(op, marks::ALL_WARPS).is_some();
        match warps_beside(self.m).filter(|_| of_all) {
            None => Ok(()),
            // Warps have this one barrier: partitions, which have others, they have none.
            Some(warps) => self.meet(0, warps as usize, true),
        }
    }

    /// A partition comes to a barrier of the hardware, and waits for the others unless it only arrives.
    fn named_barrier(&mut self, op: ttng::NamedBarrier) -> Res<()> {
        let (Some(number), Some(parties)) = (op.number(self.m), op.parties(self.m)) else {
            return Err(self.error("a barrier without a number"));
        };
        self.meet(number as u32, parties as usize, !op.arrives(self.m))
    }

    /// Comes to a barrier where so many flows of control meet, and waits for the others if it `waits`.
    fn meet(&mut self, barrier: u32, parties: usize, waits: bool) -> Res<()> {
        let ty = self.ty(Type::I64)?;
        let phase = self.register(ty);
        self.emit(Instr::NamedArrive { barrier, parties, dst: phase });
        if waits {
            self.emit(Instr::NamedWait { barrier, phase });
        }
        Ok(())
    }

    /// Compiles an operation without regions of control flow.
    pub(super) fn op(&mut self, op: Op) -> Res<()> {
        match self.m.opcode(op) {
            Some(Opcode::Arith(kind)) => self.arith(op, kind),
            Some(Opcode::Math(kind)) => self.math(op, kind),
            Some(Opcode::Tt(kind)) => self.tt(op, kind),
            Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => {
                let src = self.get(ttg::ConvertLayout(op).src(self.m))?;
                self.alias(op, src)
            }
            Some(Opcode::Ttg(ttg::Kind::SetLayout)) => {
                let src = self.get(ttg::SetLayout(op).src(self.m))?;
                self.alias(op, src)
            }
            Some(Opcode::Ttng(ttng::Kind::ClusterCtaRank)) => {
                let dst = self.define(self.m.result(op))?;
                self.emit(Instr::ClusterRank { dst });
                Ok(())
            }
            // A thread that runs a program has nothing to do between its arrival and its wait.
            Some(Opcode::Ttng(ttng::Kind::ClusterArrive)) => Ok(()),
            Some(Opcode::Ttng(ttng::Kind::ClusterWait)) => {
                let (scope, group) = (tt::ProgramScope::Cluster, OF_THE_CLUSTER);
                self.emit(Instr::Barrier { scope, group, count: None });
                Ok(())
            }
            Some(Opcode::Ttng(ttng::Kind::InitBarrier)) => {
                let init = ttng::InitBarrier(op);
                let (at, count) = (self.get(init.alloc(self.m))?, init.count(self.m) as u64);
                let bytes = self.m.int_attr(op, marks::PHASE_BYTES).unwrap_or(0) as u64;
                self.emit(Instr::MbarrierInit { at, count, bytes });
                Ok(())
            }
            Some(Opcode::Ttng(ttng::Kind::BarrierExpect)) => {
                let expect = ttng::BarrierExpect(op);
                let (at, bytes) = (self.get(expect.alloc(self.m))?, expect.size(self.m) as u64);
                if self.m.constant_int(expect.pred(self.m)) != Some(-1) {
                    return Err(self.unsupported("bytes under a condition"));
                }
                self.emit(Instr::MbarrierBring { at, bytes });
                Ok(())
            }
            Some(Opcode::Ttng(ttng::Kind::ArriveBarrier)) => {
                let arrive = ttng::ArriveBarrier(op);
                let (at, count) = (self.get(arrive.alloc(self.m))?, arrive.count(self.m) as u64);
                if arrive.pred(self.m).is_some() || arrive.per_warp(self.m) {
                    return Err(self.unsupported("arrivals under a condition, or of each warp"));
                }
                let rank = arrive.cta(self.m).map(|rank| self.get(rank)).transpose()?;
                self.emit(Instr::MbarrierArrive { at, count, rank });
                Ok(())
            }
            Some(Opcode::Ttng(ttng::Kind::WaitBarrier)) => {
                let wait = ttng::WaitBarrier(op);
                let (at, parity) = (self.get(wait.alloc(self.m))?, self.get(wait.phase(self.m))?);
                if wait.pred(self.m).is_some() {
                    return Err(self.unsupported("waits under a condition"));
                }
                self.emit(Instr::MbarrierWait { at, parity });
                Ok(())
            }
            Some(Opcode::Ttng(ttng::Kind::SameBlock)) => {
                let block = ttng::SameBlock(op);
                let coord = block.coord(self.m).iter().map(|&v| self.get(v)).collect::<Res<_>>()?;
                self.emit(Instr::SameBlock { coord, mask: block.sharing(self.m) as u64 });
                Ok(())
            }
            Some(Opcode::Ttng(ttng::Kind::NamedBarrier)) => self.named_barrier(ttng::NamedBarrier(op)),
            // One program runs on one thread: barriers have nothing to wait for.
            Some(Opcode::Ttg(ttg::Kind::Barrier)) => self.barrier(op),
            Some(Opcode::Ttg(ttg::Kind::WarpId)) => {
                let dst = self.define(self.m.result(op))?;
                self.emit(Instr::WarpId { dst });
                Ok(())
            }
            Some(Opcode::Ttg(kind)) => self.local(op, kind),
            Some(Opcode::Llvm(llvm::Kind::Assume)) => {
                let condition = self.get(llvm::Assume(op).cond(self.m))?;
                let message = "what `tl.assume` promises does not hold".to_string();
                self.emit(Instr::Assert { condition, message });
                Ok(())
            }
            _ => Err(self.unsupported(format!("`{}`", self.m.op_name(op)))),
        }
    }

    /// The result has the operand's register form: copy it over.
    fn alias(&mut self, op: Op, src: V) -> Res<()> {
        let dst = self.define(self.m.result(op))?;
        if self.tile(src).len != self.tile(dst).len || self.elem(src).reg_size() != self.elem(dst).reg_size()
        {
            return Err(self.unsupported(format!("`{}` between these types", self.m.op_name(op))));
        }
        self.moves(&[src], &[dst])
    }

    /// Emits an elementwise operation; a missing kernel is an error that names the element type.
    fn map(&mut self, op: Op, kernel: Option<Kernel>, srcs: &[Value], rule: Rule) -> Res<()> {
        let srcs = self.get_all(srcs)?;
        let dst = self.define(self.m.result(op))?;
        let round = narrow(self.elem(dst));
        self.map_to(op, kernel, srcs, None, dst, round, rule)
    }

    fn map_to(
        &mut self,
        op: Op,
        kernel: Option<Kernel>,
        srcs: Vec<V>,
        imm: Option<u64>,
        dst: V,
        round: Option<(FloatKind, Rounding)>,
        rule: Rule,
    ) -> Res<()> {
        let Some(kernel) = kernel else {
            let elem = srcs.first().map_or("no operands", |&v| self.elem(v).name());
            return Err(self.unsupported(format!("`{}` on {elem}", self.m.op_name(op))));
        };
        let len = self.tile(dst).len;
        // A scalar condition may choose between tensors; everything else is element by element.
        let mismatched = srcs
            .iter()
            .any(|&v| self.tile(v).len != len && !(rule == Rule::Select && self.tile(v).shape.is_empty()));
        if mismatched {
            return Err(self.error(format!("`{}` on operands of different shapes", self.m.op_name(op))));
        }
        let divides = matches!(self.m.opcode(op), Some(Opcode::Arith(kind)) if int::divides(kind));
        self.emit(Instr::Map(Box::new(Map { kernel, srcs, imm, dst, round, rule, divides })));
        Ok(())
    }

    fn arith(&mut self, op: Op, kind: arith::Kind) -> Res<()> {
        use arith::Kind as K;
        let m = self.m;
        let operands = m.operands(op);
        let elem = match operands.first() {
            Some(&v) => self.get(v).map(|v| self.elem(v))?,
            None => Elem::I32,
        };
        let result = self.ty(m.value_type(m.result(op)))?;
        let to = self.program.types[result as usize].elem;
        match kind {
            K::Constant => self.constant(op),
            K::Cmpi => {
                let predicate = arith::Cmpi(op).predicate(m);
                self.map(op, int::compare(predicate, elem), operands, Rule::Compare(predicate))
            }
            K::Cmpf => {
                let predicate = arith::Cmpf(op).predicate(m);
                self.map(op, float::compare(predicate, elem), operands, Rule::Loop)
            }
            K::Select => self.map_exact(op, Some(select(to.reg_size())), operands, Rule::Select),
            K::Negf => self.map(op, float::negate(elem), operands, Rule::Loop),
            K::Extsi | K::Trunci | K::IndexCast => {
                self.map(op, cast::integer(elem, to, true), operands, Rule::IntCast(true))
            }
            K::Extui => self.map(op, cast::integer(elem, to, false), operands, Rule::IntCast(false)),
            K::Extf | K::Truncf => self.convert_float(op, operands[0], Rounding::Nearest),
            K::Sitofp => self.map(op, cast::int_to_float(elem, to, true), operands, Rule::Loop),
            K::Uitofp => self.map(op, cast::int_to_float(elem, to, false), operands, Rule::Loop),
            K::Fptosi => self.map(op, cast::float_to_int(elem, to, true), operands, Rule::Loop),
            K::Fptoui => self.map(op, cast::float_to_int(elem, to, false), operands, Rule::Loop),
            K::Bitcast => self.bitcast(op, operands[0]),
            K::Addf | K::Subf | K::Mulf | K::Divf | K::Remf => {
                self.map(op, float::binary(kind, elem), operands, Rule::Loop)
            }
            // One of the operands: there is nothing to round, and an infinity stays one.
            K::Minimumf | K::Maximumf | K::Minnumf | K::Maxnumf => {
                self.map_exact(op, float::binary(kind, elem), operands, Rule::Loop)
            }
            _ => {
                let rule = match kind {
                    _ if elem == Elem::I1 => match kind {
                        K::Andi | K::Muli => Rule::And,
                        _ => Rule::Loop,
                    },
                    K::Addi => Rule::Add,
                    K::Subi => Rule::Sub,
                    K::Muli => Rule::Mul,
                    K::Shli => Rule::Shl,
                    K::Divsi | K::Divui | K::Floordivsi => Rule::Div,
                    K::Remsi | K::Remui => Rule::Rem,
                    K::Minsi => Rule::MinMax(false),
                    K::Maxsi => Rule::MinMax(true),
                    _ => Rule::Loop,
                };
                self.map(op, int::binary(kind, elem), operands, rule)
            }
        }
    }

    /// An elementwise operation that moves values without computing: nothing to round.
    fn map_exact(&mut self, op: Op, kernel: Option<Kernel>, srcs: &[Value], rule: Rule) -> Res<()> {
        let srcs = self.get_all(srcs)?;
        let dst = self.define(self.m.result(op))?;
        self.map_to(op, kernel, srcs, None, dst, None, rule)
    }

    fn convert_float(&mut self, op: Op, src: Value, rounding: Rounding) -> Res<()> {
        let src = self.get(src)?;
        let (from, to) = (self.elem(src), self.ty(self.m.value_type(self.m.result(op)))?);
        let to = self.program.types[to as usize].elem;
        let round = match (from, to) {
            (Elem::Float(f), Elem::Float(t)) if from == to || is_subset(f, t) => None,
            (_, Elem::Float(t)) => Some((t, rounding)),
            _ => return Err(self.unsupported(format!("`{}` on {}", self.m.op_name(op), from.name()))),
        };
        if round.is_none() && from.is_f32_class() == to.is_f32_class() {
            return self.alias(op, src);
        }
        let dst = self.define(self.m.result(op))?;
        let kernel = match (from, round) {
            (Elem::Float(FloatKind::F64), Some((_, Rounding::Zero))) => Some(cast::truncate_to_f32()),
            _ => cast::float_to_float(from, to),
        };
        // f64 to f32 rounds in the loop itself.
        let round = round.filter(|&(k, _)| !matches!(k, FloatKind::F32 | FloatKind::F64));
        self.map_to(op, kernel, vec![src], None, dst, round, Rule::Loop)
    }

    fn bitcast(&mut self, op: Op, src: Value) -> Res<()> {
        let src = self.get(src)?;
        let from = self.elem(src);
        if self.m.is_symmetric_pointer(self.m.value_type(self.m.result(op))) {
            return Err(self.unsupported("ranks that NVSHMEM reaches"));
        }
        let to = self.ty(self.m.value_type(self.m.result(op)))?;
        let to = self.program.types[to as usize].elem;
        if from.mem_size() != to.mem_size() || (from == Elem::I1) != (to == Elem::I1) {
            return Err(self.unsupported(format!("a bit cast from {} to {}", from.name(), to.name())));
        }
        let (encode, decode) = (cast::to_memory(from), cast::from_memory(to));
        match (encode, decode) {
            _ if from == to => self.alias(op, src),
            // Scalars and splats are kept widened, integers with their sign: here the bits must be widened anew.
            (None, None) if matches!(from, Elem::Float(_)) && to == Elem::I32 => {
                let dst = self.define(self.m.result(op))?;
                self.map_to(op, cast::integer(to, to, true), vec![src], None, dst, None, Rule::Loop)
            }
            (None, None) => self.alias(op, src),
            (Some(kernel), None) | (None, Some(kernel)) => {
                let dst = self.define(self.m.result(op))?;
                self.map_to(op, Some(kernel), vec![src], None, dst, None, Rule::Loop)
            }
            (Some(encode), Some(decode)) => {
                let dst = self.define(self.m.result(op))?;
                let mut bits = self.tile(src).clone();
                bits.elem = if from.mem_size() == 1 { Elem::I8 } else { Elem::I16 };
                let ty = self.program.types.len() as u32;
                self.program.types.push(bits);
                let between = self.register(ty);
                self.map_to(op, Some(encode), vec![src], None, between, None, Rule::Loop)?;
                self.map_to(op, Some(decode), vec![between], None, dst, None, Rule::Loop)
            }
        }
    }

    fn constant(&mut self, op: Op) -> Res<()> {
        let dst = self.define(self.m.result(op))?;
        let attr = arith::Constant(op).value(self.m);
        let elem = self.elem(dst);
        match self.m.attr_kind(attr) {
            AttrKind::Dense(elements, _) => {
                if elements.len() != self.tile(dst).len {
                    return Err(self.error("the constant's number of elements differs from its type's"));
                }
                let size = elem.reg_size();
                let mut data = Vec::with_capacity(elements.len() * size);
                for &e in elements {
                    data.extend_from_slice(&self.constant_bits(e, elem)?.to_le_bytes()[..size]);
                }
                self.emit(Instr::Dense { dst, data: Arc::from(data) });
            }
            &AttrKind::Splat(inner, _) => {
                let bits = self.constant_bits(inner, elem)?;
                self.emit(Instr::Const { dst, bits });
            }
            _ => {
                let bits = self.constant_bits(attr, elem)?;
                self.emit(Instr::Const { dst, bits });
            }
        }
        Ok(())
    }

    fn constant_bits(&self, attr: Attr, elem: Elem) -> Res<u64> {
        match (self.m.attr_kind(attr), elem) {
            (AttrKind::Int(v, _), e) if !matches!(e, Elem::Float(_)) => Ok(e.canonical(*v as u64)),
            (AttrKind::Bool(v), e) if e.is_int() => Ok(e.canonical(u64::from(*v).wrapping_neg())),
            (AttrKind::Float(v, _), Elem::Float(FloatKind::F64)) => Ok(v.value().to_bits()),
            (AttrKind::Float(v, _), Elem::Float(_)) => Ok(u64::from((v.value() as f32).to_bits())),
            _ => Err(self.error("a constant whose value is not of its element type")),
        }
    }

    fn math(&mut self, op: Op, kind: math::Kind) -> Res<()> {
        let operands = self.m.operands(op);
        let elem = self.get(operands[0]).map(|v| self.elem(v))?;
        let kernel = match kind {
            math::Kind::Absi => int::abs(elem),
            math::Kind::Fma => float::fma(elem),
            _ => mathk::unary(kind, elem),
        };
        match kind {
            math::Kind::Absf => self.map_exact(op, kernel, operands, Rule::Loop),
            _ => self.map(op, kernel, operands, Rule::Loop),
        }
    }

    fn tt(&mut self, op: Op, kind: tt::Kind) -> Res<()> {
        use tt::Kind as K;
        let m = self.m;
        match kind {
            K::GetProgramId => {
                let dst = self.define(m.result(op))?;
                self.emit(Instr::ProgramId { dst, axis: axis_of(tt::GetProgramId(op).axis(m)) });
            }
            K::GetNumPrograms => {
                let dst = self.define(m.result(op))?;
                self.emit(Instr::NumPrograms { dst, axis: axis_of(tt::GetNumPrograms(op).axis(m)) });
            }
            K::Load => self.load(op)?,
            K::Store => {
                let s = tt::Store(op);
                let (ptr, value) = (self.get(s.ptr(m))?, self.get(s.value(m))?);
                let mask = s.mask(m).map(|v| self.get(v)).transpose()?;
                self.emit(Instr::Store { ptr, value, mask });
            }
            K::Addptr => self.addptr(op)?,
            K::IntToPtr | K::PtrToInt => self.pointer_to_integer(op)?,
            K::Bitcast => self.bitcast(op, m.operands(op)[0])?,
            K::FpToFp => self.fp_to_fp(op)?,
            K::Clampf => {
                let c = tt::Clampf(op);
                let elem = self.get(c.x(m)).map(|v| self.elem(v))?;
                self.map_exact(op, float::clamp(elem, c.propagate_nan(m)), m.operands(op), Rule::Loop)?;
            }
            K::PreciseSqrt => {
                let elem = self.get(m.operands(op)[0]).map(|v| self.elem(v))?;
                self.map(op, mathk::unary(math::Kind::Sqrt, elem), m.operands(op), Rule::Loop)?;
            }
            K::PreciseDivf => {
                let elem = self.get(m.operands(op)[0]).map(|v| self.elem(v))?;
                self.map(op, float::binary(arith::Kind::Divf, elem), m.operands(op), Rule::Loop)?;
            }
            K::Mulhiui => {
                let elem = self.get(m.operands(op)[0]).map(|v| self.elem(v))?;
                self.map(op, int::mulhi_unsigned(elem), m.operands(op), Rule::Loop)?;
            }
            K::Dot => self.dot(op)?,
            K::DotScaled => self.dot_scaled(op)?,
            K::Reduce => self.reduce(op)?,
            K::Scan => self.scan(op)?,
            K::MapElementwise => self.map_elementwise(op)?,
            K::ProgramBarrier => {
                let barrier = tt::ProgramBarrier(op);
                let count = barrier.count(m).map(|v| self.get(v)).transpose()?;
                let (scope, group) = (barrier.scope(m), barrier.group(m));
                self.emit(Instr::Barrier { scope, group, count });
            }
            K::WaitSignal => {
                let wait = tt::WaitSignal(op);
                let (ptr, value) = (self.get(wait.ptr(m))?, self.get(wait.value(m))?);
                let dst = self.define(wait.result(m))?;
                self.emit(Instr::WaitSignal { ptr, value, dst, flagged: wait.flagged(m) });
            }
            K::AtomicRmw => self.atomic_rmw(op)?,
            K::AtomicCas => {
                let a = tt::AtomicCas(op);
                let (ptr, cmp, val) = (self.get(a.ptr(m))?, self.get(a.cmp(m))?, self.get(a.val(m))?);
                let dst = self.define(m.result(op))?;
                self.emit(Instr::AtomicCas { ptr, cmp, val, dst, message: message(a.sem(m), a.scope(m)) });
            }
            K::ExternElementwise => self.extern_elementwise(op)?,
            K::ElementwiseInlineAsm => self.inline_asm(op)?,
            K::Print => {
                let p = tt::Print(op);
                let args = self.get_all(p.args(m))?;
                let signed = p.is_signed(m).iter().map(|&s| s != 0).collect();
                self.emit(Instr::Print { prefix: p.prefix(m), args, hex: p.hex(m), signed });
            }
            K::RawCall => {
                let language = tt::RawCall(op).language(m).keyword();
                return Err(self.unsupported(format!(
                    "`tt.raw_call` of {language} code, which the simulator and a GPU run"
                )));
            }
            K::Assert => self.assert(op)?,
            K::Func | K::Return | K::Call | K::ReduceReturn | K::ScanReturn | K::MapElementwiseReturn => {
                return Err(self.error(format!("`{}` where it can't stand", m.op_name(op))));
            }
            _ => match self.shape(op, kind)? {
                Some(shape) => {
                    self.emit(Instr::Tile(shape));
                }
                None => return Err(self.unsupported(format!("`{}`", m.op_name(op)))),
            },
        }
        Ok(())
    }

    fn load(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let l = tt::Load(op);
        let ptr = self.get(l.ptr(m))?;
        let mask = l.mask(m).map(|v| self.get(v)).transpose()?;
        let other = l.other(m).map(|v| self.get(v)).transpose()?;
        let dst = self.define(l.result(m))?;
        self.emit(Instr::Load { ptr, mask, other, dst, volatile: l.is_volatile(m) });
        Ok(())
    }

    fn addptr(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let a = tt::Addptr(op);
        let (ptr, offset) = (self.get(a.ptr(m))?, self.get(a.offset(m))?);
        let size = m
            .pointee_type(m.value_type(a.ptr(m)))
            .and_then(|t| Elem::of(m, t))
            .ok_or_else(|| self.unsupported("pointers to this type"))?
            .mem_size();
        let kernel = int::add_ptr(self.elem(offset));
        let dst = self.define(m.result(op))?;
        self.map_to(op, kernel, vec![ptr, offset], Some(size as u64), dst, None, Rule::AddPtr)?;
        Ok(())
    }

    fn pointer_to_integer(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let src = m.operands(op)[0];
        let from = self.get(src).map(|v| self.elem(v))?;
        let to = self.ty(m.value_type(m.result(op)))?;
        let to = self.program.types[to as usize].elem;
        let as_int = |e| if e == Elem::Ptr { Elem::I64 } else { e };
        // An address is unsigned: a narrower integer is zero-extended.
        let kernel = cast::integer(as_int(from), as_int(to), false);
        self.map(op, kernel, &[src], Rule::IntCast(false))?;
        Ok(())
    }

    fn fp_to_fp(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let f = tt::FpToFp(op);
        let rounding = match f.rounding(m) {
            Some(tt::RoundingMode::Rtz) => Rounding::Zero,
            _ => Rounding::Nearest,
        };
        self.convert_float(op, f.src(m), rounding)?;
        Ok(())
    }

    fn reduce(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let r = tt::Reduce(op);
        let srcs = self.get_all(r.srcs(m))?;
        let axis = self.checked_axis(r.axis(m), &srcs)?;
        let combine = self.combine(r.combine(m), 2 * srcs.len(), srcs.len())?;
        let dsts = m.results(op).iter().map(|&v| self.define(v)).collect::<Res<_>>()?;
        self.emit(Instr::Reduce { srcs, dsts, axis, combine });
        Ok(())
    }

    fn scan(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let s = tt::Scan(op);
        let srcs = self.get_all(s.srcs(m))?;
        let axis = self.checked_axis(s.axis(m), &srcs)?;
        let combine = self.combine(s.combine(m), 2 * srcs.len(), srcs.len())?;
        let dsts = m.results(op).iter().map(|&v| self.define(v)).collect::<Res<_>>()?;
        self.emit(Instr::Scan { srcs, dsts, axis, reverse: s.reverse(m), combine });
        Ok(())
    }

    /// Inline assembly is PTX, which the simulator runs.
    fn inline_asm(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let a = tt::ElementwiseInlineAsm(op);
        let srcs = self.get_all(a.args(m))?;
        let pack = usize::try_from(a.packed_element(m)).ok().filter(|n| (1..=64).contains(n));
        let pack = pack.ok_or_else(|| self.error("inline assembly takes 1 to 64 packed elements"))?;
        let dsts: Vec<V> = m.results(op).iter().map(|&v| self.define(v)).collect::<Res<_>>()?;
        let words = |s: &Self, vs: &[V]| -> Res<Vec<u32>> {
            let mut out = Vec::new();
            for &v in vs {
                let bits = s.elem(v).bits();
                let per_word = inline_asm::per_word(bits, pack);
                if !pack.is_multiple_of(per_word) || (per_word > 1 && bits == 1) {
                    return Err(s.error(format!(
                        "inline assembly: {pack} elements of {bits} bits do not fill registers"
                    )));
                }
                out.extend(std::iter::repeat_n(bits * per_word as u32, pack / per_word));
            }
            Ok(out)
        };
        let (results, operands) = (words(self, &dsts)?, words(self, &srcs)?);
        let asm = tilewright_ptxsim::InlineAsm::new(&a.asm_string(m), &a.constraints(m), &results, &operands)
            .map_err(|e| match e.message.strip_prefix("not supported yet: ") {
                Some(what) => self.unsupported(format!("inline assembly with {what}")),
                None => self.error(format!("inline assembly: {}", e.message)),
            })?;
        self.emit(Instr::InlineAsm { srcs, dsts, pack, asm: Arc::new(asm) });
        Ok(())
    }

    fn map_elementwise(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let map = tt::MapElementwise(op);
        let srcs = self.get_all(map.srcs(m))?;
        let pack = map.pack(m) as usize;
        let function = self.combine(map.scalar_op(m), srcs.len() * pack, m.results(op).len() * pack)?;
        let dsts = m.results(op).iter().map(|&v| self.define(v)).collect::<Res<_>>()?;
        self.emit(Instr::MapElementwise { srcs, dsts, pack, function });
        Ok(())
    }

    fn atomic_rmw(&mut self, op: Op) -> Res<()> {
        use tt::RmwOp as R;
        let m = self.m;
        let a = tt::AtomicRmw(op);
        let (ptr, val) = (self.get(a.ptr(m))?, self.get(a.val(m))?);
        let mask = a.mask(m).map(|v| self.get(v)).transpose()?;
        let dst = self.define(m.result(op))?;
        let (rmw, elem) = (a.rmw_op(m), self.elem(val));
        let fits = match rmw {
            R::Exch => elem != Elem::I1,
            R::Fadd => matches!(elem, Elem::Float(k) if k.bits() >= 16),
            R::Max | R::Min => {
                (elem.is_int() && elem != Elem::I1) || matches!(elem, Elem::Float(k) if k.bits() >= 16)
            }
            _ => elem.is_int() && elem != Elem::I1,
        };
        if !fits {
            return Err(self.unsupported(format!("atomic {} on {}", rmw.keyword(), elem.name())));
        }
        self.emit(Instr::AtomicRmw { op: rmw, ptr, val, mask, dst, message: message(a.sem(m), a.scope(m)) });
        Ok(())
    }

    fn extern_elementwise(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let e = tt::ExternElementwise(op);
        let symbol = e.symbol(m);
        let srcs = self.get_all(e.srcs(m))?;
        let dst = self.define(m.result(op))?;
        if e.libname(m) == libdevice::MACHINE
            && let Some(query) = libdevice::Query::of_symbol(&symbol)
        {
            self.emit(match query {
                libdevice::Query::GlobalTimer => Instr::Timer { dst },
                libdevice::Query::Smid => Instr::Multiprocessor { dst },
                // One grid runs at a time.
                libdevice::Query::GdcWait | libdevice::Query::GdcLaunchDependents => {
                    Instr::Const { dst, bits: 0 }
                }
            });
            return Ok(());
        }
        let elem = |ty: libdevice::Type| match (ty.is_float(), ty.bits()) {
            (false, 32) => Elem::I32,
            (false, _) => Elem::I64,
            (true, 32) => Elem::Float(FloatKind::F32),
            (true, _) => Elem::Float(FloatKind::F64),
        };
        let function = libdevice::of_symbol(&symbol).filter(|f| {
            f.params.len() == srcs.len()
                && f.params.iter().zip(&srcs).all(|(&p, &v)| elem(p) == self.elem(v))
                && elem(f.result) == self.elem(dst)
        });
        let Some(function) = function else {
            return Err(self.unsupported(format!("the library function `{symbol}`")));
        };
        let len = self.tile(dst).len;
        if srcs.iter().any(|&v| self.tile(v).len != len) {
            return Err(self.error(format!("`{}` on operands of different shapes", m.op_name(op))));
        }
        self.emit(Instr::Library { elements: function.elements, srcs, dst });
        Ok(())
    }

    fn assert(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let a = tt::Assert(op);
        let condition = self.get(a.condition(m))?;
        if !self.elem(condition).is_int() {
            return Err(self.unsupported("an assertion on something that is not an integer"));
        }
        self.emit(Instr::Assert { condition, message: a.message(m) });
        Ok(())
    }

    pub(crate) fn checked_axis(&self, axis: i32, srcs: &[V]) -> Res<usize> {
        let Some(&first) = srcs.first() else { return Err(self.error("an operation on no tensors")) };
        let shape = &self.tile(first).shape;
        if srcs.iter().any(|&s| self.tile(s).shape != *shape) {
            return Err(self.error("the operands' shapes differ"));
        }
        match usize::try_from(axis) {
            Ok(a) if a < shape.len() => Ok(a),
            _ => Err(self.error(format!("axis {axis} of a tensor of rank {}", shape.len()))),
        }
    }

    fn dot(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let d = tt::Dot(op);
        let (a, b, c) = (self.get(d.a(m))?, self.get(d.b(m))?, self.get(d.c(m))?);
        let dst = self.define(m.result(op))?;
        let (ea, eb, ec) = (self.elem(a), self.elem(b), self.elem(c));
        let fits = match ec {
            Elem::I32 => ea == Elem::I8 && eb == Elem::I8,
            Elem::Float(FloatKind::F64) => ea == ec && eb == ec,
            Elem::Float(_) => ea.is_f32_class() && eb.is_f32_class(),
            _ => false,
        };
        if !fits {
            return Err(self.unsupported(format!(
                "a dot of {} and {} accumulated in {}",
                ea.name(),
                eb.name(),
                ec.name()
            )));
        }
        let mut precision = d.input_precision(m);
        if ea != Elem::Float(FloatKind::F32) && eb != Elem::Float(FloatKind::F32) {
            precision = tt::InputPrecision::Ieee;
        }
        self.emit(Instr::Dot { a, b, c, dst, precision });
        Ok(())
    }

    fn dot_scaled(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let d = tt::DotScaled(op);
        let formats = [(d.a(m), d.a_elem_type(m)), (d.b(m), d.b_elem_type(m))];
        if formats.iter().any(|(v, format)| m.element_type(m.value_type(*v)) != format.element()) {
            return Err(self.unsupported("a scaled dot of floats that are given as bytes"));
        }
        let operand = |value, scale: Option<Value>, k_pack: DefaultTrue| -> Res<Microscaled> {
            let scale = scale.map(|v| self.get(v)).transpose()?;
            Ok(Microscaled { value: self.get(value)?, scale, k_pack: k_pack.0 })
        };
        let operands = [
            operand(d.a(m), d.a_scale(m), d.lhs_k_pack(m))?,
            operand(d.b(m), d.b_scale(m), d.rhs_k_pack(m))?,
        ];
        let c = self.get(d.c(m))?;
        let dst = self.define(m.result(op))?;
        if !self.elem(c).is_f32_class() {
            return Err(self.unsupported(format!("a scaled dot accumulated in {}", self.elem(c).name())));
        }
        let is_half = |format| format == tt::ScaleDotElemType::Fp16;
        let half = is_half(d.a_elem_type(m)) || is_half(d.b_elem_type(m));
        let kind = if half { FloatKind::F16 } else { FloatKind::BF16 };
        self.emit(Instr::DotScaled(Box::new(DotScaled {
            operands,
            c,
            dst,
            kind,
            fast_math: d.fast_math(m),
        })));
        Ok(())
    }
}

/// Whether every value of one format is one of the other.
fn is_subset(narrow: FloatKind, wide: FloatKind) -> bool {
    use FloatKind as F;
    matches!(
        (narrow, wide),
        (_, F::F64)
            | (F::F16 | F::BF16, F::F32)
            | (F::F8E4M3FN | F::F8E5M2 | F::F8E4M3FNUZ | F::F8E4M3B11FNUZ, F::F16)
            | (F::F8E4M3FN | F::F8E5M2 | F::F8E4M3FNUZ | F::F8E5M2FNUZ | F::F8E4M3B11FNUZ, F::BF16 | F::F32)
    ) && narrow != F::F64
}

/// What an atomic operation tells and hears.
fn message(sem: tt::MemSemantic, scope: tt::MemSyncScope) -> Message {
    use tt::MemSemantic as S;
    Message {
        release: matches!(sem, S::Release | S::AcquireRelease),
        acquire: matches!(sem, S::Acquire | S::AcquireRelease),
        system: scope == tt::MemSyncScope::System,
    }
}
