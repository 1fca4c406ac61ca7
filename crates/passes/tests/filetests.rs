//! Runs every file below `tests/filetests`: IR in, expected IR out, in one file.
//!
//! ```text
//! // RUN: -canonicalize -cse
//! tt.func @f() { ... }
//! // CHECK: tt.func @f
//! // CHECK-NEXT: tt.return
//! ```
//!
//! - `// RUN:` lists passes and options as `tilewright opt` takes them.
//! - `// CHECK:` a line further down contains the text; `// CHECK-NEXT:` the next line does; `// CHECK-NOT:` no line
//!   does before the next match. `{{.*}}` matches anything; `[[X:%.*]]` matches a value's name and remembers it, `[[X]]`
//!   is that name again. Runs of spaces are one space.
//! - `// ERROR:` the run fails, and the message contains the text.
//! - `// OUTPUT` is followed by the exact output, each line as a comment. `TILEWRIGHT_BLESS=1` writes it anew, and adds
//!   one to a file that has no expectation.
//! - `// -----` separates independent tests within a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tilewright_ir::{PrintOptions, parse, print_with};
use tilewright_passes::opt::Pipeline;

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no filetests below {}", root.display());
    let bless = std::env::var_os("TILEWRIGHT_BLESS").is_some_and(|v| v != "0");
    let mut failures = String::new();
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let name = path.strip_prefix(&root).expect("below the root").display().to_string();
        let mut blessed = Vec::new();
        for (index, (line, part)) in split(&text).into_iter().enumerate() {
            match run(&name, line, part, bless) {
                Ok(new) => blessed.push(new),
                Err(message) => {
                    writeln!(failures, "--- {name}, part {}:\n{message}\n", index + 1).expect("a string");
                    blessed.push(part.to_string());
                }
            }
        }
        let new = blessed.join("// -----\n");
        if bless && new != text {
            std::fs::write(path, new).expect("a writable file");
        }
    }
    assert!(failures.is_empty(), "\n{failures}(TILEWRIGHT_BLESS=1 writes exact outputs anew)");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "mlir") {
            files.push(path);
        }
    }
}

/// The parts between `// -----` lines with the number of their first line.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut at, mut line, mut first_line) = (0, 0, 0, 0);
    for l in text.split_inclusive('\n') {
        if l.trim_end() == "// -----" {
            parts.push((first_line, &text[start..at]));
            start = at + l.len();
            first_line = line + 1;
        }
        at += l.len();
        line += 1;
    }
    parts.push((first_line, &text[start..]));
    parts
}

/// Runs one part; the part as it should stand in the file (with its output anew, when blessing).
fn run(name: &str, first_line: usize, part: &str, bless: bool) -> Result<String, String> {
    let (source, expected) = match part.find("\n// OUTPUT\n") {
        Some(at) => (&part[..at + 1], Some(&part[at + "\n// OUTPUT\n".len()..])),
        None => (part, None),
    };
    let directive = |key: &str| -> Vec<&str> {
        part.lines().filter_map(|l| l.trim_start().strip_prefix(key)).map(str::trim).collect()
    };
    let runs = directive("// RUN:");
    let &[args] = runs.as_slice() else { return Err("one `// RUN:` line expected".to_string()) };
    let pipeline =
        Pipeline::parse(
            args.split_whitespace(),
            "cuda:90",
            &|name| match tilewright_xe::Target::parse(name) {
                Some(target) => Ok(target.info()),
                None => tilewright_nvidia::Target::parse(name).map(|t| t.info()).map_err(|e| e.to_string()),
            },
        )?;
    // Blank lines keep the numbers of lines in messages right.
    let padded = format!("{}{source}", "\n".repeat(first_line));
    let result = parse(&padded, name).map_err(|d| d.to_string()).and_then(|mut module| {
        match pipeline.run(&mut module) {
            Ok(()) => Ok(print_with(&module, PrintOptions::PLAIN)),
            Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        }
    });
    let errors = directive("// ERROR:");
    let output = match (result, errors.is_empty()) {
        (Ok(output), true) => output,
        (Ok(output), false) => return Err(format!("an error was expected, but the output is\n{output}")),
        (Err(message), true) => return Err(message),
        (Err(message), false) => {
            return match errors.iter().find(|e| !squeeze(&message).contains(&squeeze(e))) {
                Some(missing) => Err(format!("the error does not contain `{missing}`:\n{message}")),
                None => Ok(part.to_string()),
            };
        }
    };
    // What is printed is read, and printed the same.
    let again = parse(&output, name).map_err(|d| format!("the output does not parse: {d}\n{output}"))?;
    let again = print_with(&again, PrintOptions::PLAIN);
    if again != output {
        return Err(format!("printing is not stable:\n{output}\nand then\n{again}"));
    }
    let checks = checks(part)?;
    if !checks.is_empty() {
        check(&checks, &output).map_err(|m| format!("{m}\nin the output\n{output}"))?;
    } else if expected.is_none() && !bless {
        return Err(format!("the file expects nothing; the output is\n{output}"));
    }
    if expected.is_none() && !checks.is_empty() {
        return Ok(part.to_string());
    }
    let mut comment = String::new();
    for line in output.lines() {
        writeln!(comment, "//{}{line}", if line.is_empty() { "" } else { " " }).expect("a string");
    }
    if bless {
        let gap = if source.ends_with("\n\n") || source.is_empty() { "" } else { "\n" };
        return Ok(format!("{source}{}// OUTPUT\n{comment}", if expected.is_none() { gap } else { "" }));
    }
    let expected = expected.unwrap_or("");
    if expected.trim_end() == comment.trim_end() {
        return Ok(part.to_string());
    }
    let first = expected.lines().zip(comment.lines()).position(|(a, b)| a != b);
    let at = first.unwrap_or(expected.lines().count().min(comment.lines().count()));
    Err(format!(
        "line {} of the output differs:\n  expected {}\n  found    {}\nthe output is\n{output}",
        at + 1,
        expected.lines().nth(at).unwrap_or("the end"),
        comment.lines().nth(at).unwrap_or("the end"),
    ))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Check,
    Next,
    Not,
}

fn checks(part: &str) -> Result<Vec<(Kind, String)>, String> {
    let mut checks = Vec::new();
    for line in part.lines() {
        let Some(rest) = line.trim_start().strip_prefix("// CHECK") else { continue };
        let (suffix, pattern) = rest.split_once(':').ok_or_else(|| format!("`:` expected in `{line}`"))?;
        let kind = match suffix {
            "" | "-LABEL" => Kind::Check,
            "-NEXT" => Kind::Next,
            "-NOT" => Kind::Not,
            _ => return Err(format!("unknown directive in `{line}`")),
        };
        checks.push((kind, squeeze(pattern)));
    }
    Ok(checks)
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

type Names = Vec<(String, String)>;

fn check(checks: &[(Kind, String)], output: &str) -> Result<(), String> {
    let lines: Vec<String> = output.lines().map(squeeze).collect();
    let mut names: Names = Vec::new();
    let mut at = 0;
    let mut absent: Vec<&str> = Vec::new();
    for (kind, pattern) in checks {
        match kind {
            Kind::Not => absent.push(pattern),
            Kind::Next => {
                let line = lines.get(at).ok_or_else(|| format!("the output ends before `{pattern}`"))?;
                if !contains(line, pattern, &mut names) {
                    return Err(format!("expected next `{pattern}`\nbut found     `{line}`"));
                }
                at += 1;
                absent.clear();
            }
            Kind::Check => {
                let found = (at..lines.len()).find(|&i| contains(&lines[i], pattern, &mut names));
                let found = found.ok_or_else(|| format!("not found: `{pattern}`"))?;
                none(&lines[at..found], &absent, &names)?;
                absent.clear();
                at = found + 1;
            }
        }
    }
    none(&lines[at..], &absent, &names)
}

fn none(lines: &[String], absent: &[&str], names: &Names) -> Result<(), String> {
    for pattern in absent {
        if let Some(line) = lines.iter().find(|l| contains(l, pattern, &mut names.clone())) {
            return Err(format!("`{pattern}` must not occur, but there is `{line}`"));
        }
    }
    Ok(())
}

/// Whether the pattern matches somewhere in a line; names are remembered only if it does.
fn contains(line: &str, pattern: &str, names: &mut Names) -> bool {
    (0..=line.len()).filter(|&i| line.is_char_boundary(i)).any(|start| {
        let mut tried = names.clone();
        let found = matches_at(&line[start..], pattern, &mut tried);
        if found {
            *names = tried;
        }
        found
    })
}

fn matches_at(text: &str, pattern: &str, names: &mut Names) -> bool {
    if pattern.is_empty() {
        return true;
    }
    if let Some(rest) = pattern.strip_prefix("{{.*}}") {
        return (0..=text.len()).filter(|&i| text.is_char_boundary(i)).any(|i| {
            let mut tried = names.clone();
            let found = matches_at(&text[i..], rest, &mut tried);
            if found {
                *names = tried;
            }
            found
        });
    }
    if let Some((name, rest)) = pattern.strip_prefix("[[").and_then(|p| p.split_once("]]")) {
        let (name, is_definition) = match name.split_once(':') {
            Some((n, _)) => (n, true),
            None => (name, false),
        };
        let length = value_name(text);
        if is_definition {
            if length == 0 {
                return false;
            }
            names.retain(|(n, _)| n != name);
            names.push((name.to_string(), text[..length].to_string()));
        } else if !names.iter().any(|(n, v)| n == name && *v == text[..length]) {
            return false;
        }
        return matches_at(&text[length..], rest, names);
    }
    let (a, b) = (pattern.chars().next(), text.chars().next());
    match (a, b) {
        (Some(a), Some(b)) if a == b => matches_at(&text[b.len_utf8()..], &pattern[a.len_utf8()..], names),
        _ => false,
    }
}

/// How long the value's name at the start of a text is.
fn value_name(text: &str) -> usize {
    let Some(rest) = text.strip_prefix('%') else { return 0 };
    1 + rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"_-$".contains(b)).count()
}

#[test]
fn the_checker_checks() {
    let output = "%0 = a %x\n%1 = b %0\nend";
    let run = |text: &str| check(&checks(text).expect("directives"), output);
    assert!(run("// CHECK: [[A:%.*]] = a\n// CHECK-NEXT: b [[A]]").is_ok());
    assert!(run("// CHECK: [[A:%.*]] = a\n// CHECK-NEXT: [[A]] = b").is_err());
    assert!(run("// CHECK: a\n// CHECK-NEXT: end").is_err());
    assert!(run("// CHECK: a\n// CHECK-NOT: b\n// CHECK: end").is_err());
    assert!(run("// CHECK: b\n// CHECK-NOT: a %x\n// CHECK: end").is_ok());
    assert!(run("// CHECK: %1 {{.*}} %0\n// CHECK-NOT: %0").is_ok());
    assert!(run("// CHECK: end\n// CHECK: a").is_err());
}
