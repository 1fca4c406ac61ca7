//! Lines of the author's own code in the kernel's line table.
//!
//! Code that comes as PTX has positions of its own (`.file`, `.loc`), by numbers of files that are other ones in the kernel's module. So its
//! positions go through LLVM as comments, which name the file. In the kernel's PTX they become positions again, and behind the inline assembly the
//! one that was there before.
//!
//! ```text
//! .loc 1 5 3                                 .loc 1 5 3
//! // begin inline asm                        // begin inline asm
//! // .loc 9 1 /home/me/add.cu        =>      .loc 2 9 1
//! add.f32 %f1, %f1, %f2;                     add.f32 %f1, %f1, %f2;
//! // end inline asm                          // end inline asm
//!                                            .loc 1 5 3
//!                                            …
//!                                            .file 2 "/home/me/add.cu"
//! ```

use std::fmt::Write;

const MARK: &str = "// .loc ";

/// The files of a module of PTX, by their numbers.
pub(crate) fn files(module: &str) -> Vec<(u32, String)> {
    let file = |line: &str| {
        let (number, rest) =
            line.trim_start().strip_prefix(".file")?.trim_start().split_once(char::is_whitespace)?;
        let name = rest.trim_start().strip_prefix('"')?.split_once('"')?.0;
        Some((number.parse().ok()?, name.to_string()))
    };
    module.lines().filter_map(file).collect()
}

/// Text of PTX with its positions, each on a line of its own, as comments that name the file; what says nothing more is left out.
pub(crate) fn marked(text: &str, files: &[(u32, String)]) -> String {
    if !text.contains(".loc") && !text.contains(".file") {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if let Some(rest) = bare.strip_prefix(".loc") {
            let mut numbers =
                rest.split([' ', '\t', ',']).filter(|w| !w.is_empty()).map_while(|w| w.parse::<u32>().ok());
            let (file, line, column) = (numbers.next(), numbers.next(), numbers.next().unwrap_or(0));
            let name = files.iter().find(|(number, _)| Some(*number) == file);
            if let (Some((_, name)), Some(line)) = (name, line) {
                let _ = writeln!(out, "{MARK}{line} {column} {name}");
            }
        } else if !bare.starts_with(".file") {
            out.push_str(line);
        }
    }
    out
}

/// A kernel's PTX with positions where comments stand for them; without them, where no lines are wanted.
pub(crate) fn restore(ptx: String, wanted: bool) -> String {
    if !ptx.contains(MARK) {
        return ptx;
    }
    let mut files = files(&ptx);
    let own = files.len();
    let mut out = String::with_capacity(ptx.len());
    // The position of the kernel, and whether another one has taken its place.
    let (mut before, mut changed) = (None, false);
    for line in ptx.split_inclusive('\n') {
        let bare = line.trim();
        if let Some(position) = bare.strip_prefix(MARK) {
            let mut parts = position.splitn(3, ' ');
            if let (true, Some(line), Some(column), Some(name)) =
                (wanted, parts.next(), parts.next(), parts.next())
            {
                let known = files.iter().find(|(_, known)| known == name).map(|(number, _)| *number);
                let number = known.unwrap_or_else(|| {
                    let number = files.iter().map(|(number, _)| *number).max().unwrap_or(0) + 1;
                    files.push((number, name.to_string()));
                    number
                });
                let _ = writeln!(out, "\t.loc\t{number} {line} {column}");
                changed = true;
            }
            continue;
        }
        out.push_str(line);
        if bare.starts_with(".loc") {
            (before, changed) = (Some(line), false);
        } else if bare == "// end inline asm" && changed {
            out.push_str(before.unwrap_or_default());
            changed = false;
        } else if bare == "}" && line.starts_with('}') {
            (before, changed) = (None, false);
        }
    }
    for (number, name) in &files[own..] {
        let _ = writeln!(out, "\t.file\t{number} \"{name}\"");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_and_come() {
        let module = ".file 1 \"/a b/x.cu\"\n\t.loc\t1 6 7, function_name $L__info_string0, inlined_at 1 9 7\nadd;\n.loc 3 1 1\nret;\n";
        let text = marked(module, &files(module));
        assert_eq!(text, "// .loc 6 7 /a b/x.cu\nadd;\nret;\n");
        let kernel = format!(
            "\t.loc\t1 5 3\n\t// begin inline asm\n{text}\t// end inline asm\n\tst;\n}}\n\t.file\t1 \"k.py\"\n"
        );
        let out = restore(kernel.clone(), true);
        assert_eq!(
            out,
            "\t.loc\t1 5 3\n\t// begin inline asm\n\t.loc\t2 6 7\nadd;\nret;\n\t// end inline asm\n\t.loc\t1 5 3\n\tst;\n}\n\t.file\t1 \"k.py\"\n\t.file\t2 \"/a b/x.cu\"\n"
        );
        assert_eq!(restore(kernel.clone(), false), kernel.replace("// .loc 6 7 /a b/x.cu\n", ""));
    }
}
