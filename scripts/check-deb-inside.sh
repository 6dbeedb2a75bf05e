#!/bin/sh
# What scripts/check-deb.sh does inside of its Debian.
set -eu
export DEBIAN_FRONTEND=noninteractive
cd /tmp

check() { # check WHAT COMMAND...
    what=$1
    shift
    if ! "$@" >log 2>&1; then
        echo "check-deb: FAILED: $what: $*" >&2
        sed 's/^/  | /' log >&2
        exit 1
    fi
    echo "check-deb: $what"
}
prints() { # prints PATTERN COMMAND...: it succeeds, and a line of what it prints matches
    pattern=$1
    shift
    "$@" >said 2>&1 && grep -q -e "$pattern" said || { cat said; false; }
}
left() { find / -xdev ! -path '/tmp/*' ! -path '/var/log/*' ! -path '/var/lib/dpkg/*' ! -path '/var/cache/*' | sort; }
manual() { man --pager=cat "$1"; }
completes() {
    bash -c '. /usr/share/bash-completion/completions/symbiont
        COMP_WORDS=(symbiont att) COMP_CWORD=1; _symbiont symbiont att symbiont; echo "${COMPREPLY[@]}"'
}
nothing_new() { left | diff before -; }
same_files() { dpkg -L symbiont | while read -r path; do [ -d "$path" ] || echo "$path"; done | LC_ALL=C sort | diff installed -; }
gone() { [ ! -e "$1" ]; }
there() { [ -e "$1" ]; }

version=$(dpkg-deb -f symbiont.deb Version | sed 's/-[^-]*$//')
left >before

check "installed" dpkg -i symbiont.deb
check "has the files that make install puts" same_files
check "symbiont --version" prints "^symbiont $version\$" symbiont --version
check "symbiont doctor" prints '^' symbiont doctor
check "symbiont run -- true" symbiont run -- true
check "symbiont run gives the exit status" sh -c 'symbiont run -- sh -c "exit 7"; [ $? = 7 ]'
check "symbiontd is the daemon" prints 'symbiont daemon' symbiontd --help
check "the installed configuration is accepted" prints 'listening at' \
    timeout --preserve-status --signal TERM 3 symbiontd
check "the plugin is found: symbiont profile" symbiont profile -o true.profile -- true
check "the profiles are found: symbiont workloads" prints '^gzip' symbiont workloads
check "symbiont-synth" symbiont-synth --help
for page in symbiont symbiont-run symbiontd; do
    check "man $page" prints 'Symbiont Manual' manual "$page"
done
check "bash completes" prints '^attach$' completes

check "installed over itself" dpkg -i symbiont.deb
check "removed" dpkg -r symbiont
check "the configuration stays" there /etc/symbiont/symbiontd.toml
check "the program is gone" gone /usr/bin/symbiont
check "purged" dpkg -P symbiont
check "no configuration is left" gone /etc/symbiont
check "nothing is left" nothing_new

check "installed again" dpkg -i symbiont.deb
echo 'policy = "stay"' >/etc/symbiont/symbiontd.toml
echo >/etc/symbiont/rules.d/50-mine.toml
check "installed over a changed configuration" dpkg -i --force-confold symbiont.deb
check "the change is kept" grep -q stay /etc/symbiont/symbiontd.toml
check "purged" dpkg -P symbiont
check "files of the administrator are left" there /etc/symbiont/rules.d/50-mine.toml
rm -r /etc/symbiont
check "nothing else is left" nothing_new
