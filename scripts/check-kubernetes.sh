#!/bin/sh
# Checks packaging/kubernetes: against the schemas of Kubernetes, strictly, for each release from the first that has all
# fields; and by scripts/check-kubernetes.py, which also proves that its checks can fail. No cluster is needed.
#   scripts/check-kubernetes.sh
# It is a command of its own, not part of `make test`: the first run installs a package of schemas from PyPI into
# ~/.cache/symbiont-kubernetes. Later runs need no network.
set -eu
cd "$(dirname "$0")/.."
# It has the schemas of Kubernetes 1.1 to that of its own number.
schemas=1.37.0
tools=${XDG_CACHE_HOME:-$HOME/.cache}/symbiont-kubernetes/$schemas
if [ ! -e "$tools/complete" ]; then
    echo "check-kubernetes: installing kubernetes-validate $schemas into $tools" >&2
    rm -rf "$tools"
    mkdir -p "$tools"
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$schemas" "PyYAML>=6,<7"
    touch "$tools/complete"
fi
exec "$tools/venv/bin/python" scripts/check-kubernetes.py "$@"
