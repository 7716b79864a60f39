# The commands for people who use or build Braidcast. Each installs what it lacks (tools/setup.sh).
.PHONY: help demo test call bench lab lint fuzz fuzz-smoke soak chaos format check clippy unit docs
.NOTPARALLEL:
.DEFAULT_GOAL := help

# Where rustup puts cargo, should it have just been installed.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Seconds that each fuzz target runs in `make test` and in `make fuzz`.
FUZZ_SMOKE ?= 10
FUZZ_TIME ?= 300
# Seconds that `make soak` runs.
SOAK_TIME ?= 600
# Simulated hours, and minutes with real processes, that `make chaos` runs.
CHAOS_HOURS ?= 24
CHAOS_MINUTES ?= 60

step = @printf '\n==> %s\n' '$(1)'

help:
	@echo "make demo    live video over two bad networks, each alone and both together, on this machine"
	@echo "make test    every check that CI makes"
	@echo "make call    a call beside TCP through the tunnel, by each send queue; keeps the recordings in target/call"
	@echo "make bench   speed and CPU beside other protocols, in one run"
	@echo "make lab     all experiments, beside published values and ns-2's; then the report lab-report.html"
	@echo "make lint    formatting, clippy and the layers only"
	@echo "make fuzz    $(FUZZ_TIME) s of fuzzing for each target (FUZZ_TIME=N for another time)"
	@echo "make soak    property tests of the protocols on new networks and messages for $(SOAK_TIME) s (SOAK_TIME=N)"
	@echo "make chaos   random faults over three networks, for a stream and for files: $(CHAOS_HOURS) simulated hours (CHAOS_HOURS=N),"
	@echo "             $(CHAOS_MINUTES) minutes with real processes (CHAOS_MINUTES=N), ten of them with eight senders at once"

demo:
	@tools/setup.sh demo
	@tools/clip.sh target/demo/clip.mp4
	cargo run --locked --release --quiet --package braidcast -- demo

# One profile for all tests, `dev` at opt-level 1: fast enough for real-time streams, and every overflow and debug
# assertion checked. A tool that a test needs must be there: setup has installed it.
test: export BRAIDCAST_REQUIRE_TOOLS = 1
test:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory lint
	$(call step,building the tests)
	cargo test --locked --workspace --no-run --quiet
	@tools/beside.sh '$(MAKE) --no-print-directory docs fuzz-smoke' '$(MAKE) --no-print-directory unit'
	$(call step,all passed)

lint: format check clippy

format:
	$(call step,formatting)
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path benches/peers/Cargo.toml --check

check:
	$(call step,layers and file sizes)
	@tools/layers.sh
	@tools/circles.py crates/sctp/src/assoc && tools/circles.py crates/dccp/src/conn

clippy:
	$(call step,clippy)
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

# Property tests try the same cases each time, so that a commit passes or does not; `make soak` tries others.
unit: export PROPTEST_RNG_SEED ?= 1
unit:
	$(call step,tests)
	cargo test --locked --workspace

docs:
	$(call step,documentation)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

# Some four minutes.
call: export BRAIDCAST_REQUIRE_TOOLS = 1
call:
	@tools/setup.sh test
	@tools/setup.sh demo
	@tools/clip.sh target/demo/clip.mp4
	cargo test --locked --package braidcast --test call -- --ignored --nocapture

bench:
	@tools/setup.sh bench
	@benches/run.py

# Every experiment of the papers, and the page about them.
lab:
	@tools/setup.sh lab
	cargo run --locked --release --quiet --package braidcast -- lab run all --runs 10
	cargo run --locked --release --quiet --package braidcast -- lab report

fuzz-smoke:
	$(call step,fuzz: $(FUZZ_SMOKE) s for each target)
	@tools/fuzz.sh $(FUZZ_SMOKE)

fuzz:
	@tools/setup.sh fuzz
	@tools/fuzz.sh $(FUZZ_TIME)

soak:
	@tools/setup.sh soak
	@tools/soak.sh $(SOAK_TIME)

chaos: export BRAIDCAST_SEED ?= 1
chaos: export CHAOS_HOURS := $(CHAOS_HOURS)
chaos: export CHAOS_MINUTES := $(CHAOS_MINUTES)
chaos:
	@tools/setup.sh soak
	cargo test --locked --quiet --package braidcast --test chaos -- --include-ignored --nocapture --test-threads 1
	cargo test --locked --quiet --package braidcast-session --test chaos -- --nocapture
