# Two commands do everything on a fresh Debian or Ubuntu machine:
#   make run    installs what is missing, builds, runs the main job, says where the report is
#   make test   installs what is missing, checks style, lints, documentation, runs all tests
CARGO ?= scripts/cargo.sh

.NOTPARALLEL:
.PHONY: run test build lint oracles bench setup setup-test man clean

run: setup
	$(CARGO) build --release --locked
	scripts/main-job.sh

test: setup-test lint oracles
	$(CARGO) test --workspace --all-features --locked --no-fail-fast

build: setup
	$(CARGO) build --release --locked

lint:
	scripts/lint.sh

# Tables that the event catalogues are checked against; once, about 150 MB.
oracles:
	scripts/fetch-oracles.sh

# The whole campaign of serial phases (30 to 45 minutes on a quiet machine).
bench: build
	target/release/symbiont bench phases

man: build
	target/release/symbiont generate man target/man
	target/release/symbiont generate completions target/completions

setup:
	scripts/setup.sh build

setup-test:
	scripts/setup.sh test

clean:
	$(CARGO) clean
	rm -rf report
