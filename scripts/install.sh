#!/bin/sh
# Installs Symbiont where Debian expects each file, or removes it again.
#   scripts/install.sh install|uninstall
# Of the environment:
#   BINARY      the program, built with all features     [target/release/symbiont]
#   DESTDIR     root of the tree to install into         [none: this machine]
#   PREFIX      where programs go                        [/usr/local]
#   SYSCONFDIR  where configuration goes                 [/etc]
# An existing configuration is kept; uninstall removes it unless it was changed.
set -eu
cd "$(dirname "$0")/.."
binary=${BINARY:-target/release/symbiont}
dest=${DESTDIR:-}
prefix=${PREFIX:-/usr/local}
share=$dest$prefix/share
units=$dest$prefix/lib/systemd/system
config=$dest${SYSCONFDIR:-/etc}/symbiont/symbiontd.toml

uninstall() {
    rm -f "$dest$prefix/bin/symbiont" "$dest$prefix/sbin/symbiontd" "$units/symbiontd.service" \
        "$share/bash-completion/completions/symbiont" \
        "$share/zsh/vendor-completions/_symbiont" \
        "$share/fish/vendor_completions.d/symbiont.fish" \
        "$share"/man/man1/symbiont.1 "$share"/man/man1/symbiont-*.1 "$share/man/man1/symbiontd.1"
    rm -rf "$share/doc/symbiont" "$share/symbiont"
    if cmp -s packaging/symbiontd.toml "$config"; then
        rm -f "$config"
        rmdir --ignore-fail-on-non-empty "$(dirname "$config")"
    elif [ -e "$config" ]; then
        echo "install: $config was changed and stays"
    fi
}

install_all() {
    if [ ! -x "$binary" ]; then
        echo "install: there is no $binary: run 'make build' first, or give BINARY=" >&2
        exit 1
    fi
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    "$binary" generate man "$made/man"
    "$binary" generate completions "$made/completions"
    # The unit names the program where it is installed.
    sed "s,/usr/bin/symbiont,$prefix/bin/symbiont," packaging/symbiontd.service >"$made/unit"

    install -D -m 755 "$binary" "$dest$prefix/bin/symbiont"
    mkdir -p "$dest$prefix/sbin"
    ln -sf ../bin/symbiont "$dest$prefix/sbin/symbiontd"
    put "$made/unit" "$units/symbiontd.service"
    [ -e "$config" ] || put packaging/symbiontd.toml "$config"
    for page in "$made"/man/*.1; do
        put "$page" "$share/man/man1/${page##*/}"
    done
    ln -sf symbiont-daemon.1 "$share/man/man1/symbiontd.1"
    put "$made/completions/symbiont.bash" "$share/bash-completion/completions/symbiont"
    put "$made/completions/_symbiont" "$share/zsh/vendor-completions/_symbiont"
    put "$made/completions/symbiont.fish" "$share/fish/vendor_completions.d/symbiont.fish"
    for file in README.md LICENSE-APACHE LICENSE-MIT; do
        put "$file" "$share/doc/symbiont/$file"
    done
    put packaging/rules-example.toml "$share/doc/symbiont/rules-example.toml"
    put packaging/grafana-dashboard.json "$share/symbiont/grafana-dashboard.json"
}

put() { # put FILE WHERE
    install -D -m 644 "$1" "$2"
}

case ${1:-} in
install) install_all ;;
uninstall) uninstall ;;
*)
    sed -n '2,9s/^# //p' "$0" >&2
    exit 2
    ;;
esac
