//! Pipes as the front end knows them: what `tle.pipe` gives, its ends, and slots.

use std::fmt;
use std::sync::Arc;

use crate::value::{Buffer, Tensor};

/// What is known of a pipe at compile time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipe {
    /// How many slots it has.
    pub capacity: u32,
    /// Its name, for messages.
    pub name: Option<Arc<str>>,
    /// The names of its readers; without them there is one.
    pub readers: Option<Vec<Arc<str>>>,
    /// Whether each slot is filled only once.
    pub one_shot: bool,
}

/// What somebody has of a pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The pipe.
    Whole,
    /// Its writer.
    Writer,
    /// A reader: its number, and the numbers of the fields that it sees.
    Reader(usize, Vec<usize>),
    /// A slot.
    Slot,
}

/// A pipe, an end of one, or a slot.
#[derive(Debug, Clone)]
pub struct PipePart {
    /// The pipe.
    pub pipe: Arc<Pipe>,
    /// What of it.
    pub role: Role,
    /// The SSA value: the ring, of type `!ttg.ring`; of a slot its number.
    pub handle: Tensor,
    /// Its fields by name: the buffers with all slots.
    pub fields: Vec<(Arc<str>, Buffer)>,
}

impl PipePart {
    /// Its tensors, in order.
    pub fn parts(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(&self.handle).chain(self.fields.iter().map(|(_, buffer)| &buffer.handle))
    }

    /// The same with other tensors.
    pub fn map(&self, f: &mut impl FnMut(&Tensor) -> Tensor) -> PipePart {
        let handle = f(&self.handle);
        let field =
            |(name, b): &(Arc<str>, Buffer)| (name.clone(), Buffer { handle: f(&b.handle), ..b.clone() });
        let fields = self.fields.iter().map(field).collect();
        PipePart { pipe: self.pipe.clone(), role: self.role.clone(), handle, fields }
    }

    /// Whether another one is the same but for its tensors, of which `same` holds pair by pair.
    pub fn all(&self, other: &PipePart, same: impl Fn(&Tensor, &Tensor) -> bool) -> bool {
        self.pipe == other.pipe
            && self.role == other.role
            && self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(|(a, b)| a.0 == b.0)
            && self.parts().zip(other.parts()).all(|(a, b)| same(a, b))
    }

    /// The class that it is an instance of.
    pub fn class(&self) -> &'static str {
        match self.role {
            Role::Whole => "pipe_value",
            Role::Writer => "pipe_writer",
            Role::Reader(..) => "pipe_reader",
            Role::Slot => "pipe_slot",
        }
    }

    /// Whether its fields are attributes.
    pub fn shows_fields(&self) -> bool {
        matches!(self.role, Role::Whole | Role::Slot)
    }

    /// Its attributes beside fields and methods.
    pub fn arguments(&self) -> &'static [&'static str] {
        match self.role {
            Role::Whole => &["capacity", "scope", "name", "readers", "one_shot", "fields"],
            Role::Writer => &["pipe"],
            Role::Reader(..) => &["pipe", "name", "fields"],
            Role::Slot => &["fields"],
        }
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Buffer> {
        self.fields.iter().find(|(n, _)| &**n == name).map(|(_, buffer)| buffer)
    }
}

/// All that is known of it at compile time: what prints alike is alike.
impl fmt::Display for PipePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<", self.class())?;
        if let Some(name) = &self.pipe.name {
            write!(f, "{name:?}, ")?;
        }
        write!(f, "capacity={}", self.pipe.capacity)?;
        if let Some(readers) = &self.pipe.readers {
            write!(f, ", readers={readers:?}")?;
        }
        if self.pipe.one_shot {
            f.write_str(", one_shot")?;
        }
        if let Role::Reader(number, visible) = &self.role {
            write!(f, ", reader {number} of {visible:?}")?;
        }
        for (name, b) in &self.fields {
            let shown = usize::from(self.role == Role::Slot);
            write!(f, ", {name}: {:?} {}", &b.shape[shown..], b.element())?;
        }
        f.write_str(">")
    }
}
