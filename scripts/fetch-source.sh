#!/bin/sh
# Fetches the pristine source of a Debian or Ubuntu package and unpacks it:
#   scripts/fetch-source.sh PACKAGE FOLDER
# The machine's own package sources stay as they are: source entries are derived
# from them in a temporary folder.
set -eu
package=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
if [ -n "$(ls -A "$folder")" ]; then
    exit 0 # fetched before
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >> "$work/parts/source.list"
done
for list in /etc/apt/sources.list.d/*.sources; do
    [ -f "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/parts/$(basename "$list")"
done

apt="apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$work/parts
     -o Dir::State::Lists=$work/lists -o Dir::Cache=$work/cache"
cd "$work"
chmod 755 "$work"
$apt update > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
$apt source --download-only "$package" >> "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
tar -xf "$work/$package"_*.orig.tar.* -C "$folder" --strip-components=1
