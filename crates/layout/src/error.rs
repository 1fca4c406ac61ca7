//! The error of this crate: a layout that can't be built, and what to do about it.

use std::fmt;

/// Why a layout, a plan or an encoding could not be made. The message says what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutError(String);

impl LayoutError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LayoutError {}

/// The result of building a layout.
pub type Result<T, E = LayoutError> = std::result::Result<T, E>;
