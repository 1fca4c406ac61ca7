//! Messages, by the driver's `vprintf` and `__assertfail` (CUDA C++ Programming Guide, "Formatted Output"; PTX Writer's Guide
//! to Interoperability, "System Calls").

use tilewright_llvm::{Space, Ty, Value};

use super::Lower;

impl Lower<'_, '_> {
    /// A generic pointer to a string constant.
    fn string(&mut self, text: &str) -> Value {
        let id = self.b.module.string(text);
        let p = self.b.global(id);
        self.b.addrspace_cast(p, Space::Generic)
    }

    /// `vprintf`.
    pub fn printf(&mut self, format: &str, args: &[Value]) {
        let callee = self.b.module.declare("vprintf", &[Ty::PTR, Ty::PTR], &[Ty::I32]);
        let format = self.string(format);
        // Arguments lie in memory one after the other, each at a multiple of its size.
        let mut places = Vec::new();
        let mut end = 0u32;
        for &a in args {
            let bytes = self.b.ty(a).bits() / 8;
            end = end.next_multiple_of(bytes);
            places.push(end);
            end += bytes;
        }
        let buffer =
            if args.is_empty() { self.b.zero(Ty::PTR) } else { self.b.alloca(end.next_multiple_of(16)) };
        for (&a, &at) in args.iter().zip(&places) {
            let p = self.b.ptr_add_const(buffer, i64::from(at));
            let bytes = self.b.ty(a).bits() / 8;
            self.b.store(p, a, bytes);
        }
        self.b.call(callee, &[format, buffer]);
    }

    /// `__assertfail`.
    pub fn fail(&mut self, message: &str, file: &str, line: u32) {
        let callee =
            self.b.module.declare("__assertfail", &[Ty::PTR, Ty::PTR, Ty::I32, Ty::PTR, Ty::I64], &[]);
        let (message, file, function) = (self.string(message), self.string(file), self.string("kernel"));
        let line = self.b.i32(i64::from(line));
        let size = self.b.i64(1);
        self.b.call(callee, &[message, file, line, function, size]);
    }
}
