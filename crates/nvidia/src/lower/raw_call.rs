//! `tt.raw_call`: the author's own code, run by every thread. PTX becomes inline assembly, a function of it with its parameters and returns
//! replaced ([`PtxFunction`]); LLVM IR is linked with the module and inlined there.

use std::fmt::Write;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::dialect::tt::{self, RawLanguage};
use tilewright_llvm::{BinOp, CastOp, Effect, IntPred, Scalar, Space, Ty, Value, emit};
use tilewright_lower::OWN_PREFIX;

use super::{Lower, Result};
use crate::author_lines;
use crate::ptx_function::{Group, Parameter, PtxFunction, Slot, for_group};

/// A parameter of a call: what the author calls it, and the registers in which a thread has it.
struct Argument {
    name: String,
    regs: Vec<Value>,
    /// Whether its value behind the call is a result, and the number of the first of these registers among all results.
    result: Option<usize>,
}

/// The name under which a function of the author's LLVM IR is linked: no other code has it.
pub(crate) fn linked_name(source: &str, symbol: &str) -> String {
    format!("{}{symbol}", unique_prefix(source))
}

/// LLVM IR whose threads are numbered along several dimensions: what asks for their numbers calls functions of ours instead.
pub(crate) fn with_threads(source: String, threads: &[i32]) -> String {
    if threads.len() < 2 {
        return source;
    }
    const ASKED: &str = "@llvm.nvvm.read.ptx.sreg.";
    let kept: Vec<&str> = source
        .lines()
        .filter(|line| {
            let mut names = ["tid.", "ntid."].iter().map(|kind| format!("{ASKED}{kind}"));
            !(line.trim_start().starts_with("declare") && names.any(|name| line.contains(&name)))
        })
        .collect();
    let mut text = kept.join("\n");
    for kind in ["tid", "ntid"] {
        text = text.replace(&format!("{ASKED}{kind}."), &format!("@own.{kind}."));
    }
    let _ = writeln!(text, "\ndeclare i32 {ASKED}tid.x()");
    let mut inner = 1;
    for (d, axis) in ["x", "y", "z"].into_iter().enumerate() {
        let extent = threads.get(d).copied().unwrap_or(1);
        let _ = writeln!(
            text,
            "define internal i32 @own.ntid.{axis}() {{\n  ret i32 {extent}\n}}\ndefine internal i32 @own.tid.{axis}() {{\n  %t = call i32 {ASKED}tid.x()\n  %q = udiv i32 %t, {inner}\n  %r = urem i32 %q, {extent}\n  ret i32 %r\n}}"
        );
        inner *= extent;
    }
    text
}

fn unique_prefix(source: &str) -> String {
    let mut hasher = FxHasher::default();
    source.hash(&mut hasher);
    format!("{OWN_PREFIX}raw_{:016x}_", hasher.finish())
}

/// The greatest PTX version that the author's PTX says it is in, as its line has it.
pub(crate) fn ptx_version(module: &ir::Module) -> Option<(u32, u32)> {
    let mut greatest = None;
    module.walk(module.root(), &mut |op| {
        let Some(call) = tt::RawCall::cast(module, op) else { return };
        if call.language(module) == RawLanguage::Ptx {
            let source = call.source(module);
            let line = source.lines().find_map(|line| line.trim_start().strip_prefix(".version"));
            let version = line.and_then(|v| v.trim().split_once('.'));
            let version = version.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
            greatest = greatest.max(version);
        }
    });
    greatest
}

/// An error of a tool that came behind, with the first call of the author's own code as its place: what is generated has been tried more often.
/// `ptx` is the text that the tool had, of which the error may name lines.
pub(crate) fn blame(module: &ir::Module, error: Diagnostic, ptx: Option<&str>) -> Diagnostic {
    let mut calls = Vec::new();
    module.walk(module.root(), &mut |op| calls.extend(tt::RawCall::cast(module, op)));
    let Some(first) = calls.first().filter(|_| error.span.is_none()) else { return error };
    let shown = |call: &tt::RawCall| match call.symbol(module) {
        symbol if symbol.is_empty() => format!("text in {}", call.language(module).keyword()),
        symbol => format!("`{symbol}` in {}", call.language(module).keyword()),
    };
    let mut names: Vec<String> = calls.iter().map(shown).collect();
    names.dedup();
    let named = error.message.split("line ").nth(1).and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: usize = rest[..digits].parse().ok()?;
        Some(format!("line {number} is: {}", ptx?.lines().nth(number.checked_sub(1)?)?.trim()))
    });
    let mut blamed = Diagnostic::at(module, module.op_loc(first.0), error.message).of(error.kind);
    blamed.notes = error.notes;
    blamed.notes.extend(named);
    blamed.note(format!("the kernel calls code of its author's: {}", names.join(", ")))
}

impl Lower<'_, '_> {
    /// Records the call.
    pub fn raw_call(&mut self, op: tt::RawCall) -> Result<()> {
        let m = self.m;
        let inputs = op.inputs(m).len();
        let operands = m.operands(op.0).to_vec();
        let (mut arguments, mut results) = (Vec::new(), Vec::new());
        // Results stand in the order of the outputs.
        let mut first_of: Vec<Option<usize>> = vec![None; operands.len()];
        for (i, &v) in operands.iter().enumerate().skip(inputs) {
            if m.pointee_type(self.value_ty(v)).is_none() {
                first_of[i] = Some(results.len());
                let regs = self.regs(v)?;
                results.extend(regs.iter().map(|&r| self.b.ty(r)));
            }
        }
        for (name, &i) in op.names(m).into_iter().zip(&op.order(m)) {
            let regs = self.regs(operands[i as usize])?.to_vec();
            arguments.push(Argument { name, regs, result: first_of[i as usize] });
        }
        let threads = self.threads_of(op, &results)?;
        let merge = threads.map(|threads| self.run_by_first(threads));
        let values = match op.language(m) {
            RawLanguage::Llvm => self.raw_llvm(op, &arguments, &results)?,
            RawLanguage::Ptx if op.symbol(m).is_empty() => self.raw_ptx_text(op, &arguments, &results)?,
            RawLanguage::Ptx => self.raw_ptx_function(op, &arguments, &results, threads.is_some())?,
        };
        if let Some(merge) = merge {
            self.b.br(merge, &[]);
            self.b.switch_to(merge);
        }
        let mut values = values.into_iter();
        let all = m.results(op.0).to_vec();
        let outputs = operands[inputs..].iter().filter(|&&v| m.pointee_type(m.value_type(v)).is_none());
        for (result, &output) in all.into_iter().zip(outputs) {
            let count = self.regs(output)?.len();
            let regs: Vec<Value> = values.by_ref().take(count).collect();
            self.set_regs(result, regs);
        }
        Ok(())
    }

    /// How many threads run the call, where it isn't all.
    fn threads_of(&self, op: tt::RawCall, results: &[Ty]) -> Result<Option<u32>> {
        let here = self.num_warps * self.target.warp_size;
        let extents = op.threads(self.m);
        let wanted: u32 = extents.iter().map(|&n| n as u32).product();
        if extents.is_empty() || wanted == here {
            return Ok(None);
        }
        if wanted > here {
            let error = self.error(format!("the function wants {wanted} threads, but {here} run this"));
            let warps = wanted.div_ceil(self.target.warp_size);
            return Err(error.note(format!("launch the kernel with num_warps={warps}")).into());
        }
        if !results.is_empty() {
            let error = self.error(format!(
                "an output of the function is held in the registers of {here} threads, of which {wanted} run it"
            ));
            return Err(error
                .note("hand it over in shared memory: `layout={x: {\"space\": \"shared\"}}`")
                .into());
        }
        Ok(Some(wanted))
    }

    /// From here on the first threads run alone, until the block that is returned.
    fn run_by_first(&mut self, threads: u32) -> tilewright_llvm::Block {
        let tid = self.tid();
        let limit = self.b.i32(i64::from(threads));
        let first = self.b.icmp(IntPred::Ult, tid, limit);
        let (before, preheader) = (self.b.block(), self.b.preheader());
        let body = self.b.create_block(before, preheader, &[]);
        let merge = self.b.create_block(before, preheader, &[]);
        self.b.cond_br(first, body, &[], merge, &[]);
        self.b.switch_to(body);
        merge
    }

    /// Who runs this, where it isn't the whole CTA along one dimension, with the numbers of the thread there, which are operands from `first` on.
    fn group(&mut self, op: tt::RawCall, first: usize) -> Option<(Group, Vec<Value>)> {
        let whole = self.num_warps == self.scope.launched;
        let said = op.threads(self.m);
        if whole && said.len() < 2 {
            return None;
        }
        let mut threads = [1; 3];
        threads[0] = self.num_warps * self.target.warp_size;
        if said.len() > 1 {
            said.iter().zip(&mut threads).for_each(|(&n, extent)| *extent = n as u32);
        }
        let (mut numbers, mut thread) = (Vec::new(), [None; 3]);
        let mut rest = self.tid();
        for (d, &extent) in threads.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let outermost = threads[d + 1..].iter().all(|&n| n == 1);
            let by = self.b.i32(i64::from(extent));
            thread[d] = Some(first + numbers.len());
            numbers.push(if outermost { rest } else { self.b.bin(BinOp::URem, rest, by) });
            if !outermost {
                rest = self.b.bin(BinOp::UDiv, rest, by);
            }
        }
        let barrier = (!whole).then_some(self.scope.barrier);
        Some((Group { thread, threads, barrier }, numbers))
    }

    // ---- PTX -------------------------------------------------------------------------------------------------------

    /// A value as inline PTX takes it: bits of 16, 32 or 64, with the letter of its constraint.
    fn ptx_operand(&mut self, value: Value, generic: bool) -> (Value, char) {
        let ty = self.b.ty(value);
        match ty.scalar {
            Scalar::Ptr(Space::Shared) if generic => (self.b.addrspace_cast(value, Space::Generic), 'l'),
            Scalar::Ptr(space) => (value, if space.pointer_bits() == 32 { 'r' } else { 'l' }),
            Scalar::I1 | Scalar::I8 => (self.b.int_cast(value, Ty::I16, false), 'h'),
            _ => match ty.bits() {
                16 => (self.b.bitcast(value, Ty::I16), 'h'),
                32 => (self.b.bitcast(value, Ty::I32), 'r'),
                _ => (self.b.bitcast(value, Ty::I64), 'l'),
            },
        }
    }

    /// Records inline PTX whose results are these, each tied to the operand of the same value before where `tied`.
    fn raw_asm(
        &mut self,
        text: &str,
        results: &[Ty],
        tied: &[Option<usize>],
        inputs: &[(Value, char)],
    ) -> Vec<Value> {
        let words: Vec<Ty> = results
            .iter()
            .map(|ty| match ty.bits() {
                ..=16 => Ty::I16,
                32 => Ty::I32,
                _ => Ty::I64,
            })
            .collect();
        let letter = |ty: &Ty| match ty.bits() {
            16 => 'h',
            32 => 'r',
            _ => 'l',
        };
        let mut constraints: Vec<String> = words.iter().map(|ty| format!("={}", letter(ty))).collect();
        for (i, (_, letter)) in inputs.iter().enumerate() {
            constraints.push(match tied.get(i).copied().flatten() {
                Some(result) => result.to_string(),
                None => letter.to_string(),
            });
        }
        constraints.push("~{memory}".into());
        let values: Vec<Value> = inputs.iter().map(|i| i.0).collect();
        let out = self.b.asm(text, &constraints.join(","), Effect::Write, &words, &values);
        out.into_iter()
            .zip(results)
            .map(|(word, &ty)| match ty.scalar {
                Scalar::I1 | Scalar::I8 => self.b.int_cast(word, ty, false),
                _ => self.b.bitcast(word, ty),
            })
            .collect()
    }

    /// PTX in place of the call, with `%[name]` for operands.
    fn raw_ptx_text(
        &mut self,
        op: tt::RawCall,
        arguments: &[Argument],
        results: &[Ty],
    ) -> Result<Vec<Value>> {
        let source = op.source(self.m);
        let mut inputs = Vec::new();
        let mut tied = Vec::new();
        // The operand that each register of each argument is: a result where it has one.
        let mut numbers: Vec<Vec<usize>> = Vec::new();
        for argument in arguments {
            let mut own = Vec::new();
            for (k, &reg) in argument.regs.iter().enumerate() {
                own.push(argument.result.map_or(results.len() + inputs.len(), |first| first + k));
                tied.push(argument.result.map(|first| first + k));
                inputs.push(self.ptx_operand(reg, false));
            }
            numbers.push(own);
        }
        let mut text = self.with_operands(&source, arguments, &numbers)?;
        if let Some((group, numbers)) = self.group(op, results.len() + inputs.len()) {
            let parts: std::result::Result<Vec<String>, String> =
                text.split(';').map(|s| for_group(s, &group)).collect();
            text = parts.map_err(|e| self.error(format!("the PTX text: {e}")))?.join(";");
            inputs.extend(numbers.into_iter().map(|number| (number, 'r')));
        }
        let files = author_lines::files(&source);
        let escaped = files.into_iter().map(|(number, name)| (number, name.replace('$', "$$")));
        let text = author_lines::marked(&text, &escaped.collect::<Vec<_>>());
        Ok(self.raw_asm(&format!("{{\n{text}\n}}"), results, &tied, &inputs))
    }

    /// The text with its `%[name]` replaced, as LLVM takes it.
    fn with_operands(&self, source: &str, arguments: &[Argument], numbers: &[Vec<usize>]) -> Result<String> {
        let mut out = String::with_capacity(source.len());
        let mut rest = source;
        while let Some(at) = rest.find("%[") {
            out.push_str(&rest[..at].replace('$', "$$"));
            let before = source[..source.len() - rest.len() + at].split('\n');
            let line = before.filter(|l| !l.starts_with(".loc") && !l.starts_with(".file")).count();
            let wrong = |what: String| Err(self.error(format!("line {line} of the PTX text: {what}")));
            let Some((inside, after)) = rest[at + 2..].split_once(']') else {
                return wrong("`%[` has no closing bracket".into());
            };
            rest = after;
            let (name, element) = match inside.split_once('.') {
                Some((name, element)) => (name, Some(element)),
                None => (inside, None),
            };
            let Some(i) = arguments.iter().position(|a| a.name == name) else {
                let known: Vec<&str> = arguments.iter().map(|a| a.name.as_str()).collect();
                return wrong(format!("`%[{inside}]` names no parameter; there are {}", known.join(", ")));
            };
            let count = numbers[i].len();
            let number = match element {
                None if count == 1 => Some(0),
                None => None,
                Some(e) => e.parse::<usize>().ok().filter(|&e| e < count),
            };
            match number {
                Some(e) => out.push_str(&format!("${}", numbers[i][e])),
                None if count == 1 => {
                    return wrong(format!("`%[{inside}]`: a thread has one element of `{name}`"));
                }
                None => {
                    let last = count - 1;
                    return wrong(format!(
                        "`%[{inside}]`: a thread has {count} elements of `{name}`, %[{name}.0] to %[{name}.{last}]"
                    ));
                }
            }
        }
        out.push_str(&rest.replace('$', "$$"));
        Ok(out)
    }

    /// A function of a PTX module, inlined.
    fn raw_ptx_function(
        &mut self,
        op: tt::RawCall,
        arguments: &[Argument],
        results: &[Ty],
        few: bool,
    ) -> Result<Vec<Value>> {
        let (source, symbol) = (op.source(self.m), op.symbol(self.m));
        let fails = |l: &Self, e: String| l.error(format!("`{symbol}` in PTX: {e}"));
        let function =
            PtxFunction::find(&source, &symbol, unique_prefix(&source)).map_err(|e| fails(self, e))?;
        if few && function.has_barrier() {
            let error = fails(self, "it has a barrier for all threads, of which only some run it".into());
            return Err(error
                .note("leave out `threads` of `hardware`, or let it be that of the kernel")
                .into());
        }
        let groups = self.spread(&symbol, arguments, function.params.len())?;
        let mut inputs = Vec::new();
        let mut slots = Vec::new();
        let first_input: usize = results.len();
        for (parameter, (name, regs)) in function.params.iter().zip(&groups) {
            let mut own = Vec::new();
            let mut at = 0;
            for &reg in regs {
                let (word, letter) = self.ptx_operand(reg, true);
                let bytes = if letter == 'l' { 8 } else { self.b.ty(reg).bits().div_ceil(8) };
                at = u32::next_multiple_of(at, bytes);
                own.push(Slot { operand: first_input + inputs.len(), offset: at, bytes });
                at += bytes;
                inputs.push((word, letter));
            }
            self.check_size(&symbol, parameter, name, at)?;
            slots.push(own);
        }
        let mut returned = Vec::new();
        let mut at = 0;
        for (operand, ty) in results.iter().enumerate() {
            let bytes = ty.bits().div_ceil(8);
            at = u32::next_multiple_of(at, bytes);
            returned.push(Slot { operand, offset: at, bytes });
            at += bytes;
        }
        match &function.results[..] {
            [] if results.is_empty() => {}
            [one] if !results.is_empty() => self.check_size(&symbol, one, "what it returns", at)?,
            [] => {
                let error = fails(self, "it returns nothing, but an output is held in registers".into());
                return Err(error
                    .note("let it return the new value, or hand the output over in shared memory")
                    .into());
            }
            _ => {
                let error = fails(self, "it returns a value, but the call has no output in registers".into());
                return Err(error
                    .note("say so: `layout={x: {\"space\": \"registers\"}}`, of a parameter that is InOut")
                    .into());
            }
        }
        let group = self.group(op, first_input + inputs.len());
        if let Some((_, numbers)) = &group {
            inputs.extend(numbers.iter().map(|&number| (number, 'r')));
        }
        let group = group.map(|g| g.0);
        let text = function.inlined(&[returned], &slots, group.as_ref()).map_err(|e| fails(self, e))?;
        let declarations = function.declarations();
        if !declarations.is_empty() && !self.b.module.assembly.contains(&declarations) {
            self.b.module.assembly.push(declarations);
        }
        Ok(self.raw_asm(&text, results, &[], &inputs))
    }

    /// That a parameter has room for what is handed over, and is full.
    fn check_size(&self, symbol: &str, parameter: &Parameter, name: &str, bytes: u32) -> Result<()> {
        // What is narrower than a register fills one.
        let fits = bytes == parameter.bytes
            || !parameter.is_aggregate && bytes <= parameter.bytes && parameter.bytes == 4
            || parameter.is_aggregate && bytes < parameter.bytes && parameter.bytes - bytes < 8;
        if fits {
            return Ok(());
        }
        let error = self.error(format!(
            "`{symbol}` has {} bytes for `{name}`, but the call has {bytes} in each thread",
            parameter.bytes
        ));
        Err(error
            .note("a tensor is handed over by its address unless `layout` says {\"space\": \"registers\"}")
            .into())
    }

    /// The registers of each parameter of a function: those of an argument, or each of them by itself. The function may also leave out the
    /// outputs in registers, and only return them.
    fn spread(
        &self,
        symbol: &str,
        arguments: &[Argument],
        params: usize,
    ) -> Result<Vec<(String, Vec<Value>)>> {
        for with_outputs in [true, false] {
            let taken: Vec<&Argument> =
                arguments.iter().filter(|a| with_outputs || a.result.is_none()).collect();
            if params == taken.len() {
                return Ok(taken.iter().map(|a| (a.name.clone(), a.regs.clone())).collect());
            }
            let each: Vec<_> =
                taken.iter().flat_map(|a| a.regs.iter().map(|&r| (a.name.clone(), vec![r]))).collect();
            if params == each.len() {
                return Ok(each);
            }
        }
        let given = arguments.iter().map(|a| match a.regs.len() {
            1 => a.name.clone(),
            n => format!("{} ({n} elements in each thread)", a.name),
        });
        let given: Vec<String> = given.collect();
        Err(self.error(format!(
            "`{symbol}` has {params} parameters, but the call gives {}: {}",
            arguments.len(),
            given.join(", ")
        )))
    }

    // ---- LLVM ------------------------------------------------------------------------------------------------------

    /// A function of LLVM IR, called: it is linked with the module, and inlined.
    fn raw_llvm(&mut self, op: tt::RawCall, arguments: &[Argument], results: &[Ty]) -> Result<Vec<Value>> {
        let (source, symbol) = (with_threads(op.source(self.m), &op.threads(self.m)), op.symbol(self.m));
        let signature = emit::signature(&source, &symbol)
            .map_err(|e| self.error(format!("the LLVM IR of `{symbol}`: {e}")))?;
        if self.num_warps != self.scope.launched
            && (source.contains("sreg.tid") || source.contains("barrier0"))
        {
            return Err(self
                .unsupported("LLVM IR that asks for the thread's number, or has a barrier, in a partition"));
        }
        let groups = self.spread(&symbol, arguments, signature.params.len())?;
        let mut values = Vec::new();
        for (&wanted, (name, regs)) in signature.params.iter().zip(&groups) {
            let [reg] = regs[..] else {
                return Err(self.error(format!(
                    "`{symbol}` has one parameter for `{name}`, of which each thread has {} elements",
                    regs.len()
                )));
            };
            let given = self.b.ty(reg);
            let value = match (given.scalar, wanted.scalar) {
                (a, b) if a == b => reg,
                (Scalar::Ptr(_), Scalar::Ptr(Space::Generic)) => self.b.addrspace_cast(reg, Space::Generic),
                (Scalar::Ptr(_), Scalar::I64) => {
                    let generic = self.b.addrspace_cast(reg, Space::Generic);
                    self.b.cast(CastOp::PtrToInt, generic, Ty::I64)
                }
                _ => {
                    return Err(self.error(format!(
                        "the parameter of `{symbol}` for `{name}` is {}, but the call gives {}",
                        wanted.scalar.mangled(),
                        given.scalar.mangled()
                    )));
                }
            };
            values.push(value);
        }
        if signature.results != results {
            return Err(self.error(format!(
                "`{symbol}` returns {} values, which are not the {} registers of the call's outputs",
                signature.results.len(),
                results.len()
            )));
        }
        let name = linked_name(&source, &symbol);
        let callee = self.b.module.declare(&name, &signature.params, results);
        Ok(self.b.call(callee, &values).to_vec())
    }
}
