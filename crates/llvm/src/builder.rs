//! Records instructions into a function, simplifying on the way.
//!
//! What it does to each instruction before keeping it:
//! 1. evaluates it when its operands are constants, and drops identities (`x + 0`, `x & ones`, `select c, x, x`);
//! 2. follows bits known to be zero (a lane id is below 32), which turns `xor` and signed arithmetic into forms whose
//!    constants fold into address immediates, and decides comparisons;
//! 3. reuses an equal pure instruction whose block dominates the current one;
//! 4. places integer and pointer arithmetic whose operands do not change in a loop before that loop.

use crate::fold;
use crate::program::*;
use crate::ty::{Scalar, Space, Ty};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

type Key = (Op, Ty, SmallVec<[Value; 4]>);

/// Builds one function; see the module documentation.
pub struct Builder<'m> {
    /// The module built into.
    pub module: &'m mut Module,
    pub(crate) func: Function,
    pub(crate) at: Block,
    loc: Loc,
    known: FxHashMap<Key, SmallVec<[Value; 2]>>,
    consts: FxHashMap<(Ty, u64), Value>,
    asm_cache: FxHashMap<String, AsmId>,
    fuses: bool,
}

impl<'m> Builder<'m> {
    /// Instructions of the function so far, live or not.
    pub fn instructions(&self) -> usize {
        self.func.insts.len()
    }

    /// Starts a function. Its entry block is current; its arguments are [`Builder::arg`].
    pub fn new(
        module: &'m mut Module,
        name: &str,
        params: &[Ty],
        results: &[Ty],
        kernel: Option<KernelAttrs>,
        loc: Loc,
    ) -> Builder<'m> {
        let mut func = Function {
            name: name.to_string(),
            params: params.to_vec(),
            results: results.to_vec(),
            kernel,
            noinline: false,
            loc,
            values: Vec::with_capacity(4096),
            insts: Vec::with_capacity(4096),
            blocks: vec![BlockData::default()],
        };
        for (i, &ty) in params.iter().enumerate() {
            func.values.push(ValueData { ty, def: Def::Arg(i as u32), zeros: 0, block: Block(0) });
        }
        Builder {
            module,
            func,
            at: Block(0),
            loc,
            known: FxHashMap::default(),
            consts: FxHashMap::default(),
            fuses: true,
            asm_cache: FxHashMap::default(),
        }
    }

    /// Starts over with another signature; nothing may have been recorded that is still wanted.
    pub fn restart(
        &mut self,
        name: &str,
        params: &[Ty],
        results: &[Ty],
        kernel: Option<KernelAttrs>,
        loc: Loc,
    ) {
        self.known.clear();
        self.consts.clear();
        self.at = Block(0);
        let func = &mut self.func;
        func.name = name.to_string();
        func.params = params.to_vec();
        func.results = results.to_vec();
        func.kernel = kernel;
        func.loc = loc;
        func.values.clear();
        func.insts.clear();
        func.blocks = vec![BlockData::default()];
        for (i, &ty) in params.iter().enumerate() {
            func.values.push(ValueData { ty, def: Def::Arg(i as u32), zeros: 0, block: Block(0) });
        }
    }

    /// Says that the function stays one ([`Function::noinline`]).
    pub fn noinline(&mut self) {
        self.func.noinline = true;
    }

    /// Ends the function and adds it to the module.
    pub fn finish(self) -> FuncId {
        let id = self.module.declare(&self.func.name, &self.func.params, &self.func.results);
        self.module.functions.push(self.func);
        id
    }

    /// Instructions recorded so far that something with an effect depends on.
    pub fn count_live(&self) -> usize {
        self.func.count_live()
    }

    // ---- positions -------------------------------------------------------------------------------------------------

    /// Sets the source position of the instructions that follow.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// The current block.
    pub fn block(&self) -> Block {
        self.at
    }

    /// Creates a block with parameters. `idom` is a block that dominates it (the entry always does); `preheader` is the
    /// block before the innermost loop that contains it, into which invariant arithmetic may move.
    pub fn create_block(&mut self, idom: Block, preheader: Option<Block>, params: &[Ty]) -> Block {
        let block = Block(self.func.blocks.len() as u32);
        let depth = self.func.blocks[idom.0 as usize].depth + 1;
        let mut data = BlockData { idom: idom.0, depth, preheader, ..BlockData::default() };
        for (i, &ty) in params.iter().enumerate() {
            data.params.push(Value(self.func.values.len() as u32));
            self.func.values.push(ValueData { ty, def: Def::Param(block, i as u32), zeros: 0, block });
        }
        self.func.blocks.push(data);
        block
    }

    /// The preheader of the innermost loop around the current block.
    pub fn preheader(&self) -> Option<Block> {
        self.func.blocks[self.at.0 as usize].preheader
    }

    /// A block's parameters.
    pub fn params(&self, block: Block) -> &[Value] {
        &self.func.blocks[block.0 as usize].params
    }

    /// Continues at the end of `block`.
    pub fn switch_to(&mut self, block: Block) {
        self.at = block;
    }

    /// Whether the current block has its terminator.
    pub fn is_terminated(&self) -> bool {
        self.func.blocks[self.at.0 as usize].term.is_some()
    }

    /// The function's `i`-th argument.
    pub fn arg(&self, i: usize) -> Value {
        Value(i as u32)
    }

    /// A value's type.
    pub fn ty(&self, v: Value) -> Ty {
        self.func.values[v.0 as usize].ty
    }

    /// The bits of a scalar constant.
    pub fn as_const(&self, v: Value) -> Option<u64> {
        self.func.as_const(v)
    }

    /// Whether the value is constant true.
    pub fn is_true(&self, v: Value) -> bool {
        self.ty(v) == Ty::I1 && self.as_const(v) == Some(1)
    }

    /// Whether the value is constant false.
    pub fn is_false(&self, v: Value) -> bool {
        self.ty(v) == Ty::I1 && self.as_const(v) == Some(0)
    }

    /// Bits that are known to be zero in an integer.
    pub fn known_zeros(&self, v: Value) -> u64 {
        let data = &self.func.values[v.0 as usize];
        match data.def {
            Def::Const(c) => !c,
            _ => data.zeros | !fold::ones(data.ty.bits()),
        }
    }

    /// Whether LLVM takes a float for one that is not below zero, though it may be NaN: magnitudes, roots, squares, and what is
    /// made of such.
    pub fn is_magnitude(&self, v: Value) -> bool {
        self.is_magnitude_within(v, 4)
    }

    fn is_magnitude_within(&self, v: Value, depth: u32) -> bool {
        let data = &self.func.values[v.0 as usize];
        let inst = match data.def {
            Def::Const(bits) => return bits >> (data.ty.scalar.bits() - 1) & 1 == 0,
            Def::Inst(inst, _) if depth > 0 => &self.func.insts[inst as usize],
            _ => return false,
        };
        let all = |values: &[Value]| values.iter().all(|&v| self.is_magnitude_within(v, depth - 1));
        match inst.op {
            Op::Bin(BinOp::FMul) if inst.args[0] == inst.args[1] => true,
            Op::Bin(BinOp::FAdd | BinOp::FMul | BinOp::FDiv) | Op::Rounded(BinOp::FAdd) => all(&inst.args),
            Op::Cast(CastOp::FpExt | CastOp::FpTrunc) => all(&inst.args),
            Op::Select => all(&inst.args[1..]),
            Op::Vector | Op::Extract(_) => all(&inst.args),
            Op::Intrinsic(id) => {
                let name = &self.module.asms[id.0 as usize].text;
                let of = |names: &[&str]| names.iter().any(|n| name.starts_with(n));
                of(&["llvm.fabs.", "llvm.sqrt."])
                    || (of(&["llvm.maxnum.", "llvm.minnum."]) && all(&inst.args))
            }
            _ => false,
        }
    }

    /// Promises that bits of a value are zero (from the language's guarantees or a special register's range).
    pub fn assume_zeros(&mut self, v: Value, zeros: u64) {
        self.func.values[v.0 as usize].zeros |= zeros;
    }

    // ---- constants -------------------------------------------------------------------------------------------------

    /// A scalar constant given by its bits.
    pub fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        debug_assert_eq!(ty.lanes, 1);
        let bits = bits & fold::ones(ty.scalar.bits());
        let func = &mut self.func;
        *self.consts.entry((ty, bits)).or_insert_with(|| {
            func.values.push(ValueData { ty, def: Def::Const(bits), zeros: !bits, block: Block(0) });
            Value(func.values.len() as u32 - 1)
        })
    }

    /// A 32-bit integer constant.
    pub fn i32(&mut self, value: i64) -> Value {
        self.constant(Ty::I32, value as u64)
    }

    /// A 64-bit integer constant.
    pub fn i64(&mut self, value: i64) -> Value {
        self.constant(Ty::I64, value as u64)
    }

    /// A predicate constant.
    pub fn bool(&mut self, value: bool) -> Value {
        self.constant(Ty::I1, u64::from(value))
    }

    /// A floating-point constant rounded to the type; integers are taken as numbers too.
    pub fn float(&mut self, ty: Ty, value: f64) -> Value {
        let bits = fold::from_f64(value, ty.scalar).unwrap_or(value as i64 as u64);
        self.splat_bits(ty, bits)
    }

    /// Zero of any type.
    pub fn zero(&mut self, ty: Ty) -> Value {
        self.splat_bits(ty, 0)
    }

    fn splat_bits(&mut self, ty: Ty, bits: u64) -> Value {
        let one = self.constant(ty.element(), bits);
        if ty.lanes == 1 { one } else { self.vector(&vec![one; usize::from(ty.lanes)]) }
    }

    /// Any value of the type.
    pub fn undef(&mut self, ty: Ty) -> Value {
        self.func.values.push(ValueData { ty, def: Def::Undef, zeros: 0, block: Block(0) });
        Value(self.func.values.len() as u32 - 1)
    }

    fn is_undef(&self, v: Value) -> bool {
        self.func.values[v.0 as usize].def == Def::Undef
    }

    pub(crate) fn inst_of(&self, v: Value) -> Option<&Inst> {
        match self.func.values[v.0 as usize].def {
            Def::Inst(i, _) => Some(&self.func.insts[i as usize]),
            _ => None,
        }
    }

    fn zeros_of(&self, v: Value) -> u64 {
        if self.ty(v).lanes == 1 && self.ty(v).is_int() { self.known_zeros(v) } else { 0 }
    }

    // ---- recording -------------------------------------------------------------------------------------------------

    fn record(&mut self, op: Op, effect: Effect, results: &[Ty], args: SmallVec<[Value; 4]>) -> Value {
        let pure = effect.is_pure();
        let key = (op, results.first().copied().unwrap_or(Ty::I1), args);
        if pure
            && let Some(found) = self.known.get(&key)
            && let Some(&v) =
                found.iter().find(|v| self.func.dominates(self.func.values[v.0 as usize].block, self.at))
        {
            return v;
        }
        let mut block = self.at;
        if pure && results.len() == 1 && Self::hoistable(op, results[0]) {
            while let Some(pre) = self.func.blocks[block.0 as usize].preheader {
                let invariant =
                    key.2.iter().all(|a| self.func.dominates(self.func.values[a.0 as usize].block, pre));
                if !invariant {
                    break;
                }
                block = pre;
            }
        }
        let inst = self.func.insts.len() as u32;
        let first = self.func.values.len() as u32;
        for (r, &ty) in results.iter().enumerate() {
            self.func.values.push(ValueData { ty, def: Def::Inst(inst, r as u32), zeros: 0, block });
        }
        self.func.insts.push(Inst {
            op,
            effect,
            args: key.2.clone(),
            first_result: first,
            num_results: results.len() as u32,
            loc: self.loc,
        });
        self.func.blocks[block.0 as usize].insts.push(inst);
        if pure {
            self.known.entry(key).or_default().push(Value(first));
        }
        Value(first)
    }

    /// Address arithmetic moves out of loops; floating-point work stays where the passes put it (register pressure).
    fn hoistable(op: Op, ty: Ty) -> bool {
        let cheap = match op {
            Op::Bin(b) => !matches!(b, BinOp::UDiv | BinOp::SDiv | BinOp::URem | BinOp::SRem),
            Op::ICmp(_) | Op::Select | Op::Cast(_) | Op::PtrAdd | Op::Global(_) | Op::Intrinsic(_) => true,
            _ => false,
        };
        cheap && ty.lanes == 1 && !ty.is_float()
    }

    fn pure(&mut self, op: Op, ty: Ty, args: &[Value]) -> Value {
        self.record(op, Effect::Pure, &[ty], SmallVec::from_slice(args))
    }

    // ---- integer and float arithmetic ------------------------------------------------------------------------------

    /// Arithmetic on two values of one type.
    pub fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        use BinOp::*;
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b), "{op:?}");
        let (mut a, mut b) = (a, b);
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b))
            && let Some(r) = fold::bin(op, ty, x, y)
        {
            return self.constant(ty, r);
        }
        // Constants to the right.
        if matches!(op, Add | Mul | And | Or | Xor | FAdd | FMul) && self.as_const(a).is_some() {
            std::mem::swap(&mut a, &mut b);
        }
        if !ty.is_int() || ty.lanes != 1 {
            return self.float_bin(op, ty, a, b);
        }
        let bits = ty.bits();
        let mask = fold::ones(bits);
        let (za, zb) = (self.known_zeros(a), self.known_zeros(b));
        if let Some(c) = self.as_const(b)
            && let Some(simpler) = self.int_bin_constant(op, a, b, c)
        {
            return simpler;
        }
        if let Some(narrow) = self.narrow_division(op, a, b) {
            return narrow;
        }
        // (x + c1) · c → x · c + c1 · c: keeps the constant outside, where addresses absorb it.
        if matches!(op, Shl | Mul)
            && self.as_const(b).is_some_and(|c| op == Mul || c < u64::from(bits))
            && let Some(inst) = self.inst_of(a)
            && inst.op == Op::Bin(Add)
            && self.as_const(inst.args[1]).is_some()
        {
            let (x, inner) = (inst.args[0], inst.args[1]);
            let x = self.bin(op, x, b);
            let outside = self.bin(op, inner, b);
            return self.bin(Add, x, outside);
        }
        if op == Or
            && let Some(both) = self.greater_or_equal(a, b)
        {
            return both;
        }
        if a == b {
            match op {
                And | Or => return a,
                Xor | Sub => return self.constant(ty, 0),
                _ => {}
            }
        }
        if op == Xor
            && let Some(other) = self.other_of(a, b).or_else(|| self.other_of(b, a))
        {
            return other;
        }
        if self.as_const(a) == Some(0) && matches!(op, Shl | LShr | AShr | UDiv | SDiv | URem | SRem) {
            return a;
        }
        // (x + c) + y → (x + y) + c
        if op == Add {
            for (p, q) in [(a, b), (b, a)] {
                if let Some(inst) = self.inst_of(p)
                    && inst.op == Op::Bin(Add)
                    && self.as_const(inst.args[1]).is_some()
                    && self.as_const(q).is_none()
                {
                    let (x, c) = (inst.args[0], inst.args[1]);
                    let sum = self.bin(Add, x, q);
                    return self.bin(Add, sum, c);
                }
            }
        }
        if matches!(op, UDiv | SDiv | URem | SRem) && self.as_const(b).is_none() {
            b = self.divisor(b);
        }
        // Canonical operand order finds more equal instructions.
        if matches!(op, Add | Mul | And | Or | Xor) && self.as_const(b).is_none() && a > b {
            std::mem::swap(&mut a, &mut b);
        }
        let zeros = self.zeros_of_bin(op, bits, za, (b, zb));
        let v = self.pure(Op::Bin(op), ty, &[a, b]);
        self.assume_zeros(v, zeros & mask);
        v
    }

    /// What is divided by where `v` may be zero, as it may in elements that nobody wants. LLVM takes a divisor for a number that is not zero, wherever
    /// else it is used: a mask or a `select` that asks would be true.
    fn divisor(&mut self, v: Value) -> Value {
        let ty = self.ty(v);
        let one = self.constant(ty, 1);
        // Unsigned, so that what is negative stays.
        self.intrinsic(&format!("llvm.umax.{}", ty.mangled()), Effect::Pure, Some(ty), &[v, one])
    }

    /// What an operation of an integer and a constant `c`, the value `b`, is made simpler to.
    fn int_bin_constant(&mut self, op: BinOp, a: Value, b: Value, c: u64) -> Option<Value> {
        use BinOp::*;
        let ty = self.ty(a);
        let bits = ty.bits();
        let mask = fold::ones(bits);
        let za = self.known_zeros(a);
        match op {
            Add | Sub | Or | Xor | Shl | LShr | AShr if c == 0 => Some(a),
            Mul | UDiv | SDiv if c == 1 => Some(a),
            Mul | And if c == 0 => Some(b),
            Or if c == mask => Some(b),
            And if !za & mask & !c == 0 => Some(a),
            URem | SRem if c == 1 => Some(self.constant(ty, 0)),
            // Of the smallest number undefined to LLVM: it is that number again, and nothing is left.
            SDiv if c == mask => {
                let zero = self.constant(ty, 0);
                Some(self.bin(Sub, zero, a))
            }
            SRem if c == mask => Some(self.constant(ty, 0)),
            // Undefined to LLVM, of which nothing may follow for the rest: as the executor has it.
            UDiv | SDiv if c == 0 => Some(self.constant(ty, mask)),
            URem | SRem if c == 0 => Some(a),
            // By the width or more undefined to LLVM: as the executor has it.
            Shl | LShr if c >= u64::from(bits) => Some(self.constant(ty, 0)),
            AShr if c >= u64::from(bits) => {
                let most = self.constant(ty, u64::from(bits - 1));
                Some(self.bin(AShr, a, most))
            }
            Shl if c < u64::from(bits) && (!za & mask) << c & mask == 0 => Some(self.constant(ty, 0)),
            LShr if c < u64::from(bits) && (!za & mask) >> c == 0 => Some(self.constant(ty, 0)),
            Sub => {
                let neg = self.constant(ty, c.wrapping_neg());
                Some(self.bin(Add, a, neg))
            }
            Mul if c.is_power_of_two() => {
                let shift = self.constant(ty, u64::from(c.trailing_zeros()));
                Some(self.bin(Shl, a, shift))
            }
            UDiv if c.is_power_of_two() => {
                let shift = self.constant(ty, u64::from(c.trailing_zeros()));
                Some(self.bin(LShr, a, shift))
            }
            URem if c.is_power_of_two() => {
                let low = self.constant(ty, c - 1);
                Some(self.bin(And, a, low))
            }
            SDiv | SRem if za >> (bits - 1) & 1 == 1 && fold::signed(c, bits) > 0 => {
                Some(self.bin(if op == SDiv { UDiv } else { URem }, a, b))
            }
            AShr if za >> (bits - 1) & 1 == 1 => Some(self.bin(LShr, a, b)),
            // (x op c1) op c → x op (c1 op c), and disjoint bits make `or`/`xor` additions.
            Add | Xor | And | Or | Shl | LShr => {
                if matches!(op, Or | Xor) && c & !za & mask == 0 {
                    return Some(self.bin(Add, a, b));
                }
                if let Some(inst) = self.inst_of(a)
                    && inst.op == Op::Bin(op)
                    && let Some(inner) = self.as_const(inst.args[1])
                {
                    let x = inst.args[0];
                    let merged = match op {
                        Shl | LShr => inner + c,
                        _ => fold::bin(op, ty, inner, c).unwrap_or(0),
                    };
                    if matches!(op, Shl | LShr) && merged >= u64::from(bits) {
                        return Some(self.constant(ty, 0));
                    }
                    let merged = self.constant(ty, merged);
                    return Some(self.bin(op, x, merged));
                }
                None
            }
            _ => None,
        }
    }

    /// The bits known to be zero of an operation on integers, of which those of `za` and `zb` are.
    fn zeros_of_bin(&self, op: BinOp, bits: u32, za: u64, (b, zb): (Value, u64)) -> u64 {
        use BinOp::*;
        let mask = fold::ones(bits);
        match op {
            And => za | zb,
            Or | Xor => za & zb,
            // Nothing is known of a shift by as many bits as there are: what it gives is undefined.
            Shl => self
                .as_const(b)
                .filter(|c| *c < u64::from(bits))
                .map_or(0, |c| (za << c) | fold::ones(c as u32)),
            LShr => self
                .as_const(b)
                .filter(|c| *c < u64::from(bits))
                .map_or(0, |c| (za & mask) >> c | !(mask >> c)),
            Add if !za & !zb & mask == 0 => za & zb,
            Add => {
                // No carry beyond the highest bit that either may have, plus one; low common zeros stay.
                let high = (!za | !zb) & mask;
                let top = 64 - high.leading_zeros() + u32::from(!za & !zb & mask != 0);
                let low = (za & zb).trailing_ones();
                fold::ones(low.min(bits)) | if top < bits { !fold::ones(top) } else { 0 }
            }
            Mul => {
                let low = (za.trailing_ones() + zb.trailing_ones()).min(bits);
                let top = (64 - (!za & mask).leading_zeros()) + (64 - (!zb & mask).leading_zeros());
                fold::ones(low) | if top < bits { !fold::ones(top) } else { 0 }
            }
            URem => match self.as_const(b) {
                Some(c) if c > 0 => !fold::ones(64 - (c - 1).leading_zeros()),
                _ => 0,
            },
            UDiv => {
                let top = 64 - (!za & mask).leading_zeros();
                if top < bits { !fold::ones(top) } else { 0 }
            }
            _ => 0,
        }
    }

    /// `x > y || x == y` as one comparison, likewise with `<`.
    fn greater_or_equal(&mut self, a: Value, b: Value) -> Option<Value> {
        let (first, second) = (self.inst_of(a)?, self.inst_of(b)?);
        if first.args != second.args {
            return None;
        }
        let (x, y) = (first.args[0], *first.args.get(1)?);
        match (first.op, second.op) {
            (Op::FCmp(p), Op::FCmp(FloatPred::Oeq)) | (Op::FCmp(FloatPred::Oeq), Op::FCmp(p)) => match p {
                FloatPred::Ogt => Some(self.fcmp(FloatPred::Oge, x, y)),
                FloatPred::Olt => Some(self.fcmp(FloatPred::Ole, x, y)),
                _ => None,
            },
            (Op::ICmp(p), Op::ICmp(IntPred::Eq)) | (Op::ICmp(IntPred::Eq), Op::ICmp(p)) => match p {
                IntPred::Sgt => Some(self.icmp(IntPred::Sge, x, y)),
                IntPred::Slt => Some(self.icmp(IntPred::Sle, x, y)),
                IntPred::Ugt => Some(self.icmp(IntPred::Uge, x, y)),
                IntPred::Ult => Some(self.icmp(IntPred::Ule, x, y)),
                _ => None,
            },
            _ => None,
        }
    }

    fn float_bin(&mut self, op: BinOp, ty: Ty, a: Value, b: Value) -> Value {
        if ty.is_float()
            && ty.lanes == 1
            && let Some(c) = self.as_const(b).and_then(|c| fold::to_f64(c, ty.scalar))
        {
            match op {
                BinOp::FMul | BinOp::FDiv if c == 1.0 => return a,
                BinOp::FSub if c == 0.0 && c.is_sign_positive() => return a,
                BinOp::FAdd if c == 0.0 && c.is_sign_negative() => return a,
                _ => {}
            }
        }
        let rounded = !self.fuses && ty.is_float();
        self.pure(if rounded { Op::Rounded(op) } else { Op::Bin(op) }, ty, &[a, b])
    }

    /// Whether products and sums of floats recorded from now on may become one operation, as they may at the beginning; gives what it
    /// was before.
    pub fn set_fuses(&mut self, fuses: bool) -> bool {
        std::mem::replace(&mut self.fuses, fuses)
    }

    /// `a + b` of integers.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Add, a, b)
    }

    /// `a - b` of integers.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Sub, a, b)
    }

    /// `a * b` of integers.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Mul, a, b)
    }

    /// `a & b`.
    pub fn and(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::And, a, b)
    }

    /// `a | b`.
    pub fn or(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Or, a, b)
    }

    /// `a ^ b`.
    pub fn xor(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Xor, a, b)
    }

    /// `a << n`.
    pub fn shl(&mut self, a: Value, n: u32) -> Value {
        let n = self.constant(self.ty(a), u64::from(n));
        self.bin(BinOp::Shl, a, n)
    }

    /// Logical `a >> n`.
    pub fn lshr(&mut self, a: Value, n: u32) -> Value {
        let n = self.constant(self.ty(a), u64::from(n));
        self.bin(BinOp::LShr, a, n)
    }

    /// `a + c` of integers.
    pub fn add_const(&mut self, a: Value, c: i64) -> Value {
        let c = self.constant(self.ty(a), c as u64);
        self.add(a, c)
    }

    /// `a & c` of integers.
    pub fn and_const(&mut self, a: Value, c: u64) -> Value {
        let c = self.constant(self.ty(a), c);
        self.and(a, c)
    }

    /// `a * c` of integers.
    pub fn mul_const(&mut self, a: Value, c: i64) -> Value {
        let c = self.constant(self.ty(a), c as u64);
        self.mul(a, c)
    }

    /// Logical not of a predicate (bitwise not of an integer).
    pub fn not(&mut self, a: Value) -> Value {
        let ty = self.ty(a);
        // not(not x) folds through the xor of constants.
        let ones = self.splat_bits(ty, u64::MAX);
        self.xor(a, ones)
    }

    /// Floating-point negation.
    pub fn fneg(&mut self, a: Value) -> Value {
        let ty = self.ty(a);
        if let Some(c) = self.as_const(a) {
            return self.constant(ty, c ^ (1 << (ty.scalar.bits() - 1)));
        }
        self.pure(Op::FNeg, ty, &[a])
    }

    /// Integer or pointer comparison.
    pub fn icmp(&mut self, pred: IntPred, a: Value, b: Value) -> Value {
        use IntPred::*;
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b));
        let result = ty.with(Scalar::I1);
        if ty.lanes == 1 && ty.is_int() {
            let bits = ty.bits();
            if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b)) {
                return self.bool(fold::icmp(pred, bits, x, y));
            }
            let (za, zb) = (self.known_zeros(a), self.known_zeros(b));
            let mask = fold::ones(bits);
            let sign = 1u64 << (bits - 1);
            let nonneg = za & zb & sign != 0;
            let (max_a, max_b) = (!za & mask, !zb & mask);
            // The least value is that of a constant, else 0.
            let (min_a, min_b) = (self.as_const(a).unwrap_or(0), self.as_const(b).unwrap_or(0));
            let unsigned = match pred {
                Slt if nonneg => Some(Ult),
                Sle if nonneg => Some(Ule),
                Sgt if nonneg => Some(Ugt),
                Sge if nonneg => Some(Uge),
                Ult | Ule | Ugt | Uge | Eq | Ne => Some(pred),
                _ => None,
            };
            if bits > 1 {
                let decided = match unsigned {
                    Some(Ult) if max_a < min_b => Some(true),
                    Some(Ult) if min_a >= max_b => Some(false),
                    Some(Ule) if max_a <= min_b => Some(true),
                    Some(Ule) if min_a > max_b => Some(false),
                    Some(Ugt) if min_a > max_b => Some(true),
                    Some(Ugt) if max_a <= min_b => Some(false),
                    Some(Uge) if min_a >= max_b => Some(true),
                    Some(Uge) if max_a < min_b => Some(false),
                    Some(Eq) if max_a < min_b || max_b < min_a => Some(false),
                    Some(Ne) if max_a < min_b || max_b < min_a => Some(true),
                    _ => None,
                };
                if let Some(d) = decided {
                    return self.bool(d);
                }
            }
            if a == b {
                return self.bool(matches!(pred, Eq | Uge | Ule | Sge | Sle));
            }
            if let Some(decided) = self.compare_offsets(pred, a, b) {
                return self.bool(decided);
            }
        }
        self.pure(Op::ICmp(pred), result, &[a, b])
    }

    /// Floating-point comparison.
    pub fn fcmp(&mut self, pred: FloatPred, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b));
        if ty.lanes == 1
            && let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b))
            && let Some(r) = fold::fcmp(pred, ty.scalar, x, y)
        {
            return self.bool(r);
        }
        self.pure(Op::FCmp(pred), ty.with(Scalar::I1), &[a, b])
    }

    /// `cond ? a : b`.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b));
        match self.as_const(cond) {
            Some(1) => return a,
            Some(0) => return b,
            _ => {}
        }
        if a == b || self.is_undef(b) {
            return a;
        }
        if self.is_undef(a) {
            return b;
        }
        if ty == Ty::I1 {
            match (self.as_const(a), self.as_const(b)) {
                (Some(1), Some(0)) => return cond,
                (Some(0), Some(1)) => return self.not(cond),
                (_, Some(0)) => return self.and(cond, a),
                (Some(1), _) => return self.or(cond, b),
                _ => {}
            }
        }
        if let Some(sum) = self.select_offsets(cond, a, b) {
            return sum;
        }
        if let Some(chosen) = self.select_extremum(cond, a, b) {
            return chosen;
        }
        let zeros = self.zeros_of(a) & self.zeros_of(b);
        let v = self.pure(Op::Select, ty, &[cond, a, b]);
        self.assume_zeros(v, zeros);
        v
    }

    /// Converts to `to`.
    pub fn cast(&mut self, op: CastOp, a: Value, to: Ty) -> Value {
        use CastOp::*;
        let from = self.ty(a);
        debug_assert!(op == Bitcast || from.lanes == to.lanes);
        if from == to {
            return a;
        }
        if to.lanes == 1
            && from.lanes == 1
            && let Some(c) = self.as_const(a)
            && !from.is_ptr()
            && !to.is_ptr()
            && let Some(r) = fold::cast(op, from.scalar, to.scalar, c)
        {
            return self.constant(to, r);
        }
        if self.is_undef(a) && op == Bitcast {
            return self.undef(to);
        }
        if let Some(inst) = self.inst_of(a) {
            let (inner_op, x) = (inst.op, inst.args.first().copied());
            match (inner_op, op) {
                (Op::Cast(Bitcast), Bitcast) => return self.cast(Bitcast, x.unwrap_or(a), to),
                (Op::Cast(ZExt), ZExt | SExt) => return self.cast(ZExt, x.unwrap_or(a), to),
                (Op::Cast(SExt), SExt) => return self.cast(SExt, x.unwrap_or(a), to),
                (Op::Cast(ext @ (ZExt | SExt)), Trunc) => {
                    let x = x.unwrap_or(a);
                    let inner = self.ty(x).scalar.bits();
                    return if inner > to.scalar.bits() {
                        self.cast(Trunc, x, to)
                    } else {
                        self.cast(ext, x, to)
                    };
                }
                (Op::Cast(Trunc), Trunc) => return self.cast(Trunc, x.unwrap_or(a), to),
                // A vector of pieces of one integer, or the reverse, is that integer.
                (Op::Vector, Bitcast) if from.lanes > 1 && to.lanes > 1 && from.bits() == to.bits() => {}
                _ => {}
            }
        }
        let scalar_int = from.is_int() && from.lanes == 1;
        if op == SExt && scalar_int && self.known_zeros(a) >> (from.bits() - 1) & 1 == 1 && from.bits() > 1 {
            return self.cast(ZExt, a, to);
        }
        let zeros = match op {
            ZExt if scalar_int => self.known_zeros(a) | !fold::ones(from.bits()),
            Trunc if scalar_int => self.known_zeros(a),
            _ => 0,
        };
        let v = self.pure(Op::Cast(op), to, &[a]);
        if to.is_int() && to.lanes == 1 {
            self.assume_zeros(v, zeros & fold::ones(to.bits()));
        }
        v
    }

    /// Integer conversion to `to`'s width, by sign or zero extension or truncation.
    pub fn int_cast(&mut self, a: Value, to: Ty, signed: bool) -> Value {
        let (from_bits, to_bits) = (self.ty(a).scalar.bits(), to.scalar.bits());
        let op = match (to_bits > from_bits, signed) {
            (true, true) => CastOp::SExt,
            (true, false) => CastOp::ZExt,
            (false, _) => CastOp::Trunc,
        };
        self.cast(op, a, to)
    }

    /// Reinterprets the bits.
    pub fn bitcast(&mut self, a: Value, to: Ty) -> Value {
        debug_assert_eq!(self.ty(a).bits(), to.bits());
        self.cast(CastOp::Bitcast, a, to)
    }

    // ---- vectors ---------------------------------------------------------------------------------------------------

    /// Element `i` of a vector (the value itself when it is a scalar).
    pub fn extract(&mut self, v: Value, i: u32) -> Value {
        let ty = self.ty(v);
        if ty.lanes == 1 {
            return v;
        }
        if self.is_undef(v) {
            return self.undef(ty.element());
        }
        if let Some(inst) = self.inst_of(v)
            && inst.op == Op::Vector
        {
            return inst.args[i as usize];
        }
        self.pure(Op::Extract(i as u8), ty.element(), &[v])
    }

    /// A vector of the elements (the element itself when there is one).
    pub fn vector(&mut self, elements: &[Value]) -> Value {
        if elements.len() == 1 {
            return elements[0];
        }
        // The elements of one vector, in order, are that vector.
        if let Some(first) = self.inst_of(elements[0])
            && first.op == Op::Extract(0)
        {
            let whole = first.args[0];
            let all = elements.iter().enumerate().all(|(i, &e)| {
                self.inst_of(e).is_some_and(|x| x.op == Op::Extract(i as u8) && x.args[0] == whole)
            });
            if all && usize::from(self.ty(whole).lanes) == elements.len() {
                return whole;
            }
        }
        let ty = Ty::vector(self.ty(elements[0]).scalar, elements.len() as u8);
        self.pure(Op::Vector, ty, elements)
    }

    // ---- memory ----------------------------------------------------------------------------------------------------

    /// `ptr + offset` bytes. Constant parts collect at the end, where they fold into the access's immediate.
    pub fn ptr_add(&mut self, ptr: Value, offset: Value) -> Value {
        let ty = self.ty(ptr);
        let int = if ty.scalar.bits() == 32 { Ty::I32 } else { Ty::I64 };
        let offset = self.int_cast(offset, int, true);
        if self.as_const(offset) == Some(0) {
            return ptr;
        }
        if let Some(inst) = self.inst_of(offset)
            && inst.op == Op::Bin(BinOp::Add)
            && self.as_const(inst.args[1]).is_some()
        {
            let (x, c) = (inst.args[0], inst.args[1]);
            let p = self.ptr_add(ptr, x);
            return self.ptr_add(p, c);
        }
        if let Some(inst) = self.inst_of(ptr)
            && inst.op == Op::PtrAdd
            && self.as_const(inst.args[1]).is_some()
        {
            let (base, c) = (inst.args[0], inst.args[1]);
            if self.as_const(offset).is_some() {
                let sum = self.add(c, offset);
                return self.ptr_add(base, sum);
            }
            let p = self.ptr_add(base, offset);
            return self.ptr_add(p, c);
        }
        self.pure(Op::PtrAdd, ty, &[ptr, offset])
    }

    /// `ptr + offset` bytes, the offset constant.
    pub fn ptr_add_const(&mut self, ptr: Value, offset: i64) -> Value {
        let int = if self.ty(ptr).scalar.bits() == 32 { Ty::I32 } else { Ty::I64 };
        let c = self.constant(int, offset as u64);
        self.ptr_add(ptr, c)
    }

    /// Splits a pointer into a base and a constant byte offset, for an access with an immediate.
    pub fn split_offset(&self, ptr: Value) -> (Value, i64) {
        if let Some(inst) = self.inst_of(ptr)
            && inst.op == Op::PtrAdd
            && let Some(c) = self.as_const(inst.args[1])
        {
            return (inst.args[0], fold::signed(c, self.ty(inst.args[1]).bits()));
        }
        (ptr, 0)
    }

    /// Splits an integer into a variable part and a signed constant that was added to it.
    pub fn split_constant(&self, v: Value) -> (Value, i64) {
        if let Some(inst) = self.inst_of(v)
            && inst.op == Op::Bin(BinOp::Add)
            && let Some(c) = self.as_const(inst.args[1])
        {
            return (inst.args[0], fold::signed(c, self.ty(v).bits()));
        }
        (v, 0)
    }

    /// Loads a value of type `ty`.
    pub fn load(&mut self, ty: Ty, ptr: Value, align: u32) -> Value {
        self.record(Op::Load { align, volatile: false }, Effect::Read, &[ty], smallvec![ptr])
    }

    /// Loads a value that others may change: made once, wherever its result goes.
    pub fn load_volatile(&mut self, ty: Ty, ptr: Value, align: u32) -> Value {
        self.record(Op::Load { align, volatile: true }, Effect::Write, &[ty], smallvec![ptr])
    }

    /// Stores `value`.
    pub fn store(&mut self, ptr: Value, value: Value, align: u32) {
        self.record(Op::Store { align, volatile: false }, Effect::Write, &[], smallvec![ptr, value]);
    }

    /// Stack memory, 16-byte aligned; the result is a generic pointer.
    pub fn alloca(&mut self, bytes: u32) -> Value {
        self.record(Op::Alloca(bytes), Effect::Read, &[Ty::PTR], smallvec![])
    }

    /// The address of a global.
    pub fn global(&mut self, id: GlobalId) -> Value {
        let space = self.module.globals[id.0 as usize].space;
        self.pure(Op::Global(id), Ty::scalar(Scalar::Ptr(space)), &[])
    }

    /// A pointer in another address space.
    pub fn addrspace_cast(&mut self, ptr: Value, space: Space) -> Value {
        self.cast(CastOp::AddrSpaceCast, ptr, Ty::scalar(Scalar::Ptr(space)))
    }

    // ---- calls -----------------------------------------------------------------------------------------------------

    /// Inline PTX in LLVM's syntax (`$0` is the first result). `constraints` names each result and operand.
    /// Returns the results.
    pub fn asm(
        &mut self,
        template: &str,
        constraints: &str,
        effect: Effect,
        results: &[Ty],
        args: &[Value],
    ) -> SmallVec<[Value; 4]> {
        let id = self.intern(template, constraints);
        let first = self.record(Op::Asm(id), effect, results, SmallVec::from_slice(args));
        (0..results.len() as u32).map(|i| Value(first.0 + i)).collect()
    }

    /// Inline PTX with one result.
    pub fn asm1(
        &mut self,
        template: &str,
        constraints: &str,
        effect: Effect,
        result: Ty,
        args: &[Value],
    ) -> Value {
        self.asm(template, constraints, effect, &[result], args)[0]
    }

    /// An LLVM intrinsic, its name complete with the overload suffix.
    pub fn intrinsic(&mut self, name: &str, effect: Effect, result: Option<Ty>, args: &[Value]) -> Value {
        let id = self.intern(name, "");
        self.record(Op::Intrinsic(id), effect, result.as_slice(), SmallVec::from_slice(args))
    }

    pub(crate) fn intrinsic_name(&self, id: AsmId) -> &str {
        &self.module.asms[id.0 as usize].text
    }

    fn intern(&mut self, text: &str, constraints: &str) -> AsmId {
        let mut key = String::with_capacity(text.len() + constraints.len() + 1);
        key.push_str(text);
        key.push('\0');
        key.push_str(constraints);
        if let Some(&id) = self.asm_cache.get(&key) {
            return id;
        }
        let id = self.module.asm_id(text, constraints);
        self.asm_cache.insert(key, id);
        id
    }

    /// Calls a function of the module; it may have effects.
    pub fn call(&mut self, callee: FuncId, args: &[Value]) -> SmallVec<[Value; 4]> {
        let results = self.module.signatures[callee.0 as usize].2.clone();
        let first = self.record(Op::Call(callee), Effect::Write, &results, SmallVec::from_slice(args));
        (0..results.len() as u32).map(|i| Value(first.0 + i)).collect()
    }

    // ---- terminators -----------------------------------------------------------------------------------------------

    fn terminate(&mut self, term: Terminator) {
        let block = &mut self.func.blocks[self.at.0 as usize];
        debug_assert!(block.term.is_none(), "a block has one terminator");
        block.term = Some(term);
    }

    /// Jumps to `target`.
    pub fn br(&mut self, target: Block, args: &[Value]) {
        debug_assert_eq!(args.len(), self.params(target).len());
        self.terminate(Terminator::Br(target, args.to_vec()));
    }

    /// Jumps by a predicate.
    pub fn cond_br(&mut self, cond: Value, then: Block, then_args: &[Value], els: Block, els_args: &[Value]) {
        debug_assert_eq!(then_args.len(), self.params(then).len());
        debug_assert_eq!(els_args.len(), self.params(els).len());
        let term = match self.as_const(cond) {
            Some(0) => Terminator::Br(els, els_args.to_vec()),
            Some(_) => Terminator::Br(then, then_args.to_vec()),
            None => Terminator::CondBr {
                cond,
                then,
                then_args: then_args.to_vec(),
                els,
                els_args: els_args.to_vec(),
            },
        };
        self.terminate(term);
    }

    /// Returns from the function.
    pub fn ret(&mut self, values: &[Value]) {
        self.terminate(Terminator::Ret(values.to_vec()));
    }

    /// Control never comes here.
    pub fn unreachable(&mut self) {
        self.terminate(Terminator::Unreachable);
    }
}
