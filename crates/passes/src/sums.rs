//! Sums of products ([`Poly`]) as operations.

use std::cmp::Reverse;

use tilewright_ir::dialect::{arith, scf};
use tilewright_ir::{Builder, Module, Type, Value};

use crate::analysis::affine::{Poly, Product};

/// Computes a sum of products in a type of 32 or 64 bits. What changes in the innermost loops is added last, so that all else can leave them.
pub fn build(b: &mut Builder<'_>, poly: &Poly, ty: Type) -> Value {
    let mut terms: Vec<(Product, i64)> = poly.terms().map(|(p, c)| (p.clone(), c)).collect();
    terms.sort_by_key(|(product, coefficient)| {
        (depth(b.module, product), *coefficient < 0, Reverse(product.len()))
    });
    let mut sum = None;
    for (factors, coefficient) in terms {
        let minus = sum.is_some() && coefficient < 0 && coefficient != i64::MIN;
        let coefficient = if minus { -coefficient } else { coefficient };
        let term = product(b, &factors, coefficient, ty);
        sum = Some(match sum {
            None => term,
            Some(sum) if minus => arith::Subi::build(b, sum, term).result(b.module),
            Some(sum) => arith::Addi::build(b, sum, term).result(b.module),
        });
    }
    sum.unwrap_or_else(|| b.int(0, ty))
}

fn product(b: &mut Builder<'_>, factors: &Product, coefficient: i64, ty: Type) -> Value {
    let mut all = None;
    for &leaf in factors {
        let factor = of_type(b, leaf, ty);
        all = Some(match all {
            None => factor,
            Some(all) => arith::Muli::build(b, all, factor).result(b.module),
        });
    }
    match all {
        Some(all) if coefficient == 1 => all,
        Some(all) => {
            let coefficient = b.int(coefficient, ty);
            arith::Muli::build(b, all, coefficient).result(b.module)
        }
        None => b.int(coefficient, ty),
    }
}

/// A scalar in a type of 32 or 64 bits.
pub fn of_type(b: &mut Builder<'_>, value: Value, ty: Type) -> Value {
    let from = b.module.value_type(value);
    if from == ty {
        return value;
    }
    if from == Type::INDEX {
        return arith::IndexCast::build(b, value, ty).out(b.module);
    }
    match b.module.bits(from) < b.module.bits(ty) {
        true => arith::Extsi::build(b, value, ty).out(b.module),
        false => arith::Trunci::build(b, value, ty).out(b.module),
    }
}

/// In how many loops, one within the other, a product changes.
pub fn depth(m: &Module, product: &Product) -> usize {
    let loops = |v: Value| {
        let mut depth = 0;
        let mut block = m.value_block(v);
        while let Some(op) = block.and_then(|b| m.block_parent_op(b)) {
            depth += usize::from(scf::For::cast(m, op).is_some() || scf::While::cast(m, op).is_some());
            block = m.parent_block(op);
        }
        depth
    };
    product.iter().map(|&v| loops(v)).max().unwrap_or(0)
}
