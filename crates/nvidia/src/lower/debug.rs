//! `tt.print` and `tt.assert`.

use tilewright_ir::dialect::tt;

use super::{Lower, Result};

impl Lower<'_> {
    pub fn print(&mut self, _op: tt::Print) -> Result<()> {
        Err(self.unsupported("device_print"))
    }

    pub fn assert(&mut self, _op: tt::Assert) -> Result<()> {
        Err(self.unsupported("device_assert"))
    }
}
