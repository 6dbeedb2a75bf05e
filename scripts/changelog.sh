#!/bin/sh
# Prints what CHANGELOG.md says of a version: of its section, or where there is none of what is not released yet.
#   scripts/changelog.sh VERSION
# Ends with 1 if there is neither.
set -eu
cd "$(dirname "$0")/.."
[ $# = 1 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }

# Lines below "## NAME" or "## NAME - DATE", without blank ones at the ends.
section() {
    awk -v name="$1" '
        /^## / { inside = ($2 == name); next }
        inside && ($0 != "" || started) { started = 1; held = held $0 "\n"; if ($0 != "") { printf "%s", held; held = "" } }
    ' CHANGELOG.md
}

text=$(section "$1")
[ -n "$text" ] || text=$(section Unreleased)
[ -n "$text" ] || { echo "changelog: CHANGELOG.md has no section '## $1' and none of what is unreleased" >&2; exit 1; }
printf '%s\n' "$text"
