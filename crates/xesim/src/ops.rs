//! Arithmetic, comparisons, conversions and vectors.

use crate::Error;
use crate::module::{Type, id_of, literal, malformed, unsupported};
use crate::translate::{Regs, Translator, bits, ids, result};
use rspirv::dr::Instruction;
use rspirv::spirv::{CLOp, Op};
use tilewright_libdevice as libdevice;

/// The PTX instruction of two or one operands for an operation on elements of `b` bits.
fn elementwise(op: Op, b: u32) -> Option<String> {
    let rn = if b == 16 { "" } else { ".rn" };
    Some(match op {
        Op::IAdd => format!("add.s{b}"),
        Op::ISub => format!("sub.s{b}"),
        Op::IMul => format!("mul.lo.s{b}"),
        Op::SDiv => format!("div.s{b}"),
        Op::UDiv => format!("div.u{b}"),
        Op::SRem => format!("rem.s{b}"),
        Op::UMod => format!("rem.u{b}"),
        Op::SNegate => format!("neg.s{b}"),
        Op::FAdd => format!("add{rn}.f{b}"),
        Op::FSub => format!("sub{rn}.f{b}"),
        Op::FMul => format!("mul{rn}.f{b}"),
        Op::FDiv if b > 16 => format!("div.rn.f{b}"),
        Op::FNegate => format!("neg.f{b}"),
        Op::BitwiseAnd => format!("and.b{b}"),
        Op::BitwiseOr => format!("or.b{b}"),
        Op::BitwiseXor => format!("xor.b{b}"),
        Op::Not => format!("not.b{b}"),
        Op::LogicalAnd => "and.pred".into(),
        Op::LogicalOr => "or.pred".into(),
        Op::LogicalNotEqual => "xor.pred".into(),
        Op::LogicalNot => "not.pred".into(),
        Op::BitCount if b == 32 => "popc.b32".into(),
        _ => return None,
    })
}

/// The comparison and the kind of number that it compares.
fn comparison(op: Op) -> Option<(&'static str, char)> {
    Some(match op {
        Op::IEqual => ("eq", 's'),
        Op::INotEqual => ("ne", 's'),
        Op::SLessThan => ("lt", 's'),
        Op::SLessThanEqual => ("le", 's'),
        Op::SGreaterThan => ("gt", 's'),
        Op::SGreaterThanEqual => ("ge", 's'),
        Op::ULessThan => ("lt", 'u'),
        Op::ULessThanEqual => ("le", 'u'),
        Op::UGreaterThan => ("gt", 'u'),
        Op::UGreaterThanEqual => ("ge", 'u'),
        Op::FOrdEqual => ("eq", 'f'),
        Op::FOrdNotEqual => ("ne", 'f'),
        Op::FOrdLessThan => ("lt", 'f'),
        Op::FOrdLessThanEqual => ("le", 'f'),
        Op::FOrdGreaterThan => ("gt", 'f'),
        Op::FOrdGreaterThanEqual => ("ge", 'f'),
        Op::FUnordEqual => ("equ", 'f'),
        Op::FUnordNotEqual => ("neu", 'f'),
        Op::FUnordLessThan => ("ltu", 'f'),
        Op::FUnordLessThanEqual => ("leu", 'f'),
        Op::FUnordGreaterThan => ("gtu", 'f'),
        Op::FUnordGreaterThanEqual => ("geu", 'f'),
        Op::Ordered => ("num", 'f'),
        Op::Unordered => ("nan", 'f'),
        _ => return None,
    })
}

/// The instruction of PTX from `from` to `to`.
fn conversion(op: Op, to: &Type, from: &Type) -> Option<String> {
    let (t, f) = (bits(to), bits(from));
    Some(match op {
        Op::ConvertFToS => format!("cvt.rzi.s{t}.f{f}"),
        Op::ConvertFToU => format!("cvt.rzi.u{t}.f{f}"),
        Op::ConvertSToF => format!("cvt.rn.f{t}.s{f}"),
        Op::ConvertUToF => format!("cvt.rn.f{t}.u{f}"),
        Op::FConvert if t < f => format!("cvt.rn.f{t}.f{f}"),
        Op::FConvert => format!("cvt.f{t}.f{f}"),
        // What is as wide as a register or narrower keeps its bits; those of a byte above it are zero.
        Op::UConvert => format!("cvt.u{t}.u{f}"),
        Op::SConvert if t == 8 => format!("cvt.u{t}.u{f}"),
        Op::SConvert => format!("cvt.s{t}.s{f}"),
        _ => return None,
    })
}

impl Translator<'_> {
    pub(crate) fn arithmetic(&mut self, i: &Instruction) -> Result<(), Error> {
        let Ok((ty, _)) = result(i) else { return Err(unsupported(i, "this instruction")) };
        let op = i.class.opcode;
        match op {
            Op::CompositeExtract
            | Op::CompositeInsert
            | Op::CompositeConstruct
            | Op::VectorShuffle
            | Op::Undef
            | Op::CopyObject
            | Op::Bitcast
            | Op::ConvertPtrToU
            | Op::ConvertUToPtr => return self.rearrange(i, ty),
            Op::LogicalEqual => return self.same_truth(i, ty),
            Op::Select => return self.select(i, ty),
            Op::ExtInst => return self.extended(i, ty),
            Op::ShiftLeftLogical | Op::ShiftRightLogical | Op::ShiftRightArithmetic => {
                return self.shift(i, ty);
            }
            _ => {}
        }
        let (e, _) = self.module.elements(ty)?;
        let (source, _) = self.module.elements(self.type_of(id_of(i, 0)?)?)?;
        let b = bits(&source);
        if op == Op::BitCount && b == 64 {
            return self.counted(i, ty, 0, "popc.b64");
        }
        if source == Type::Int(8) && !matches!(op, Op::UConvert | Op::SConvert) {
            return self.on_bytes(i, ty);
        }
        let text = if let Some((how, kind)) = comparison(op) {
            format!("setp.{how}.{kind}{b}")
        } else if let Some(text) = conversion(op, &e, &source) {
            // Decorated: towards zero.
            let cut = i.result_id.is_some_and(|id| self.module.cut.contains(&id));
            if cut { text.replace("cvt.rn.", "cvt.rz.") } else { text }
        } else {
            elementwise(op, b).ok_or_else(|| unsupported(i, "this instruction"))?
        };
        self.each(i, ty, &text)
    }

    /// `text` on each element of the operands.
    fn each(&mut self, i: &Instruction, ty: u32, text: &str) -> Result<(), Error> {
        let first = usize::from(i.class.opcode == Op::ExtInst) * 2;
        let operands: Vec<Regs> = ids(i, first).iter().map(|&id| self.value(id)).collect::<Result<_, _>>()?;
        let regs = self.regs_of(ty)?;
        if operands.iter().any(|o| o.len() != regs.len()) {
            return Err(malformed(i));
        }
        for (k, reg) in regs.iter().enumerate() {
            let list: Vec<&str> = operands.iter().map(|o| o[k].as_str()).collect();
            self.op(format!("{text} {reg}, {};", list.join(", ")));
        }
        self.set(i, regs)
    }

    /// Operations on bytes, as on numbers of 16 bits whose upper half is zero, or the sign.
    fn on_bytes(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let op = i.class.opcode;
        let signed = matches!(op, Op::SDiv | Op::SRem | Op::SNegate | Op::ConvertSToF)
            || comparison(op).is_some_and(|(_, kind)| kind == 's');
        let (e, _) = self.module.elements(ty)?;
        let text = match comparison(op) {
            Some((how, kind)) => format!("setp.{how}.{kind}16"),
            None => conversion(op, &e, &Type::Int(16))
                .or_else(|| elementwise(op, 16))
                .ok_or_else(|| unsupported(i, "this instruction"))?,
        };
        let mut operands = vec![];
        for id in ids(i, 0) {
            let value = self.value(id)?;
            operands.push(if signed { value.iter().map(|v| self.widened(v)).collect() } else { value });
        }
        let regs = self.regs_of(ty)?;
        for (k, reg) in regs.iter().enumerate() {
            let list: Vec<&str> = operands.iter().map(|o: &Regs| o[k].as_str()).collect();
            self.op(format!("{text} {reg}, {};", list.join(", ")));
            if e == Type::Int(8) {
                self.op(format!("and.b16 {reg}, {reg}, 255;"));
            }
        }
        self.set(i, regs)
    }

    /// A function of bytes with signs.
    fn of_bytes(&mut self, i: &Instruction, ty: u32, text: &str) -> Result<(), Error> {
        let mut operands: Vec<Regs> = vec![];
        for id in ids(i, 2) {
            let value = self.value(id)?;
            operands.push(value.iter().map(|v| self.widened(v)).collect());
        }
        let regs = self.regs_of(ty)?;
        for (k, reg) in regs.iter().enumerate() {
            let list: Vec<&str> = operands.iter().map(|o| o[k].as_str()).collect();
            self.op(format!("{text} {reg}, {};", list.join(", ")));
            self.op(format!("and.b16 {reg}, {reg}, 255;"));
        }
        self.set(i, regs)
    }

    /// A byte with its sign in the upper half of its register.
    fn widened(&mut self, byte: &str) -> String {
        let h = self.reg('h');
        self.op(format!("cvt.s16.s8 {h}, {byte};"));
        h
    }

    fn same_truth(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let (a, b) = (self.value(id_of(i, 0)?)?, self.value(id_of(i, 1)?)?);
        let regs = self.regs_of(ty)?;
        for ((reg, a), b) in regs.iter().zip(&a).zip(&b) {
            self.op(format!("xor.pred {reg}, {a}, {b};"));
            self.op(format!("not.pred {reg}, {reg};"));
        }
        self.set(i, regs)
    }

    /// Bits of numbers of 64 bits: PTX counts them in 32.
    fn counted(&mut self, i: &Instruction, ty: u32, at: usize, text: &str) -> Result<(), Error> {
        let a = self.value(id_of(i, at)?)?;
        let regs = self.regs_of(ty)?;
        for (reg, a) in regs.iter().zip(&a) {
            let r = self.reg('r');
            self.op(format!("{text} {r}, {a};"));
            self.op(format!("cvt.u64.u32 {reg}, {r};"));
        }
        self.set(i, regs)
    }

    /// PTX has the sign's source first.
    fn sign_copied(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let (e, _) = self.module.elements(ty)?;
        let (a, sign) = (self.value(id_of(i, 2)?)?, self.value(id_of(i, 3)?)?);
        let regs = self.regs_of(ty)?;
        for ((reg, a), sign) in regs.iter().zip(&a).zip(&sign) {
            self.op(format!("copysign.f{} {reg}, {sign}, {a};", bits(&e)));
        }
        self.set(i, regs)
    }

    /// Shifts: PTX takes amounts of 32 bits.
    fn shift(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let (e, _) = self.module.elements(ty)?;
        let b = bits(&e);
        let (a, by) = (self.value(id_of(i, 0)?)?, self.value(id_of(i, 1)?)?);
        let from = bits(&self.module.elements(self.type_of(id_of(i, 1)?)?)?.0);
        let wide = b.max(16);
        let text = match i.class.opcode {
            Op::ShiftLeftLogical => format!("shl.b{wide}"),
            Op::ShiftRightLogical => format!("shr.u{wide}"),
            _ => format!("shr.s{wide}"),
        };
        let regs = self.regs_of(ty)?;
        for ((reg, a), by) in regs.iter().zip(&a).zip(&by) {
            let (mut a, mut by) = (a.clone(), by.clone());
            if b == 8 && i.class.opcode == Op::ShiftRightArithmetic {
                a = self.widened(&a);
            }
            if from != 32 {
                let r = self.reg('r');
                self.op(format!("cvt.u32.u{from} {r}, {by};"));
                by = r;
            }
            self.op(format!("{text} {reg}, {a}, {by};"));
            if b == 8 {
                self.op(format!("and.b16 {reg}, {reg}, 255;"));
            }
        }
        self.set(i, regs)
    }

    fn select(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let (e, _) = self.module.elements(ty)?;
        let [p, a, b] = [0, 1, 2].map(|k| id_of(i, k));
        let (p, a, b) = (self.value(p?)?, self.value(a?)?, self.value(b?)?);
        if e == Type::Bool {
            return Err(unsupported(i, "a choice of truth values"));
        }
        let regs = self.regs_of(ty)?;
        if a.len() != regs.len()
            || b.len() != regs.len()
            || !matches!(p.len(), n if n == 1 || n == regs.len())
        {
            return Err(malformed(i));
        }
        for (k, reg) in regs.iter().enumerate() {
            let p = p.get(k).unwrap_or(&p[0]);
            self.op(format!("selp.b{} {reg}, {}, {}, {p};", bits(&e).max(16), a[k], b[k]));
        }
        self.set(i, regs)
    }

    /// Operations that only say where elements go.
    fn rearrange(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let mut out = match i.class.opcode {
            Op::Undef => return self.regs_of(ty).and_then(|v| self.set(i, v)),
            _ => self.value(id_of(i, 0)?)?,
        };
        match i.class.opcode {
            Op::CompositeExtract if i.operands.len() == 2 => {
                self.is_flat(i)?;
                let k = literal(i, 1)? as usize;
                out = vec![out.get(k).ok_or_else(|| malformed(i))?.clone()];
            }
            Op::CompositeInsert if i.operands.len() == 3 => {
                let [part] = out.try_into().map_err(|_| malformed(i))?;
                out = self.value(id_of(i, 1)?)?;
                *out.get_mut(literal(i, 2)? as usize).ok_or_else(|| malformed(i))? = part;
            }
            Op::CompositeConstruct => {
                for k in 1..i.operands.len() {
                    out.extend(self.value(id_of(i, k)?)?);
                }
            }
            Op::VectorShuffle => {
                let mut all = out;
                all.extend(self.value(id_of(i, 1)?)?);
                let (e, _) = self.module.elements(ty)?;
                out = vec![];
                for k in 2..i.operands.len() {
                    out.push(match literal(i, k)? {
                        u32::MAX => self.reg_of(&e)?,
                        n => all.get(n as usize).ok_or_else(|| malformed(i))?.clone(),
                    });
                }
            }
            Op::Bitcast => out = self.bitcast(i, ty, out)?,
            Op::CopyObject | Op::ConvertPtrToU | Op::ConvertUToPtr => {}
            _ => return Err(unsupported(i, "this instruction")),
        }
        self.set(i, out)
    }

    /// That what an element is taken out of has no vectors in it.
    fn is_flat(&self, i: &Instruction) -> Result<(), Error> {
        match self.module.ty(self.type_of(id_of(i, 0)?)?)? {
            Type::Struct(fields)
                if fields.iter().any(|&f| self.module.elements(f).is_ok_and(|(_, n)| n > 1)) =>
            {
                Err(unsupported(i, "a structure with vectors"))
            }
            _ => Ok(()),
        }
    }

    /// The same bits in elements of another size: the lowest are in the first element.
    fn bitcast(&mut self, i: &Instruction, ty: u32, from: Regs) -> Result<Regs, Error> {
        let (to, n) = self.module.elements(ty)?;
        let (f, _) = self.module.elements(self.type_of(id_of(i, 0)?)?)?;
        let (t, f) = (bits(&to), bits(&f));
        if t == f {
            return Ok(from);
        }
        if t == 1 || f == 1 || from.len() as u32 * f != n as u32 * t {
            return Err(unsupported(i, "this cast"));
        }
        // Bytes by way of 16 bits.
        let from =
            if f == 8 { from.chunks(2).map(|pair| self.bytes(&pair[0], &pair[1])).collect() } else { from };
        let f = f.max(16);
        if t == 8 {
            let halves = if f == 16 { from } else { self.halves(&from, f) };
            return Ok(halves.iter().flat_map(|half| self.bytes_of(half)).collect());
        }
        if t == f {
            return Ok(from);
        }
        let out = self.regs_of(ty)?;
        if t > f {
            for (reg, parts) in out.iter().zip(from.chunks((t / f) as usize)) {
                self.op(format!("mov.b{t} {reg}, {{{}}};", parts.join(", ")));
            }
        } else {
            for (parts, reg) in out.chunks((f / t) as usize).zip(&from) {
                self.op(format!("mov.b{f} {{{}}}, {reg};", parts.join(", ")));
            }
        }
        Ok(out)
    }

    /// Words of so many bits in registers of 16.
    fn halves(&mut self, words: &[String], bits: u32) -> Regs {
        let mut out = vec![];
        for word in words {
            let parts: Regs = (0..bits / 16).map(|_| self.reg('h')).collect();
            self.op(format!("mov.b{bits} {{{}}}, {word};", parts.join(", ")));
            out.extend(parts);
        }
        out
    }

    /// The bytes of 16 bits, the lower first.
    fn bytes_of(&mut self, half: &str) -> [String; 2] {
        let (low, high) = (self.reg('h'), self.reg('h'));
        self.op(format!("and.b16 {low}, {half}, 255;"));
        self.op(format!("shr.u16 {high}, {half}, 8;"));
        [low, high]
    }

    /// Functions of `OpenCL.std` (OpenCL Extended Instruction Set §2).
    fn extended(&mut self, i: &Instruction, ty: u32) -> Result<(), Error> {
        let (e, _) = self.module.elements(ty)?;
        let b = bits(&e);
        let f = CLOp::from_u32(literal(i, 1)?).ok_or_else(|| malformed(i))?;
        let text = match (f, b) {
            (CLOp::ceil, 32 | 64) => format!("cvt.rpi.f{b}.f{b}"),
            (CLOp::floor, 32 | 64) => format!("cvt.rmi.f{b}.f{b}"),
            (CLOp::fabs, _) => format!("abs.f{b}"),
            (CLOp::fma | CLOp::mad, _) => format!("fma.rn.f{b}"),
            (CLOp::trunc, 32 | 64) => format!("cvt.rzi.f{b}.f{b}"),
            (CLOp::rint, 32 | 64) => format!("cvt.rni.f{b}.f{b}"),
            (CLOp::fmax, _) => format!("max.f{b}"),
            (CLOp::fmin, _) => format!("min.f{b}"),
            (CLOp::exp2 | CLOp::native_exp2, 32) => "ex2.approx.f32".into(),
            (CLOp::log2 | CLOp::native_log2, 32) => "lg2.approx.f32".into(),
            (CLOp::sqrt, 32 | 64) => format!("sqrt.rn.f{b}"),
            (CLOp::native_sqrt, 32) => "sqrt.approx.f32".into(),
            (CLOp::native_recip, 32) => "rcp.approx.f32".into(),
            (CLOp::native_divide, 32) => "div.full.f32".into(),
            (CLOp::u_mul_hi, 32 | 64) => format!("mul.hi.u{b}"),
            (CLOp::s_abs, 16 | 32 | 64) => format!("abs.s{b}"),
            (CLOp::clz, 32) => "clz.b32".into(),
            (CLOp::clz, 64) => return self.counted(i, ty, 2, "clz.b64"),
            (CLOp::copysign, 32 | 64) => return self.sign_copied(i, ty),
            (CLOp::rsqrt | CLOp::native_rsqrt, 32) => "rsqrt.approx.f32".into(),
            (CLOp::s_max, 8) => return self.of_bytes(i, ty, "max.s16"),
            (CLOp::s_min, 8) => return self.of_bytes(i, ty, "min.s16"),
            (CLOp::s_abs, 8) => return self.of_bytes(i, ty, "abs.s16"),
            (CLOp::s_max, _) => format!("max.s{b}"),
            (CLOp::u_max, _) => format!("max.u{}", b.max(16)),
            (CLOp::s_min, _) => format!("min.s{b}"),
            (CLOp::u_min, _) => format!("min.u{}", b.max(16)),
            (CLOp::exp | CLOp::native_exp, 32) => {
                return self.scaled(i, ty, "0f3FB8AA3B", "ex2.approx.f32", true);
            }
            (CLOp::log | CLOp::native_log, 32) => {
                return self.scaled(i, ty, "0f3F317218", "lg2.approx.f32", false);
            }
            _ => return self.of_library(i, ty, &format!("{f:?}")),
        };
        self.each(i, ty, &text)
    }

    /// A function that the CPU executor has, by the same code.
    fn of_library(&mut self, i: &Instruction, ty: u32, name: &str) -> Result<(), Error> {
        let mut types = vec![];
        for id in ids(i, 2) {
            let of = self.type_of(id)?;
            types.push(self.module.elements(of)?.0);
        }
        let fits = |ty: &Type, of: &libdevice::Type| match ty {
            Type::Float(bits) => of.is_float() && of.bits() == *bits,
            Type::Int(bits) => !of.is_float() && of.bits() == *bits,
            _ => false,
        };
        let found = libdevice::overloads(name).iter().find(|f| {
            f.params.len() == types.len() && types.iter().zip(f.params).all(|(ty, of)| fits(ty, of))
        });
        let Some(function) = found else { return Err(unsupported(i, "this function")) };
        let operands: Vec<Regs> = ids(i, 2).iter().map(|&id| self.value(id)).collect::<Result<_, _>>()?;
        let regs = self.regs_of(ty)?;
        for (k, reg) in regs.iter().enumerate() {
            self.op("{");
            let mut names = vec![];
            for (n, (operand, of)) in operands.iter().zip(function.params).enumerate() {
                let bits = of.bits();
                self.op(format!(".param .b{bits} a{n};"));
                self.op(format!("st.param.b{bits} [a{n}], {};", operand[k]));
                names.push(format!("a{n}"));
            }
            let bits = function.result.bits();
            self.op(format!(".param .b{bits} made;"));
            self.op(format!("call (made), {}, ({});", function.symbol, names.join(", ")));
            self.op(format!("ld.param.b{bits} {reg}, [made];"));
            self.op("}");
        }
        self.set(i, regs)
    }

    /// An exponential or logarithm to the base e, by one to the base 2 and a factor before or after it.
    fn scaled(
        &mut self,
        i: &Instruction,
        ty: u32,
        factor: &str,
        text: &str,
        before: bool,
    ) -> Result<(), Error> {
        let a = self.value(id_of(i, 2)?)?;
        let regs = self.regs_of(ty)?;
        for (reg, a) in regs.iter().zip(&a) {
            let t = self.reg('r');
            if before {
                self.op(format!("mul.rn.f32 {t}, {a}, {factor};"));
                self.op(format!("{text} {reg}, {t};"));
            } else {
                self.op(format!("{text} {t}, {a};"));
                self.op(format!("mul.rn.f32 {reg}, {t}, {factor};"));
            }
        }
        self.set(i, regs)
    }
}
