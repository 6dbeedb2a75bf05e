#!/bin/bash
# Makes the documentation's site: the chapters in docs/, and a reference made from the program itself.
#   scripts/docs.sh [FOLDER]    FOLDER: where the pages go [target/book]
# Of the environment: BINARY, the program, built with all features [target/release/symbiont].
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-target/book}")
binary=$(realpath "${BINARY:-target/release/symbiont}")
[ -x "$binary" ] || { echo "docs: there is no $binary: run 'make build' first, or give BINARY=" >&2; exit 1; }
mdbook=$(scripts/tool.sh mdbook)
made=target/docs
src=$made/src
reference=$src/reference
rm -rf "$made"
mkdir -p "$reference"
cp docs/book.toml "$made"
cp -r docs/*.md docs/figures "$src"
cp crates/core/policy/examples/first_policy.rs CHANGELOG.md "$src"
cp CONTRIBUTING.md "$src/contributing.md"
# Links out of docs lead to what was copied.
sed -i -e 's,](\.\./crates/core/policy/examples/first_policy.rs),](first_policy.rs),' \
    -e 's,](\.\./packaging/rules-example.toml),](reference/rules.md),' \
    -e 's,](\.\./CONTRIBUTING.md,](contributing.md,' "$src"/*.md

page() { # page TITLE FILE: a page of the reference, from standard input, listed in the summary
    [ ! -e "$reference/$2" ] || { echo "docs: two pages are called $2" >&2; exit 1; }
    { echo "# $1"; echo; cat; } >"$reference/$2"
    echo "- [$1](reference/$2)" >>"$src/SUMMARY.md"
}
block() { # block LANGUAGE: standard input as it is
    echo "\`\`\`$1"
    cat
    echo '```'
}
part() { printf '\n# %s\n\n' "$1" >>"$src/SUMMARY.md"; }
commands() { # commands COMMAND...: the commands that a command has; symbiont's own are in groups
    if [ $# = 0 ]; then
        "$binary" --help | sed -n '/^Usage:/,/^Options:/s/^  \([a-z][a-z-]*\)  .*/\1/p'
        return
    fi
    "$binary" "$@" --help | sed -n '/^\(Commands\|Experiments\):$/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p' | grep -v '^help$' || :
}
help_of() { "$binary" "$@" --help | block text; }
command_page() {
    help_of "$1"
    for inner in $(commands "$1"); do
        printf '\n## symbiont %s %s\n\n' "$1" "$inner"
        help_of "$1" "$inner"
    done
}
policy_table() {
    for policy in $("$binary" policies --json | python3 -c '
import json, sys
for policy in json.load(sys.stdin):
    print(policy["name"])'); do
        printf '## %s\n\n' "$policy"
        "$binary" policies "$policy" | block text
    done
}

part Commands
for command in $(commands); do
    command_page "$command" | page "symbiont $command" "$command.md"
done
part Policies
policy_table | page "The policies and their parameters" policy-parameters.md
part "Machine descriptions"
"$binary" machines | block text | page "Machines that can be simulated" machine-list.md
part Interfaces
for command in status why top advise; do
    "$binary" "$command" --schema | block json | page "JSON of symbiont $command --json" "$command-schema.md"
done
block text <crates/host/wire/src/io.symbiont.Manager.varlink | page "Varlink interface of the daemon" varlink.md
part "Configuration files"
block toml <packaging/symbiontd.toml | page "/etc/symbiont/symbiontd.toml" symbiontd-toml.md
block toml <packaging/rules-example.toml | page "/etc/symbiont/rules.d" rules.md
part Project
printf -- '- [%s](%s)\n' Contributing contributing.md Changelog CHANGELOG.md >>"$src/SUMMARY.md"

"$mdbook" build --dest-dir "$folder" "$made"
echo "docs: $folder/index.html"
