//! Inline assembly outside of a kernel: a piece of PTX with operands, run for many values at once.
//!
//! The text and its constraints are in LLVM's syntax (`"add.s32 $0, $1, 1;"`, `"=r,r"`). It becomes the body of a kernel in which each
//! thread loads its operands from memory and stores its results. Which thread that is says nothing, so that text which asks for it, or
//! which speaks to other threads, is refused.

use crate::ast::{Instr, Operand, Stmt};
use crate::{Error, Launch, Memory, Param, Program, SimOptions};
use std::fmt::Write as _;

/// A piece of PTX with operands.
pub struct InlineAsm {
    program: Program,
    results: usize,
    operands: usize,
}

impl std::fmt::Debug for InlineAsm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InlineAsm({} results, {} operands)", self.results, self.operands)
    }
}

/// The name of the kernel.
const ENTRY: &str = "inline_asm";
/// Threads of a CTA.
const BLOCK: u32 = 256;
/// Instructions after which a run is stopped, so that it ends.
const MAX_INSTRUCTIONS: u64 = 1 << 30;

/// What only some thread, or several together, can answer. (PTX ISA, "Special Registers".)
const OF_A_THREAD: &[&str] = &[
    "tid",
    "ntid",
    "laneid",
    "warpid",
    "nwarpid",
    "ctaid",
    "nctaid",
    "smid",
    "nsmid",
    "gridid",
    "is_explicit_cluster",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
    "cluster_ctarank",
    "cluster_nctarank",
    "lanemask_eq",
    "lanemask_le",
    "lanemask_lt",
    "lanemask_ge",
    "lanemask_gt",
    "total_smem_size",
    "aggr_smem_size",
    "dynamic_smem_size",
];
/// Instructions of several threads, or of a kernel's own memory and course.
const OF_THREADS: &[&str] = &[
    "bar",
    "barrier",
    "shfl",
    "vote",
    "match",
    "activemask",
    "redux",
    "elect",
    "mma",
    "wmma",
    "wgmma",
    "ldmatrix",
    "stmatrix",
    "movmatrix",
    "mbarrier",
    "cp",
    "setmaxnreg",
    "griddepcontrol",
    "mapa",
    "getctarank",
    "multimem",
    "ret",
    "exit",
    "call",
];

/// The register of an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Register {
    Pred,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Register {
    fn of(code: &str) -> Option<Register> {
        Some(match code {
            "b" => Register::Pred,
            "h" | "c" => Register::B16,
            "r" => Register::B32,
            "l" | "N" => Register::B64,
            "f" => Register::F32,
            "d" => Register::F64,
            _ => return None,
        })
    }

    fn ty(self) -> &'static str {
        match self {
            Register::Pred => "pred",
            Register::B16 => "b16",
            Register::B32 => "b32",
            Register::B64 => "b64",
            Register::F32 => "f32",
            Register::F64 => "f64",
        }
    }

    fn bits(self) -> u32 {
        match self {
            Register::Pred => 1,
            Register::B16 => 16,
            Register::B32 | Register::F32 => 32,
            Register::B64 | Register::F64 => 64,
        }
    }

    /// Instructions that bring a word of 64 bits to the register, or, the other way, the register to a word.
    fn moved(self, name: &str, to_register: bool) -> String {
        match (self, to_register) {
            (Register::Pred, true) => format!("setp.ne.b64 {name}, asm_word, 0;"),
            (Register::Pred, false) => format!("selp.b64 asm_word, 1, 0, {name};"),
            (Register::B16, true) => format!("cvt.u16.u64 {name}, asm_word;"),
            (Register::B16, false) => format!("cvt.u64.u16 asm_word, {name};"),
            (Register::B32, true) => format!("cvt.u32.u64 {name}, asm_word;"),
            (Register::B32, false) => format!("cvt.u64.u32 asm_word, {name};"),
            (Register::F32, true) => format!("cvt.u32.u64 asm_half, asm_word; mov.b32 {name}, asm_half;"),
            (Register::F32, false) => format!("mov.b32 asm_half, {name}; cvt.u64.u32 asm_word, asm_half;"),
            (Register::B64 | Register::F64, true) => format!("mov.b64 {name}, asm_word;"),
            (Register::B64 | Register::F64, false) => format!("mov.b64 asm_word, {name};"),
        }
    }
}

impl InlineAsm {
    /// Reads a text and its constraints. `results` and `operands` are the bits of each; what an operand's register has more is zero.
    ///
    /// # Errors
    /// Constraints for other operands, a text that is no PTX or that needs to know its thread.
    pub fn new(text: &str, constraints: &str, results: &[u32], operands: &[u32]) -> Result<InlineAsm, Error> {
        let constraints = &constraints.replace(' ', "");
        let (outputs, inputs) = registers(constraints)?;
        for (what, given, wanted) in
            [("results", outputs.len(), results.len()), ("operands", inputs.len(), operands.len())]
        {
            if given != wanted {
                return Err(Error::new(format!(
                    "the constraints `{constraints}` are for {given} {what}, but there are {wanted} (with `pack`, registers count)"
                )));
            }
        }
        let register = |n: usize| match inputs.get(n.wrapping_sub(outputs.len())) {
            Some(Ok(_)) => format!("asm_{n}"),
            Some(Err(tied)) => format!("asm_{tied}"),
            None => format!("asm_{n}"),
        };
        let mut ptx = format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry {ENTRY}(.param .u64 inputs, .param .u64 outputs, .param .u32 count) {{\n\
             .reg .pred asm_beyond;\n.reg .b32 asm_at, asm_size, asm_count, asm_half;\n.reg .b64 asm_in, asm_out, asm_word, asm_step;\n\
             ld.param.u64 asm_in, [inputs];\nld.param.u64 asm_out, [outputs];\nld.param.u32 asm_count, [count];\n\
             mov.u32 asm_at, %ctaid.x;\nmov.u32 asm_size, %ntid.x;\nmov.u32 asm_half, %tid.x;\nmad.lo.u32 asm_at, asm_at, asm_size, asm_half;\n\
             setp.ge.u32 asm_beyond, asm_at, asm_count;\n@asm_beyond ret;\nmul.wide.u32 asm_step, asm_at, 8;\n\
             add.s64 asm_in, asm_in, asm_step;\nadd.s64 asm_out, asm_out, asm_step;\nmul.wide.u32 asm_step, asm_count, 8;\n"
        );
        for (n, (place, &bits)) in outputs
            .iter()
            .map(|&r| Ok(r))
            .chain(inputs.iter().copied())
            .zip(results.iter().chain(operands))
            .enumerate()
        {
            let fits = match place {
                // A result of 64 bits whose constraint is `r` is zeros above: LLVM leaves them open.
                Ok(register) => bits <= register.bits() || n < outputs.len() && register == Register::B32,
                Err(tied) => outputs.get(tied).is_some_and(|r| bits <= r.bits()),
            };
            if !fits {
                return Err(Error::new(format!(
                    "${n} has {bits} bits, which its constraint in `{constraints}` has no register for"
                )));
            }
            if let Ok(register) = place {
                let _ = writeln!(ptx, ".reg .{} asm_{n};", register.ty());
            }
        }
        for (k, place) in inputs.iter().enumerate() {
            let kind = place.unwrap_or_else(|tied| outputs[tied]);
            let name = register(outputs.len() + k);
            let _ = writeln!(
                ptx,
                "ld.global.b64 asm_word, [asm_in];\nadd.s64 asm_in, asm_in, asm_step;\n{}",
                kind.moved(&name, true)
            );
        }
        let body = substituted(text, outputs.len() + inputs.len(), register)?;
        let _ = writeln!(ptx, "{{\n{body}\n}}");
        for (k, kind) in outputs.iter().enumerate() {
            let name = format!("asm_{k}");
            let _ = writeln!(
                ptx,
                "{}\nst.global.b64 [asm_out], asm_word;\nadd.s64 asm_out, asm_out, asm_step;",
                kind.moved(&name, false)
            );
        }
        ptx.push_str("ret;\n}\n");
        let program = Program::parse(&ptx).map_err(of_text)?;
        let statements = program.module().functions.iter().filter_map(|f| f.body.as_deref()).flatten();
        for inside in statements.filter(|s| matches!(s, Stmt::Block(_))) {
            alone(inside)?;
        }
        program.params(ENTRY).map_err(of_text)?;
        Ok(InlineAsm { program, results: outputs.len(), operands: inputs.len() })
    }

    /// Runs it for `count` values: `inputs` are all of the first operand, then all of the second, and so on; so are the results.
    ///
    /// # Errors
    /// What the simulator finds wrong, such as an access outside of `memory`.
    pub fn run(&self, inputs: &mut [u64], count: u32, memory: &Memory) -> Result<Vec<u64>, Error> {
        let mut outputs = vec![0u64; self.results * count as usize];
        if inputs.len() != self.operands * count as usize {
            return Err(Error::new("the operands are not as many as there are values"));
        }
        if count == 0 {
            return Ok(outputs);
        }
        let mut memory = memory.clone();
        // SAFETY: both live to the end of the function, and nothing but the launch touches them meanwhile.
        unsafe {
            memory.register_slice(inputs, "operands");
            memory.register_slice(&mut outputs, "results");
        }
        let launch = Launch {
            entry: ENTRY.into(),
            grid: [count.div_ceil(BLOCK), 1, 1],
            block: [BLOCK.min(count), 1, 1],
            cluster: None,
            shared_bytes: 0,
            params: vec![
                Param::Pointer(inputs.as_ptr() as u64),
                Param::Pointer(outputs.as_ptr() as u64),
                Param::Int(count.into()),
            ],
        };
        let options = SimOptions {
            checks: false,
            threads: 1,
            stop_at_first: true,
            max_instructions: MAX_INSTRUCTIONS,
            ..SimOptions::default()
        };
        let report = self.program.launch(&launch, &memory, &options)?;
        match report.findings.first() {
            Some(finding) => Err(Error::new(finding.message.clone())),
            None => Ok(outputs),
        }
    }
}

/// An error without its line, which is one of the kernel around the text.
fn of_text(error: Error) -> Error {
    Error::new(error.message)
}

/// An operand's own register, or the result whose register it shares.
type Place = Result<Register, usize>;

/// The registers of the results, and those of the operands.
fn registers(constraints: &str) -> Result<(Vec<Register>, Vec<Place>), Error> {
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    for entry in constraints.split(',').filter(|c| !constraints.is_empty() && !c.starts_with("~{")) {
        let wrong =
            |what: &str| Err(Error::new(format!("the constraint `{entry}` in `{constraints}` {what}")));
        let (output, code) = match entry.strip_prefix('=') {
            Some(code) => (true, code.strip_prefix('&').unwrap_or(code)),
            None => (false, entry),
        };
        if output && !inputs.is_empty() {
            return wrong("stands in the wrong order: results, then operands, then clobbers");
        }
        match (Register::of(code), code.parse::<usize>()) {
            (Some(register), _) if output => outputs.push(register),
            (Some(register), _) => inputs.push(Ok(register)),
            (None, Ok(tied)) if !output && tied < outputs.len() => inputs.push(Err(tied)),
            _ if code == "q" => return wrong("is not supported yet: registers of 128 bits"),
            _ => return wrong("is none of PTX: b, h, r, l, f, d, with `=` before it for a result"),
        }
    }
    Ok((outputs, inputs))
}

/// The text with the names of its operands' registers.
fn substituted(text: &str, operands: usize, register: impl Fn(usize) -> String) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (inside, after) = match rest.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some((inside, after)) => (inside, after),
            None => rest.split_at(digits),
        };
        rest = after;
        match inside.strip_suffix(":r").unwrap_or(inside) {
            ":uid" => out.push('0'),
            ":comment" => out.push_str("//"),
            ":private" => {}
            number => match number.parse::<usize>() {
                Ok(n) if n < operands => out.push_str(&register(n)),
                _ => {
                    return Err(Error::new(format!(
                        "`${inside}` is no operand: the constraints name {operands}, from $0 on; `$$` stands for a dollar sign"
                    )));
                }
            },
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Checks that a statement needs no other thread, and needn't know which it is.
fn alone(statement: &Stmt) -> Result<(), Error> {
    match statement {
        Stmt::Block(inside) => inside.iter().try_for_each(alone),
        Stmt::Instr(instruction) => {
            let refuse =
                |what: &str| Err(Error::new(format!("not supported yet: {what} outside of a GPU's thread")));
            if OF_THREADS.contains(&instruction.op.as_str()) {
                return refuse(&format!("`{}`", instruction.name()));
            }
            match special(instruction) {
                Some(name) => refuse(&format!("`%{name}`")),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// A special register that only a thread has.
fn special(instruction: &Instr) -> Option<&str> {
    fn of(operand: &Operand) -> Option<&str> {
        match operand {
            Operand::Ident(name) | Operand::Component(name, _) => {
                name.strip_prefix('%').filter(|name| OF_A_THREAD.contains(name))
            }
            Operand::Vector(items) => items.iter().find_map(of),
            _ => None,
        }
    }
    instruction.operands.iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        text: &str,
        constraints: &str,
        results: &[u32],
        operands: &[u32],
        inputs: &[u64],
    ) -> Result<Vec<u64>, Error> {
        let asm = InlineAsm::new(text, constraints, results, operands)?;
        let count = inputs.len() / operands.len().max(1);
        asm.run(&mut inputs.to_vec(), count as u32, &Memory::new())
    }

    #[test]
    fn values() {
        assert_eq!(run("add.s32 $0, $1, $2;", "=r,r,r", &[32], &[32; 2], &[1, 2, 10, 20]).unwrap(), [11, 22]);
        let text = "{ .reg .b32 t; shl.b32 t, $2, 1; add.s32 $0, t, 3; mov.b32 $1, t; }";
        assert_eq!(run(text, "=r,=r,r", &[32; 2], &[32], &[5, 6]).unwrap(), [13, 15, 10, 12]);
        assert_eq!(
            run("add.u16 $0, ${1}, $$0;".replace("$$0", "7").as_str(), "=h,0", &[16], &[16], &[65535])
                .unwrap(),
            [6]
        );
        let two = u64::from(2f32.to_bits());
        assert_eq!(
            run("mul.f32 $0, $1, $1;", "=f,f", &[32], &[32], &[two]).unwrap(),
            [u64::from(4f32.to_bits())]
        );
        let text = "L${:uid}: setp.ge.s64 $0, $1, 3; @$0 bra done${:uid}; setp.eq.s64 $0, 0, 0; done${:uid}:";
        assert_eq!(run(text, "=b,l", &[1], &[64], &[1, 9]).unwrap(), [1, 1]);
        let many: Vec<u64> = (0..1000).collect();
        let doubled: Vec<u64> = (0..1000).map(|n| 2 * n).collect();
        assert_eq!(run("add.s64 $0, $1, $1;", "=l,l,~{memory}", &[64], &[64], &many).unwrap(), doubled);
    }

    #[test]
    fn refusals() {
        for (text, constraints) in [
            ("mov.u32 $0, %laneid;", "=r,r"),
            ("mov.u32 $0, %tid.x;", "=r,r"),
            ("shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "=r,r"),
            ("bar.sync 0;", "=r,r"),
            ("nonsense.u32 $0, $1;", "=r,r"),
            ("mov.u32 $0, $2;", "=r,r"),
            ("mov.u32 $0, $1;", "=r"),
            ("mov.u32 $0, $1;", "=h,r"),
            ("mov.u32 $0, $1;", "=r,x"),
            ("mov.u32 $0, $1;", "=q,r"),
            ("mov.u32 $0, $1", "=r,r"),
            ("ld.global.u32 $0, [0];", "=r,r"),
        ] {
            assert!(run(text, constraints, &[32], &[32], &[1]).is_err(), "{text} {constraints}");
        }
    }
}
