//! Layout algebra: linear layouts over F2, encodings, conversions and swizzles.
//!
//! An [`Encoding`] is what the IR prints on a tensor or buffer type; every question about it (who holds which
//! element, how wide a vector access may be, what a conversion costs) is answered by the linear layout that it maps to.

mod encoding;

pub use encoding::{Encoding, SharedKind};
