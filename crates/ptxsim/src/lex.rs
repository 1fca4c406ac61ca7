//! PTX text to tokens (PTX ISA §4.1–4.5).
//!
//! A leading dot belongs to the word after it (`.global`, `.m16n8k16`, `.shared::cta`), so that opcode modifiers,
//! directives and vector components are all [`Tok::Dot`].

use crate::Error;

/// One token; text borrows from the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tok<'a> {
    /// A name: register, symbol, label or opcode stem.
    Ident(&'a str),
    /// `.word`, without its dot.
    Dot(&'a str),
    /// A number as written.
    Num(&'a str),
    /// A string literal's inside.
    Str(&'a str),
    /// A single punctuation character.
    P(char),
    /// End of input.
    Eof,
}

/// A token and the line it starts on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub tok: Tok<'a>,
    pub line: u32,
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'%')
}

/// Splits `text` into tokens, ending with [`Tok::Eof`].
pub(crate) fn lex(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let s = text.as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4);
    let (mut i, mut line) = (0usize, 1u32);
    while i < s.len() {
        let c = s[i];
        let start = i;
        match c {
            b'\n' => {
                line += 1;
                i += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0 => {
                i += 1;
                continue;
            }
            // What is addressed to us is an instruction.
            b'/' if s[i..].starts_with(PROMISE) => {
                i += PROMISE.len() - PREFIX;
                continue;
            }
            b'/' if s.get(i + 1) == Some(&b'/') => {
                while i < s.len() && s[i] != b'\n' {
                    i += 1;
                }
                continue;
            }
            b'/' if s.get(i + 1) == Some(&b'*') => {
                let end = end_of_comment(s, i)
                    .ok_or_else(|| Error::at(line, "a comment opened with /* is never closed"))?;
                line += s[i..end].iter().filter(|&&c| c == b'\n').count() as u32;
                i = end;
                continue;
            }
            b'"' => {
                let inside = end_of_string(s, i).and_then(|end| text.get(start + 1..end));
                let Some(inside) = inside else {
                    return Err(Error::at(line, "a string is never closed"));
                };
                i += 1 + inside.len();
                out.push(Token { tok: Tok::Str(inside), line });
                i += 1;
                continue;
            }
            b'.' if s.get(i + 1).is_some_and(|&c| is_word(c)) => {
                i += 1;
                while i < s.len() {
                    if is_word(s[i]) {
                        i += 1;
                    } else if s[i] == b':'
                        && s.get(i + 1) == Some(&b':')
                        && s.get(i + 2).is_some_and(|&c| is_word(c))
                    {
                        i += 2;
                    } else {
                        break;
                    }
                }
                out.push(Token { tok: Tok::Dot(&text[start + 1..i]), line });
                continue;
            }
            b'0'..=b'9' => {
                i = end_of_number(s, i);
                out.push(Token { tok: Tok::Num(&text[start..i]), line });
                continue;
            }
            c if is_word(c) => {
                while i < s.len() && is_word(s[i]) {
                    i += 1;
                }
                out.push(Token { tok: Tok::Ident(&text[start..i]), line });
                continue;
            }
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'@' | b'!' | b'|' | b'+'
            | b'-' | b'=' | b'<' | b'>' | b'~' | b'*' | b'&' | b'^' | b'.' => {
                out.push(Token { tok: Tok::P(c as char), line });
                i += 1;
                continue;
            }
            _ => {
                let bad = text[start..].chars().next().unwrap_or('?');
                return Err(Error::at(line, format!("unexpected character `{bad}`")));
            }
        }
    }
    out.push(Token { tok: Tok::Eof, line });
    Ok(out)
}

/// How a comment begins that holds an instruction of ours (`//@tilewright.below.u32 %r1, 4;`): PTX goes to the hardware without it.
const PROMISE: &[u8] = b"//@tilewright.";
/// The length of what is the instruction's own in it.
const PREFIX: usize = "tilewright.".len();

/// Behind the `*/` of the comment that begins at `i`.
fn end_of_comment(s: &[u8], i: usize) -> Option<usize> {
    s[i + 2..].windows(2).position(|w| w == b"*/").map(|at| i + 2 + at + 2)
}

/// The closing quote of the string that begins at `i`, in the same line.
fn end_of_string(s: &[u8], mut i: usize) -> Option<usize> {
    i += 1;
    loop {
        match s.get(i)? {
            b'"' => return Some(i),
            b'\n' => return None,
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
}

/// Behind the number that begins at `i`.
fn end_of_number(s: &[u8], mut i: usize) -> usize {
    let c = s[i];
    i += 1;
    let hex = c == b'0' && matches!(s.get(i), Some(b'x' | b'X'));
    // 0f3F800000 and 0d3FF0000000000000 are bit patterns: hexadecimal digits follow.
    let bits = c == b'0' && matches!(s.get(i), Some(b'f' | b'F' | b'd' | b'D'));
    if hex || bits {
        i += 1;
        while i < s.len() && (s[i].is_ascii_hexdigit() || s[i] == b'U') {
            i += 1;
        }
    } else {
        while i < s.len() && (s[i].is_ascii_alphanumeric() || s[i] == b'.') {
            let exp = matches!(s[i], b'e' | b'E');
            i += 1;
            if exp && i < s.len() && matches!(s[i], b'+' | b'-') {
                i += 1;
            }
        }
    }
    i
}
