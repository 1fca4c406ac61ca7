//! `tt.scan`, `tt.histogram` and `tt.gather`.

use tilewright_ir::dialect::tt;

use super::{Lower, Result};

impl Lower<'_> {
    pub fn scan(&mut self, _op: tt::Scan) -> Result<()> {
        Err(self.unsupported("scans"))
    }

    pub fn histogram(&mut self, _op: tt::Histogram) -> Result<()> {
        Err(self.unsupported("histograms"))
    }

    pub fn gather(&mut self, _op: tt::Gather) -> Result<()> {
        Err(self.unsupported("gathers"))
    }
}
