//! Every kernel by itself, and the file that Chrome's tracing and Perfetto read.

use serde_json::{Value as Json, json};

use crate::path::{PathId, Paths};
use crate::session::{DeviceKind, Kernel};

#[derive(Debug)]
struct Event {
    path: PathId,
    start: u64,
    end: u64,
    device: (DeviceKind, u32),
    stream: u32,
}

/// The kernels that a session has met.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    events: Vec<Event>,
}

impl Trace {
    /// Adds a kernel that ran.
    pub fn add_kernel(&mut self, path: PathId, kernel: &Kernel<'_>) {
        let Kernel { start, end, device, stream, .. } = *kernel;
        self.events.push(Event { path, start, end, device, stream });
    }

    /// The file's text: a complete event a kernel, in order of time, on the line of its stream.
    pub fn chrome(&self, paths: &Paths) -> String {
        let mut events: Vec<&Event> = self.events.iter().collect();
        events.sort_by_key(|event| event.start);
        let first = events.first().map_or(0, |event| event.start);
        let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
        let events: Vec<Json> = events
            .into_iter()
            .map(|event| {
                json!({
                    "name": paths.name(event.path),
                    "cat": "kernel",
                    "ph": "X",
                    "ts": microseconds(event.start - first),
                    "dur": microseconds(event.end.saturating_sub(event.start)),
                    "pid": event.device.1,
                    "tid": event.stream,
                    "args": {"call_stack": paths.names(event.path), "device_type": event.device.0.name()},
                })
            })
            .collect();
        json!({"displayTimeUnit": "us", "traceEvents": events}).to_string() + "\n"
    }
}
