//! Pointers of a copy as a place in memory with a stride along each dimension.
//!
//! The engines that copy take nothing else: element `(i, j, …)` lies at `base + offset + i * strides[0] + j * strides[1] + …`. What a kernel adds up to make
//! its pointers is taken apart into that.
//!
//! ```text
//! %p = tt.addptr (tt.splat %x), (tt.splat %first) + tt.make_range      =>  base %x, offset %first, strides [1]
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Type, Value};

use super::{unsupported, widened};

/// Where pointers lead.
pub(super) struct Address {
    /// The kernel's argument.
    pub base: Value,
    /// Elements to the first one, an `i64`; none for 0.
    pub offset: Option<Value>,
    /// Elements from one to the next along each dimension, each an `i64`; none for 0.
    pub strides: Vec<Option<Value>>,
}

/// A number that depends on indices: `offset + i * strides[0] + …`.
#[derive(Clone)]
pub(super) struct Linear {
    pub offset: Option<Value>,
    pub strides: Vec<Option<Value>>,
}

/// Takes apart the pointers that `op` is given; numbers are computed in front of it.
pub(super) fn of(module: &mut Module, op: Op, pointers: Value) -> Result<Address, Diagnostic> {
    let mut taker = Taker { b: Builder::before(module, op), op };
    let (base, linear) = taker.pointer(pointers)?;
    Ok(Address { base, offset: linear.offset, strides: linear.strides })
}

/// Takes numbers and pointers apart in front of an operation.
pub(super) struct Taker<'m> {
    pub b: Builder<'m>,
    pub op: Op,
}

impl Taker<'_> {
    fn error(&self, value: Value) -> Diagnostic {
        let m = &*self.b.module;
        let what = m.defining_op(value).map_or("an argument", |op| m.op_name(op)).to_string();
        unsupported(m, self.op, format!("copies through pointers that are made by `{what}`"))
            .note("its engines copy blocks: an address, and a stride along each dimension")
    }

    fn rank(&self, value: Value) -> usize {
        self.b.module.shape(self.b.module.value_type(value)).map_or(0, <[u32]>::len)
    }

    fn pointer(&mut self, value: Value) -> Result<(Value, Linear), Diagnostic> {
        let m = &*self.b.module;
        let Some(op) = m.defining_op(value) else {
            let rank = self.rank(value);
            let none = Linear { offset: None, strides: vec![None; rank] };
            return if rank == 0 { Ok((value, none)) } else { Err(self.error(value)) };
        };
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Addptr)) => {
                let add = tt::Addptr(op);
                let (pointer, offset) = (add.ptr(m), add.offset(m));
                let (base, at) = self.pointer(pointer)?;
                let by = self.number(offset)?;
                Ok((base, self.sum(at, by, false)))
            }
            Some(Opcode::Tt(tt::Kind::Splat | tt::Kind::Broadcast | tt::Kind::ExpandDims)) => {
                let src = m.operands(op)[0];
                let (base, at) = self.pointer(src)?;
                Ok((base, self.spread(op, at, value)))
            }
            _ => Err(self.error(value)),
        }
    }

    /// What repeating a value, or giving it a dimension more, makes of its strides.
    fn spread(&self, op: Op, mut at: Linear, result: Value) -> Linear {
        match tt::ExpandDims::cast(self.b.module, op) {
            Some(expand) => at.strides.insert(expand.axis(self.b.module) as usize, None),
            None => at.strides.resize(self.rank(result), None),
        }
        at
    }

    /// An integer as a function of the indices.
    pub fn number(&mut self, value: Value) -> Result<Linear, Diagnostic> {
        let rank = self.rank(value);
        if rank == 0 {
            let offset = widened(&mut self.b, value);
            return Ok(Linear { offset: Some(offset), strides: vec![] });
        }
        let m = &*self.b.module;
        let Some(op) = m.defining_op(value) else { return Err(self.error(value)) };
        let operands = m.operands(op).to_vec();
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::MakeRange)) => {
                let start = i64::from(tt::MakeRange(op).start(m));
                let offset = (start != 0).then(|| self.b.int(start, Type::I64));
                let one = self.b.int(1, Type::I64);
                Ok(Linear { offset, strides: vec![Some(one)] })
            }
            Some(Opcode::Tt(tt::Kind::Splat | tt::Kind::Broadcast | tt::Kind::ExpandDims)) => {
                let at = self.number(operands[0])?;
                Ok(self.spread(op, at, value))
            }
            Some(Opcode::Arith(arith::Kind::Constant)) => {
                let Some(n) = splat_int(m, value) else { return Err(self.error(value)) };
                let offset = (n != 0).then(|| self.b.int(n, Type::I64));
                Ok(Linear { offset, strides: vec![None; rank] })
            }
            Some(Opcode::Arith(arith::Kind::Extsi)) => self.number(operands[0]),
            Some(Opcode::Arith(kind @ (arith::Kind::Addi | arith::Kind::Subi))) => {
                let (x, y) = (self.number(operands[0])?, self.number(operands[1])?);
                Ok(self.sum(x, y, kind == arith::Kind::Subi))
            }
            Some(Opcode::Arith(arith::Kind::Muli)) => {
                let (x, y) = (self.number(operands[0])?, self.number(operands[1])?);
                let constant = |l: &Linear| l.strides.iter().all(Option::is_none);
                match (constant(&x), constant(&y)) {
                    (_, true) => Ok(self.scaled(x, y.offset)),
                    (true, _) => Ok(self.scaled(y, x.offset)),
                    _ => Err(self.error(value)),
                }
            }
            _ => Err(self.error(value)),
        }
    }

    fn sum(&mut self, x: Linear, y: Linear, minus: bool) -> Linear {
        let mut add = |x: Option<Value>, y: Option<Value>| match (x, y) {
            (x, None) => x,
            (None, Some(y)) if !minus => Some(y),
            (x, Some(y)) => {
                let x = x.unwrap_or_else(|| self.b.int(0, Type::I64));
                Some(match minus {
                    true => arith::Subi::build(&mut self.b, x, y).result(self.b.module),
                    false => arith::Addi::build(&mut self.b, x, y).result(self.b.module),
                })
            }
        };
        let offset = add(x.offset, y.offset);
        let strides = x.strides.iter().zip(&y.strides).map(|(&x, &y)| add(x, y)).collect();
        Linear { offset, strides }
    }

    fn scaled(&mut self, x: Linear, by: Option<Value>) -> Linear {
        let mut times = |x: Option<Value>| match (x, by) {
            (Some(x), Some(by)) => Some(arith::Muli::build(&mut self.b, x, by).result(self.b.module)),
            _ => None,
        };
        Linear { offset: times(x.offset), strides: x.strides.iter().map(|&s| times(s)).collect() }
    }
}

/// The integer that all elements of a constant are.
fn splat_int(m: &Module, value: Value) -> Option<i64> {
    match *m.attr_kind(m.constant_value(value)?) {
        AttrKind::Splat(element, _) => match *m.attr_kind(element) {
            AttrKind::Int(n, _) => Some(n),
            _ => None,
        },
        AttrKind::Int(n, _) => Some(n),
        _ => None,
    }
}
