//! Names of functions as PTX takes them: letters, digits, `_` and `$` of ASCII (PTX ISA, "Identifiers").
//!
//! Python's identifiers hold more letters and no `$`, so `$` marks what was changed, and no two names become one.

use std::borrow::Cow;
use std::fmt::Write;

use tilewright_lower::{OWN_PREFIX, SHARED_MEMORY};

use crate::libdevice;

/// Names that PTX or the module itself has for something else.
const TAKEN: [&str; 5] = ["_", "WARP_SZ", SHARED_MEMORY, "vprintf", "__assertfail"];

/// The symbol of a function: its name where that will do.
pub(crate) fn symbol(name: &str) -> Cow<'_, str> {
    if TAKEN.contains(&name) || [OWN_PREFIX, libdevice::PREFIX].iter().any(|p| name.starts_with(p)) {
        return Cow::Owned(format!("${name}"));
    }
    if name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'.')) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => out.push(c),
            // A string takes everything.
            _ => drop(write!(out, "${:x}$", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_and_others_differ() {
        assert_eq!(symbol("add_kernel"), "add_kernel");
        assert_eq!(symbol("größe"), "gr$f6$$df$e");
        let all =
            ["größe", "grosse", "_", "__", "WARP_SZ", "核", "核心", "global_smem", "__nv_sin"].map(symbol);
        for (i, a) in all.iter().enumerate() {
            assert!(a.is_ascii() && a.len() > 1);
            assert!(!all[..i].contains(a), "{a}");
        }
    }
}
