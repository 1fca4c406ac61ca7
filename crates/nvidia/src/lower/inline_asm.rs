//! `tt.elementwise_inline_asm`: the author's PTX, `packed_element` elements at a time.
//!
//! The template and the constraints are in LLVM's syntax. LLVM ends the process over many of the mistakes that they can hold
//! (some are only undefined), so all of them are found here, before LLVM sees the text.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_llvm::{CastOp, Effect, Scalar, Ty, Value};

use tilewright_lower::Regs;

use super::{Lower, Result};

/// What an operand's constraint asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A register of so many bits, for integers (and the bits of floats) or for floats.
    Register { bits: u32, float: bool },
    /// The register of a result.
    SameAs(usize),
}

impl Lower<'_, '_> {
    /// Records the assembly as often as a thread has packs of elements.
    pub fn inline_asm(&mut self, op: tt::ElementwiseInlineAsm) -> Result<()> {
        let m = self.m;
        // People write spaces between constraints, which LLVM does not read.
        let (text, constraints) = (op.asm_string(m), op.constraints(m).replace(' ', ""));
        let packed = match op.packed_element(m) {
            n @ 1..=64 => n as usize,
            n => return Err(self.error(format!("inline assembly takes 1 to 64 packed elements, not {n}"))),
        };
        let effect = if op.pure(m) { Effect::Pure } else { Effect::Write };
        let args: Vec<Regs> = op.args(m).iter().map(|&a| self.regs(a)).collect::<Result<_>>()?;
        let results: Vec<ir::Value> = m.results(op.0).to_vec();
        let result_tys: Vec<Ty> =
            results.iter().map(|&r| self.elem_ty(self.value_ty(r))).collect::<Result<_>>()?;
        let count = match results.first() {
            Some(&r) => self.num_regs(m.value_type(r))?,
            None => args.first().map_or(1, |a| a.len()),
        };
        let arg_tys: Vec<Ty> = args.iter().map(|a| self.b.ty(a[0])).collect();
        let words = |tys: &[Ty]| -> std::result::Result<Vec<Ty>, String> {
            let mut out = Vec::new();
            for &ty in tys {
                let (word, n) = words_of(ty, packed)?;
                out.extend(std::iter::repeat_n(word, n));
            }
            Ok(out)
        };
        let checked = words(&result_tys).and_then(|outputs| {
            let written = check(&text, &constraints, &outputs, &words(&arg_tys)?)?;
            Ok((outputs, written))
        });
        let (word_tys, written_tys) =
            checked.map_err(|message| self.error(format!("inline assembly: {message}")))?;

        let mut out: Vec<Vec<Value>> = vec![Vec::new(); results.len()];
        for start in (0..count).step_by(packed) {
            let mut inputs = Vec::new();
            for a in &args {
                // Where a thread has too few elements to fill a pack, the last one stands in for the missing ones.
                let elements: Vec<Value> = (start..start + packed).map(|i| a[i.min(a.len() - 1)]).collect();
                let per_word = per_word(self.b.ty(a[0]), packed);
                inputs.extend(elements.chunks(per_word).map(|word| self.pack_word(word)));
            }
            let words = self.b.asm(&text, &constraints, effect, &written_tys, &inputs);
            let words: Vec<Value> =
                words.into_iter().zip(&word_tys).map(|(word, &ty)| self.widen_word(word, ty)).collect();
            let mut words = words.into_iter();
            for (r, &ty) in result_tys.iter().enumerate() {
                let per_word = per_word(ty, packed);
                for word in words.by_ref().take(packed / per_word) {
                    out[r].extend(self.unpack_word(word, ty, per_word as u32));
                }
                out[r].truncate(count);
            }
        }
        for (r, regs) in results.into_iter().zip(out) {
            self.set_regs(r, regs);
        }
        Ok(())
    }
}

impl Lower<'_, '_> {
    /// A register of an assembly's as a result that may be wider.
    fn widen_word(&mut self, word: Value, ty: Ty) -> Value {
        if self.b.ty(word) == ty {
            return word;
        }
        let wide = self.b.cast(CastOp::ZExt, word, Ty::I64);
        if ty == Ty::I64 { wide } else { self.b.cast(CastOp::IntToPtr, wide, ty) }
    }
}

/// How many elements share a register: narrow ones are packed into 32 bits.
fn per_word(ty: Ty, packed: usize) -> usize {
    (32 / ty.bits().clamp(1, 32) as usize).min(packed)
}

/// The registers of one operand: their type and number.
fn words_of(ty: Ty, packed: usize) -> std::result::Result<(Ty, usize), String> {
    let n = per_word(ty, packed);
    if n == 1 {
        return Ok((ty, packed));
    }
    match Scalar::int(ty.bits() * n as u32) {
        Some(word) if packed.is_multiple_of(n) && ty != Ty::I1 => Ok((Ty::scalar(word), packed / n)),
        _ => Err(format!("{packed} elements of {} bits do not fill registers", ty.bits())),
    }
}

/// Whether LLVM can take the template and the constraints for these results and operands. Gives the types that results have in the
/// assembly: for one of 64 bits `r` is a register of 32 bits, as in LLVM, where what is above is left open.
fn check(
    template: &str,
    constraints: &str,
    results: &[Ty],
    operands: &[Ty],
) -> std::result::Result<Vec<Ty>, String> {
    let (outputs, inputs) = parse_constraints(constraints)?;
    for (what, wanted, given) in [("result", results, &outputs), ("operand", operands, &inputs)] {
        let counted = |n: usize| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        if wanted.len() != given.len() {
            return Err(format!(
                "the constraints `{constraints}` are for {}, but there are {} (with `pack`, registers count)",
                counted(given.len()),
                wanted.len()
            ));
        }
    }
    let written = |(place, &ty): (&Place, &Ty)| match place {
        Place::Register { bits: 32, float: false } if ty.bits() == 64 && ty.scalar != Scalar::F64 => Ty::I32,
        _ => ty,
    };
    let results: Vec<Ty> = outputs.iter().zip(results).map(written).collect();
    let mut tied = vec![false; results.len()];
    for (i, (&place, &ty)) in outputs.iter().chain(&inputs).zip(results.iter().chain(operands)).enumerate() {
        let is_float = matches!(ty.scalar, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64);
        match place {
            Place::Register { bits, float } => {
                if ty.bits() > bits || (float && !is_float && ty.bits() != bits) {
                    let kind = if is_float { "a float" } else { "an integer" };
                    return Err(format!(
                        "${i} is {kind} of {} bits, which its constraint in `{constraints}` has no register for",
                        ty.bits()
                    ));
                }
            }
            Place::SameAs(r) => match results.get(r) {
                Some(&result) if result == ty && !std::mem::replace(&mut tied[r], true) => {}
                Some(&result) if result == ty => {
                    return Err(format!("two operands share the register of ${r}"));
                }
                Some(_) => return Err(format!("${i} shares the register of ${r} but has another type")),
                None => return Err(format!("${i} shares the register of ${r}, which is no result")),
            },
        }
    }
    check_template(template, results.len() + operands.len())?;
    Ok(results)
}

/// The places of the results and of the operands.
fn parse_constraints(text: &str) -> std::result::Result<(Vec<Place>, Vec<Place>), String> {
    let (mut outputs, mut inputs, mut clobbers) = (Vec::new(), Vec::new(), 0);
    for entry in text.split(',').filter(|_| !text.is_empty()) {
        let wrong = |what: &str| Err(format!("the constraint `{entry}` in `{text}` {what}"));
        if let Some(name) = entry.strip_prefix("~{") {
            let name = name.strip_suffix('}').unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') {
                return wrong("names no register");
            }
            clobbers += 1;
            continue;
        }
        let (output, code) = match entry.strip_prefix('=') {
            Some(code) => (true, code.strip_prefix('&').unwrap_or(code)),
            None => (false, entry),
        };
        let place = match code {
            "b" => Place::Register { bits: 1, float: false },
            "h" | "c" => Place::Register { bits: 16, float: false },
            "r" => Place::Register { bits: 32, float: false },
            "l" | "N" => Place::Register { bits: 64, float: false },
            "q" => Place::Register { bits: 128, float: false },
            "f" => Place::Register { bits: 32, float: true },
            "d" => Place::Register { bits: 64, float: true },
            _ if !output && !code.is_empty() && code.bytes().all(|c| c.is_ascii_digit()) => {
                Place::SameAs(code.parse().unwrap_or(usize::MAX))
            }
            _ => return wrong("is none of PTX: b, h, r, l, f, d, q, with `=` before it for a result"),
        };
        if clobbers > 0 || (output && !inputs.is_empty()) {
            return wrong("stands in the wrong order: results, then operands, then clobbers");
        }
        if output { outputs.push(place) } else { inputs.push(place) }
    }
    Ok((outputs, inputs))
}

/// Whether each `$` of a template is one that LLVM knows.
fn check_template(text: &str, operands: usize) -> std::result::Result<(), String> {
    if text.contains('\0') {
        return Err("the text holds a NUL character".into());
    }
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
            continue;
        }
        let shown = || rest.chars().take(12).collect::<String>();
        let number = match rest.strip_prefix('{') {
            None => &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()],
            Some(braced) => {
                let Some((inside, after)) = braced.split_once('}') else {
                    return Err(format!("`${}` has no closing brace", shown()));
                };
                rest = after;
                match inside {
                    // A number of its own for each copy of the text, for labels.
                    ":uid" | ":comment" | ":private" => continue,
                    _ => inside.strip_suffix(":r").unwrap_or(inside),
                }
            }
        };
        if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
            return Err(format!("`${}` is no operand; `$$` stands for a dollar sign", shown()));
        }
        if number.parse::<usize>().ok().is_none_or(|n| n >= operands) {
            return Err(format!("`${number}` is no operand: the constraints name {operands}, from $0 on"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(template: &str, constraints: &str, results: &[Ty], operands: &[Ty]) -> String {
        check(template, constraints, results, operands).err().unwrap_or_default()
    }

    #[test]
    fn templates() {
        for good in
            ["", "add $0, $1, 1;", "$$ ${0} ${1:r}", "L${:uid}: bra L${:uid};", "{ .reg .b32 t; mov $0, t; }"]
        {
            assert_eq!(verdict(good, "=r,r", &[Ty::I32], &[Ty::I32]), "", "{good}");
        }
        for bad in [
            "$",
            "$x",
            "a $ b",
            "${0",
            "${}",
            "${0:w}",
            "${x}",
            "$2",
            "$(a$|b$)",
            "$99999999999999999999",
            "\0",
        ] {
            assert_ne!(verdict(bad, "=r,r", &[Ty::I32], &[Ty::I32]), "", "{bad}");
        }
    }

    #[test]
    fn constraints() {
        let half = Ty::scalar(Scalar::F16);
        for (good, results, operands) in [
            ("", vec![], vec![]),
            ("=r,r", vec![Ty::I32], vec![Ty::I32]),
            ("=&r,0", vec![Ty::I32], vec![Ty::I32]),
            ("=h,h,~{memory}", vec![half], vec![half]),
            ("=r,f,l,~{memory},~{cc}", vec![Ty::F32], vec![Ty::I32, Ty::I64]),
            ("=r,l", vec![Ty::I64], vec![Ty::I64]),
            ("r", vec![], vec![Ty::I8]),
        ] {
            assert_eq!(verdict("", good, &results, &operands), "", "{good}");
        }
        for bad in [
            "=Q,r",
            "=r",
            "r,r",
            "=r,r,r",
            "=r,=r",
            "r,=r",
            "=r,",
            ",",
            "=r,r,~{}",
            "=r,~{memory},r",
            "=+r,r",
            "+r,r",
            "=r, r",
            "=0,r",
            "=r,1",
            "=r,9999999999999999999999",
            "=h,r",
            "=r,h",
            "=d,r",
            "=m,r",
            "=r,i",
            "=r,{r0}",
            "=é,r",
            "~",
            "=r,r,~memory",
        ] {
            assert_ne!(verdict("", bad, &[Ty::I32], &[Ty::I32]), "", "{bad}");
        }
        assert_ne!(verdict("", "=r,0,0", &[Ty::I32], &[Ty::I32, Ty::I32]), "");
        assert_ne!(verdict("", "=r,0", &[Ty::I32], &[Ty::F32]), "");
        assert_ne!(verdict("", "=f,f", &[Ty::I64], &[Ty::F64]), "");
    }
}
