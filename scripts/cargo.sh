#!/bin/sh
# Runs cargo; where the default one is too old, the newest of those that Ubuntu
# keeps beside it.
set -eu
oldest=85 # as rust-version in Cargo.toml
minor=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
if [ "${minor:-0}" -lt "$oldest" ]; then
    newest=$(ls -d /usr/lib/rust-1.*/bin 2>/dev/null | sort -V | tail -n1)
    [ -z "$newest" ] || export PATH="$newest:$PATH"
fi
exec cargo "$@"
