//! The options of a kernel: one table, [`OPTIONS`], and the struct [`Options`] that it makes.
//!
//! Whoever takes options from outside (keyword arguments of a launch, flags of the command, arguments of `tilewright opt`)
//! finds them by [`find`], checks a value by [`Info::set`] and says [`Wrong`] where it does not fit; whoever compiles or
//! launches reads the fields. The key of the cache, the metadata of a compiled kernel and `docs/options.md` are made from the
//! table too. It stands in this crate since every stage from the front end to a target's finisher reads it.
//!
//! An option names who reads it; one that no stage reads has no place here. Triton's options that nothing here reads are in
//! [`ELSEWHERE`]: what they are without being given is accepted, anything else is an error.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::diagnostic::{self, Diagnostic};
use crate::dialect::tt::InputPrecision;

/// Who reads an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reader {
    /// The front end: every backend.
    FrontEnd,
    /// The passes from `tt` to `ttg`: targets with a code generator.
    Passes,
    /// The lowering of a target, and what makes a binary of it.
    CodeGenerator,
    /// What makes PTX and a binary of it: a target whose code is another refuses the option.
    Ptx,
    /// The launch on a GPU.
    Launch,
    /// The run in the PTX simulator.
    Simulator,
}

impl Reader {
    /// Whether the compiled code depends on what it reads.
    pub const fn compiles(self) -> bool {
        matches!(self, Reader::FrontEnd | Reader::Passes | Reader::CodeGenerator | Reader::Ptx)
    }

    /// For the page of options.
    pub const fn text(self) -> &'static str {
        match self {
            Reader::FrontEnd => "front end",
            Reader::Passes => "passes",
            Reader::CodeGenerator => "code generator",
            Reader::Ptx => "code generator of PTX",
            Reader::Launch => "launch on a GPU",
            Reader::Simulator => "simulator",
        }
    }
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Not given.
    None,
    /// Of a [`Kind::Flag`].
    Flag(bool),
    /// Of a [`Kind::Count`]; any integer, since one that is not in the range is to be shown.
    Count(i64),
    /// Of a [`Kind::Choice`], a [`Kind::Text`] or, with commas between them, a [`Kind::Words`].
    Word(String),
}

/// As Python writes it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Flag(true) => f.write_str("True"),
            Value::Flag(false) => f.write_str("False"),
            Value::Count(n) => n.fmt(f),
            Value::Word(word) => write!(f, "'{word}'"),
        }
    }
}

/// The values that an option may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Flag,
    /// An integer of a range.
    Count {
        /// The least.
        least: u32,
        /// The most; at most [`MOST`].
        most: u32,
        /// Only 1, 2, 4, ….
        power_of_two: bool,
    },
    /// One of some words, in lower or upper case.
    Choice(&'static [&'static str]),
    /// Some of these words, in lower or upper case; a tuple in Python.
    Words(&'static [&'static str]),
    /// Any text but an empty one; what it says, for messages and the page.
    Text(&'static str),
    /// Names and paths; a dict in Python.
    Libraries,
}

/// The largest count of an option that is no [`Bound`]: [`Options::words`] has room for it.
pub const MOST: u32 = u16::MAX as u32;

impl Kind {
    fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Flag, Value::Flag(_)) => true,
            (Kind::Count { least, most, power_of_two }, Value::Count(n)) => {
                (i64::from(least)..=i64::from(most)).contains(n) && (!power_of_two || n.count_ones() == 1)
            }
            (Kind::Choice(words), Value::Word(word)) => words.contains(&word.as_str()),
            (Kind::Words(words), Value::Word(given)) => self::words(given).all(|word| words.contains(&word)),
            (Kind::Text(_), Value::Word(word)) => !word.trim().is_empty(),
            (Kind::Libraries, Value::Word(word)) => word.split(';').all(|entry| {
                entry.split_once('=').is_some_and(|(name, path)| !name.is_empty() && !path.is_empty())
            }),
            _ => false,
        }
    }
}

/// What it must be, for messages and the page: «an integer from 0 to 64».
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |words: &[String]| match words {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            words => words.join(""),
        };
        let quoted = |words: &[&str]| listed(&words.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>());
        match *self {
            Kind::Flag => f.write_str("True or False"),
            Kind::Count { least, most, power_of_two: true } => {
                let powers = (0..32).map(|i| 1u32 << i).filter(|n| (least..=most).contains(n));
                f.write_str(&listed(&powers.map(|n| n.to_string()).collect::<Vec<_>>()))
            }
            Kind::Count { least, most, .. } => write!(f, "an integer from {least} to {most}"),
            Kind::Text(what) => f.write_str(what),
            Kind::Libraries => {
                f.write_str("names and paths, such as 'mylib=/path/mylib.bc', separated by ';'")
            }
            Kind::Choice(words) => f.write_str(&quoted(words)),
            Kind::Words(words) => write!(f, "a tuple of {}", quoted(words)),
        }
    }
}

/// The words of a value of [`Kind::Words`].
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// A row of the table.
#[derive(Debug)]
pub struct Info {
    /// The name: the field of [`Options`], and the keyword argument.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Who reads it.
    pub read_by: &'static [Reader],
    get: fn(&Options) -> Value,
    put: fn(&mut Options, Value) -> bool,
}

/// A value that an option cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// [`OutOfResources`](diagnostic::Kind::OutOfResources) for one that only is more than hardware has, which autotuners leave out.
    pub kind: diagnostic::Kind,
    /// «num_warps is 3».
    pub message: String,
    /// «it must be 1, 2, 4, 8, 16 or 32».
    pub hint: String,
}

impl From<Wrong> for Diagnostic {
    fn from(wrong: Wrong) -> Diagnostic {
        Diagnostic::new(wrong.message).of(wrong.kind).note(wrong.hint)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.hint)
    }
}

impl Info {
    /// Whether compiled code depends on it, so that it is in the key of the cache.
    pub fn keyed(&self) -> bool {
        self.read_by.iter().any(|r| r.compiles())
    }

    /// The value in a set of options.
    pub fn get(&self, options: &Options) -> Value {
        (self.get)(options)
    }

    /// The value where none is given.
    pub fn default(&self) -> Value {
        self.get(&Options::default())
    }

    /// Gives the option a value; [`Value::None`] is the default, as in Triton.
    ///
    /// # Errors
    /// A value that it cannot have.
    pub fn set(&self, options: &mut Options, value: Value) -> Result<(), Wrong> {
        let value = match value {
            Value::None => self.default(),
            Value::Word(word) if matches!(self.kind, Kind::Choice(_)) => {
                Value::Word(word.to_ascii_lowercase())
            }
            Value::Word(word) if matches!(self.kind, Kind::Words(_)) => {
                Value::Word(words(&word.to_ascii_lowercase()).collect::<Vec<_>>().join(","))
            }
            value => value,
        };
        let fits = self.kind.takes(&value) || value == self.default();
        if fits && (self.put)(options, value.clone()) {
            return Ok(());
        }
        let kind = match (self.kind, &value) {
            (Kind::Count { most, power_of_two: true, .. }, Value::Count(n))
                if n.count_ones() == 1 && *n > i64::from(most) =>
            {
                diagnostic::Kind::OutOfResources
            }
            _ => diagnostic::Kind::Request,
        };
        Err(Wrong { kind, ..self.wrong(&value) })
    }

    /// That something is not what the option can be.
    pub fn wrong(&self, shown: &dyn fmt::Display) -> Wrong {
        Wrong {
            kind: diagnostic::Kind::Request,
            message: format!("{} is {shown}", self.name),
            hint: format!("it must be {}", self.kind),
        }
    }

    /// Reads a value as a command line has it: `4`, `true`, `tf32`.
    ///
    /// # Errors
    /// What is no value of the option.
    pub fn parse(&self, text: &str) -> Result<Value, Wrong> {
        let value = match self.kind {
            Kind::Flag => match text {
                "true" | "True" | "1" => Some(Value::Flag(true)),
                "false" | "False" | "0" => Some(Value::Flag(false)),
                _ => None,
            },
            Kind::Count { .. } => text.parse().ok().map(Value::Count),
            Kind::Choice(_) | Kind::Words(_) | Kind::Text(_) | Kind::Libraries => {
                Some(Value::Word(text.to_string()))
            }
        };
        let value = value.ok_or_else(|| self.wrong(&text))?;
        self.set(&mut Options::default(), value.clone()).map(|()| value)
    }
}

/// A type of a field of [`Options`].
trait Field: Sized {
    /// How many bits tell its values apart.
    const BITS: u32;
    fn bits(&self) -> u128;
    fn value(&self) -> Value;
    fn from_value(value: Value) -> Option<Self>;
}

impl Field for bool {
    const BITS: u32 = 1;
    fn bits(&self) -> u128 {
        u128::from(*self)
    }
    fn value(&self) -> Value {
        Value::Flag(*self)
    }
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Flag(flag) = value { Some(flag) } else { None }
    }
}

impl Field for u32 {
    const BITS: u32 = 16;
    fn bits(&self) -> u128 {
        u128::from((*self).min(MOST))
    }
    fn value(&self) -> Value {
        Value::Count(i64::from(*self))
    }
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Count(n) = value { u32::try_from(n).ok() } else { None }
    }
}

impl Field for Option<u32> {
    const BITS: u32 = 17;
    fn bits(&self) -> u128 {
        self.map_or(0, |n| 1 + n.bits())
    }
    fn value(&self) -> Value {
        self.map_or(Value::None, |n| n.value())
    }
    fn from_value(value: Value) -> Option<Self> {
        if value == Value::None { Some(None) } else { u32::from_value(value).map(Some) }
    }
}

/// A count that may be larger than [`MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bound(pub u32);

impl Field for Option<Bound> {
    const BITS: u32 = 33;
    fn bits(&self) -> u128 {
        self.map_or(0, |n| 1 + u128::from(n.0))
    }
    fn value(&self) -> Value {
        self.map_or(Value::None, |n| Value::Count(i64::from(n.0)))
    }
    fn from_value(value: Value) -> Option<Self> {
        if value == Value::None { Some(None) } else { u32::from_value(value).map(|n| Some(Bound(n))) }
    }
}

impl Options {
    /// The names and paths of `extern_libs`.
    pub fn libraries(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let text = self.extern_libs.map_or("", Text::as_str);
        text.split(';').filter_map(|entry| entry.split_once('='))
    }

    /// The path of the library of this name.
    pub fn library(&self, name: &str) -> Option<&'static str> {
        self.libraries().find(|(known, _)| *known == name).map(|(_, path)| path)
    }
}

/// The text of an option, of which a process keeps each one once, so that options are compared and hashed as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text(u16);

impl Text {
    /// The text kept; `None` where a process has given more different ones than are told apart (65,535).
    pub fn new(text: &str) -> Option<Text> {
        let mut kept = kept_texts();
        let at = kept.iter().position(|known| *known == text).unwrap_or_else(|| {
            kept.push(String::from(text).leak());
            kept.len() - 1
        });
        u16::try_from(at).ok().filter(|at| *at < u16::MAX).map(Text)
    }

    /// What it says.
    pub fn as_str(self) -> &'static str {
        kept_texts()[usize::from(self.0)]
    }

    /// Its words, of an option of [`Kind::Words`].
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        words(self.as_str())
    }
}

fn kept_texts() -> MutexGuard<'static, Vec<&'static str>> {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Field for Option<Text> {
    const BITS: u32 = 16;
    fn bits(&self) -> u128 {
        self.map_or(0, |text| 1 + u128::from(text.0))
    }
    fn value(&self) -> Value {
        self.map_or(Value::None, |text| Value::Word(text.as_str().to_string()))
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::None => Some(None),
            Value::Word(text) => Text::new(&text).map(Some),
            _ => None,
        }
    }
}

impl Field for InputPrecision {
    const BITS: u32 = 4;
    fn bits(&self) -> u128 {
        *self as u128
    }
    fn value(&self) -> Value {
        Value::Word(self.keyword().to_string())
    }
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Word(word) = value { InputPrecision::from_keyword(&word) } else { None }
    }
}

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $name:ident: $ty:ty = $default:expr, $kind:expr, [$($reader:ident),+];)+) => {
        /// The options of a kernel; see [`OPTIONS`].
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct Options {
            $($(#[doc = $doc])+ pub $name: $ty,)+
        }

        impl Default for Options {
            fn default() -> Self {
                Options { $($name: $default),+ }
            }
        }

        /// The table of options.
        pub static OPTIONS: &[Info] = &[$(Info {
            name: stringify!($name),
            doc: concat!($($doc),+),
            kind: $kind,
            read_by: &[$(Reader::$reader),+],
            get: |options| options.$name.value(),
            put: |options, value| match Field::from_value(value) {
                Some(value) => {
                    options.$name = value;
                    true
                }
                None => false,
            },
        }),+];

        impl Options {
            /// All values in numbers: equal for equal options and no others, where every value is in its range.
            pub fn words(&self) -> [u128; 2] {
                let mut words = [0; 2];
                // The next free bit; a value lies in one of the numbers.
                let mut at = 0;
                $(
                    const _: () = assert!(<$ty as Field>::BITS <= 33);
                    if at / 128 != (at + <$ty as Field>::BITS - 1) / 128 {
                        at = 128;
                    }
                    words[(at / 128) as usize] |= self.$name.bits() << (at % 128);
                    at += <$ty as Field>::BITS;
                )+
                // Of room that a value leaves at the end of a number there is less than it takes itself.
                const _: () = assert!(0 $(+ <$ty as Field>::BITS)+ <= 256 - 32);
                debug_assert!(at <= 256);
                words
            }
        }
    };
}

const fn count(least: u32, most: u32) -> Kind {
    assert!(least <= most && most <= MOST);
    Kind::Count { least, most, power_of_two: false }
}

const fn power_of_two(most: u32) -> Kind {
    assert!(most <= MOST);
    Kind::Count { least: 1, most, power_of_two: true }
}

/// The most CTAs of a cluster that may be had without asking for more than is portable (CUDA C++ Programming Guide, "Thread
/// Block Clusters").
pub const MAX_CTAS: u32 = 8;

/// The names of 8-bit floats in the language.
const FP8: &[&str] = &["fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15"];

/// The most iterations that software pipelines have under way.
pub const MAX_STAGES: u32 = 64;

/// The most warps of a CTA.
pub const MAX_WARPS: u32 = 32;

options! {
    /// Warps of a CTA.
    num_warps: u32 = 4, power_of_two(MAX_WARPS), [FrontEnd, Passes, CodeGenerator, Launch];
    /// Depth of the software pipelines of loops that do not say one themselves: the most iterations whose loads are under
    /// way, the one being computed included; fewer where they need more shared memory than there is. 0 and 1 pipeline nothing.
    num_stages: u32 = 3, count(0, MAX_STAGES), [Passes];
    /// CTAs of a cluster, which run one program together.
    num_ctas: u32 = 1, power_of_two(MAX_CTAS), [FrontEnd, Passes, CodeGenerator, Launch];
    /// Upper bound of a thread's registers. The hardware has 24 to 255: what is outside is brought there.
    maxnreg: Option<u32> = None, count(1, MOST), [Passes];
    /// Whether a product and a sum may become one fused operation.
    enable_fp_fusion: bool = true, Kind::Flag, [CodeGenerator];
    /// Whether `exp` and `exp2` of float32 flush subnormal numbers to zero, which is faster. (libdevice keeps them in any case.)
    enable_reflect_ftz: bool = true, Kind::Flag, [CodeGenerator];
    /// What `tl.dot` does with float32 operands unless it says `input_precision` or `allow_tf32` itself.
    default_dot_input_precision: InputPrecision = InputPrecision::Tf32, Kind::Choice(InputPrecision::KEYWORDS), [FrontEnd];
    /// The values of `input_precision` that `tl.dot` takes, all of them by default. Without `tf32` one that says none is `ieee`, as with
    /// `allow_tf32=True`.
    allowed_dot_input_precisions: Option<Text> = None, Kind::Words(InputPrecision::KEYWORDS), [FrontEnd];
    /// `max_num_imprecise_acc` of products of 8-bit floats that do not say one. By default the tensor cores of sm_90 sum up all of K.
    max_num_imprecise_acc_default: Option<Bound> = None, Kind::Count { least: 0, most: 1 << 30, power_of_two: false }, [FrontEnd];
    /// The 8-bit floats that kernels may have, all of them by default: on GPUs that lack a type it is converted by other instructions.
    supported_fp8_dtypes: Option<Text> = None, Kind::Words(FP8), [FrontEnd];
    /// The 8-bit floats that `tl.dot` warns of. By default that is `fp8e4b15` on sm_90 and later.
    deprecated_fp8_dot_operand_dtypes: Option<Text> = None, Kind::Words(FP8), [FrontEnd];
    /// Whether `tl.device_assert`, and checks that integers do not overflow, are compiled in.
    debug: bool = false, Kind::Flag, [FrontEnd];
    /// Whether `debug` checks that integers do not overflow.
    sanitize_overflow: bool = true, Kind::Flag, [FrontEnd];
    /// Whether kernels may read globals that are not `tl.constexpr`.
    allow_non_constexpr_globals: bool = false, Kind::Flag, [FrontEnd];
    /// Whether loads and stores through pointers that are those of blocks of matrices become the target's accesses of blocks (TMA on Hopper), where they pay. A launch
    /// whose strides no tensor map can have takes a kernel without.
    raise_pointers: bool = true, Kind::Flag, [Passes];
    /// Whether what divides numbers in indices is taken for positive where it is known at run time only, as in `pid // num_tiles`. A launch whose arguments make one negative
    /// on whose sign the code relies takes a kernel without.
    positive_divisors: bool = true, Kind::Flag, [Passes];
    /// Whether a launch on an NVIDIA GPU starts no more programs than it holds at once, each of which does the work of several, one after the other: along x, or of the
    /// whole grid where the kernel asks for numbers along other axes, too. Kernels that multiply nothing load for the next `num_stages - 1` programs meanwhile. On the CPU executor that makes no difference.
    persistent: bool = false, Kind::Flag, [Passes, Launch];
    /// Further arguments of `ptxas`, separated by spaces, before those of `PTXAS_OPTIONS`.
    ptx_options: Option<Text> = None, Kind::Text("arguments separated by spaces, such as '--opt-level 1'"), [Ptx];
    /// The `.version` of the PTX times ten, as in 84; by default the lowest that has the kernel's instructions. A lower one than that
    /// is an error.
    ptx_version: Option<u32> = None, count(60, 99), [Ptx];
    /// Libraries of bitcode that functions called by `tl.core.extern_elementwise` without a path come from, and the `libdevice` that kernels for NVIDIA's
    /// GPUs call in place of the one found; a dict of names and paths in Python.
    extern_libs: Option<Text> = None, Kind::Libraries, [FrontEnd, CodeGenerator];
    /// Whether source lines go into the code (`.loc`, and the cubin's line table).
    line_info: bool = true, Kind::Flag, [CodeGenerator];
    /// Whether all programs must be resident at once. The CPU executor and the simulator have them all there in any case.
    launch_cooperative_grid: bool = false, Kind::Flag, [Launch];
    /// Whether the kernel may start before the one ahead of it has ended (programmatic dependent launch). A permission, of
    /// which the CPU executor and the simulator make no use.
    launch_pdl: bool = false, Kind::Flag, [Launch];
    /// Whether the simulator reports what it finds and goes on, instead of stopping at the first finding.
    sanitize: bool = false, Kind::Flag, [Simulator];
}

/// The option of a name.
pub fn find(name: &str) -> Option<&'static Info> {
    OPTIONS.iter().find(|o| o.name == name)
}

/// An option of Triton that nothing here reads.
#[derive(Debug)]
pub struct Elsewhere {
    /// The name.
    pub name: &'static str,
    /// What it is in Triton where nobody gives it, as Python writes it: the one value that asks for nothing.
    pub default: &'static str,
    /// What it is for.
    pub doc: &'static str,
}

/// Triton's options that nothing here reads.
pub static ELSEWHERE: &[Elsewhere] = &[
    Elsewhere { name: "warp_size", default: "32", doc: "threads of a warp" },
    Elsewhere { name: "instrumentation_mode", default: "''", doc: "instrumentation of the code" },
    Elsewhere { name: "backend_name", default: "'cuda'", doc: "the backend" },
    Elsewhere {
        name: "arch",
        default: "None",
        doc: "what `warmup` and `compile` compile for; a launch compiles for where it runs",
    },
];

/// The option of Triton of a name that nothing here reads.
pub fn find_elsewhere(name: &str) -> Option<&'static Elsewhere> {
    ELSEWHERE.iter().find(|o| o.name == name)
}

impl Options {
    /// The first option that is given and that nobody reads but these.
    pub fn only_for(&self, readers: &[Reader]) -> Option<&'static Info> {
        let only = |o: &&Info| o.read_by.iter().all(|r| readers.contains(r));
        OPTIONS.iter().filter(only).find(|o| o.get(self) != o.default())
    }

    /// Says what is wrong with an option.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn check(&self) -> Result<(), Wrong> {
        OPTIONS.iter().try_for_each(|o| o.set(&mut self.clone(), o.get(self)))
    }
}

/// The page `docs/options.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Options of a kernel\n\n\
         Keyword arguments of a launch (`kernel[grid](…, num_warps=8)`) and of `warmup`, the first four also of `triton.Config`; flags \
         of `tilewright compile` (`--num-warps 8`, `--enable-fp-fusion=false`) where code depends on them. `None` stands for the \
         default. Of a tuple the command takes the words with commas between them. Any other value than those listed is an error. A row that is marked ✓ is in the key of the cache.\n\n\
         Written from the table in `crates/ir/src/options.rs` by `TILEWRIGHT_BLESS=1 cargo nextest run -p tilewright-ir options`.\n\n\
         | option | values | default | key | read by | meaning |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for o in OPTIONS {
        let readers: Vec<&str> = o.read_by.iter().map(|r| r.text()).collect();
        page += &format!(
            "| `{}` | {} | `{}` | {} | {} | {} |\n",
            o.name,
            o.kind,
            o.default(),
            if o.keyed() { "✓" } else { "" },
            readers.join(", "),
            o.doc.trim()
        );
    }
    page += "\nThese options of Triton are read by nothing here. The value that they have in Triton unless they are given is accepted; \
             another is an error («not supported yet»).\n\n| option | value | in Triton |\n| --- | --- | --- |\n";
    for o in ELSEWHERE {
        page += &format!("| `{}` | `{}` | {} |\n", o.name, o.default, o.doc);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_table_says() {
        crate::reference::assert_page("docs/options.md", &markdown());
    }

    #[test]
    fn a_value_is_taken_or_refused_by_its_row() {
        let mut options = Options::default();
        let warps = find("num_warps").unwrap();
        assert_eq!(warps.set(&mut options, Value::Count(8)), Ok(()));
        assert_eq!(options.num_warps, 8);
        for wrong in [0, 3, 64, -1, 1 << 40] {
            let error = warps.set(&mut options, Value::Count(wrong)).unwrap_err();
            assert_eq!(error.to_string(), format!("num_warps is {wrong}: it must be 1, 2, 4, 8, 16 or 32"));
        }
        assert_eq!(
            warps.set(&mut options, Value::Count(64)).unwrap_err().kind,
            diagnostic::Kind::OutOfResources
        );
        assert_eq!(warps.set(&mut options, Value::Count(65)).unwrap_err().kind, diagnostic::Kind::Request);
        assert_eq!(warps.set(&mut options, Value::None), Ok(()));
        assert_eq!(options, Options::default());
        let precision = find("default_dot_input_precision").unwrap();
        assert_eq!(precision.set(&mut options, Value::Word("IEEE".into())), Ok(()));
        assert_eq!(options.default_dot_input_precision, InputPrecision::Ieee);
        assert!(precision.set(&mut options, Value::Word("fp8".into())).is_err());
        assert!(find("debug").unwrap().set(&mut options, Value::Count(1)).is_err());
        let dtypes = find("supported_fp8_dtypes").unwrap();
        assert_eq!(dtypes.set(&mut options, Value::Word("FP8E5, fp8e4nv".into())), Ok(()));
        let words: Vec<_> = options.supported_fp8_dtypes.unwrap().words().collect();
        assert_eq!(words, ["fp8e5", "fp8e4nv"]);
        assert!(dtypes.set(&mut options, Value::Word("fp8e5,fp16".into())).is_err());
        let registers = find("maxnreg").unwrap();
        assert_eq!(registers.set(&mut options, Value::Count(256)), Ok(()));
        assert_eq!(options.maxnreg, Some(256));
        assert!(registers.set(&mut options, Value::Count(0)).is_err());
        assert!(options.check().is_ok());
        assert!(Options { num_ctas: 16, ..options }.check().is_err());
    }

    #[test]
    fn texts_of_values_are_read_back() {
        for option in OPTIONS {
            for text in ["1", "71", "true", "ieee"] {
                let Ok(value) = option.parse(text) else { continue };
                let mut options = Options::default();
                option.set(&mut options, value.clone()).unwrap();
                assert_eq!(option.get(&options), value);
            }
            assert_eq!(option.parse("").is_ok(), matches!(option.kind, Kind::Words(_)), "{}", option.name);
            assert_eq!(option.parse("4x").is_ok(), matches!(option.kind, Kind::Text(_)), "{}", option.name);
        }
    }

    #[test]
    fn each_option_is_in_the_word() {
        let mut seen = vec![Options::default().words()];
        for option in OPTIONS {
            for text in
                ["0", "1", "2", "4", "8", "71", "84", "1073741824", "tf32", "ieee", "bf16x6", "fp8e5,fp8e4nv"]
            {
                let Ok(value) = option.parse(text) else { continue };
                let mut options = Options::default();
                option.set(&mut options, value).unwrap();
                if options != Options::default() {
                    assert!(!seen.contains(&options.words()), "{} = {text}", option.name);
                    seen.push(options.words());
                }
            }
        }
        assert!(seen.len() > OPTIONS.len());
    }
}
