//! Tokens of MLIR text.
//!
//! The lexer can be set back to any position: shapes (`128x64xf16`) and the bodies of unknown types are read as
//! characters.

/// A token. Identifiers are given without their sigil.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'s> {
    /// `abc.def`
    Word(&'s str),
    /// `%name` or `%name#index`
    Value(&'s str, u32),
    /// `#name`
    Hash(&'s str),
    /// `!name`
    Bang(&'s str),
    /// `@name`; a quoted name is a [`Token::At`] of nothing followed by a string.
    At(&'s str),
    /// `^name`
    Caret(&'s str),
    /// Digits, or `0x` and hexadecimal digits.
    Integer(&'s str),
    /// Digits with a point.
    Float(&'s str),
    /// `"..."` with its quotes.
    Str(&'s str),
    /// `(` `)` `{` `}` `[` `]` `<` `>` `,` `:` `=` `?` `*` `+` `-` `/` `|`
    Punct(u8),
    /// `->`
    Arrow,
    /// What starts no token.
    Unknown(char),
    /// The end of the text.
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Lexer<'s> {
    text: &'s str,
    /// Where the token last returned starts.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) at: usize,
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'$'
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        Lexer { text, start: 0, at: 0 }
    }

    pub(crate) fn text(&self) -> &'s str {
        self.text
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn skip_space(&mut self) {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' if self.byte(self.at + 1) == b'/' => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn while_word(&mut self, from: usize, ok: impl Fn(u8) -> bool) -> &'s str {
        let mut end = from;
        while ok(self.byte(end)) {
            end += 1;
        }
        self.at = end;
        &self.text[from..end]
    }

    pub(crate) fn next(&mut self) -> Token<'s> {
        self.skip_space();
        self.start = self.at;
        let at = self.at;
        if at >= self.text.len() {
            return Token::End;
        }
        match self.byte(at) {
            b'%' => {
                // Value names may hold `-`, as in `%c-1_i32`.
                let name = self.while_word(at + 1, |b| is_word(b) || b == b'-');
                if self.byte(self.at) == b'#' && self.byte(self.at + 1).is_ascii_digit() {
                    let digits = self.while_word(self.at + 1, |b| b.is_ascii_digit());
                    return Token::Value(name, digits.parse().unwrap_or(u32::MAX));
                }
                Token::Value(name, 0)
            }
            b'#' => Token::Hash(self.while_word(at + 1, is_word)),
            b'!' => Token::Bang(self.while_word(at + 1, is_word)),
            b'@' => Token::At(self.while_word(at + 1, |b| is_word(b) || b == b'-')),
            b'^' => Token::Caret(self.while_word(at + 1, is_word)),
            b'"' => {
                let mut end = at + 1;
                loop {
                    match self.byte(end) {
                        b'"' => break,
                        b'\\' => end += 2,
                        b'\n' => return self.unknown(),
                        _ => end += 1,
                    }
                    if end >= self.text.len() {
                        return self.unknown();
                    }
                }
                self.at = end + 1;
                Token::Str(&self.text[at..self.at])
            }
            b'-' if self.byte(at + 1) == b'>' => {
                self.at += 2;
                Token::Arrow
            }
            b'0'..=b'9' => self.number(),
            b if b.is_ascii_alphabetic() || b == b'_' => Token::Word(self.while_word(at, is_word)),
            b if b"(){}[]<>,:=?*+-/|".contains(&b) => {
                self.at += 1;
                Token::Punct(b)
            }
            _ => self.unknown(),
        }
    }

    fn unknown(&mut self) -> Token<'s> {
        let c = self.text[self.start..].chars().next().unwrap_or('\0');
        self.at = self.start + c.len_utf8();
        Token::Unknown(c)
    }

    fn number(&mut self) -> Token<'s> {
        let start = self.at;
        if self.byte(start) == b'0'
            && self.byte(start + 1) == b'x'
            && self.byte(start + 2).is_ascii_hexdigit()
        {
            self.while_word(start + 2, |b| b.is_ascii_hexdigit());
            return Token::Integer(&self.text[start..self.at]);
        }
        self.while_word(start, |b| b.is_ascii_digit());
        if self.byte(self.at) != b'.' {
            return Token::Integer(&self.text[start..self.at]);
        }
        self.while_word(self.at + 1, |b| b.is_ascii_digit());
        if matches!(self.byte(self.at), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(self.at + 1), b'+' | b'-'));
            if self.byte(self.at + 1 + sign).is_ascii_digit() {
                self.while_word(self.at + 1 + sign, |b| b.is_ascii_digit());
            }
        }
        Token::Float(&self.text[start..self.at])
    }
}
