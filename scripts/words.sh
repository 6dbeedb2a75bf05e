#!/bin/sh
# The words of docs/glossary.md are used, in code and in documents, and those that it replaces are not: lists each use of a
# replaced word, and fails if there is one. `scripts/words.allowed` names the
# places where a word stays, each with the reason. `scripts/words.sh FOLDER` checks another tree.
set -eu
allowed=$(cd "$(dirname "$0")" && pwd)/words.allowed
cd "${1:-$(dirname "$0")/..}"

words='who|whoever|everybody|everyone|tells?|sits?|meets|lacks|recall(s|ing)?|company|beside|whom|nobody|somebody|anybody|told|in force|(put|puts|take|takes) back|sorts? of cores?|seats?|
seated|roster|ledger|workshop|shelf|patience|crowd|taker|stray|astray|referee|made-up|exchanged|wishes|adapt(s|ed)?'
words=$(printf '%s' "$words" | tr -d '\n')
# As parts of names, too, and types that are named by the thing itself.
names='company|everybody|everyone|whoever|beside|whom|nobody|somebody|told|in_force|(put|puts|take|takes)_back|ledger|roster|workshop|crowd|
stray|referee|made_up|sorts?_of_cores?|seated'
names=$(printf '%s' "$names" | tr -d '\n')
types='(struct|enum|trait) (Record|Options|Experience|Told|Took|What|Known|Stage|Pace|Level|Crowd|Taker|Look|Book|Ledger|Roster|Patience|
Workshop|Shelf|Referee|Meeting)'
types=$(printf '%s' "$types" | tr -d '\n')

# In what people read outside the code; there "who" and "beside" are English like any other.
prose=$(printf '%s' "$words" | sed 's/^who|//; s/|beside|/|/')

found=$(
    git grep -nwiE "$words" -- crates || true
    git grep -nwiE "$prose" -- '*.md' ':!docs/glossary.md' ':!CHANGELOG.md' || true
    git grep -nE "(_|\b)($names)_|_($names)\b" -- crates || true
    git grep -nwE "$types" -- crates || true
    git grep -nE "\bpub (ran|waited): " -- crates || true
)
# An allowed place: a path or its beginning, a tab, a pattern of the line, a tab, the reason.
left=$(printf '%s\n' "$found" | awk -F '\t' '
    FILENAME == ARGV[1] { if ($0 !~ /^(#|$)/) { path[++count] = $1; line[count] = $2 } next }
    { for (i = 1; i <= count; i++) if (index($0, path[i]) == 1 && $0 ~ line[i]) next; print }
' "$allowed" - | sed '/^$/d' | sort -u)
if [ -n "$left" ]; then
    printf '%s\n' "$left"
    echo "words: the lines above use words that docs/glossary.md replaces" >&2
    exit 1
fi
