//! A host that no longer wants the result gets its thread back, however much is left to do.

use std::cell::Cell;
use std::sync::Arc;

use tilewright_frontend::{
    Binding, DiagnosticKind, Host, HostError, HostObject, HostValue, JitFunction, Options, Signature,
    SourceHost, build_module,
};

/// A host whose user presses Ctrl-C when it has been asked a few times.
struct Impatient {
    host: SourceHost,
    asked: Cell<u32>,
}

impl Host for Impatient {
    fn lookup(&self, function: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError> {
        self.host.lookup(function, name)
    }

    fn attribute(&self, object: &HostObject, name: &str) -> Result<Option<HostValue>, HostError> {
        self.host.attribute(object, name)
    }

    fn interrupted(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() > 3
    }
}

#[test]
fn evaluation_ends_when_the_host_has_had_enough() {
    let source = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(x):\n    \
                  for i in tl.static_range(60000):\n        for j in tl.static_range(60000):\n            \
                  if i < 0:\n                tl.store(x, j)\n";
    let host =
        Impatient { host: SourceHost::new("loop.py", source).expect("is a module"), asked: Cell::new(0) };
    let entry = host.host.function("kernel").expect("is there");
    let signature = Signature::parse("*i32").expect("a signature");
    let error = build_module(&host, &entry, &signature, &Options::default()).expect_err("was interrupted");
    assert_eq!(error.kind, DiagnosticKind::Interrupted);
    assert!(error.span.is_some());
    assert_eq!(host.asked.get(), 4, "it goes on after it was told to stop");
}
