//! The functions of NVIDIA's library `libdevice`, by the names and with the types that Triton gives them.
//!
//! A function is one row of the table (`table.rs`): name, symbol, types, accuracy, and what it computes. The front end takes from it which
//! overload a call means, the CPU executor what to compute, the lowering with which types to call the symbol, and the page of the
//! documentation is made from it.
//!
//! Functions of `f32` that aren't exact are computed in `f64` and rounded once, those of `f64` by the system's library and the
//! crate `libm`, or by `special.rs` where neither has them: errors stay below 4 ulp wherever the result isn't near a zero
//! of a Bessel function or of `lgamma`.

pub mod bessel;
mod bits;
pub mod elementary;
mod elements;
pub mod fp8;
pub mod integers;
mod numbers;
mod page;
mod real;
pub mod record;
pub mod recorded;
mod rounding;
pub mod soft;
pub mod special;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

pub use page::markdown;
pub use real::{Parts, Real};

/// A type of an argument or a result. Signs matter to the overload that is taken, and to what is done with the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `int32`
    I32,
    /// `uint32`
    U32,
    /// `int64`
    I64,
    /// `uint64`
    U64,
    /// `fp32`
    F32,
    /// `fp64`
    F64,
}

impl Type {
    /// As the language spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Type::I32 => "int32",
            Type::U32 => "uint32",
            Type::I64 => "int64",
            Type::U64 => "uint64",
            Type::F32 => "fp32",
            Type::F64 => "fp64",
        }
    }

    /// The type of a name in the language.
    pub fn parse(name: &str) -> Option<Type> {
        use Type::{F32, F64, I32, I64, U32, U64};
        [I32, U32, I64, U64, F32, F64].into_iter().find(|ty| ty.name() == name)
    }

    /// Whether it is floating-point.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        match self {
            Type::I32 | Type::U32 | Type::F32 => 32,
            Type::I64 | Type::U64 | Type::F64 => 64,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a result on a GPU may be from the exact one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accuracy {
    /// It is the exact one, rounded as the function says.
    Exact,
    /// So many units in the last place.
    Ulp(u32),
    /// As said.
    Within(&'static str),
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accuracy::Exact => f.write_str("exact"),
            Accuracy::Ulp(n) => write!(f, "{n} ulp"),
            Accuracy::Within(bound) => f.write_str(bound),
        }
    }
}

/// One function of the library: an overload of a name of the language.
#[derive(Debug)]
pub struct Function {
    /// Its name in the language.
    pub name: &'static str,
    /// Its name in the library.
    pub symbol: &'static str,
    /// The types of the arguments.
    pub params: &'static [Type],
    /// The type of the result.
    pub result: Type,
    /// How accurate it is on a GPU.
    pub accuracy: Accuracy,
    /// What it computes: for tiles of arguments, as bytes, each element of the result.
    pub elements: fn(&[&[u8]], &mut [u8]),
}

impl Function {
    /// What it takes and gives, for who has called it with other types.
    pub fn takes(&self) -> String {
        let takes: Vec<&str> = self.params.iter().map(|p| p.name()).collect();
        format!("`{}` takes {} and gives {}", self.symbol, takes.join(", "), self.result)
    }
}

/// The library of what a program asks the machine that it runs on.
pub const MACHINE: &str = "machine";

/// A function of the library [`MACHINE`]; it has no arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A clock of the GPU, in nanoseconds.
    GlobalTimer,
    /// The multiprocessor.
    Smid,
    /// Waits for the grids that this one depends on.
    GdcWait,
    /// Lets the grids begin that depend on this one.
    GdcLaunchDependents,
}

impl Query {
    const ALL: [Query; 4] = [Query::GlobalTimer, Query::Smid, Query::GdcWait, Query::GdcLaunchDependents];

    /// Its name in the language, which is its symbol.
    pub const fn name(self) -> &'static str {
        match self {
            Query::GlobalTimer => "globaltimer",
            Query::Smid => "smid",
            Query::GdcWait => "gdc_wait",
            Query::GdcLaunchDependents => "gdc_launch_dependents",
        }
    }

    /// The query of a symbol.
    pub fn of_symbol(symbol: &str) -> Option<Query> {
        Query::ALL.into_iter().find(|q| q.name() == symbol)
    }

    /// The type of what it gives; what only has an effect gives a zero.
    pub const fn result(self) -> Type {
        match self {
            Query::GlobalTimer => Type::I64,
            _ => Type::I32,
        }
    }

    /// Whether it may be asked once instead of twice.
    pub const fn is_pure(self) -> bool {
        matches!(self, Query::Smid)
    }
}

/// All functions, those of one name one after the other.
pub fn all() -> &'static [&'static Function] {
    static ALL: LazyLock<Vec<&'static Function>> = LazyLock::new(|| {
        let mut all: Vec<_> = table::REAL.iter().chain(table::OTHERS).collect();
        // In a name, the order of the table.
        all.sort_by_key(|f| f.name);
        all
    });
    &ALL
}

/// The overloads of a name.
pub fn overloads(name: &str) -> &'static [&'static Function] {
    let all = all();
    let start = all.partition_point(|f| f.name < name);
    let end = all.partition_point(|f| f.name <= name);
    &all[start..end]
}

/// The function of a symbol.
pub fn of_symbol(symbol: &str) -> Option<&'static Function> {
    static BY_SYMBOL: LazyLock<HashMap<&str, &Function>> =
        LazyLock::new(|| all().iter().map(|&f| (f.symbol, f)).collect());
    BY_SYMBOL.get(symbol).copied()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod recorded_tests;
