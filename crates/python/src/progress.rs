//! A bar for work that takes longer than one likes to wait without a word.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pyo3::prelude::*;

/// How long work goes on without a word.
const QUIET: Duration = Duration::from_secs(1);

/// A bar on the terminal of the standard error, once the work has taken a second. It is gone when the work is done, and where
/// the standard error is no terminal there is none.
#[pyclass(frozen, module = "tilewright._tilewright")]
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
}

#[pymethods]
impl Progress {
    #[new]
    fn new(name: String, steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{prefix} [{bar:32}] {pos}/{len} {elapsed}, {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(name);
        Progress { bar, start: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// Says what is done now.
    fn now(&self, what: String) {
        self.bar.set_message(what);
        if self.start.elapsed() >= QUIET && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.tick();
        }
    }

    /// A step is done.
    fn step(&self) {
        self.bar.inc(1);
    }

    /// There are more steps than was thought.
    fn more(&self, steps: u64) {
        self.bar.inc_length(steps);
    }

    /// The work is done, or left.
    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
