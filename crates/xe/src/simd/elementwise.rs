//! Arithmetic, of scalars and of vectors.

use tilewright_ir::dialect::{arith, math};
use tilewright_ir::{Op, Opcode, Type, Value};

use super::value::{Known, Vector, mangled};
use super::{Result, Style, Writer, unsupported};

/// How an operation is written.
enum Form {
    /// An instruction on operands of one type.
    Instruction(&'static str),
    /// A conversion.
    Cast(&'static str),
    /// A call of an intrinsic, by the stem of its name.
    Call(&'static str),
}

fn arithmetic(kind: arith::Kind) -> Option<Form> {
    use arith::Kind as K;
    Some(match kind {
        K::Addi => Form::Instruction("add"),
        K::Subi => Form::Instruction("sub"),
        K::Muli => Form::Instruction("mul"),
        K::Andi => Form::Instruction("and"),
        K::Ori => Form::Instruction("or"),
        K::Xori => Form::Instruction("xor"),
        K::Shli => Form::Instruction("shl"),
        K::Shrsi => Form::Instruction("ashr"),
        K::Shrui => Form::Instruction("lshr"),
        K::Divsi => Form::Instruction("sdiv"),
        K::Divui => Form::Instruction("udiv"),
        K::Remsi => Form::Instruction("srem"),
        K::Remui => Form::Instruction("urem"),
        K::Addf => Form::Instruction("fadd"),
        K::Subf => Form::Instruction("fsub"),
        K::Mulf => Form::Instruction("fmul"),
        K::Divf => Form::Instruction("fdiv"),
        K::Remf => Form::Instruction("frem"),
        K::Negf => Form::Instruction("fneg"),
        K::Minsi => Form::Call("llvm.smin"),
        K::Maxsi => Form::Call("llvm.smax"),
        K::Minui => Form::Call("llvm.umin"),
        K::Maxui => Form::Call("llvm.umax"),
        K::Minnumf => Form::Call("llvm.minnum"),
        K::Maxnumf => Form::Call("llvm.maxnum"),
        K::Minimumf => Form::Call("llvm.minimum"),
        K::Maximumf => Form::Call("llvm.maximum"),
        K::Extsi => Form::Cast("sext"),
        K::Extui => Form::Cast("zext"),
        K::Trunci => Form::Cast("trunc"),
        K::Extf => Form::Cast("fpext"),
        K::Truncf => Form::Cast("fptrunc"),
        K::Sitofp => Form::Cast("sitofp"),
        K::Uitofp => Form::Cast("uitofp"),
        K::Fptosi => Form::Cast("fptosi"),
        K::Fptoui => Form::Cast("fptoui"),
        K::Bitcast => Form::Cast("bitcast"),
        _ => return None,
    })
}

/// Functions; those of Intel's own are instructions, and powers and logarithms have the base 2.
fn function(kind: math::Kind, style: Style) -> Option<Form> {
    use math::Kind as K;
    Some(Form::Call(match kind {
        K::Exp2 if style == Style::Simt => "llvm.exp2",
        K::Log2 if style == Style::Simt => "llvm.log2",
        K::Sqrt if style == Style::Simt => "llvm.sqrt",
        K::Rsqrt if style == Style::Simt => return None,
        K::Exp2 => "llvm.genx.exp",
        K::Log2 => "llvm.genx.log",
        K::Sqrt => "llvm.genx.sqrt",
        K::Rsqrt => "llvm.genx.rsqrt",
        K::Absf => "llvm.fabs",
        K::Floor => "llvm.floor",
        K::Ceil => "llvm.ceil",
        K::Fma => "llvm.fma",
        _ => return None,
    }))
}

impl Writer<'_> {
    pub(super) fn elementwise(&mut self, op: Op) -> Result<()> {
        let operands = self.m.operands(op).to_vec();
        let mut lanes = None;
        for &operand in &operands {
            if let Known::Vector(_) = self.known(op, operand)? {
                lanes = Some(self.elements(op, operand)?);
            }
        }
        let mut values = Vec::new();
        for &operand in &operands {
            values.push(self.operand(op, operand, lanes.as_ref())?);
        }
        let result = self.m.result(op);
        let element = self.element(op, self.m.value_type(result))?;
        let ty = lanes.as_ref().map_or(element.clone(), |v| format!("<{} x {element}>", v.count()));
        let name = self.apply(op, &values, &ty, lanes.as_ref().map(|v| (v.count(), element.as_str())))?;
        match lanes {
            None => self.scalar(result, &element, name),
            Some(like) => {
                let bits = super::value::bits(self.m, self.m.value_type(result));
                self.known.insert(result, Known::Vector(Vector { element, bits, name, ..like }));
            }
        }
        Ok(())
    }

    /// An operand's type and value. Among vectors a scalar is one, too, except for a condition.
    fn operand(&mut self, op: Op, operand: Value, lanes: Option<&Vector>) -> Result<(String, String)> {
        match (self.known(op, operand)?.clone(), lanes) {
            (Known::Vector(_), _) => self.elements(op, operand).map(|v| (v.ty(), v.name)),
            (Known::Scalar { ty, value }, Some(like)) if arith::Select::cast(self.m, op).is_none() => {
                let name = self.spread(&ty, &value, like.count());
                Ok((format!("<{} x {ty}>", like.count()), name))
            }
            (Known::Scalar { ty, value }, _) => Ok((ty, value)),
            (Known::Surface(_), _) => Err(unsupported(self.m, op, "arithmetic of descriptors")),
        }
    }

    /// Writes the instruction; `vector` is what it gives, if that is one.
    fn apply(
        &mut self,
        op: Op,
        values: &[(String, String)],
        ty: &str,
        vector: Option<(u32, &str)>,
    ) -> Result<String> {
        let names: Vec<&str> = values.iter().map(|(_, name)| name.as_str()).collect();
        let typed: Vec<String> = values.iter().map(|(ty, name)| format!("{ty} {name}")).collect();
        let form = match self.m.opcode(op) {
            Some(Opcode::Arith(arith::Kind::Cmpi)) => {
                let predicate = arith::Cmpi(op).predicate(self.m).keyword();
                return Ok(self.assign(format!("icmp {predicate} {}, {}", typed[0], names[1])));
            }
            Some(Opcode::Arith(arith::Kind::Cmpf)) => {
                let predicate = arith::Cmpf(op).predicate(self.m).keyword();
                return Ok(self.assign(format!("fcmp {predicate} {}, {}", typed[0], names[1])));
            }
            Some(Opcode::Arith(arith::Kind::Select)) => {
                return Ok(self.assign(format!("select {}", typed.join(", "))));
            }
            Some(Opcode::Arith(arith::Kind::IndexCast)) => {
                let of = |v: Value| {
                    let ty = self.m.element_type(self.m.value_type(v));
                    if ty == Type::INDEX { 64 } else { self.m.bits(ty) }
                };
                match of(self.m.operands(op)[0]).cmp(&of(self.m.result(op))) {
                    std::cmp::Ordering::Equal => return Ok(names[0].to_string()),
                    std::cmp::Ordering::Less => Some(Form::Cast("sext")),
                    std::cmp::Ordering::Greater => Some(Form::Cast("trunc")),
                }
            }
            Some(Opcode::Arith(kind)) => arithmetic(kind),
            Some(Opcode::Math(kind)) => function(kind, self.style),
            _ => None,
        };
        match form {
            Some(Form::Instruction(name)) => Ok(self.assign(format!("{name} {ty} {}", names.join(", ")))),
            Some(Form::Cast(name)) => Ok(self.assign(format!("{name} {} to {ty}", typed[0]))),
            Some(Form::Call(stem)) => {
                let suffix = match vector {
                    Some((length, element)) => mangled(length, element),
                    None => mangled(1, ty).replacen("v1", "", 1),
                };
                Ok(self.call(&format!("{stem}.{suffix}"), ty, &typed))
            }
            None => Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op)))),
        }
    }
}
