//! `tl.inline_asm_elementwise`, and the numbers in its text.

use std::fmt::Write;

use tilewright_ir::dialect::tt;

use super::Args;
use crate::eval::{Eval, Evaluator, builder};
use crate::fold::{self, Num};
use crate::host::HostValue;
use crate::value::{Tensor, Value};

impl Evaluator<'_> {
    /// Target assembly for each element; several results for a tuple of dtypes.
    pub(super) fn inline_asm(&mut self, args: &Args) -> Eval<Value> {
        let (asm, constraints) = (self.str_arg(args, "asm")?, self.str_arg(args, "constraints")?);
        let pure = self.bool_arg(args, "is_pure")?;
        let pack = self.int_arg(args, "pack")?;
        let pack = i32::try_from(pack).ok().filter(|n| (1..=64).contains(n)).ok_or_else(|| {
            self.error(format!("`pack` of tl.inline_asm_elementwise must be 1 to 64, not {pack}"))
        })?;
        let items = match args.get("args") {
            Value::Tuple(t) => t.items.clone(),
            one => vec![one.clone()],
        };
        let (asm, constraints, items) = self.with_immediates(&asm, &constraints, items, pack)?;
        let mut operands = Vec::new();
        for item in &items {
            operands.push(self.tensor_of(item)?);
        }
        // All at one shape: each is broadcast against the ones before, then all against the last.
        for _ in 0..2 {
            for i in 1..operands.len() {
                let (a, b) = self.broadcast(&operands[0].clone(), &operands[i].clone())?;
                (operands[0], operands[i]) = (a, b);
            }
        }
        let shape = operands.first().map(|t| t.shape.clone()).unwrap_or_default();
        let (dtypes, tuple) = match args.get("dtype") {
            Value::Tuple(t) => (t.items.clone(), true),
            one => (vec![one.clone()], false),
        };
        let mut results = Vec::new();
        for dtype in dtypes {
            match dtype {
                Value::Const(HostValue::DType(d)) => results.push((self.ir_type(&d, &shape), d)),
                other => {
                    return Err(self.bad_argument(args, "dtype", &other, "a dtype or a tuple of dtypes"));
                }
            }
        }
        let types: Vec<_> = results.iter().map(|(ty, _)| *ty).collect();
        let values: Vec<_> = operands.iter().map(|t| t.value).collect();
        let op = tt::ElementwiseInlineAsm::build(
            &mut builder!(self),
            &values,
            asm,
            constraints,
            pure,
            pack,
            &types,
        );
        let mut out: Vec<Value> = op
            .results(&self.module)
            .iter()
            .zip(results)
            .map(|(&value, (_, dtype))| Value::Tensor(Tensor { value, dtype, shape: shape.clone() }))
            .collect();
        Ok(if tuple { Value::tuple(out) } else { out.swap_remove(0) })
    }

    /// Writes the operands whose constraint is `n`, a number that is known at compile time, into the text: no target has to know that
    /// constraint.
    fn with_immediates(
        &self,
        asm: &str,
        constraints: &str,
        items: Vec<Value>,
        pack: i32,
    ) -> Eval<(String, String, Vec<Value>)> {
        let entries: Vec<&str> = constraints.split(',').map(str::trim).collect();
        if !entries.contains(&"n") {
            return Ok((asm.to_string(), constraints.to_string(), items));
        }
        if pack != 1 {
            return Err(self.error("inline assembly: the constraint `n` wants `pack` to be 1"));
        }
        let outputs = entries.iter().take_while(|entry| entry.starts_with('=')).count();
        // What stands in the text in the place of each operand.
        let mut places: Vec<String> = (0..outputs).map(|n| format!("${{{n}}}")).collect();
        let mut kept = Vec::new();
        for (item, entry) in items.into_iter().zip(&entries[outputs..]) {
            match (*entry, &item) {
                ("n", Value::Const(c)) if let Some(Num::Int(n)) = fold::number(c) => {
                    places.push(n.to_string())
                }
                ("n", _) => {
                    let what = "has the constraint `n`, and is no integer that is known at compile time";
                    return Err(self.error(format!("inline assembly: ${} {what}", places.len())));
                }
                _ => {
                    places.push(format!("${{{}}}", outputs + kept.len()));
                    kept.push(item);
                }
            }
        }
        let others: Vec<&str> = entries.into_iter().filter(|&entry| entry != "n").collect();
        Ok((substituted(asm, &places), others.join(","), kept))
    }
}

/// A template with something else in the places of its operands. What is no operand stays, for those to refuse who read the text.
fn substituted(asm: &str, places: &[String]) -> String {
    let (mut out, mut rest) = (String::with_capacity(asm.len()), asm);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        let braced = rest.strip_prefix("${").and_then(|inner| Some(&inner[..inner.find('}')?]));
        let (number, length) = match braced {
            Some(inner) => (inner.split(':').next().unwrap_or_default(), inner.len() + 3),
            None => (&rest[1..=digits], digits + 1),
        };
        let length = if rest.starts_with("$$") { 2 } else { length };
        match number.parse::<usize>().ok().and_then(|n| places.get(n)) {
            // `${1:r}`: how the operand is printed stays, where it is one.
            Some(place) => match (place.strip_suffix('}'), braced.and_then(|inner| inner.split_once(':'))) {
                (Some(open), Some((_, modifier))) => {
                    let _ = write!(out, "{open}:{modifier}}}");
                }
                _ => out.push_str(place),
            },
            None => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_in_a_text() {
        let places = ["${0}", "7", "${1}"].map(String::from);
        let text = "a $0, $1, ${1}, $2; ${2:r} $$ $9 $x ${:uid}";
        assert_eq!(substituted(text, &places), "a ${0}, 7, 7, ${1}; ${1:r} $$ $9 $x ${:uid}");
        assert_eq!(substituted("$", &places), "$");
    }
}
