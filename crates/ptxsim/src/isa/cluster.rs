//! Clusters (§9.7.9.23–24, §9.7.13.3).

use super::Dec;
use crate::Error;

type R = Result<(), Error>;

macro_rules! later {
    ($($n:ident)*) => { $(pub(super) fn $n(d: &mut Dec) -> R { d.fail("not supported yet") })* };
}
later!(st_async mapa getctarank barrier_cluster red_async);
