# Two commands do everything on a fresh Debian or Ubuntu machine:
#   make run    installs what is missing, builds what the main job needs, runs it, says what came out
#   make test   installs what is missing, checks style, lints, documentation, runs all tests
#   make lab    boots all guests of the lab; make test boots one
#   make figures  makes docs/results.md, the table of published results, and its pictures anew
#   make install, make uninstall   puts what 'make build' made where Debian expects it
#   make deb    makes a Debian package of the same files; make check-deb tries it in a Debian of its own
#   make check-slurm-deb   the same of the package that has Slurm's plugin; SUITE=bookworm, trixie
#   make docs   makes the documentation's site; make deny checks the dependencies' licences
#   make release VERSION=X.Y.Z   makes a release, and publishes nothing
#   make scx    builds symbiont-scx, the scheduler in the kernel (--actuator sched-ext); make check-scx
#               tries it in a guest of the lab
#   make fuzz   looks for inputs that a reader cannot bear; make test does so for some seconds
CARGO ?= scripts/cargo.sh

# Property tests draw the same cases at each run, so that a change alone can turn a
# test red. To look for new cases: make test PROPTEST_RNG_SEED=$$RANDOM
PROPTEST_RNG_SEED ?= 1
export PROPTEST_RNG_SEED

.NOTPARALLEL:
.PHONY: scx check-scx setup-scx run test fuzz lab build lint oracles guests bench os-baseline setup setup-test figures man install uninstall docs deny release deb check-deb check-slurm-deb clean

run:
	@CARGO="$(CARGO)" scripts/main-job.sh

test: setup-test guests
	scripts/test.sh

# Coverage-guided fuzzing of all targets, for so long together.
TIME ?= 20m
fuzz: setup-test
	scripts/fuzz.sh $(TIME)

build: setup
	$(CARGO) build --release --locked

lint:
	scripts/lint.sh

# Of its own: it takes clang and libbpf, without which all the rest is built.
scx: setup-scx
	$(CARGO) build --release --locked --manifest-path scx/Cargo.toml

check-scx: scx setup-test guests
	scripts/check-scx.sh

setup-scx:
	@scripts/setup.sh scx

# Symbiont on emulated machines: all guests and all scenarios. Fetches about 400 MB, once.
lab: setup-test
	scripts/lab.sh

# QEMU and a kernel for the guest of make test; once, about 70 MB.
guests:
	scripts/fetch-lab.sh x86_64

# Tables that the event catalogues are checked against; once, about 150 MB.
oracles:
	scripts/fetch-oracles.sh

# Records how Linux places spinning threads, and writes the report of the simulated
# machine's scheduler beside it (crates/sim/sim-fast/baseline).
os-baseline: setup-test
	scripts/os-baseline.sh

# Serial phases first, measured on this machine (nine minutes on a quiet one).
bench: build
	target/release/symbiont bench phases

# The table of published results next to ours in docs/results.md and its pictures, from its figures made anew
# (an hour).
figures: build
	target/release/symbiont reproduce `scripts/figures.py --ids` --output target/reproduce
	scripts/figures.py target/reproduce

man: build
	target/release/symbiont generate man target/man
	target/release/symbiont generate completions target/completions

# Of what 'make build' made: DESTDIR=, PREFIX=/usr/local, SYSCONFDIR=/etc, BINARY=target/release/symbiont;
# scripts/install.sh names the others.
export DESTDIR PREFIX SYSCONFDIR BINARY SYNTH PLUGIN
install uninstall:
	scripts/install.sh $@

# The documentation's site, in target/book.
docs: build
	scripts/docs.sh

# Licences, duplicates and sources of all dependencies, as deny.toml allows them; without the database of
# advisories, which the hosted workflow fetches.
deny:
	"$$(scripts/tool.sh cargo-deny)" --offline --locked --all-features check licenses bans sources

# A release, made but not published: make release VERSION=X.Y.Z.
release:
	scripts/release.sh $(VERSION)

# In target/debian. check-deb takes root and fetches about 150 MB, once.
deb: build
	scripts/setup.sh deb
	scripts/deb.sh

check-deb: deb
	scripts/setup.sh check-deb
	scripts/check-deb.sh

SUITE ?= bookworm
check-slurm-deb:
	scripts/setup.sh check-deb
	scripts/check-slurm-deb.sh $(SUITE)

setup:
	scripts/setup.sh build

setup-test:
	scripts/setup.sh test

clean:
	$(CARGO) clean
	rm -rf report
