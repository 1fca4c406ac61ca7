//! The text form: MLIR's syntax, as Triton 3.6 prints it.
//!
//! [`print`](fn@print) and [`parse`] are inverse: what is printed parses, and prints the same again. Most operations are printed
//! and parsed by the format of their declaration (`format.rs`); a few with regions or constants are hand-written
//! (`custom.rs`); every operation, registered or not, also parses in MLIR's generic form
//! (`"dialect.op"(%operands) <{properties}> ({regions}) {attributes} : (types) -> types`).
//!
//! Where a format does not print a type, the rules of the declaration ([`typing`](crate::typing)) give it. Types and attributes of dialects that
//! are not modelled are kept as their text.
//!
//! `parser` and `printer` go through `custom` for such operations, which goes back to them for what stands in their regions; and
//! `parse_types` is the part of `parser` for types: so these files, with `warp_specialize`, name each other.

mod check_encodings;
mod constants;
mod custom;
mod format;
mod lexer;
mod names;
mod parse_encodings;
mod parse_ops;
mod parse_types;
mod parser;
mod print_types;
mod printer;
mod warp_specialize;

#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::module::Module;

/// What [`print_with`] prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintOptions {
    /// A location after each operation.
    pub locations: bool,
}

impl PrintOptions {
    /// No locations: for people and tests.
    pub const PLAIN: PrintOptions = PrintOptions { locations: false };
    /// Everything that the module holds.
    pub const FULL: PrintOptions = PrintOptions { locations: true };
}

/// The text of a module, with locations: everything that it holds.
pub fn print(module: &Module) -> String {
    print_with(module, PrintOptions::FULL)
}

/// The text of a module.
pub fn print_with(module: &Module, options: PrintOptions) -> String {
    printer::print_module(module, options)
}

/// The text of one operation with its regions, without locations: for messages. Values defined outside of it are
/// numbered from 0.
pub fn print_op(module: &Module, op: crate::Op) -> String {
    printer::print_single(module, op)
}

/// The text of a type, with nothing abbreviated: for messages.
pub fn print_type(module: &Module, ty: crate::Type) -> String {
    printer::print_type(module, ty)
}

/// The text of an attribute, with nothing abbreviated.
pub fn print_attr(module: &Module, attr: crate::Attr) -> String {
    printer::print_attr(module, attr)
}

/// Reads a module. Operations without a `loc(...)` get their place in this text, under `file_name`.
///
/// A file that is not one `module` is a module of the operations in it.
///
/// # Errors
/// The first thing that is not understood, with line, column and source line.
pub fn parse(text: &str, file_name: &str) -> Result<Module, Diagnostic> {
    parser::parse_module(text, file_name)
}
