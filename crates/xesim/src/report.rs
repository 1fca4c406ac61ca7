//! What a launch reports, in terms of SPIR-V.

use crate::translate::Kernel;
use crate::{Error, FindingKind, Source};
use serde::Serialize;
use std::fmt;
use tilewright_ptxsim as ptxsim;

/// A broken rule: where and by whom first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule.
    pub kind: FindingKind,
    /// The SPIR-V instruction; empty when it is about none.
    pub instruction: String,
    /// The kernel's source line, where `OpLine` gives it.
    pub source: Option<Source>,
    /// The work group.
    pub group: [u32; 3],
    /// Sub-group in the work group.
    pub sub_group: u32,
    /// Lane in the sub-group.
    pub lane: u32,
    /// The address, for memory findings.
    pub address: Option<u64>,
    /// What happened.
    pub message: String,
    /// How often.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  SPIR-V: {}", self.kind.name(), self.message, self.instruction)?;
        if let Some(s) = &self.source {
            write!(f, "\n  source: {}:{}", s.file, s.line)?;
        }
        let [x, y, z] = self.group;
        write!(f, "\n  work group ({x},{y},{z}), sub-group {}, lane {}", self.sub_group, self.lane)?;
        if let Some(a) = self.address {
            write!(f, ", address {a:#x}")?;
        }
        if self.count > 1 {
            write!(f, "\n  {} times", self.count)?;
        }
        Ok(())
    }
}

/// The outcome of a launch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Broken rules.
    pub findings: Vec<Finding>,
}

impl Kernel {
    /// A finding about a line of the PTX, as one about the instruction that it stands for.
    pub(crate) fn finding(&self, f: ptxsim::Finding) -> Finding {
        let (instruction, note) = self.origin(f.line);
        Finding {
            kind: f.kind,
            instruction: instruction.to_string(),
            source: f.source,
            group: f.cta,
            sub_group: f.thread[0] / 32,
            lane: f.thread[0] % 32,
            address: f.address,
            message: note.map_or_else(|| self.in_spirv(&f.message), str::to_string),
            count: f.count,
        }
    }

    /// A message with the instruction in place of each "line N" of the PTX, and sub-groups and lanes in place of threads.
    fn in_spirv(&self, message: &str) -> String {
        let text = each(message, "line ", |n, _| format!("`{}`", self.origin(n).0));
        let text = each(&text, "thread (", |n, rest| {
            // The rest of the index is zero: groups have one dimension.
            *rest = rest.strip_prefix(",0,0)").unwrap_or(rest);
            format!("lane {} of sub-group {}", n % 32, n / 32)
        });
        text.replace("CTA (", "work group (")
    }

    /// An error of the PTX simulator, which is a fault of the translation or something it lacks.
    pub(crate) fn error(&self, e: &ptxsim::Error) -> Error {
        match e.line {
            0 => Error::new(e.message.clone()),
            line => Error::new(format!("{}: `{}`", e.message, self.origin(line).0)),
        }
    }
}

/// `text` with what `make` says in place of each `mark` with a number behind it; `make` may take off what follows.
fn each(text: &str, mark: &str, make: impl Fn(u32, &mut &str) -> String) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let mut rest = &part[digits..];
        match part[..digits].parse() {
            Ok(n) => out += &make(n, &mut rest),
            Err(_) => out = out + mark + &part[..digits],
        }
        out += rest;
    }
    out
}
