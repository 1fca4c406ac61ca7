//! Functions, calls, program indices and structured control flow.

use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, cf, scf, tt};
use tilewright_ir::{Opcode, TypeKind};
use tilewright_llvm as llvm;
use tilewright_llvm::{ByValue, IntPred, KernelAttrs, Ty, Value};
use tilewright_passes::analysis::counting::{Counting, Test};
use tilewright_passes::analysis::promises::Promises;

use crate::{Buffer, Hooks, Locations, Lower, LowerOptions, Regs, Result, Scope, Val};

/// Lowers one function into `out`.
pub(crate) fn lower_function<'a, H: Hooks>(
    (m, promises): (&'a ir::Module, &'a Promises),
    func: ir::Op,
    name: &str,
    mut kernel: Option<KernelAttrs>,
    options: &LowerOptions<'a>,
    hooks: H,
    (num_warps, launched): (u32, u32),
    smem: llvm::GlobalId,
    out: &'a mut llvm::Module,
    locations: Locations,
) -> Result<Locations> {
    let body = tt::Func(func).body(m);
    let blocks = m.region_blocks(body).to_vec();
    let entry = blocks[0];
    let mut lower = Lower {
        m,
        b: llvm::Builder::new(out, "", &[], &[], None, llvm::Loc::NONE),
        hooks,
        target: options.target,
        flushes: options.flushes,
        num_warps,
        num_ctas: m.int_attr(m.root(), "ttg.num-ctas").unwrap_or(1) as u32,
        scope: Scope { first_warp: 0, barrier: 0, launched },
        smem,
        own_warp: None,
        promises,
        values: vec![None; m.num_values()],
        layouts: rustc_hash::FxHashMap::default(),
        locations,
        global_scratch: None,
        op: func,
    };
    // The signature needs the layouts of tensor parameters, which `Lower` computes: build it, then start over.
    let mut params = Vec::new();
    for &arg in m.block_args(entry) {
        if let (Some(attrs), Some((size, align))) = (&mut kernel, H::by_value(m, m.value_type(arg))) {
            attrs.by_value.push(ByValue { param: params.len() as u32, size, align });
        }
        params.extend(lower.machine_types(m.value_type(arg))?);
    }
    let scratch = m.int_attr(m.root(), "ttg.global_scratch_memory_size").unwrap_or(0);
    let has_scratch = kernel.is_some() && scratch > 0;
    if has_scratch {
        params.push(Ty::scalar(llvm::Scalar::Ptr(llvm::Space::Global)));
    }
    let mut results = Vec::new();
    if let TypeKind::Function { results: tys, .. } = m.type_kind(tt::Func(func).function_type(m)) {
        for &ty in tys {
            results.extend(lower.machine_types(ty)?);
        }
    }
    let loc = if options.line_info { lower.translate(m.op_loc(func)) } else { llvm::Loc::NONE };
    let called = kernel.is_none();
    lower.b.restart(name, &params, &results, kernel, loc);
    if called {
        lower.b.noinline();
    }

    let mut next = 0;
    for &arg in m.block_args(entry) {
        let n = lower.machine_types(m.value_type(arg))?.len();
        let values: Vec<Value> = (next..next + n).map(|i| lower.b.arg(i)).collect();
        next += n;
        lower.bind(arg, &values)?;
    }
    lower.global_scratch = has_scratch.then(|| lower.b.arg(next));
    H::begin(&mut lower, func)?;
    lower.find_own_warp();
    // Blocks of `cf` control flow: dominance is not known here, so that only the entry's values are shared.
    let first = lower.b.block();
    let mut targets = vec![(entry, first)];
    for &block in &blocks[1..] {
        let mut tys = Vec::new();
        for &arg in m.block_args(block) {
            tys.extend(lower.machine_types(m.value_type(arg))?);
        }
        targets.push((block, lower.b.create_block(first, None, &tys)));
    }
    for (i, &(block, machine)) in targets.iter().enumerate() {
        if i > 0 {
            lower.b.switch_to(machine);
            lower.bind_params(m.block_args(block), machine)?;
        }
        let end = lower.block(block)?;
        if !called && end.is_some_and(|op| tt::Return::cast(m, op).is_some()) {
            H::before_return(&mut lower);
        }
        lower.function_end(end, &targets)?;
    }
    H::end(&mut lower)?;
    let Lower { b, locations, .. } = lower;
    b.finish();
    Ok(locations)
}

impl<H: Hooks> Lower<'_, H> {
    /// The machine types of a value: one per register, or per word where dots that are under way have words of several
    /// elements, one address for a buffer, none for a token.
    pub(crate) fn machine_types(&mut self, ty: ir::Type) -> Result<Vec<Ty>> {
        match self.m.type_kind(ty) {
            TypeKind::AsyncToken => Ok(vec![]),
            TypeKind::MemDesc { .. } => Ok(vec![Ty::SHARED]),
            _ if H::crosses_as_words(self, ty) => {
                let bits = self.elem_ty(ty)?.bits() as usize;
                Ok(vec![Ty::I32; self.num_regs(ty)? * bits / 32])
            }
            _ => Ok(vec![self.elem_ty(ty)?; self.num_regs(ty)?]),
        }
    }

    /// The machine values of IR values: one a register, or a word where dots that are under way have words of several elements.
    ///
    /// # Errors
    /// A value that was not lowered; a slice of a buffer that begins within a swizzle.
    pub fn flatten(&mut self, values: &[ir::Value]) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        for &v in values {
            match self.val(v)?.clone() {
                Val::Regs(_) if self.is_in_words(v) => out.extend(H::words(self, v)?),
                Val::Regs(r) => out.extend_from_slice(&r),
                Val::Token => {}
                Val::Buffer(_) => out.push(self.begin_of_part(v)?),
            }
        }
        Ok(out)
    }

    fn is_in_words(&mut self, v: ir::Value) -> bool {
        let ty = self.value_ty(v);
        H::crosses_as_words(self, ty)
    }

    /// The registers of a tensor, as many to a word of 32 bits as fit.
    pub fn packed_words(&mut self, v: ir::Value) -> Result<Vec<Value>> {
        let regs = self.regs(v)?;
        let width = 32 / self.b.ty(regs[0]).bits() as usize;
        Ok(regs
            .chunks(width)
            .map(|elements| {
                let word = self.pack_word(elements);
                self.b.bitcast(word, Ty::I32)
            })
            .collect())
    }

    /// The elements of a tensor of this type that are in words.
    pub fn elements_of_words(&mut self, ty: ir::Type, words: &[Value]) -> Result<Vec<Value>> {
        let element = self.elem_ty(ty)?;
        let width = 32 / element.bits();
        Ok(words.iter().flat_map(|&w| self.unpack_word(w, element, width)).collect())
    }

    /// The reverse of [`Lower::flatten`] for one value.
    pub(crate) fn bind(&mut self, v: ir::Value, values: &[Value]) -> Result<()> {
        let ty = self.value_ty(v);
        let val = match self.m.type_kind(ty) {
            TypeKind::AsyncToken => Val::Token,
            TypeKind::MemDesc { shape, .. } => {
                Val::Buffer(Buffer { base: values[0], offsets: smallvec::smallvec![0; shape.len()] })
            }
            _ if H::crosses_as_words(self, ty) => Val::Regs(self.elements_of_words(ty, values)?.into()),
            _ => Val::Regs(values.into()),
        };
        self.set(v, val);
        Ok(())
    }

    /// Binds IR values to the parameters of a machine block.
    ///
    /// # Errors
    /// A type that is not supported.
    pub fn bind_params(&mut self, values: &[ir::Value], block: llvm::Block) -> Result<()> {
        let params = self.b.params(block).to_vec();
        self.bind_all(values, &params)
    }

    fn bind_all(&mut self, values: &[ir::Value], machine: &[Value]) -> Result<()> {
        let mut next = 0;
        for &v in values {
            let n = self.machine_types(self.value_ty(v))?.len();
            self.bind(v, &machine[next..next + n])?;
            next += n;
        }
        Ok(())
    }

    /// The machine types of values, one after the other.
    ///
    /// # Errors
    /// A type that is not supported.
    pub fn all_machine_types(&mut self, values: &[ir::Value]) -> Result<Vec<Ty>> {
        let mut out = Vec::new();
        for &v in values {
            out.extend(self.machine_types(self.value_ty(v))?);
        }
        Ok(out)
    }

    fn function_end(&mut self, end: Option<ir::Op>, blocks: &[(ir::Block, llvm::Block)]) -> Result<()> {
        let Some(op) = end else { return Err(self.error("a block has no terminator")) };
        let target = |b: ir::Block| blocks.iter().find(|(x, _)| *x == b).map(|&(_, m)| m);
        match self.m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Return)) => {
                let values = self.flatten(tt::Return(op).values(self.m))?;
                self.b.ret(&values);
                Ok(())
            }
            Some(Opcode::Cf(cf::Kind::Br)) => {
                let args = self.flatten(cf::Br(op).args(self.m))?;
                let to = target(self.m.successors(op)[0])
                    .ok_or_else(|| self.error("a branch out of the function"))?;
                self.b.br(to, &args);
                Ok(())
            }
            Some(Opcode::Cf(cf::Kind::CondBr)) => {
                let c = cf::CondBr(op);
                let cond = self.scalar(c.condition(self.m))?;
                let (yes, no) = (self.flatten(c.true_args(self.m))?, self.flatten(c.false_args(self.m))?);
                let succ = self.m.successors(op);
                let (Some(a), Some(b)) = (target(succ[0]), target(succ[1])) else {
                    return Err(self.error("a branch out of the function"));
                };
                self.b.cond_br(cond, a, &yes, b, &no);
                Ok(())
            }
            _ => Err(self.unsupported(format!("the terminator `{}`", self.m.op_name(op)))),
        }
    }

    pub(crate) fn program_id(&mut self, axis: tt::ProgramDim, op: ir::Op, count: bool) -> Result<()> {
        let v = H::program_id(self, axis, count);
        self.set_regs(self.m.result(op), vec![v]);
        Ok(())
    }

    pub(crate) fn call(&mut self, call: tt::Call) -> Result<()> {
        let args = self.flatten(call.args(self.m))?;
        let results: Vec<ir::Value> = call.results(self.m).to_vec();
        let result_tys = self.all_machine_types(&results)?;
        let params: Vec<Ty> = args.iter().map(|&a| self.b.ty(a)).collect();
        let callee = self.b.module.declare(&H::symbol(&call.callee(self.m).0), &params, &result_tys);
        let values = self.b.call(callee, &args);
        self.bind_all(&results, &values)
    }

    /// The function in the region of a thread's elements, as many at a time as it takes. Padding is left out: what a loop in the
    /// function would make of it nobody knows.
    pub(crate) fn map_elementwise(&mut self, map: tt::MapElementwise) -> Result<()> {
        let m = self.m;
        let pack = map.pack(m) as usize;
        let results = map.results(m).to_vec();
        let srcs: Vec<Regs> = map.srcs(m).iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        let region = m.region_block(map.scalar_op(m));
        let args = m.block_args(region).to_vec();
        let layout = self.layout(self.value_ty(results[0]))?;
        let count = layout.num_registers() as usize;
        let mut element_tys = Vec::new();
        for &r in &results {
            element_tys.extend(std::iter::repeat_n(self.elem_ty(self.value_ty(r))?, pack));
        }
        let mut out: Vec<Vec<Value>> = vec![Vec::new(); results.len()];
        for start in (0..count).step_by(pack) {
            // Where a thread has too few elements, the last one stands in for the missing ones.
            let registers: Vec<usize> = (start..start + pack).map(|r| r.min(count - 1)).collect();
            for (&arg, (k, &r)) in
                args.iter().zip((0..srcs.len()).flat_map(|k| registers.iter().map(move |r| (k, r))))
            {
                self.set_regs(arg, vec![srcs[k][r]]);
            }
            let mut inside = Some(self.b.bool(false));
            for &r in &registers {
                inside = match (inside, self.in_bounds(&layout, r as u32)) {
                    (Some(any), Some(one)) => Some(self.b.or(any, one)),
                    _ => None,
                };
            }
            let values = match inside {
                None => self.apply(region)?,
                Some(inside) => {
                    let (before, preheader) = (self.b.block(), self.b.preheader());
                    let body = self.b.create_block(before, preheader, &[]);
                    let merge = self.b.create_block(before, preheader, &element_tys);
                    let nothing: Vec<Value> = element_tys.iter().map(|&ty| self.b.zero(ty)).collect();
                    self.b.cond_br(inside, body, &[], merge, &nothing);
                    self.b.switch_to(body);
                    let values = self.apply(region)?;
                    self.b.br(merge, &values);
                    self.b.switch_to(merge);
                    self.b.params(merge).to_vec()
                }
            };
            for (of_result, values) in out.iter_mut().zip(values.chunks(pack)) {
                of_result.extend(values);
                of_result.truncate(count);
            }
        }
        for (r, regs) in results.into_iter().zip(out) {
            self.set_regs(r, regs);
        }
        Ok(())
    }

    /// What the function in a region gives for the arguments that its block has been given.
    fn apply(&mut self, region: ir::Block) -> Result<Vec<Value>> {
        let here = self.op;
        let end = self.block(region)?.ok_or_else(|| self.error("a region without a terminator"))?;
        let values = self.m.operands(end).iter().map(|&v| self.scalar(v)).collect::<Result<_>>()?;
        self.op = here;
        Ok(values)
    }

    /// How a loop asks at its end whether it goes on, and the end that it asks for, computed in front of it ([`Counting`]).
    pub fn end_of(&mut self, f: scf::For, [lower, upper, step]: [Value; 3]) -> (Test, Value) {
        let ty = self.b.ty(upper);
        let sign = 1u64 << (ty.bits() - 1);
        let (of_lower, of_upper) = (self.b.known_zeros(lower), self.b.known_zeros(upper));
        // The next number is the end or less: each is, or steps are powers of two of which all are multiples.
        let exact =
            |step: u64| step == 1 || step.is_power_of_two() && (step - 1) & !(of_lower & of_upper) == 0;
        match self.b.as_const(step) {
            Some(step) if exact(step) => return (Test::Signed, upper),
            _ => {}
        }
        match Counting::of(self.m, f, self.promises).inside(1) {
            Test::Before if of_lower & sign != 0 => (Test::Unsigned, upper),
            Test::Before => {
                let first = self.b.constant(ty, sign);
                let least = self.b.add(first, step);
                let upper = self.int_min_max(arith::Kind::Maxsi, upper, least);
                (Test::Before, self.b.sub(upper, step))
            }
            test => (test, upper),
        }
    }

    /// Whether the iteration `next` follows that of the number `now`.
    pub fn goes_on(&mut self, test: Test, (now, next): (Value, Value), end: Value) -> Value {
        match test {
            Test::Signed => self.b.icmp(IntPred::Slt, next, end),
            Test::Unsigned => self.b.icmp(IntPred::Ult, next, end),
            Test::Before => self.b.icmp(IntPred::Slt, now, end),
        }
    }

    /// A counted loop, tested before the first iteration and after each: what is invariant has a place before it.
    ///
    /// # Errors
    /// What is not supported of the loop, or of what is in it.
    pub fn scf_for(&mut self, f: scf::For) -> Result<()> {
        let m = self.m;
        let (lb, ub, step) =
            (self.scalar(f.lower_bound(m))?, self.scalar(f.upper_bound(m))?, self.scalar(f.step(m))?);
        let results: Vec<ir::Value> = f.results(m).to_vec();
        let body_block = m.region_block(f.body(m));
        let args = m.block_args(body_block).to_vec();

        let tys = self.all_machine_types(&results)?;
        let mut init = self.flatten(f.init(m))?;
        let iv_ty = self.b.ty(lb);
        let pre = self.b.block();
        let mut body_tys = vec![iv_ty];
        body_tys.extend_from_slice(&tys);
        let body = self.b.create_block(pre, Some(pre), &body_tys);
        let outer = self.b.preheader();
        let exit = self.b.create_block(pre, outer, &tys);

        let enter = self.b.icmp(IntPred::Slt, lb, ub);
        let (test, end) = self.end_of(f, [lb, ub, step]);
        let exit_init = init.clone();
        init.insert(0, lb);
        self.b.cond_br(enter, body, &init, exit, &exit_init);

        self.b.switch_to(body);
        let iv = self.b.params(body)[0];
        // A loop that counts up from a non-negative start stays non-negative.
        let known = self.b.known_zeros(lb) & self.b.known_zeros(ub);
        let sign = 1u64 << (iv_ty.bits() - 1);
        if known & sign != 0 {
            self.b.assume_zeros(iv, sign);
        }
        self.bind_params(&args, body)?;
        let op = self.op;
        let last = self.block(body_block)?.ok_or_else(|| self.error("a loop body has no terminator"))?;
        let yielded = self.flatten(scf::Yield(last).values(m))?;
        self.op = op;
        let next = self.b.add(iv, step);
        let again = self.goes_on(test, (iv, next), end);
        let mut back = vec![next];
        back.extend_from_slice(&yielded);
        self.b.cond_br(again, body, &back, exit, &yielded);
        self.b.switch_to(exit);
        self.bind_params(&results, exit)
    }

    pub(crate) fn scf_if(&mut self, f: scf::If) -> Result<()> {
        let m = self.m;
        let cond = self.scalar(f.condition(m))?;
        let results: Vec<ir::Value> = f.results(m).to_vec();
        let tys = self.all_machine_types(&results)?;
        let before = self.b.block();
        let preheader = self.b.preheader();
        let then_ir = m.region_blocks(f.then_region(m)).first().copied();
        let else_ir = m.region_blocks(f.else_region(m)).first().copied();
        let then_block = self.b.create_block(before, preheader, &[]);
        let else_block = else_ir.map(|_| self.b.create_block(before, preheader, &[]));
        let merge = self.b.create_block(before, preheader, &tys);
        self.b.cond_br(cond, then_block, &[], else_block.unwrap_or(merge), &[]);
        let op = self.op;
        for (ir_block, machine) in [(then_ir, Some(then_block)), (else_ir, else_block)] {
            let (Some(ir_block), Some(machine)) = (ir_block, machine) else { continue };
            self.b.switch_to(machine);
            let values = match self.block(ir_block)? {
                Some(end) => self.flatten(scf::Yield(end).values(m))?,
                None => vec![],
            };
            self.b.br(merge, &values);
        }
        self.op = op;
        self.b.switch_to(merge);
        self.bind_params(&results, merge)
    }

    pub(crate) fn scf_while(&mut self, f: scf::While) -> Result<()> {
        let m = self.m;
        let results: Vec<ir::Value> = f.results(m).to_vec();
        let before_ir = m.region_block(f.before(m));
        let after_ir = m.region_block(f.after(m));
        let before_args = m.block_args(before_ir).to_vec();
        let after_args = m.block_args(after_ir).to_vec();
        let init = self.flatten(f.init(m))?;
        let pre = self.b.block();
        let outer = self.b.preheader();
        let (before_tys, after_tys) =
            (self.all_machine_types(&before_args)?, self.all_machine_types(&after_args)?);
        let header = self.b.create_block(pre, Some(pre), &before_tys);
        self.b.br(header, &init);
        self.b.switch_to(header);
        self.bind_params(&before_args, header)?;
        let op = self.op;
        let end = self.block(before_ir)?.ok_or_else(|| self.error("a while condition has no terminator"))?;
        let condition = scf::Condition(end);
        let cond = self.scalar(condition.condition(m))?;
        let args = self.flatten(condition.args(m))?;
        let at = self.b.block();
        let body = self.b.create_block(at, Some(pre), &after_tys);
        let exit = self.b.create_block(at, outer, &after_tys);
        self.b.cond_br(cond, body, &args, exit, &args);
        self.b.switch_to(body);
        self.bind_params(&after_args, body)?;
        let end = self.block(after_ir)?.ok_or_else(|| self.error("a while body has no terminator"))?;
        let yielded = self.flatten(scf::Yield(end).values(m))?;
        self.b.br(header, &yielded);
        self.op = op;
        self.b.switch_to(exit);
        self.bind_params(&results, exit)
    }
}
