#!/bin/sh
# Builds QEMU's user-mode emulator for x86-64 programs with plugins, which `symbiont profile` needs, where the
# distribution's is static and has none (Debian 13, Ubuntu 24.04 and later):
#   scripts/build-emulator.sh FOLDER    puts qemu-x86_64 into FOLDER, which must then come first in PATH
# The source is that of the distribution. It takes gcc, libglib2.0-dev, meson, ninja-build, pkg-config, python3-venv, python3-pycotap.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/fetch-source.sh qemu "$work/source"
# Parts that Debian's source leaves out, and that are neither built nor installed here.
sed -i '/^subdir(/d; s/^if get_option(.install_blobs.)/if false/' "$work/source/pc-bios/meson.build"
mkdir "$work/build"
cd "$work/build"
"$work/source/configure" --target-list=x86_64-linux-user --without-default-features --enable-linux-user \
    --enable-plugins --disable-docs --disable-tools --disable-install-blobs --disable-download >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; exit 1; }
ninja qemu-x86_64
cp qemu-x86_64 "$folder/"
"$folder/qemu-x86_64" --version
