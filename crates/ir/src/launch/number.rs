//! Numbers that a launch can compute from the kernel's arguments.

use serde::{Deserialize, Serialize};

use crate::attrs::AttrKind;
use crate::dialect::{arith, tt};
use crate::entity::{Attr, Type, Value};
use crate::module::{Module, ValueDef};
use crate::opdef::Opcode;
use crate::types::TypeKind;

/// An integer or address, as an expression over the arguments of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Number {
    /// The argument of this number, of which so many low bits count.
    Argument {
        /// Which one, from 0.
        index: u32,
        /// Its width.
        bits: u32,
    },
    /// A constant.
    Known(i64),
    /// The low bits of a number, zeros above.
    Unsigned {
        /// How many.
        bits: u32,
        /// Of what.
        of: Box<Number>,
    },
    /// The low bits of a number, the highest of them as sign.
    Signed {
        /// How many.
        bits: u32,
        /// Of what.
        of: Box<Number>,
    },
    /// A sum.
    Sum(Box<[Number; 2]>),
    /// A difference.
    Difference(Box<[Number; 2]>),
    /// A product.
    Product(Box<[Number; 2]>),
    /// A quotient, rounded towards 0; of nothing by nothing 0.
    Quotient(Box<[Number; 2]>),
    /// The greater.
    Greatest(Box<[Number; 2]>),
    /// The lesser.
    Least(Box<[Number; 2]>),
}

/// The most parts of an expression: a launch computes it each time.
const PARTS: u32 = 24;

impl Number {
    /// What a value of a kernel's body is, if it depends on arguments and constants alone.
    pub fn of(module: &Module, value: Value) -> Option<Number> {
        expression(module, value, &mut 0)
    }

    /// What it comes to where the arguments have these cells, as a signed number of its width.
    pub fn value(&self, cells: &[u64]) -> i64 {
        match self {
            Number::Argument { index, bits } => {
                signed(cells.get(*index as usize).map_or(0, |&cell| cell as i64), *bits)
            }
            Number::Known(value) => *value,
            Number::Unsigned { bits, of } => unsigned(of.value(cells), *bits),
            Number::Signed { bits, of } => signed(of.value(cells), *bits),
            Number::Sum(of) => of[0].value(cells).wrapping_add(of[1].value(cells)),
            Number::Difference(of) => of[0].value(cells).wrapping_sub(of[1].value(cells)),
            Number::Product(of) => of[0].value(cells).wrapping_mul(of[1].value(cells)),
            Number::Quotient(of) => of[0].value(cells).checked_div(of[1].value(cells)).unwrap_or(0),
            Number::Greatest(of) => of[0].value(cells).max(of[1].value(cells)),
            Number::Least(of) => of[0].value(cells).min(of[1].value(cells)),
        }
    }
}

impl Number {
    /// What the text of a module says of it: `["sum", ["argument", 3, 32], 1]`.
    pub(super) fn to_attr(&self, m: &mut Module) -> Attr {
        let pair = |name, of: &[Number; 2], m: &mut Module| vec![name, of[0].to_attr(m), of[1].to_attr(m)];
        let name = m.attr(AttrKind::Str(self.word().to_string()));
        let int = |m: &mut Module, value: i64| m.attr(AttrKind::Int(value, Type::I64));
        let parts = match self {
            Number::Known(value) => return int(m, *value),
            Number::Argument { index, bits } => {
                vec![name, int(m, (*index).into()), int(m, (*bits).into())]
            }
            Number::Unsigned { bits, of } | Number::Signed { bits, of } => {
                vec![name, int(m, (*bits).into()), of.to_attr(m)]
            }
            Number::Sum(of)
            | Number::Difference(of)
            | Number::Product(of)
            | Number::Quotient(of)
            | Number::Greatest(of)
            | Number::Least(of) => pair(name, of, m),
        };
        m.attr(AttrKind::Array(parts))
    }

    fn word(&self) -> &'static str {
        match self {
            Number::Argument { .. } => "argument",
            Number::Known(_) => "",
            Number::Unsigned { .. } => "unsigned",
            Number::Signed { .. } => "signed",
            Number::Sum(_) => "sum",
            Number::Difference(_) => "difference",
            Number::Product(_) => "product",
            Number::Quotient(_) => "quotient",
            Number::Greatest(_) => "greatest",
            Number::Least(_) => "least",
        }
    }

    /// The number of such an attribute; `None` of any other.
    pub(super) fn of_attr(m: &Module, attr: Attr) -> Option<Number> {
        Number::of_part(m, attr, &mut 0)
    }

    fn of_part(m: &Module, attr: Attr, parts: &mut u32) -> Option<Number> {
        *parts += 1;
        let parts = (*parts <= 2 * PARTS).then_some(parts)?;
        let [name, a, b] = match m.attr_kind(attr) {
            AttrKind::Int(value, _) => return Some(Number::Known(*value)),
            AttrKind::Array(of) => <[Attr; 3]>::try_from(&of[..]).ok()?,
            _ => return None,
        };
        let AttrKind::Str(name) = m.attr_kind(name) else { return None };
        let count = |attr: Attr| match m.attr_kind(attr) {
            AttrKind::Int(value, _) => u32::try_from(*value).ok(),
            _ => None,
        };
        let width = |attr: Attr| count(attr).filter(|bits| (1..=64).contains(bits));
        let mut of = |attr: Attr| Number::of_part(m, attr, parts);
        Some(match name.as_str() {
            "argument" => Number::Argument { index: count(a)?, bits: width(b)? },
            "unsigned" => Number::Unsigned { bits: width(a)?, of: Box::new(of(b)?) },
            "signed" => Number::Signed { bits: width(a)?, of: Box::new(of(b)?) },
            "sum" => Number::Sum(Box::new([of(a)?, of(b)?])),
            "difference" => Number::Difference(Box::new([of(a)?, of(b)?])),
            "product" => Number::Product(Box::new([of(a)?, of(b)?])),
            "quotient" => Number::Quotient(Box::new([of(a)?, of(b)?])),
            "greatest" => Number::Greatest(Box::new([of(a)?, of(b)?])),
            "least" => Number::Least(Box::new([of(a)?, of(b)?])),
            _ => return None,
        })
    }
}

fn signed(value: i64, bits: u32) -> i64 {
    let above = 64u32.saturating_sub(bits).min(63);
    (value << above) >> above
}

fn unsigned(value: i64, bits: u32) -> i64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

fn expression(module: &Module, value: Value, parts: &mut u32) -> Option<Number> {
    *parts += 1;
    if *parts > PARTS {
        return None;
    }
    let bits = match module.type_kind(module.value_type(value)) {
        TypeKind::Int(bits) if *bits <= 64 => u32::from(*bits),
        TypeKind::Ptr { .. } => 64,
        _ => return None,
    };
    if let Some(known) = module.constant_int(value) {
        return Some(Number::Known(known));
    }
    let op = match module.value_def(value) {
        ValueDef::Argument(block, index) => {
            let func = module.block_parent_op(block).and_then(|op| tt::Func::cast(module, op))?;
            let entry = module.region_blocks(func.body(module)).first() == Some(&block);
            return entry.then_some(Number::Argument { index, bits });
        }
        ValueDef::Result(op, _) => op,
    };
    if module.operands(op).is_empty() || module.operands(op).len() > 2 {
        return None;
    }
    let mut operand = |index: usize| expression(module, module.operands(op)[index], parts);
    let from = |index: usize| module.bits(module.value_type(module.operands(op)[index]));
    // Each is a signed number of its width: what is computed may have left it.
    let wrapped = |of: Number| Some(Number::Signed { bits, of: Box::new(of) });
    use arith::Kind as A;
    match module.opcode(op)? {
        Opcode::Arith(A::Extsi) => operand(0),
        Opcode::Arith(A::Extui) => Some(Number::Unsigned { bits: from(0), of: Box::new(operand(0)?) }),
        Opcode::Arith(A::Trunci) => wrapped(operand(0)?),
        Opcode::Arith(A::Addi) => wrapped(Number::Sum(Box::new([operand(0)?, operand(1)?]))),
        Opcode::Arith(A::Subi) => wrapped(Number::Difference(Box::new([operand(0)?, operand(1)?]))),
        Opcode::Arith(A::Muli) => wrapped(Number::Product(Box::new([operand(0)?, operand(1)?]))),
        Opcode::Arith(A::Divsi) => wrapped(Number::Quotient(Box::new([operand(0)?, operand(1)?]))),
        Opcode::Arith(A::Maxsi) => Some(Number::Greatest(Box::new([operand(0)?, operand(1)?]))),
        Opcode::Arith(A::Minsi) => Some(Number::Least(Box::new([operand(0)?, operand(1)?]))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// The numbers that a kernel hands to a descriptor: extents, then strides.
    fn numbers(body: &str) -> Vec<Option<Number>> {
        let text = format!(
            "module {{\n tt.func public @k(%p: !tt.ptr<f16>, %m: i32, %n: i64) {{\n{body}\n %d = tt.make_tensor_descriptor %p, [%x], [%y] : !tt.ptr<f16>, !tt.tensordesc<tensor<64xf16>>\n tt.return\n }}\n}}"
        );
        let module = parse(&text, "k.mlir").expect("IR");
        let make = module
            .all_ops(module.root())
            .into_iter()
            .find_map(|op| tt::MakeTensorDescriptor::cast(&module, op));
        let make = make.expect("a descriptor");
        [make.shape(&module)[0], make.strides(&module)[0]].map(|v| Number::of(&module, v)).to_vec()
    }

    #[test]
    fn arguments_and_what_is_computed_from_them() {
        let found = numbers(
            "%two = arith.constant 2 : i32\n %t = arith.muli %m, %two : i32\n %x = arith.addi %t, %m : i32\n %y = arith.extsi %t : i32 to i64",
        );
        let cells = [0, (-5i32) as u32 as u64, 7];
        assert_eq!(found[0].as_ref().map(|n| n.value(&cells)), Some(-15));
        assert_eq!(found[1].as_ref().map(|n| n.value(&cells)), Some(-10));
    }

    #[test]
    fn widths_are_those_of_the_kernel() {
        let found = numbers("%x = arith.trunci %n : i64 to i32\n %y = arith.extui %m : i32 to i64");
        let cells = [0, u64::MAX, 0x1_8000_0000];
        assert_eq!(found[0].as_ref().map(|n| n.value(&cells)), Some(i64::from(i32::MIN)));
        assert_eq!(found[1].as_ref().map(|n| n.value(&cells)), Some(0xffff_ffff));
        // Products wrap around as the kernel's do.
        let found = numbers("%x = arith.muli %m, %m : i32\n %y = arith.muli %n, %n : i64");
        let cells = [0, 0x1_0000, 1 << 32];
        assert_eq!(found[0].as_ref().map(|n| n.value(&cells)), Some(0));
        assert_eq!(found[1].as_ref().map(|n| n.value(&cells)), Some(0));
    }

    #[test]
    fn what_differs_between_programs_is_none() {
        let found = numbers("%x = tt.get_program_id x : i32\n %y = arith.muli %n, %n : i64");
        assert_eq!(found[0], None);
        // An expression that grows without bound.
        let sums: Vec<String> =
            (1..40).map(|i| format!("%s{i} = arith.addi %s{}, %s{} : i32", i - 1, i - 1)).collect();
        let found = numbers(&format!(
            "%s0 = arith.addi %m, %m : i32\n{}\n%x = arith.addi %s39, %m : i32\n %y = arith.extsi %s39 : i32 to i64",
            sums.join("\n")
        ));
        assert_eq!(found, [None, None]);
    }
}
