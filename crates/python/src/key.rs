//! The key under which a compiled kernel is found again: everything that the compiler saw of a call, as words.
//!
//! Two calls have equal keys exactly when they compile to the same kernel. Each argument starts with a tag word that
//! says how many words follow, so that no two different lists of arguments run together into the same words.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use tilewright_frontend::Scalar;

use crate::jit::JitBase;
use crate::nesting::Level;

/// The words of a call.
pub type Key = SmallVec<[u64; 40]>;

// Tags, in the low byte of an argument's first word.
const NONE: u64 = 1;
const ONE: u64 = 2;
const SCALAR: u64 = 3;
const POINTER: u64 = 4;
const TUPLE: u64 = 5;
const CONST_BOOL: u64 = 6;
const CONST_INT: u64 = 7;
const CONST_FLOAT: u64 = 8;
const CONST_LIST: u64 = 9;
const CONST_OBJECT: u64 = 10;
const DESCRIPTOR: u64 = 11;

/// The integer 1, which is compiled in.
pub fn one() -> u64 {
    ONE
}

/// A number that is given at run time.
pub fn scalar(ty: Scalar, divisor: u32) -> u64 {
    SCALAR | (ty as u64) << 8 | u64::from(divisor) << 16
}

/// An address that is given at run time.
pub fn pointer(ty: Scalar, constant: bool, divisible: bool) -> u64 {
    POINTER | (ty as u64) << 8 | (divisible as u64) << 16 | (constant as u64) << 17
}

/// A tensor descriptor of `rank` dimensions, whose block extents follow.
pub fn descriptor(ty: Scalar, rank: usize, nan: bool, divisible: bool) -> u64 {
    DESCRIPTOR | (ty as u64) << 8 | (divisible as u64) << 16 | (nan as u64) << 17 | (rank as u64) << 18
}

/// A tuple whose `len` elements follow.
pub fn tuple(len: usize) -> u64 {
    TUPLE | (len as u64) << 8
}

/// Numbers given to constants that have no words of their own: strings, dtypes, functions, …
///
/// A Python dict does the work, so equality is Python's own; it also keeps the constants alive.
pub struct Constants {
    numbers: Py<PyDict>,
}

impl Constants {
    pub fn new(py: Python<'_>) -> Self {
        Constants { numbers: PyDict::new(py).unbind() }
    }

    /// Appends the words of a compile-time constant.
    pub fn encode(&self, value: &Bound<'_, PyAny>, key: &mut Key) -> PyResult<()> {
        if value.is_none() {
            key.push(NONE);
        } else if let Ok(value) = value.cast_exact::<PyInt>() {
            match value.extract::<i64>() {
                Ok(int) => key.extend([CONST_INT, int as u64]),
                Err(_) => self.encode_object(value, key)?,
            }
        } else if let Ok(value) = value.cast_exact::<PyBool>() {
            key.push(CONST_BOOL | (value.is_true() as u64) << 8);
        } else if let Ok(value) = value.cast_exact::<PyFloat>() {
            // By bits: 0.0 and -0.0 are different constants, and NaN is equal to itself.
            key.extend([CONST_FLOAT, value.value().to_bits()]);
        } else if let Ok(items) = value.cast::<PyTuple>() {
            let _level = Level::enter(value.py(), c" in a constant of a kernel")?;
            key.push(tuple(items.len()));
            if value.cast_exact::<PyTuple>().is_err() {
                self.encode(value.get_type().as_any(), key)?;
            }
            for item in items.iter() {
                self.encode(&item, key)?;
            }
        } else if let Ok(items) = value.cast_exact::<PyList>() {
            let _level = Level::enter(value.py(), c" in a constant of a kernel")?;
            key.push(CONST_LIST | (items.len() as u64) << 8);
            for item in items.iter() {
                self.encode(&item, key)?;
            }
        } else {
            self.encode_object(value, key)?;
        }
        Ok(())
    }

    fn encode_object(&self, value: &Bound<'_, PyAny>, key: &mut Key) -> PyResult<()> {
        let py = value.py();
        let numbers = self.numbers.bind(py);
        let next = numbers.len();
        // The type takes part: an enum's member may equal a plain integer. A string alone is common, and unmistakable.
        let number: usize = if value.cast_exact::<PyString>().is_ok() {
            set_default(numbers, value, next)?
        } else {
            let replaced = value.cast::<JitBase>().map_or(0, |jit| jit.get().replacements());
            let typed = (value.get_type(), value, replaced).into_pyobject(py)?;
            match set_default(numbers, &typed, next) {
                Ok(number) => number,
                // Not hashable: told apart by what it prints, as far as that goes.
                Err(_) => {
                    let shown = PyTuple::new(py, [value.get_type().as_any(), value.repr()?.as_any()])?;
                    set_default(numbers, &shown, next)?
                }
            }
        };
        key.extend([CONST_OBJECT, number as u64]);
        Ok(())
    }
}

/// `dict.setdefault(key, number)`.
fn set_default(dict: &Bound<'_, PyDict>, key: &Bound<'_, PyAny>, number: usize) -> PyResult<usize> {
    if let Some(found) = dict.get_item(key)? {
        return found.extract();
    }
    dict.set_item(key, number)?;
    Ok(number)
}
