#!/bin/sh
# Installs Symbiont where Debian expects each file, or removes it again.
#   scripts/install.sh install|uninstall
# Of the environment:
#   BINARY      the program, built with all features     [target/release/symbiont]
#   SYNTH       the synthetic benchmark                  [symbiont-synth in BINARY's folder]
#   PLUGIN      the emulator's plugin, for profiles      [libsymbiont_profile_plugin.so there]
#   SCX         the scheduler in the kernel, installed where it was built (make scx)
#                                                        [scx/target/release/symbiont-scx]
#   DESTDIR     root of the tree to install into         [none: this machine]
#   PREFIX      where programs go                        [/usr/local]
#   SYSCONFDIR  where configuration goes                 [/etc]
# Configuration that exists is kept; uninstall removes it unless it was changed.
set -eu
cd "$(dirname "$0")/.."
binary=${BINARY:-target/release/symbiont}
synth=${SYNTH:-$(dirname "$binary")/symbiont-synth}
plugin=${PLUGIN:-$(dirname "$binary")/libsymbiont_profile_plugin.so}
scx=${SCX:-scx/target/release/symbiont-scx}
dest=${DESTDIR:-}
prefix=${PREFIX:-/usr/local}
share=$dest$prefix/share
# Where the program looks for its plugin.
library=$dest$prefix/lib/symbiont/libsymbiont_profile_plugin.so
units=$dest$prefix/lib/systemd/system
config=$dest${SYSCONFDIR:-/etc}/symbiont

# Configuration: the file in packaging/, and its path in $config.
configuration() {
    "$1" packaging/symbiontd.toml "$config/symbiontd.toml"
    "$1" packaging/rules-example.toml "$config/rules.d/10-example.toml"
}

uninstall() {
    rm -f "$dest$prefix/bin/symbiont" "$dest$prefix/bin/symbiont-synth" "$dest$prefix/bin/symbiont-scx" \
        "$dest$prefix/sbin/symbiontd" "$units/symbiontd.service" \
        "$share/bash-completion/completions/symbiont" \
        "$share/zsh/vendor-completions/_symbiont" \
        "$share/fish/vendor_completions.d/symbiont.fish" \
        "$share"/man/man1/symbiont.1 "$share"/man/man1/symbiont-*.1 "$share/man/man1/symbiontd.1"
    rm -rf "$share/doc/symbiont" "$share/symbiont"
    rm -f "$units/symbiontd.service.d/symbiont-scx.conf"
    [ ! -d "$units/symbiontd.service.d" ] || rmdir --ignore-fail-on-non-empty "$units/symbiontd.service.d"
    rm -f "$library"
    configuration remove_unchanged
    for folder in "$(dirname "$library")" "$config/rules.d" "$config"; do
        [ ! -d "$folder" ] || rmdir --ignore-fail-on-non-empty "$folder"
    done
}

remove_unchanged() { # remove_unchanged FILE WHERE
    if cmp -s "$1" "$2"; then
        rm -f "$2"
    elif [ -e "$2" ]; then
        echo "install: $2 was changed and stays"
    fi
}

need() { # need FILE VARIABLE
    if [ ! -e "$1" ]; then
        echo "install: there is no $1: run 'make build' first, or give $2=" >&2
        exit 1
    fi
}

install_all() {
    need "$binary" BINARY
    need "$synth" SYNTH
    need "$plugin" PLUGIN
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    "$binary" generate man "$made/man"
    "$binary" generate completions "$made/completions"
    # The unit names the program where it is installed.
    sed "s,/usr/bin/symbiont,$prefix/bin/symbiont," packaging/symbiontd.service >"$made/unit"

    install -D -m 755 "$binary" "$dest$prefix/bin/symbiont"
    install -D -m 755 "$synth" "$dest$prefix/bin/symbiont-synth"
    if [ -e "$scx" ]; then
        install -D -m 755 "$scx" "$dest$prefix/bin/symbiont-scx"
        put scx/packaging/symbiontd.conf "$units/symbiontd.service.d/symbiont-scx.conf"
        put scx/packaging/symbiont-scx.1 "$share/man/man1/symbiont-scx.1"
    fi
    put "$plugin" "$library"
    mkdir -p "$dest$prefix/sbin"
    ln -sf ../bin/symbiont "$dest$prefix/sbin/symbiontd"
    put "$made/unit" "$units/symbiontd.service"
    configuration put_unless_there
    for page in "$made"/man/*.1; do
        put "$page" "$share/man/man1/${page##*/}"
    done
    echo '.so man1/symbiont-daemon.1' >"$made/link"
    put "$made/link" "$share/man/man1/symbiontd.1"
    put "$made/completions/symbiont.bash" "$share/bash-completion/completions/symbiont"
    put "$made/completions/_symbiont" "$share/zsh/vendor-completions/_symbiont"
    put "$made/completions/symbiont.fish" "$share/fish/vendor_completions.d/symbiont.fish"
    for file in README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT; do
        put "$file" "$share/doc/symbiont/$file"
    done
    put packaging/grafana-dashboard.json "$share/symbiont/grafana-dashboard.json"
    # The plugin is built for the Slurm that is there: docs/queues.md.
    for file in symbiont_spank.c Makefile job_submit.lua symbiont-slurm.service; do
        put "slurm/$file" "$share/symbiont/slurm/$file"
    done
    install -D -m 755 slurm/deb.sh "$share/symbiont/slurm/deb.sh"
    put packaging/debian/copyright "$share/symbiont/slurm/copyright"
    for profile in profiles/*.profile; do
        put "$profile" "$share/symbiont/$profile"
    done
}

put_unless_there() { # put_unless_there FILE WHERE
    [ -e "$2" ] || put "$1" "$2"
}

put() { # put FILE WHERE
    install -D -m 644 "$1" "$2"
}

case ${1:-} in
install) install_all ;;
uninstall) uninstall ;;
*)
    sed -n '2,/^set/s/^# //p' "$0" >&2
    exit 2
    ;;
esac
