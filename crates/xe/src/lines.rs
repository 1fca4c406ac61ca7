//! The source lines of native code, from the offline compiler's own listing, which it writes on request.
//!
//! That has the instructions of `ocloc disasm`, in the same order, each behind comments that say where the code from there on comes from:
//!
//! ```text
//! // File: /…/kernel.py
//!
//! // Line 24:  tl.store(z + at, …)
//! (f1.1)  load.ugm.d32.a64 (16|M0)  r29:1         [r20:2]            {$3} // ex_desc:0x0; desc:0x4100580 // $25
//! ```
//!
//! (Its debugging information, DWARF, loses count where there is inline assembly.)

use crate::asm::{Place, is_label};

/// What asks the compiler for its listing, which goes into a folder.
pub const REQUEST: [(&str, &str); 2] = [("IGC_ShaderDumpEnable", "1"), ("IGC_ShaderDumpPidDisable", "1")];
/// What names the folder.
pub const FOLDER: &str = "IGC_DumpToCustomDir";

/// The line of each instruction of a listing.
pub fn read(listing: &str) -> Vec<Option<Place>> {
    let (mut file, mut number) = (None, None);
    let mut lines = Vec::new();
    for line in listing.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("// File: ") {
            file = Some(name.to_string());
        } else if let Some(rest) = line.strip_prefix("// Line ") {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
            number = digits.and_then(|digits| digits.parse().ok());
        } else if !line.starts_with("//") && !is_label_of_listing(line) {
            let place = file.clone().zip(number).map(|(file, line)| Place { file, line });
            lines.push(place);
        }
    }
    lines
}

/// Whether a line is a label, which has a name there.
fn is_label_of_listing(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default().trim_end();
    code.strip_suffix(':').is_some_and(|name| is_label(name) || !name.contains([' ', '(']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_lines_in_front_of_them() {
        let text = "//.kernel k\n\nper_thread_prolog:\n(W)     mov (16|M0)  r255.0<1>:ud  0x0:ud   //\n// File: a.py\n\n\
                    // Line 7:  x = 1\n        mov (16|M0)  r2.0<1>:d  r1.0<1;1,0>:uw  // $2\n_main_0_000:\n\
                    // Line 9\n        add (16|M0)  r2.0<1>:d  r2.0<1;1,0>:d  1:w  // $3\n";
        let at = |line| Some(Place { file: "a.py".to_string(), line });
        assert_eq!(read(text), [None, at(7), at(9)]);
    }
}
