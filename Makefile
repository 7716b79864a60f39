# The commands for people who use or build Braidcast. Each says what it lacks before it installs that (tools/setup.sh).
# What is long, in pieces of at most 20 minutes on two processors.
MORE := more-border more-nats more-neighbours more-chaos more-call more-lab more-soak more-fuzz more-encode more-inputs more-recipes more-bindings more-systems more-asan more-asan-c more-tsan more-miri more-formal more-siege
.PHONY: help demo test quick quick-starts recipes c c-test bindings-build bindings-test python-test bindings publish-check semver other-systems msrv miri deny reference book dist dist-gst dist-gst-test dist-test call field bench lab lab-check lab-check-update survey lint fuzz soak chaos formal gst gst-plugin plugin-build plugin-test encode format check clippy unit guest docs neon new-cases hooks test-steps quick-steps count count-update more $(MORE)
.NOTPARALLEL:
.DEFAULT_GOAL := help
SHELL := /bin/bash

# The place where rustup puts cargo, if it has just been installed.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# The compiler that the counts of benches/count/baseline.json are of. Every target takes it where it is installed with
# clippy; elsewhere rust-toolchain.toml chooses, and `make count` compares what does not depend on the compiler.
COMPILER := $(shell sed -n 's/.*"compiler": "rustc \([0-9.]*\)".*/\1/p' benches/count/baseline.json)
ifndef RUSTUP_TOOLCHAIN
ifneq ($(shell rustup run $(COMPILER) cargo-clippy --version 2>/dev/null),)
export RUSTUP_TOOLCHAIN := $(COMPILER)
endif
endif

# Seconds that each fuzz target runs in `make fuzz`. `make test` runs them without libFuzzer (fuzz/targets/tests).
FUZZ_TIME ?= 300
# Seconds that `make soak` runs.
SOAK_TIME ?= 600
# Random programs of the library's users that `make soak` runs.
MODEL_PROGRAMS ?= 100000
# Simulated hours, minutes with real processes, and those of them in places that change, that `make chaos` runs.
CHAOS_HOURS ?= 24
CHAOS_MINUTES ?= 60
CHAOS_PLACES ?= 2

# Crates whose unit tests `make quick` runs.
QUICK := $(foreach crate,core queue fec cc mpath rate media secure relay sctp dccp sim session trace viz lab,--package braidcast-$(crate))

# What `make survey` draws. Constants are chosen on even seeds and judged on odd ones.
SETS ?= 60
SEED ?= 1

step = @printf '\n==> %s\n' '$(1)'; tools/steps.py begin '$(1)'

help:
	@echo "make demo    live video over two bad networks, each alone and both together, on this machine"
	@echo "make test    every check that CI makes: at most 30 minutes on two processors, from a fresh clone"
	@echo "make quick   formatting and the tests that need no network, no clock and no other program: at most 90 s once built"
	@echo "make count   instructions and system calls for a packet, beside benches/count/baseline.json; make count-update writes that anew"
	@echo "make more    what is long, in pieces of at most 20 minutes, each of which can be run alone:"
	@echo "             $(wordlist 1,6,$(MORE))"
	@echo "             $(wordlist 7,12,$(MORE))"
	@echo "             $(wordlist 13,20,$(MORE))"
	@echo "make call    a call beside TCP through the tunnel, by each send queue; keeps the recordings in target/call"
	@echo "make field   live video beside other tools over the same emulated links, and beside what foresight could do (FIELD=\"--scenarios S4 --clips c2\" for a part; tools/field/README.md)"
	@echo "make bench   speed and CPU beside other protocols, in one run"
	@echo "make lab     all experiments, beside published values and ns-2's; then the report lab-report.html"
	@echo "make lab-check  every claim on fewer and shorter runs, in ten minutes; fails where a verdict is another one than in crates/lab/verdicts.toml"
	@echo "make hooks   lets git check each commit's message, and the assertions that it loses (tools/hooks)"
	@echo "make survey  links drawn at random: where does one more hurt? Default options beside the other schedulers, on seed $(SEED) (SEED=N: even to"
	@echo "             choose constants, odd to judge them; SETS=N; SURVEY_FLAGS for more, such as --latency 1s); some 20 minutes of CPU"
	@echo "make lint    formatting, layers, words, facts, licences and clippy only"
	@echo "make formal  models of the handshake, of restarts and of ABORT, with attackers, through SPIN: some four minutes (docs/formal.md)"
	@echo "make msrv    compiles with the oldest Rust that Cargo.toml promises"
	@echo "make semver  what broke in the libraries' public items since the commit in tools/semver-baseline, by cargo-semver-checks (BASELINE=REVISION for another one)"
	@echo "make other-systems  compiles for macOS and Windows what does not need Linux"
	@echo "make miri    tests of core, of the codes and of records under Miri (nightly compiler)"
	@echo "make gst     the encoder's program for \`braidcast encode\`, beside braidcast in target/release; make encode tests it over emulated networks"
	@echo "make gst-plugin  GStreamer's elements braidcastsink and braidcastsrc, installed for this user; make plugin-test tests them"
	@echo "make c       the C library, its header and braidcast.pc in target/c; make c-test runs C programs against it"
	@echo "make python-test  the Python wheel in target/python/wheels, tested in a clean environment with its notebook and a sweep by Dask"
	@echo "make dist    a Debian package, a tarball and Python wheels in target/dist; make dist-test installs it in a clean Debian; make dist-gst and dist-gst-test the same of what needs GStreamer"
	@echo "make bindings  C programs and the Python package (bindings-test) and python-test, with clippy"
	@echo "make quick-starts  follows each quick start of the manual word by word in a clean Debian, over networks of this machine (after make dist)"
	@echo "make recipes  follows docs/recipes.md word by word: OBS, ffmpeg, GStreamer, VLC, SRT, RTMP, firewalls, over networks of this machine"
	@echo "make publish-check  packs every crate as for the registry, and sends nothing (VERIFY=1 compiles each from its package)"
	@echo "make book    the manual as HTML in target/book (mdBook)"
	@echo "make reference  writes the manual's generated page anew"
	@echo "make fuzz    $(FUZZ_TIME) s of fuzzing for each target (FUZZ_TIME=N for another time)"
	@echo "make soak    property tests of the protocols on new networks and messages for $(SOAK_TIME) s (SOAK_TIME=N),"
	@echo "             after $(MODEL_PROGRAMS) random programs of the library's users (MODEL_PROGRAMS=N)"
	@echo "make chaos   random faults over three networks, for a stream and for files: $(CHAOS_HOURS) simulated hours (CHAOS_HOURS=N),"
	@echo "             $(CHAOS_MINUTES) minutes with real processes (CHAOS_MINUTES=N), ten of them with eight senders at once;"
	@echo "             and $(CHAOS_PLACES) minutes in which routes, prefixes, names, sizes and ports change under two streams (CHAOS_PLACES=N)"

demo:
	@tools/setup.sh demo
	@tools/clip.sh target/demo/clip.mp4
	cargo run --locked --profile demo --quiet --package braidcast-cli -- demo

# One profile for all tests, `dev` at opt-level 1: fast enough for real-time streams, and every overflow and debug
# assertion checked. A tool that a test needs must be there: setup has installed it.
# What would make a second build quick takes half of the disk's space, and changes what `make count` counts.
test: export CARGO_INCREMENTAL = 0
test: export BRAIDCAST_REQUIRE_TOOLS = 1
test: export BRAIDCAST_PEERS = $(abspath $(or $(CARGO_TARGET_DIR),target))/peers.log
test:
	@tools/steps.py 1800 $(MAKE) --no-print-directory test-steps

test-steps:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory lint
	$(call step,building the tests)
	cargo test --locked --workspace --no-run --quiet
	@rm -f "$(BRAIDCAST_PEERS)"
	@tools/beside.sh '$(MAKE) --no-print-directory docs neon plugin-build bindings-build guest' '$(MAKE) --no-print-directory unit new-cases'
	@$(MAKE) --no-print-directory plugin-test bindings-test count
	@tools/peers.sh "$(BRAIDCAST_PEERS)"
	$(call step,all passed)

# The protocols over the simulator; parsers, codes, queues; what the command line takes, refuses and prints.
quick: export PROPTEST_RNG_SEED ?= 1
quick: export PROPTEST_CASES ?= 16
quick:
	@tools/steps.py 90 $(MAKE) --no-print-directory quick-steps

quick-steps: format check
	$(call step,quick tests)
	cargo test --locked --quiet $(QUICK) --lib
	cargo test --locked --quiet --package braidcast-cli --test it -- wrong_use:: config:: help:: docs::

lint: format check deny clippy

format:
	$(call step,formatting)
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path benches/peers/Cargo.toml --check
	cargo fmt --manifest-path gst/Cargo.toml --all --check
	cargo fmt --manifest-path bindings/Cargo.toml --all --check

check:
	$(call step,layers and file sizes)
	@tools/layers.sh
	@tools/circles.py crates/sctp/src/assoc && tools/circles.py crates/dccp/src/conn
	@tools/exhaustive.py
	$(call step,sentences of RFCs and the places that obey them)
	@tools/requirements.py
	$(call step,facts that documents repeat)
	@tools/facts.py
	@tools/semver.sh --check
	$(call step,messages of new commits and assertions that they lose)
	@tools/commits.py --self-test && tools/assertions.py --self-test
	@tools/commits.py && tools/assertions.py
	$(call step,words)
	@tools/prose.py
	$(call step,the harness of make field)
	@tools/field/test_field.py

# Licences and sources, by cargo-deny if it is installed. Advisories need a copy of RustSec's database, which
# no package registry has: tools/advisories.py says where it looks for one.
deny:
	$(call step,licences and sources)
	@if command -v cargo-deny >/dev/null; then cargo deny --all-features check licenses bans sources; else tools/deny.py; fi
	@tools/advisories.py

# The version is in one place. Tests are not promised: a peer that they meet needs a newer compiler.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	@tools/setup.sh systems
	$(call step,Rust $(MSRV))
	cargo +$(MSRV) check --locked --workspace --quiet

# Before a release: what breaks users must go with a higher minor version (before 1.0), and into the changelog.
semver:
	@tools/semver.sh $(BASELINE)

other-systems:
	@tools/setup.sh systems
	@tools/other-systems.sh

# Models of the protection, each claim in a run of its own. FORMAL has words of the runs that are
# wanted, or --trace N.
formal:
	@tools/setup.sh formal
	@formal/run.py $(FORMAL)

miri:
	@tools/setup.sh nightly
	$(call step,Miri)
	@tools/miri.sh

reference:
	cargo run --locked --quiet --package braidcast-cli -- generate reference >docs/reference.md

clippy:
	$(call step,clippy)
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

# Property tests try the same cases each time, so that a commit passes or does not; `make soak` tries others.
unit: export PROPTEST_RNG_SEED ?= 1
unit:
	$(call step,tests)
	set -o pipefail; cargo test --locked --workspace -- --skip linux_guest 2>&1 | tools/steps.py tests

# Linux's own SCTP and DCCP in a virtual machine, which mostly waits.
guest:
	$(call step,Linux as the peer)
	cargo test --locked --quiet --workspace --test linux_dccp --test linux_sctp --test linux_sctp_ecn

# The C library, as docs/start/c.md has it.
c:
	cargo build --locked --release --manifest-path bindings/Cargo.toml --package braidcast-c --target-dir $(or $(CARGO_TARGET_DIR),target)
	@tools/c-install.sh $(or $(CARGO_TARGET_DIR),target)/release $(or $(CARGO_TARGET_DIR),target)/c

# C programs against the library, under Valgrind too; its ABI beside the committed one; the C++ header.
c-test: BINDINGS := --package braidcast-c
c-test: bindings-test

# Both bindings at once, so that what they share is built once. The Python package is tested by the Python that is
# there, without pip.
BINDINGS := --workspace
CARGO_TEST_BINDINGS = cargo test --locked --quiet --manifest-path bindings/Cargo.toml --target-dir $(abspath $(or $(CARGO_TARGET_DIR),target)) $(BINDINGS)

bindings-build:
	$(call step,building the bindings for C and Python and their tests)
	$(CARGO_TEST_BINDINGS) --no-run

# They mostly wait.
bindings-test: export RUST_TEST_THREADS ?= 6
bindings-test:
	$(call step,C and Python)
	$(CARGO_TEST_BINDINGS)

# The wheel; some five minutes, and pip's packages.
python-test:
	@tools/python-test.sh

bindings: bindings-test python-test
	cargo check --locked --quiet --manifest-path benches/peers/Cargo.toml --examples --target-dir $(abspath $(or $(CARGO_TARGET_DIR),target))
	cargo clippy --locked --manifest-path bindings/Cargo.toml --workspace --all-targets --quiet --target-dir $(abspath $(or $(CARGO_TARGET_DIR),target)) -- -D warnings

# Cases that nobody tried before, of NEW_SEEDS seeds that the commit names: its tests pass each time, or
# fail each time. One that fails is printed with the line that repeats it.
NEW_SEEDS ?= 10
new-cases: export SOAK_PROFILE := test
new-cases: export SOAK_CASES := 40
new-cases: export SOAK_SEEDS = $(NEW_SEEDS)
# Of the whole workspace, so that no crate is built again with fewer features.
new-cases: export SOAK_TESTS := --workspace --test it -- properties:: options:: codes:: recovery::
new-cases:
	$(call step,new random cases of $(NEW_SEEDS) seeds)
	@tools/soak.sh 600 "$$(tools/commit-seed.sh)"

# Binaries, a Debian package and Python wheels for any Linux in target/dist. The wheels take some twenty minutes of
# processor time: tools/dist.sh alone leaves them out.
dist:
	@tools/setup.sh dist
	@tools/dist.sh
	@tools/wheels.sh

# A Debian package of what needs GStreamer.
dist-gst:
	@tools/setup.sh gst
	@tools/dist-gst.sh

# Both packages in a clean Debian with its GStreamer; needs root and debootstrap.
dist-gst-test:
	@tools/dist-gst-test.sh

# What the registry would refuse of any crate, without sending anything; verifying compiles each as
# it would be published.
publish-check:
	cargo publish --dry-run --locked --workspace $(if $(VERIFY),,--no-verify)

# The package in a clean Debian, and the wheels; needs root and debootstrap.
dist-test:
	@tools/dist-test.sh
	@tools/wheels.sh --check

# The manual's commands in a clean Debian without compilers; needs root and debootstrap, and the
# wheel of `make python-test`.
quick-starts:
	@tools/quick-starts.py

# The lines of docs/recipes.md with the programs that they name; needs root. What Debian does not have (srtla_send,
# mediamtx) is looked for in RECIPES_PEERS.
recipes:
	@tools/setup.sh recipes
	cargo build --locked --package braidcast-cli
	cargo build --locked --manifest-path gst/Cargo.toml --package braidcast-gst-plugin --target-dir $(or $(CARGO_TARGET_DIR),target)
	@tools/recipes.py --braidcast $(or $(CARGO_TARGET_DIR),target)/debug/braidcast --plugin $(or $(CARGO_TARGET_DIR),target)/debug/libgstbraidcast.so

# The manual as HTML in target/book; needs mdBook (cargo install mdbook). Its links are checked by the tests.
book:
	mdbook build docs

# With what features add to the crates of programs.
docs:
	$(call step,documentation)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet --all-features -p braidcast -p braidcast-socket -p braidcast-live -p braidcast-driver -p braidcast-secure

# Some four minutes.
call: export BRAIDCAST_REQUIRE_TOOLS = 1
call:
	@tools/setup.sh test
	@tools/setup.sh demo
	@tools/clip.sh target/demo/clip.mp4
	cargo test --locked --package braidcast-cli --test call -- --ignored --nocapture

# A workspace of its own, as it needs GStreamer's libraries.
gst:
	@tools/setup.sh gst
	cargo build --locked --release --manifest-path gst/Cargo.toml --target-dir target/gst
	@mkdir -p target/release && cp target/gst/release/braidcast-encode target/release/
	@echo 'target/release/braidcast-encode is there: `cargo build --release` puts braidcast beside it; else copy it beside braidcast'

# GStreamer's elements, for whoever calls it.
gst-plugin:
	@tools/setup.sh gst
	@tools/gst-plugin.sh install

# The elements over emulated links, and at the other end of the commands; half a minute. Where
# GStreamer lacks, a line says so.
plugin-build plugin-test:
	@tools/gst-plugin.sh $(@:plugin-%=%)

# x264 over emulated networks; a camera, a microphone and a display. Some three minutes.
encode:
	@tools/setup.sh encode
	cargo build --locked --package braidcast-cli
	cargo clippy --locked --manifest-path gst/Cargo.toml --workspace --all-targets --quiet --target-dir $(or $(CARGO_TARGET_DIR),target)/gst -- -D warnings
	BRAIDCAST=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/braidcast cargo test --locked --manifest-path gst/Cargo.toml --workspace --target-dir $(or $(CARGO_TARGET_DIR),target)/gst -- --nocapture

# An hour and a half on two cores; Ctrl-C ends it, and the next call goes on. FIELD has more flags of
# `tools/field/field.py run`.
FIELD ?=
field:
	@tools/setup.sh field
	@tools/clip.sh target/demo/clip.mp4
	cargo build --locked --release --quiet --package braidcast-cli
	cargo build --locked --release --quiet --package braidcast-gateway --example phone
	@tools/field/field.py run --braidcast $(or $(CARGO_TARGET_DIR),target)/release/braidcast --work $(or $(CARGO_TARGET_DIR),target)/field --input target/demo/clip.mp4 $(FIELD)

bench:
	@tools/setup.sh bench
	@benches/run.py

# Every experiment of the papers, and the page about them.
lab:
	@tools/setup.sh lab
	cargo run --locked --release --quiet --package braidcast-cli -- lab run all --runs 10
	cargo run --locked --release --quiet --package braidcast-cli -- lab report

# The verdicts that are expected; after a change that is meant, make lab-check-update, and say in the commit why.
lab-check:
	cargo run --locked --release --quiet --package braidcast-cli -- lab check

lab-check-update:
	cargo run --locked --release --quiet --package braidcast-cli -- lab check --update

# Hooks of git, for contributors.
hooks:
	git config core.hooksPath tools/hooks
	@echo 'each commit is checked now: its message, and whether a test loses an assertion'

# What a packet costs, counted: instructions by Valgrind, system calls by strace. No quiet machine is needed.
count:
	$(call step,what a packet costs)
	@tools/count.py

# After a change that is meant; the commit's body says why a packet is dearer.
count-update:
	@tools/count.py --update

more: $(MORE)

more-chaos:
	@tools/steps.py 1200 $(MAKE) --no-print-directory chaos CHAOS_HOURS=$(CHAOS_HOURS) CHAOS_MINUTES=7
more-call:
	@tools/steps.py 1200 $(MAKE) --no-print-directory call
more-lab:
	@tools/steps.py 1200 $(MAKE) --no-print-directory lab-check
# With 600 s it took 20:43 beside two builds.
more-soak: SOAK_TIME := 400
more-soak:
	@tools/steps.py 1200 $(MAKE) --no-print-directory soak SOAK_TIME=$(SOAK_TIME)
# SRT, SRTLA and RIST for 24 simulated hours of random faults. A seed of its own each day.
more-border:
	@tools/steps.py 1200 env BRAIDCAST_BORDER_HOURS=24 BRAIDCAST_SEED=$${BRAIDCAST_SEED:-$$(date +%j000)} cargo test --locked --quiet --package braidcast-gateway --test soak -- --nocapture
# Every pair of NATs, and what changes while a stream runs, into the tables of docs/start/relay.md by hand. And a relay
# that looks at its clock by itself.
more-nats:
	@tools/steps.py 1200 cargo test --locked --package braidcast-cli --test it -- nats:: nats_change:: relays:: --ignored --nocapture --test-threads 1
# What others speak, by programs of others, into the table of docs/features.md (tools/neighbours.py write).
more-neighbours:
	cargo build --locked --quiet --package braidcast-cli
	@tools/steps.py 1200 tools/neighbours.py run
	tools/neighbours.py write
more-fuzz:
	@tools/steps.py 1200 $(MAKE) --no-print-directory fuzz FUZZ_TIME=25
more-encode:
	@tools/steps.py 1200 $(MAKE) --no-print-directory encode
more-inputs:
	@tools/steps.py 1200 env BRAIDCAST_ALL_INPUTS=1 cargo test --locked -p braidcast-cli --test it inputs::
more-recipes:
	@tools/steps.py 1200 $(MAKE) --no-print-directory recipes
more-bindings:
	@tools/steps.py 1200 $(MAKE) --no-print-directory bindings
more-systems:
	@tools/steps.py 1200 $(MAKE) --no-print-directory msrv other-systems
# The sanitizers over what has real sockets, threads and C: driver, socket, and the C library.
more-asan:
	@tools/setup.sh nightly
	@tools/steps.py 1200 tools/sanitize.sh address
more-asan-c:
	@tools/setup.sh nightly
	@tools/steps.py 1200 tools/sanitize.sh c
more-tsan:
	@tools/setup.sh nightly
	@tools/steps.py 1200 tools/sanitize.sh thread
more-miri:
	@tools/steps.py 1200 $(MAKE) --no-print-directory miri
more-formal:
	@tools/steps.py 1200 $(MAKE) --no-print-directory formal
# A keyed stream and a keyed flow of datagrams for ten minutes of simulation under all attacks at once.
more-siege:
	@SIEGE_SECONDS=600 tools/steps.py 1200 cargo test --locked --release --quiet -p braidcast-session -p braidcast-dccp --test it siege -- --nocapture
# Loads that the first link carries, and loads for which all links are needed; two links and three.
# No scheduler here has the rule of a peer: SRTLA and others are measured as programs (make field).
survey: BESIDE := $(foreach name,ecf daps by-rate lowest-delay redundant,--beside scheduler=$(name))
survey:
	@tools/setup.sh lab
	cargo build --locked --release --quiet --package braidcast-cli
	@for draw in '2 --load 0.45,1' '3 --load 0.45,1' '2 --load 1,2.2' '3 --load 1.1,2.5'; do \
	  $(or $(CARGO_TARGET_DIR),target)/release/braidcast lab survey --links $$draw --sets $(SETS) --seed $(SEED) --runs 2 --show 5 $(BESIDE) \
	    $(SURVEY_FLAGS) || exit; echo; done

# NEON, where a cross linker and an emulator are installed; else a line says what lacks.
neon:
	$(call step,kernels for 64-bit ARM)
	@tools/neon.sh

fuzz:
	@tools/setup.sh fuzz
	@tools/fuzz.sh $(FUZZ_TIME)

soak:
	@tools/setup.sh soak
	$(call step,$(MODEL_PROGRAMS) random programs of the library's users)
	PROPTEST_CASES=$(MODEL_PROGRAMS) BRAIDCAST_SEED=$${BRAIDCAST_SEED:-$$(date +%s)} cargo test --locked --quiet --profile soak --package braidcast-socket --lib model
	@tools/soak.sh $(SOAK_TIME)

chaos: export BRAIDCAST_SEED ?= 1
chaos: export CHAOS_HOURS := $(CHAOS_HOURS)
chaos: export CHAOS_MINUTES := $(CHAOS_MINUTES)
chaos: export CHAOS_PLACES := $(CHAOS_PLACES)
chaos:
	@tools/setup.sh soak
	cargo test --locked --quiet --package braidcast-cli --test chaos -- --include-ignored --nocapture --test-threads 1
	cargo test --locked --quiet --package braidcast-session --test it chaos:: -- --nocapture
