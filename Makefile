# `make demo` and `make test` do all the set-up themselves. Everything lands in .venv/ and target/.

PYTHON := .venv/bin/python
# nextest starts one process a test and runs them all at once; plain cargo test does where it is missing.
NEXTEST := $(shell command -v cargo-nextest 2>/dev/null)
JOBS ?= $(shell nproc)
# What build.rs of crates/passes declares, and so cargo fmt does not see.
PASSES := $(wildcard $(addprefix crates/passes/src/,transform/*.rs transform/*/mod.rs hopper/*.rs hopper/*/mod.rs))
RUSTFMT := rustfmt --edition 2024
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

.PHONY: setup demo test test-rust test-python test-long robustness bench bench-gpu lint format stubs docs wheel fuzz clean

setup: ## what a checkout needs: LLVM 19, .venv, the extension, the tilewright command
	@scripts/setup.sh

demo: setup ## softmax and matmul on the CPU, checked against NumPy, and compiled for sm_90
	@$(PYTHON) examples/demo.py

test: test-rust test-python ## every test

test-rust: setup
ifdef NEXTEST
	cargo nextest run --workspace --no-fail-fast --cargo-quiet --status-level fail --final-status-level fail
	cargo test --workspace --doc --quiet
else
	cargo test --workspace --quiet
endif

test-python: setup
	$(PYTHON) -m pytest -n $(JOBS) tests

# Random kernels take the release build: most of their time is compiling.
KERNELS ?= 5000
SEED ?= 300
MUTATIONS ?= 20000

test-long: ## KERNELS random kernels (5000) from seed SEED, 1000 of tle.dsa, MUTATIONS broken inputs of each kind, all roles, robustness
	@TILEWRIGHT_PROFILE=release scripts/setup.sh
	TILEWRIGHT_MUTATIONS=$(MUTATIONS) cargo test --release -p tilewright-cli --test mutations -- --nocapture
	$(PYTHON) tests/random_kernels --count $(KERNELS) --seed $(SEED) --jobs $(JOBS) --shrink
	TILEWRIGHT_DSA_KERNELS=1000 TILEWRIGHT_DSA_SEED=$(SEED) cargo test --release -p tilewright-npusim --test random
	TILEWRIGHT_SHARDED_CHAINS=2000 SEED=$(SEED) $(PYTHON) -m pytest -q tests/tle/test_sharded.py tests/tle/test_transfer.py -k chains
	TILEWRIGHT_ALL_ROLES=1 $(PYTHON) -m pytest -q -n $(JOBS) tests/tle/test_roles.py
	$(PYTHON) tests/robustness

robustness: setup ## processes, kills and damage on one cache; prints the table of docs/conformance.md (ARGS: --scale, --only)
	@$(PYTHON) tests/robustness $(ARGS)

bench: ## times on this machine; release build
	@TILEWRIGHT_PROFILE=release scripts/setup.sh
	@$(PYTHON) tests/bench/run.py $(ARGS)

bench-gpu: ## times against Triton in the same process; needs an NVIDIA GPU, torch and triton
	@TILEWRIGHT_PROFILE=release scripts/setup.sh
	@$(PYTHON) tests/bench/gpu.py $(ARGS)

lint: setup
	cargo fmt --all --check
	$(RUSTFMT) --check $(PASSES)
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

format: setup
	cargo fmt --all
	$(RUSTFMT) $(PASSES)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

stubs: ## the type stubs of the language, from its declarations
	python3 scripts/stubs.py

docs: setup ## the documentation site, target/site/index.html
	@rm -rf target/docs target/site && cp -r docs target/docs
	$(PYTHON) -m sphinx -q -E -W --keep-going -d target/site-trees target/docs target/site

wheel: setup ## dist/*.whl with LLVM inside, for Python 3.11 and later
	.venv/bin/maturin build --release --out dist --auditwheel skip --interpreter $(PYTHON)
	@ls -l dist

fuzz: setup ## feeds the parsers garbage for FUZZ_SECONDS (default 60)
	@scripts/fuzz.sh

clean:
	cargo clean
	rm -rf .venv dist python/tilewright/_tilewright.abi3.so
