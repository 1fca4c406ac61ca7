#!/usr/bin/env bash
# Feeds the parser of IR text garbage for FUZZ_SECONDS (default 60): with cargo-fuzz where it and a nightly compiler are
# installed, else by the property tests with many more cases than usual.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
if cargo +nightly fuzz --version >/dev/null 2>&1; then
  cargo +nightly fuzz run parse_ir -- -max_total_time="$seconds"
else
  echo 'fuzz: no cargo-fuzz with a nightly compiler (cargo install cargo-fuzz); running the property tests instead' >&2
  FUZZ_SECONDS=$seconds cargo test --quiet -p tilewright-ir --test fuzz -- --ignored --nocapture
fi
