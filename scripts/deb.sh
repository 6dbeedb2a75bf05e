#!/bin/sh
# Makes a Debian package of what 'make build' made: all that scripts/install.sh installs, packed by cargo-deb; and
# one of the scheduler in the kernel, where 'make scx' made it.
#   scripts/deb.sh [FOLDER]    FOLDER: where the packages go [target/debian]
# Prints their paths, last. Of the environment: DEBFULLNAME and DEBEMAIL, the package's maintainer as for
# Debian's own tools; BINARY as for scripts/install.sh; SCX=none, no package of the
# scheduler in the kernel; SOURCE_DATE_EPOCH, the date of the package.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-target/debian}
# Named in crates/cli/Cargo.toml.
root=target/deb/root
doc=$root/usr/share/doc/symbiont

cargo_deb=$(scripts/tool.sh cargo-deb)
rm -rf target/deb
# The scheduler in the kernel needs libraries that nothing else does: it has a package of its own.
DESTDIR=$root PREFIX=/usr SYSCONFDIR=/etc SCX=none scripts/install.sh install

# As Debian's policy wants it: no debugging information; licences in the file copyright, which cargo-deb adds;
# changelogs by their usual names.
strip --strip-unneeded "$root"/usr/bin/* "$root"/usr/lib/symbiont/*.so
rm "$doc/LICENSE-APACHE" "$doc/LICENSE-MIT"
mv "$doc/CHANGELOG.md" "$doc/changelog"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"$/\1/p' crates/cli/Cargo.toml)
[ -z "${DEBEMAIL:-}" ] || maintainer="${DEBFULLNAME:-${maintainer%% <*}} <$DEBEMAIL>"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}"
# Items on lines of their own, folded anew, as Debian's changelogs are narrower.
entries() {
    scripts/changelog.sh "$version" | awk '
        /^  / && item { sub(/^ +/, ""); item = item " " $0; next }
        { flush(); item = "" }
        /^### / { printf "\n  [ %s ]\n", $2 }
        /^- / { item = substr($0, 3) }
        END { flush() }
        function flush(  line, word, words, count, i) {
            if (!item) return
            count = split(item, words, " ")
            line = "  *"
            for (i = 1; i <= count; i++) {
                if (length(line " " words[i]) > 78) { print line; line = "   " }
                line = line " " words[i]
            }
            print line
        }'
}
{
    echo "symbiont ($version-1) unstable; urgency=medium"
    entries
    echo
    echo " -- $maintainer  $(LC_ALL=C date -R -u -d "@$SOURCE_DATE_EPOCH")"
} >target/deb/changelog

mkdir -p "$folder"
# Quiet, as it would warn of assets that it does not build itself.
"$cargo_deb" deb --quiet --package symbiont-cli --no-build --compress-system --locked --offline \
    --maintainer "$maintainer" --output "$(realpath "$folder")/"
if [ -e "${SCX:-scx/target/release/symbiont-scx}" ]; then
    "$cargo_deb" deb --quiet --manifest-path scx/Cargo.toml --no-build --compress-system --locked --offline \
        --maintainer "$maintainer" --output "$(realpath "$folder")/"
fi
