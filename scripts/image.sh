#!/bin/bash
# Makes a container image of the daemon, from Debian packages alone: the C library and Symbiont's.
#   scripts/image.sh [PACKAGE]    PACKAGE: what scripts/deb.sh made; without one, BINARY and packaging/ are taken
# Leaves it in the storage of buildah and podman as localhost/symbiont:VERSION, and in target/image as a file for
# `ctr -n k8s.io images import` and `podman load`. Prints its size, and the file's path, last. Takes root, buildah and
# mmdebstrap. Of the environment: BINARY, the program [target/release/symbiont]; SUITE, Debian's release [that of this
# machine, else trixie]: the program must have been built there or on an older one; DEBIAN_MIRROR; SOURCE_DATE_EPOCH,
# the date of all files [that of the last commit].
set -euo pipefail
cd "$(dirname "$0")/.."
package=${1:-}
binary=${BINARY:-target/release/symbiont}
[ "$(id -u)" = 0 ] || { echo "image: needs root, for the owners of files" >&2; exit 2; }
for tool in buildah mmdebstrap dpkg-deb strip; do
    command -v "$tool" >/dev/null || { echo "image: apt-get install buildah mmdebstrap binutils" >&2; exit 2; }
done
for file in ${package:+"$package"}; do
    [ -f "$file" ] || { echo "image: there is no $file" >&2; exit 2; }
done
[ -n "$package" ] || [ -x "$binary" ] || {
    echo "image: there is no $binary: run 'make build' first, or give BINARY=" >&2
    exit 2
}
. /etc/os-release
[ "${ID:-}" = debian ] || VERSION_CODENAME=trixie
suite=${SUITE:-$VERSION_CODENAME}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}"

context=target/image
root=$context/root
name=localhost/symbiont:$version
archive=$context/symbiont-$version.tar
rm -rf "$context"
mkdir -p "$root" "$context/own"

# Symbiont's own files.
own=$context/own
if [ -n "$package" ]; then
    [ "$(dpkg-deb -f "$package" Version | sed 's/-[^-]*$//')" = "$version" ] || {
        echo "image: $package is not of version $version" >&2
        exit 2
    }
    dpkg-deb -x "$package" "$own"
else
    install -D -m 755 "$binary" "$own/usr/bin/symbiont"
    install -D -m 644 packaging/debian/copyright "$own/usr/share/doc/symbiont/copyright"
    install -D -m 644 packaging/symbiontd.toml "$own/etc/symbiont/symbiontd.toml"
fi

# Packages unpacked and not configured, of which the libraries are taken that the program names, and licences.
mmdebstrap --quiet --variant=extract --include=base-files,libc6,libgcc-s1 "$suite" "$context/debian" "$mirror"
strip --strip-unneeded -o "$context/symbiont" "$own/usr/bin/symbiont"
debian=$context/debian
install -D -m 755 "$context/symbiont" "$debian/usr/bin/symbiont"
{
    echo /usr/bin/symbiont
    # The path of each library, the loader's included.
    chroot "$debian" "$(cd "$debian" && echo /lib*/ld-linux-*.so.*)" --list /usr/bin/symbiont |
        sed -n 's,^[^/]*\(/[^ ]*\).*,\1,p'
} | sort -u >"$context/files"
while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$debian$file" "$root$file"
done <"$context/files"
for library in libc6 libgcc-s1; do
    [ -e "$debian/usr/share/doc/$library/copyright" ] || continue
    mkdir -p "$root/usr/share/doc/$library"
    cp -L "$debian/usr/share/doc/$library/copyright" "$root/usr/share/doc/$library/copyright"
done
install -D -m 644 "$own/usr/share/doc/symbiont/copyright" "$root/usr/share/doc/symbiont/copyright"
install -D -m 644 "$own/etc/symbiont/symbiontd.toml" "$root/etc/symbiont/symbiontd.toml"
# Where the DaemonSet mounts: the image's own files are read-only.
mkdir -p "$root"/{proc,sys,dev,tmp,run/symbiont,var/lib/symbiont,etc/symbiont/rules.d,host}
chmod 1777 "$root/tmp"
chroot "$root" /usr/bin/symbiont --version

buildah build --quiet --format oci --layers=false --timestamp "$SOURCE_DATE_EPOCH" --build-arg "VERSION=$version" \
    --build-arg "REVISION=$revision" --file packaging/Containerfile --tag "$name" "$context" >"$context/id"
buildah push --quiet "$name" "oci-archive:$archive:$name"
rm -rf "$own" "$debian" "$context/symbiont"
echo "image: $name, $(du -sm --apparent-size "$root" | cut -f1) MB of files," \
    "$(du -m --apparent-size "$archive" | cut -f1) MB packed"
echo "$archive"
