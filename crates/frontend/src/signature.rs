//! The types of a kernel's arguments: what specialization found out, or what an ahead-of-time signature promises.

use std::fmt;

use tilewright_ir::Diagnostic;
use tilewright_ir::diagnostic::Kind;

use crate::dtype::{DType, MAX_NESTING, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::NamedClass;

/// What one argument of a kernel is.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgType {
    /// A scalar or a pointer at run time.
    Value(DType),
    /// A compile-time constant (a `tl.constexpr` parameter, an integer that equals 1, `None`).
    Constant(HostValue),
    /// A tensor descriptor of the host: elements, extents of the block, and whether what lies outside reads as NaN
    /// instead of zero. In the kernel it is followed by the tensor's extents (`i32`) and strides (`i64`).
    Descriptor {
        /// Elements.
        element: Scalar,
        /// Extents of the block.
        block: Vec<u32>,
        /// NaN outside.
        nan: bool,
    },
    /// A tuple of arguments.
    Tuple(Vec<ArgSpec>),
    /// An instance of a named tuple class.
    NamedTuple(NamedClass, Vec<ArgSpec>),
}

/// One argument: its type and what is promised about its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgSpec {
    /// Type.
    pub ty: ArgType,
    /// The value (of a pointer: the address; of a descriptor: the tensor's last extent) is a multiple of this.
    pub divisibility: Option<u32>,
}

impl ArgSpec {
    /// A scalar or pointer with no promise.
    pub fn value(ty: impl Into<DType>) -> ArgSpec {
        ArgSpec { ty: ArgType::Value(ty.into()), divisibility: None }
    }

    /// A constant.
    pub fn constant(value: HostValue) -> ArgSpec {
        ArgSpec { ty: ArgType::Constant(value), divisibility: None }
    }

    /// The argument with a promise of divisibility.
    #[must_use]
    pub fn divisible_by(mut self, divisibility: u32) -> ArgSpec {
        self.divisibility = Some(divisibility);
        self
    }

    /// Reads one entry of an ahead-of-time signature: `*fp32`, `*fp32:16`, `i32`, `i32:16`, `i32:1` (the constant 1),
    /// `*kfp16` (not stored through), `fp32`, `tensordesc<fp16[128,64]>` (`tensordesc<fp16[128,64],nan>` with NaN outside),
    /// `128` or `128/constexpr`, `None`, `True`, `1.5`, `'text'`.
    pub fn parse(text: &str) -> Result<ArgSpec, Diagnostic> {
        let text = text.trim();
        if let Some(constant) = parse_constant(text.strip_suffix("/constexpr").unwrap_or(text).trim()) {
            return Ok(ArgSpec::constant(constant));
        }
        let (ty, promise) = match text.split_once(':') {
            Some((ty, promise)) => (ty.trim(), Some(promise.trim())),
            None => (text, None),
        };
        let descriptor = match ty.strip_prefix("tensordesc<") {
            Some(rest) => Some(parse_descriptor(rest).ok_or_else(|| {
                Diagnostic::new(format!("`{ty}` in the signature is no tensor descriptor"))
                    .of(Kind::Request)
                    .note("write tensordesc<fp16[128,64]>")
            })?),
            None => None,
        };
        let dtype = parse_dtype(ty);
        let ty = descriptor.or_else(|| dtype.clone().map(ArgType::Value)).ok_or_else(|| {
            let shown: String = ty.chars().take(80).collect();
            Diagnostic::new(format!("`{shown}` in the signature is no type"))
                .of(Kind::Request)
                .note("write *fp32, *fp16:16 (16: divisible by 16), i32, fp32, or a constant such as 128")
        })?;
        match promise {
            None => Ok(ArgSpec { ty, divisibility: None }),
            Some("1") if dtype.is_some_and(|d| !d.is_pointer()) => Ok(ArgSpec::constant(HostValue::Int(1))),
            Some(n) => match n.parse::<u32>() {
                Ok(n) if n.is_power_of_two() => Ok(ArgSpec { ty, divisibility: None }.divisible_by(n)),
                _ => Err(Diagnostic::new(format!("`:{n}` in the signature is no divisibility"))
                    .of(Kind::Request)
                    .note("`:16` promises that the value, or the pointer's address, is a multiple of 16")),
            },
        }
    }
}

/// What follows `tensordesc<`.
fn parse_descriptor(text: &str) -> Option<ArgType> {
    let (element, rest) = text.strip_suffix('>')?.split_once('[')?;
    let (block, padding) = rest.split_once(']')?;
    let nan = match padding.trim() {
        "" => false,
        ",nan" => true,
        _ => return None,
    };
    let element = Scalar::parse(element.trim()).filter(|s| !matches!(s, Scalar::Void | Scalar::Int1))?;
    let block: Vec<u32> = block.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    ((1..=5).contains(&block.len()) && !block.contains(&0)).then_some(ArgType::Descriptor {
        element,
        block,
        nan,
    })
}

/// A type as signatures write it: `i32`, `fp16`, `*fp32`, `**i8`, `*ku8`. None for what isn't one, or is nested too deeply.
pub fn parse_dtype(text: &str) -> Option<DType> {
    let (mut rest, mut pointers) = (text, Vec::new());
    while let Some(pointee) = rest.strip_prefix('*') {
        let constant = pointee.starts_with('k');
        rest = pointee.strip_prefix('k').unwrap_or(pointee);
        pointers.push(constant);
        if pointers.len() > MAX_NESTING {
            return None;
        }
    }
    let scalar = Scalar::parse(rest).filter(|&s| s != Scalar::Void)?;
    let point = |element, &constant: &bool| {
        DType::Pointer(PointerType { element, address_space: 1, constant }.into())
    };
    Some(pointers.iter().rev().fold(DType::Scalar(scalar), point))
}

fn parse_constant(text: &str) -> Option<HostValue> {
    Some(match text {
        "None" => HostValue::None,
        "True" => HostValue::Bool(true),
        "False" => HostValue::Bool(false),
        _ => {
            if let Ok(i) = text.parse::<i128>() {
                HostValue::Int(i)
            } else if let Some(s) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
                HostValue::str(s)
            } else if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
                HostValue::Float(text.parse().ok()?)
            } else {
                return None;
            }
        }
    })
}

/// The arguments of a kernel in the order of its parameters, one for each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signature {
    /// The arguments.
    pub args: Vec<ArgSpec>,
}

impl Signature {
    /// Reads a comma-separated ahead-of-time signature.
    pub fn parse(text: &str) -> Result<Signature, Diagnostic> {
        if text.trim().is_empty() {
            return Ok(Signature::default());
        }
        // A comma inside brackets belongs to an entry.
        let mut depth = 0i32;
        let entries = text.split(|c| {
            depth += match c {
                '<' | '[' | '(' => 1,
                '>' | ']' | ')' => -1,
                _ => 0,
            };
            c == ',' && depth == 0
        });
        let args = entries.map(ArgSpec::parse).collect::<Result<_, _>>()?;
        Ok(Signature { args })
    }
}

impl fmt::Display for ArgSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn dtype(ty: &DType) -> String {
            match ty {
                DType::Scalar(s) => s.signature_name().to_string(),
                DType::Pointer(p) => format!("*{}{}", if p.constant { "k" } else { "" }, dtype(&p.element)),
                block @ DType::Block(_) => block.to_string(),
            }
        }
        match &self.ty {
            ArgType::Value(ty) => f.write_str(&dtype(ty))?,
            ArgType::Constant(value) => write!(f, "{value}/constexpr")?,
            ArgType::Descriptor { element, block, nan } => {
                let block: Vec<String> = block.iter().map(u32::to_string).collect();
                let padding = if *nan { ",nan" } else { "" };
                write!(f, "tensordesc<{}[{}]{padding}>", element.signature_name(), block.join(","))?;
            }
            ArgType::Tuple(items) | ArgType::NamedTuple(_, items) => {
                if let ArgType::NamedTuple((class, _), _) = &self.ty {
                    f.write_str(class)?;
                }
                let items: Vec<String> = items.iter().map(ArgSpec::to_string).collect();
                write!(f, "({})", items.join(", "))?;
            }
        }
        match self.divisibility {
            Some(n) => write!(f, ":{n}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_back() {
        for text in [
            "*fp32:16",
            "i32",
            "fp64",
            "**i8",
            "*ku8",
            "i32:16",
            "128/constexpr",
            "None/constexpr",
            "tensordesc<fp16[128,64]>:16",
            "tensordesc<fp32[8],nan>",
        ] {
            assert_eq!(ArgSpec::parse(text).expect("parses").to_string(), text);
        }
        assert_eq!(ArgSpec::parse("i32:1").expect("parses"), ArgSpec::constant(HostValue::Int(1)));
        assert_eq!(ArgSpec::parse("1.5").expect("parses"), ArgSpec::constant(HostValue::Float(1.5)));
        assert_eq!(Signature::parse("*fp32:16, i32,64").expect("parses").args.len(), 3);
        assert_eq!(Signature::parse("tensordesc<fp16[8,64]>, i32").expect("parses").args.len(), 2);
        assert!(ArgSpec::parse("tensordesc<fp16[]>").is_err());
        assert!(ArgSpec::parse("fp33").is_err());
        assert!(ArgSpec::parse("*fp32:7").is_err());
    }

    #[test]
    fn pointers_nest_so_deep_and_no_deeper() {
        let nested = |n: usize| format!("{}i8", "*".repeat(n));
        assert_eq!(ArgSpec::parse(&nested(60)).expect("parses").to_string(), nested(60));
        for n in [65, 100_000] {
            assert!(ArgSpec::parse(&nested(n)).expect_err("is refused").to_string().len() < 500);
        }
    }
}
