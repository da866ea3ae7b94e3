# Each target does its own set-up on a fresh machine.
.PHONY: setup demo test fault lint bench fuzz

CARGO ?= cargo
# Compilers that build the importers for wasm: rustup's, else Debian's with its source of the standard library.
WASM := wasm32-unknown-unknown
DEBIAN := rustc-web cargo-web rust-web-src lld
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

# Installs what is missing and says what it does; safe to run again.
setup:
	@if [ -d "$$(rustc --print target-libdir --target $(WASM) 2>/dev/null)" ]; then \
		echo "setup: the Rust toolchain builds for $(WASM)"; \
	elif command -v rustup >/dev/null && rustup target add $(WASM); then \
		echo "setup: rustup added the target $(WASM)"; \
	elif [ -f /usr/lib/rustlib/src/rust/library/Cargo.lock ] && command -v wasm-ld >/dev/null; then \
		echo "setup: Debian's toolchain builds for $(WASM)"; \
	elif command -v apt-get >/dev/null; then \
		echo "setup: installing $(DEBIAN)"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y --no-install-recommends $(DEBIAN); \
	else \
		echo "setup: install rustup's target $(WASM), for example: rustup target add $(WASM)" >&2; exit 1; \
	fi

demo: setup
	$(CARGO) run --release -p satchel-daemon -- demo

# cargo-nextest, if it is installed, runs the tests of several programs side by side, one more than processors, as some wait.
test: setup
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --workspace --no-fail-fast --test-threads $$(($$(getconf _NPROCESSORS_ONLN) + 1)) && $(CARGO) test --workspace --doc; \
	else $(CARGO) test --workspace; fi

# The same fault tests as `make test`, longer: seeds, kills and failpoints. ROUNDS=100 for a night.
ROUNDS ?= 25
fault: setup
	SATCHEL_FAULT_ROUNDS=$(ROUNDS) $(CARGO) test --workspace --lib \
		--test fault --test killed_imports --test failpoints --test maintenance --test peers

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked --debug cargo-deny
	$(CARGO) deny --workspace check bans licenses sources
	@if $(CARGO) deny fetch >/dev/null 2>&1; then $(CARGO) deny --workspace check advisories; \
	else echo "lint: the advisory database is out of reach and was not read" >&2; fi

bench: setup
	$(CARGO) build --release -p satchel-daemon
	$(CARGO) bench -p satchel-tests --bench figures
	$(CARGO) bench -p satchel-search

# Seconds for each importer.
FUZZ_SECONDS ?= 60
FUZZED := $(basename $(notdir $(wildcard tests/fuzz/targets/*.rs)))

# The compiler counts what an input covers by flags that only RUSTC_BOOTSTRAP opens in a stable one. No address sanitizer:
# the importers hold no unsafe code.
fuzz: setup
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz
	@for importer in $(FUZZED); do \
		mkdir -p tests/fuzz/kept/$$importer && \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --fuzz-dir tests/fuzz --sanitizer none $$importer \
			tests/fuzz/kept/$$importer tests/fuzz/corpus/$$importer -- -max_total_time=$(FUZZ_SECONDS) \
			-timeout=10 -rss_limit_mb=512 -max_len=65536 -print_final_stats=1 || exit 1; \
	done
