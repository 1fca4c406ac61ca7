//! A function of a PTX module as a block of instructions that stands in place of its call.
//!
//! Code of the author's own that comes as PTX (written so, or made of CUDA by NVRTC) is inlined as text: its parameters become operands
//! of inline assembly, its registers get names of their own, a return jumps behind the last instruction. So `ptxas` sees one function, and
//! what a call would cost is not there. What else the function needs of its module (other functions, variables) stands before the
//! kernel, under names that no other code has.
//!
//! ```text
//! .visible .func (.param .b32 func_retval0) f(.param .b32 f_param_0)      {
//! {                                                                         .reg .b32 %raw.r<3>;
//!   .reg .b32 %r<3>;                                                   =>   mov.b32 %raw.r1, $1;
//!   ld.param.u32 %r1, [f_param_0];                                          shl.b32 %raw.r2, %raw.r1, 1;
//!   shl.b32 %r2, %r1, 1;                                                    mov.b32 $0, %raw.r2;
//!   st.param.b32 [func_retval0+0], %r2;                                   }
//!   ret;
//! }
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::author_lines;

/// The label behind the last instruction.
const END: &str = "raw_end";

/// A parameter, or what is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Its name in the function.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u32,
    /// Whether it is a structure or an array, passed by value.
    pub is_aggregate: bool,
}

/// A register of the kernel: an operand of the inline assembly, and where in its parameter it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Number of the operand.
    pub operand: usize,
    /// Its first byte in the parameter.
    pub offset: u32,
    /// Its bytes there. A single byte is in a register of 16 bits.
    pub bytes: u32,
}

/// Who runs the function, where these are not the threads of the CTA along one dimension.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The operands that are the thread's number among them along each dimension; none where it is 0.
    pub thread: [Option<usize>; 3],
    /// How many they are along each dimension.
    pub threads: [u32; 3],
    /// The number of the barrier at which they wait for each other, where it isn't that of the CTA.
    pub barrier: Option<u32>,
}

/// A thing of a module: a function or a variable.
#[derive(Debug)]
struct Item {
    name: String,
    /// The text without comments and positions.
    text: String,
    /// Where the body begins, of a function that has one.
    body: Option<usize>,
}

/// A function with what it needs of its module.
#[derive(Debug)]
pub(crate) struct PtxFunction {
    /// What it takes.
    pub params: Vec<Parameter>,
    /// What it returns.
    pub results: Vec<Parameter>,
    body: String,
    /// What else of the module it names, in order.
    needed: Vec<Item>,
    /// What the names of those begin with in the kernel's module.
    prefix: String,
    /// The files that positions are in, by their numbers.
    files: Vec<(u32, String)>,
}

impl PtxFunction {
    /// Finds a function by its symbol in a module's text. `prefix` is for names of what else it needs.
    ///
    /// # Errors
    /// What is wrong with the text, or why the function can't be inlined.
    pub fn find(module: &str, symbol: &str, prefix: String) -> Result<PtxFunction, String> {
        let mut items = items(&without_comments(module)?)?;
        let at = items.iter().position(|i| i.name == symbol && i.body.is_some());
        let Some(at) = at else {
            let functions: Vec<&str> =
                items.iter().filter(|i| i.body.is_some()).map(|i| i.name.as_str()).collect();
            return Err(format!("it has no function `{symbol}`; it has: {}", functions.join(", ")));
        };
        let Item { text, body, .. } = items.remove(at);
        let (head, body) = text.split_at(body.unwrap_or(text.len()));
        let lists = parameter_lists(head)?;
        let needed = reached(items, body, symbol)?;
        let body = body.trim().strip_prefix('{').and_then(|b| b.strip_suffix('}')).unwrap_or(body);
        Ok(PtxFunction {
            params: lists.1,
            results: lists.0,
            body: body.to_string(),
            needed,
            prefix,
            files: author_lines::files(module),
        })
    }

    /// Whether the threads that run it wait for each other.
    pub fn has_barrier(&self) -> bool {
        self.body.split(';').any(|s| {
            let (_, core) = split_prefix(s);
            core.starts_with("bar.") && !core.starts_with("bar.warp") || core.starts_with("barrier.")
        })
    }

    /// What stands before the kernel.
    pub fn declarations(&self) -> String {
        let mut out = String::new();
        for item in &self.needed {
            let text = map_identifiers(&item.text, |name| self.renamed(name));
            out.push_str(text.trim());
            out.push('\n');
        }
        author_lines::marked(&out, &self.files)
    }

    /// The name in the kernel's module of what the function needs, where it is defined here.
    fn renamed(&self, name: &str) -> Option<String> {
        let defined = |item: &&Item| item.name == name && !item.text.contains(".extern");
        self.needed.iter().find(defined).map(|item| format!("{}{}", self.prefix, item.name))
    }

    /// The instructions, as a template of inline assembly in LLVM's syntax.
    ///
    /// # Errors
    /// What the function does that only one that is called can.
    pub fn inlined(
        &self,
        results: &[Vec<Slot>],
        params: &[Vec<Slot>],
        group: Option<&Group>,
    ) -> Result<String, String> {
        if let Some(item) = self.needed.iter().find(|i| group.is_some() && asks_who(&i.text)) {
            return Err(format!(
                "not supported yet: `{}`, which it calls, asks for the thread's number or has a barrier, where not the threads of the program along one dimension run it",
                item.name
            ));
        }
        let registers = registers(&self.body);
        let statements: Vec<&str> = self.body.split(';').collect();
        let is_end = |from: usize| statements[from..].iter().all(|s| s.trim().is_empty());
        let (mut out, mut jumps) = (String::from("{\n"), false);
        for (i, statement) in statements.iter().enumerate() {
            let (prefix, core) = split_prefix(statement);
            let kept = prefix.replace('$', "$$");
            if core.is_empty() {
                out.push_str(&kept);
                continue;
            }
            let words: Vec<&str> = core.split_whitespace().collect();
            let opcode = words[0];
            let replaced = if opcode.starts_with("ld.param") || opcode.starts_with("st.param") {
                self.access(core, results, params, &registers)?
            } else if matches!(opcode, "ret" | "ret.uni") {
                let falls_through = is_end(i + 1) && !prefix.contains('@');
                jumps |= !falls_through;
                Some(if falls_through { String::new() } else { format!("bra {END}") })
            } else if opcode == "exit" {
                return Err("it ends the thread (`exit`), which the kernel still needs".into());
            } else {
                None
            };
            let text = replaced.unwrap_or_else(|| core.replace('$', "$$"));
            let text = match group {
                Some(group) => for_group(&text, group)?,
                None => text,
            };
            out.push_str(&kept);
            if !text.is_empty() {
                out.push_str(&text);
                out.push(';');
            }
            out.push('\n');
        }
        if jumps {
            // A label stands before an instruction.
            let _ = writeln!(out, "{END}:\n{{ .reg .b32 raw_last; mov.b32 raw_last, 0; }}");
        }
        out.push('}');
        let known = |name: &str| {
            let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
            registers.iter().any(|r| r.0 == name || r.0 == base)
        };
        let mut of_parameter = None;
        let text = map_identifiers(&out, |name| {
            if self.params.iter().chain(&self.results).any(|p| p.name == name) {
                of_parameter = Some(name.to_string());
            }
            match name.strip_prefix('%') {
                Some(bare) if known(name) => Some(format!("%raw_{bare}")),
                _ => self.renamed(name).map(|n| n.replace('$', "$$")),
            }
        });
        match of_parameter {
            Some(name) => Err(format!(
                "it uses the parameter `{name}` by its address, which an inlined one has none of"
            )),
            None => {
                let escaped = |(number, name): &(u32, String)| (*number, name.replace('$', "$$"));
                Ok(author_lines::marked(&text, &self.files.iter().map(escaped).collect::<Vec<_>>()))
            }
        }
    }

    /// An access of a parameter, or of what is returned, as moves; `None` where it is one of a call that the function makes.
    fn access(
        &self,
        core: &str,
        results: &[Vec<Slot>],
        params: &[Vec<Slot>],
        registers: &[(String, u32)],
    ) -> Result<Option<String>, String> {
        let (opcode, rest) =
            core.split_once(char::is_whitespace).ok_or_else(|| format!("`{core}` has no operands"))?;
        let loads = opcode.starts_with("ld.");
        let wrong = || format!("not supported yet: `{core}` in a function that is inlined");
        let (values, address) = if loads {
            rest.rsplit_once('[').ok_or_else(wrong)?
        } else {
            let (address, values) = rest.split_once(']').ok_or_else(wrong)?;
            (values, address.trim_start().trim_start_matches('['))
        };
        let address = address.trim().trim_end_matches(']');
        let (name, offset) = address.split_once('+').unwrap_or((address, "0"));
        let (list, slots) = if loads { (&self.params, params) } else { (&self.results, results) };
        let Some(number) = list.iter().position(|p| p.name == name.trim()) else { return Ok(None) };
        let offset: u32 = offset.trim().parse().map_err(|_| wrong())?;
        let ty = opcode.rsplit('.').next().unwrap_or_default();
        let bits: u32 = ty[1..].parse().map_err(|_| wrong())?;
        let values = values.trim().trim_start_matches(',').trim_end_matches(',').trim();
        let values = values.trim_start_matches('{').trim_end_matches('}');
        let mut out = Vec::new();
        for (i, value) in values.split(',').map(str::trim).enumerate() {
            let at = offset + i as u32 * (bits / 8);
            let moved = if loads {
                read(&slots[number], at, ty, bits, value, registers)
            } else {
                written(&slots[number], at, bits, value, registers)
            };
            out.push(moved.ok_or_else(wrong)?);
        }
        Ok(Some(out.join(";\n")))
    }
}

/// Bits of a register of the function; of what is none (a constant), those that are asked for.
fn width(registers: &[(String, u32)], name: &str, otherwise: u32) -> u32 {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    registers.iter().find(|r| r.0 == name || r.0 == base).map_or(otherwise, |r| r.1)
}

/// Reads `bits` bits at an offset of a parameter into a register.
fn read(
    slots: &[Slot],
    at: u32,
    ty: &str,
    bits: u32,
    to: &str,
    registers: &[(String, u32)],
) -> Option<String> {
    if let Some(slot) = slots.iter().find(|s| s.offset == at) {
        let held = slot.bytes.max(2) * 8;
        let wanted = width(registers, to, bits.max(16));
        if slot.bytes * 8 == bits && held == wanted {
            return Some(if bits == 8 {
                small(to, slot.operand, ty)
            } else {
                format!("mov.b{bits} {to}, ${}", slot.operand)
            });
        }
        if slot.bytes * 8 >= bits.min(slot.bytes * 8) && (slot.bytes * 8 > bits || slots.len() == 1) {
            let signed = if ty.starts_with('s') { 's' } else { 'u' };
            let from = bits.min(slot.bytes * 8);
            return Some(format!("cvt.{signed}{wanted}.{signed}{from} {to}, ${}", slot.operand));
        }
    }
    // Several registers of the kernel's in one of the function's.
    let parts: Vec<&Slot> = slots.iter().filter(|s| s.offset >= at && s.offset < at + bits / 8).collect();
    let even = matches!(parts.len(), 2 | 4)
        && parts.iter().all(|s| s.bytes >= 2 && s.bytes * parts.len() as u32 * 8 == bits);
    let list: Vec<String> = parts.iter().map(|s| format!("${}", s.operand)).collect();
    even.then(|| format!("mov.b{bits} {to}, {{{}}}", list.join(", ")))
}

/// A byte into a register of 16 bits.
fn small(to: &str, operand: usize, ty: &str) -> String {
    let signed = if ty.starts_with('s') { 's' } else { 'u' };
    format!("cvt.{signed}16.{signed}8 {to}, ${operand}")
}

/// Writes `bits` bits to an offset of what is returned.
fn written(slots: &[Slot], at: u32, bits: u32, from: &str, registers: &[(String, u32)]) -> Option<String> {
    if let Some(slot) = slots.iter().find(|s| s.offset == at) {
        let held = slot.bytes.max(2) * 8;
        let have = width(registers, from, bits.max(16));
        if held == have {
            return Some(format!("mov.b{held} ${}, {from}", slot.operand));
        }
        if held < have && (slots.len() == 1 || slot.bytes * 8 == bits) {
            return Some(format!("cvt.u{held}.u{have} ${}, {from}", slot.operand));
        }
    }
    let parts: Vec<&Slot> = slots.iter().filter(|s| s.offset >= at && s.offset < at + bits / 8).collect();
    let even = matches!(parts.len(), 2 | 4)
        && parts.iter().all(|s| s.bytes >= 2 && s.bytes * parts.len() as u32 * 8 == bits);
    let list: Vec<String> = parts.iter().map(|s| format!("${}", s.operand)).collect();
    even.then(|| format!("mov.b{bits} {{{}}}, {from}", list.join(", ")))
}

/// Whether a function asks which thread it is, or waits for all.
fn asks_who(text: &str) -> bool {
    ["%tid", "%ntid", "bar.sync", "bar.cta.", "barrier."].iter().any(|word| text.contains(word))
}

/// An instruction as the threads of a group run it.
///
/// # Errors
/// One that reads the numbers of all dimensions at once.
pub(crate) fn for_group(text: &str, group: &Group) -> Result<String, String> {
    let compact: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_all = ["bar.sync 0", "barrier.sync 0", "barrier.sync.aligned 0", "bar.cta.sync 0"];
    if let Some(barrier) = group.barrier
        && of_all.contains(&compact.as_str())
    {
        // Several warps may be alone, each of which would come to the same barrier.
        return Ok(match group.threads.iter().product() {
            32 => "bar.warp.sync -1".into(),
            threads => format!("bar.sync {barrier}, {threads}"),
        });
    }
    let mut text = text.to_string();
    for (d, axis) in ["x", "y", "z"].into_iter().enumerate() {
        let number = group.thread[d].map_or("0".into(), |operand| format!("${operand}"));
        text = text.replace(&format!("%tid.{axis}"), &number);
        text = text.replace(&format!("%ntid.{axis}"), &group.threads[d].to_string());
    }
    if text.contains("%tid") || text.contains("%ntid") {
        return Err(format!("not supported yet: `{}`, which reads all of it at once", text.trim()));
    }
    Ok(text)
}

/// The text without comments, and without lines that say what it is for; those that say where something comes from end in the position.
fn without_comments(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").ok_or("a comment opened with /* is never closed")?;
            rest = &comment[end + 2..];
        } else {
            out.push('/');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    let says =
        |line: &str| [".file", ".version", ".target", ".address_size"].iter().any(|d| line.starts_with(d));
    let position = |line: &'_ str| line.split(',').next().unwrap_or_default().to_string();
    let kept = out.lines().filter(|line| !says(line.trim_start()));
    let kept = kept.map(|line| match line.trim_start().starts_with(".loc") {
        true => position(line),
        false => line.to_string(),
    });
    Ok(kept.collect::<Vec<_>>().join("\n"))
}

/// The functions and variables of a module.
fn items(text: &str) -> Result<Vec<Item>, String> {
    let bytes = text.as_bytes();
    let (mut out, mut start, mut depth, mut body) = (Vec::new(), 0, 0usize, None);
    for (i, &c) in bytes.iter().enumerate() {
        match c {
            b'{' | b'(' | b'[' => {
                if c == b'{' && depth == 0 {
                    body = Some(i - start);
                }
                depth += 1;
            }
            b'}' | b')' | b']' => {
                depth = depth.checked_sub(1).ok_or("a bracket is closed that was not opened")?
            }
            _ => {}
        }
        let ends = depth == 0 && (c == b';' || c == b'}' && !text[i + 1..].trim_start().starts_with(';'));
        if ends {
            let text = &text[start..=i];
            let is_function = text.split('{').next().is_some_and(|head| {
                head.split_whitespace().any(|w| w == ".func" || w == ".entry" || w.starts_with(".func("))
            });
            out.push(Item {
                name: name_of(text, is_function),
                text: text.to_string(),
                body: body.take().filter(|_| is_function && c == b'}'),
            });
            start = i + 1;
            body = None;
        }
    }
    if !text[start..].trim().is_empty() {
        return Err(format!(
            "it ends in the middle of `{}`",
            text[start..].trim().lines().next().unwrap_or_default()
        ));
    }
    Ok(out)
}

fn name_of(text: &str, is_function: bool) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    if !is_function {
        let head = text.split(['=', ';', '[']).next().unwrap_or_default();
        return head.split_whitespace().last().unwrap_or_default().to_string();
    }
    let at =
        text.find(".func").map(|at| at + 5).or_else(|| text.find(".entry").map(|at| at + 6)).unwrap_or(0);
    let mut rest = text[at..].trim_start();
    if rest.starts_with('(') {
        rest = rest.split_once(')').map_or("", |(_, after)| after).trim_start();
    }
    rest.chars().take_while(|&c| is_name(c)).collect()
}

/// What is returned, and the parameters, by the head of a function.
fn parameter_lists(head: &str) -> Result<(Vec<Parameter>, Vec<Parameter>), String> {
    let after = head.split_once(".func").map_or("", |(_, after)| after).trim_start();
    let (results, rest) = match after.strip_prefix('(') {
        Some(list) => list.split_once(')').ok_or("a list of parameters is never closed")?,
        None => ("", after),
    };
    let params = match rest.split_once('(') {
        Some((_, list)) => list.split_once(')').ok_or("a list of parameters is never closed")?.0,
        None => "",
    };
    Ok((parameters(results)?, parameters(params)?))
}

fn parameters(list: &str) -> Result<Vec<Parameter>, String> {
    let each = list.split(',').map(str::trim).filter(|p| !p.is_empty());
    each.map(|text| {
        let unknown = || format!("not supported yet: the parameter `{text}`");
        let (declared, extent) = match text.split_once('[') {
            Some((declared, extent)) => (declared, Some(extent.trim_end_matches(']'))),
            None => (text, None),
        };
        let words: Vec<&str> = declared.split_whitespace().collect();
        let ty = words.iter().rev().nth(1).copied().ok_or_else(unknown)?;
        let bits: u32 = ty.get(2..).and_then(|bits| bits.parse().ok()).ok_or_else(unknown)?;
        let count: u32 = extent.map_or(Ok(1), |n| n.trim().parse()).map_err(|_| unknown())?;
        let name = words.last().copied().unwrap_or_default().to_string();
        Ok(Parameter { name, bytes: bits / 8 * count, is_aggregate: extent.is_some() })
    })
    .collect()
}

/// What of a module a body names, and what that names.
fn reached(items: Vec<Item>, body: &str, own: &str) -> Result<Vec<Item>, String> {
    let mut names = BTreeSet::new();
    let mut note = |text: &str| {
        let before = names.len();
        map_identifiers(text, |name| {
            names.insert(name.to_string());
            None
        });
        (names.len() != before).then(|| names.clone())
    };
    let mut known = note(body).unwrap_or_default();
    loop {
        let texts: Vec<&str> =
            items.iter().filter(|i| known.contains(&i.name)).map(|i| i.text.as_str()).collect();
        match note(&texts.join("\n")) {
            Some(more) => known = more,
            None => break,
        }
    }
    if known.contains(own) {
        return Err(format!(
            "`{own}` calls itself, or its address is taken: such a function can't be inlined"
        ));
    }
    Ok(items.into_iter().filter(|i| known.contains(&i.name)).collect())
}

/// The registers that a body declares, without the number of an array's, and their bits.
fn registers(body: &str) -> Vec<(String, u32)> {
    let mut out = Vec::new();
    for statement in body.split(';') {
        let (_, core) = split_prefix(statement);
        let Some(rest) = core.strip_prefix(".reg") else { continue };
        let mut words = rest.trim_start().splitn(2, char::is_whitespace);
        let (ty, names) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let bits = ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1);
        for name in names.split(',') {
            let name = name.trim().split('<').next().unwrap_or_default();
            if name.starts_with('%') {
                out.push((name.to_string(), bits));
            }
        }
    }
    out
}

/// A statement as what stands before its instruction (braces, labels, positions, a predicate) and the instruction.
fn split_prefix(statement: &str) -> (&str, &str) {
    let mut rest = statement.trim_start();
    loop {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        if rest.starts_with(['{', '}']) {
            rest = rest[1..].trim_start();
        } else if rest.starts_with(".loc") {
            rest = rest.find('\n').map_or("", |at| &rest[at..]).trim_start();
        } else if rest.starts_with('@') {
            rest = rest.find(char::is_whitespace).map_or("", |at| &rest[at..]).trim_start();
        } else if end > 0
            && rest[end..].trim_start().starts_with(':')
            && !rest[end..].trim_start().starts_with("::")
        {
            rest = rest[end..].trim_start()[1..].trim_start();
        } else {
            break;
        }
    }
    (&statement[..statement.len() - rest.len()], rest.trim_end())
}

/// The text with some of its identifiers replaced. Modifiers (`.b32`) and numbers are none.
fn map_identifiers(text: &str, mut replace: impl FnMut(&str) -> Option<String>) -> String {
    let is_word = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'%');
    let bytes = text.as_bytes();
    let (mut out, mut i) = (String::with_capacity(text.len() + 64), 0);
    while i < bytes.len() {
        if !is_word(bytes[i]) {
            let end = (i..bytes.len()).find(|&j| is_word(bytes[j])).unwrap_or(bytes.len());
            out.push_str(&text[i..end]);
            i = end;
            continue;
        }
        let end = (i..bytes.len()).find(|&j| !is_word(bytes[j])).unwrap_or(bytes.len());
        let word = &text[i..end];
        // `add` of `add.f32` is no name, `%tid` of `%tid.x` is one.
        let is_opcode = bytes.get(end) == Some(&b'.') && bytes[i] != b'%';
        let is_name = !bytes[i].is_ascii_digit() && !is_opcode && (i == 0 || bytes[i - 1] != b'.');
        match is_name.then(|| replace(word)).flatten() {
            Some(other) => out.push_str(&other),
            None => out.push_str(word),
        }
        i = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = r#"
        .version 8.0
        .target sm_80
        .address_size 64
        .const .align 4 .b32 table[2] = {1, 2}; // read by `f`
        .global .align 4 .b32 unused = {3};
        .func (.param .b32 r) helper(.param .b32 a) { ret; }
        .visible .func (.param .b32 func_retval0) f(
            .param .b32 f_param_0,
            .param .align 4 .b8 f_param_1[8]
        )
        {
            .reg .pred %p<2>;
            .reg .b32 %r<9>;
            .loc 1 2 3
            ld.param.u32 %r1, [f_param_0];
            ld.param.v2.b32 {%r2, %r3}, [f_param_1];
            mov.u32 %r4, %tid.x;
            setp.eq.s32 %p1, %r1, 0;
            @%p1 bra $L__end;
            st.param.b32 [func_retval0+0], %r2;
            ret;
        $L__end:
            { .param .b32 p; st.param.b32 [p], %r3; call.uni helper, (p); }
            ld.const.b32 %r5, [table+4];
            bar.sync 0;
            st.param.b32 [func_retval0+0], %r5;
            ret;
        }
    "#;

    fn slot(operand: usize, offset: u32, bytes: u32) -> Slot {
        Slot { operand, offset, bytes }
    }

    #[test]
    fn a_function_becomes_instructions() {
        let f = PtxFunction::find(MODULE, "f", "own_".into()).unwrap();
        assert_eq!(f.params[1], Parameter { name: "f_param_1".into(), bytes: 8, is_aggregate: true });
        assert!(f.has_barrier());
        let group = Group { thread: [Some(4), None, None], threads: [64, 1, 1], barrier: Some(2) };
        let params = [vec![slot(1, 0, 4)], vec![slot(2, 0, 4), slot(3, 4, 4)]];
        let text = f.inlined(&[vec![slot(0, 0, 4)]], &params, Some(&group)).unwrap();
        for line in [
            ".reg .b32 %raw_r<9>;",
            "mov.b32 %raw_r1, $1;",
            "mov.b32 %raw_r2, $2;",
            "mov.b32 %raw_r3, $3;",
            "mov.u32 %raw_r4, $4;",
            "@%raw_p1 bra $$L__end;",
            "mov.b32 $0, %raw_r2;",
            "bra raw_end;",
            "call.uni own_helper, (p);",
            "ld.const.b32 %raw_r5, [own_table+4];",
            "bar.sync 2, 64;",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let declared = f.declarations();
        assert!(declared.contains("own_table[2] = {1, 2};") && declared.contains("own_helper(.param"));
        assert!(!declared.contains("unused"));
    }

    #[test]
    fn bytes_and_halves() {
        let text =
            ".func (.param .b32 r) g(.param .b32 a, .param .b64 b) { .reg .b16 %rs<3>; .reg .b64 %rd<2>;
            ld.param.s8 %rs1, [a]; ld.param.u64 %rd1, [b]; st.param.b32 [r], %rs1; ret; }";
        let g = PtxFunction::find(text, "g", String::new()).unwrap();
        let out = g.inlined(
            &[vec![slot(0, 0, 1)]],
            &[vec![slot(1, 0, 1)], vec![slot(2, 0, 4), slot(3, 4, 4)]],
            None,
        );
        let out = out.unwrap();
        assert!(out.contains("cvt.s16.s8 %raw_rs1, $1;"), "{out}");
        assert!(out.contains("mov.b64 %raw_rd1, {$2, $3};"), "{out}");
        assert!(out.contains("mov.b16 $0, %raw_rs1;"), "{out}");
    }

    #[test]
    fn what_is_refused() {
        let found = |text: &str| PtxFunction::find(text, "f", String::new()).map(|_| ()).unwrap_err();
        assert!(found(".func g() { ret; }").contains("no function `f`; it has: g"));
        assert!(found(".func f() { call f; ret; }").contains("calls itself"));
        assert!(found("/* no end").contains("never closed"));
        assert!(found(".func f() { ret; } }").contains("not opened"));
        assert!(found(".func f() { ret;").contains("in the middle"));
        let inlined = |body: &str| {
            let text = format!(".func f(.param .b32 a) {{ .reg .b32 %r<2>; {body} }}");
            let f = PtxFunction::find(&text, "f", String::new()).unwrap();
            f.inlined(&[], &[vec![slot(0, 0, 4)]], None).unwrap_err()
        };
        assert!(inlined("exit;").contains("ends the thread"));
        assert!(inlined("mov.u64 %r1, a;").contains("by its address"));
        assert!(inlined("ld.param.b32 %r1, [a+2];").contains("not supported yet"));
    }
}
