#!/bin/bash
# Makes a release: sets the version, checks everything, commits, tags, and builds what is published.
#   scripts/release.sh [--dry-run] X.Y.Z
# CHANGELOG.md must have the section "## X.Y.Z - YEAR-MONTH-DAY" already: 'Unreleased', renamed and committed.
# Nothing is committed before all checks have passed and the package is built; a failure restores the tree.
# Nothing is pushed. The results are in target/release-X.Y.Z: source tarball, Debian package, SHA256SUMS.
# --dry-run checks what can be checked without changing a file, and prints the steps.
# Of the environment: CHECK, the command that checks everything ['make test'].
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "release: $*" >&2; exit 1; }
usage() { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }

dry=
[ "${1:-}" != --dry-run ] || { dry=1; shift; }
[ $# = 1 ] || usage
version=$1
[[ $version =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] ||
    fail "'$version' is no version: three numbers are expected, as in 0.2.0"
check=${CHECK:-make test}
tag=v$version
out=target/release-$version
kustomization=packaging/kubernetes/base/kustomization.yaml
versioned=(Cargo.toml Cargo.lock fuzz/Cargo.lock scx/Cargo.toml scx/Cargo.lock "$kustomization")

# What would make the release wrong.
branch=$(git symbolic-ref --quiet --short HEAD) ||
    fail "HEAD is on no branch: the release's commit would be lost"
[ -z "$(git status --porcelain)" ] || { git status --short >&2; fail "there are changes that are not committed"; }
! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null || fail "the tag $tag exists already"
now=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$(printf '%s\n' "$now" "$version" | sort -V | tail -n1)" = "$version" ] ||
    fail "$version is older than $now, the version in Cargo.toml"
grep -qE "^## ${version//./\\.} - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
    fail "CHANGELOG.md has no line '## $version - $(date +%F)': rename its section 'Unreleased' and commit"
changes=$(scripts/changelog.sh "$version")
! grep -q '^## Unreleased' CHANGELOG.md ||
    fail "CHANGELOG.md has a section 'Unreleased' still: what it lists is released as well, so move it to $version"

step() { # step WHAT COMMAND...
    echo "release: $1"
    [ -z "$dry" ] || return 0
    shift
    "$@"
}
set_version() {
    sed -i "s/^version = \".*\"\$/version = \"$version\"/" Cargo.toml scx/Cargo.toml
    sed -i "s/^\( *newTag: \).*/\1$version/" "$kustomization"
    scripts/cargo.sh update --workspace --quiet
    scripts/cargo.sh update --workspace --quiet --manifest-path fuzz/Cargo.toml
    scripts/cargo.sh update --workspace --quiet --manifest-path scx/Cargo.toml
}
package() {
    rm -rf "$out"
    scripts/setup.sh deb
    scripts/cargo.sh build --release --locked
    # What may lie in scx/target is of another version.
    SCX=none scripts/deb.sh "$out"
}
commit() {
    git add "${versioned[@]}"
    # Where the version was set already there is nothing to commit.
    git diff --cached --quiet || git commit --quiet -m "Release $version"
    git tag --annotate --cleanup=verbatim -m "Symbiont $version" -m "$changes" "$tag"
}
publishable() {
    git archive --format=tar.gz --prefix="symbiont-$version/" -o "$out/symbiont-$version.tar.gz" "$tag"
    (cd "$out" && sha256sum ./*.deb ./*.tar.gz >SHA256SUMS && sha256sum --quiet -c SHA256SUMS && cat SHA256SUMS)
}

# shellcheck disable=SC2154 # set when it is run
[ -n "$dry" ] || trap 'status=$?; [ $status = 0 ] || { git checkout -q HEAD -- "${versioned[@]}"
    echo "release: failed; the version is restored, nothing is tagged" >&2; }' EXIT
echo "release: $now -> $version on $branch; the changes:"
printf '%s\n' "$changes" | sed 's/^/  | /'
step "set the version in ${versioned[*]}" set_version
step "check everything: $check" sh -c "$check"
step "check all with the oldest Rust" scripts/oldest-rust.sh
step "build the Debian package into $out" package
step "commit 'Release $version' and tag it $tag" commit
trap - EXIT
step "build the source tarball and checksums in $out" publishable
[ -z "$dry" ] || { echo "release: dry run: nothing was changed"; exit 0; }
echo "release: $version is in $out; to publish it: git push origin $branch $tag"
