#!/bin/sh
# dash, Debian's /bin/sh, loses a SIGINT that reaches its process group while it starts a program.
#
# Guess: `sh -c 'echo x; sleep 5; true'` that is sent a SIGINT as a group (a ^C, or a job runner that ends a job) ends, with
# its sleep, whenever that signal comes: a shell that is not interactive does nothing about SIGINT.
#
# Found, in 0.5.12: sent as soon as `x` is read, one in a hundred to one in five is lost: shell and sleep go on for 5 s. No SIGTERM
# is. In the trace of system calls dash has a handler for SIGINT, also when it is not interactive, and starts programs by vfork
# with all signals blocked: a signal of that moment is handled in the child, before it becomes the program, and only noted in
# the shell, which then waits for its program. A SIGTERM has no handler and ends both. (bash lost none of 200.) So who ends
# jobs that are shell commands asks by SIGTERM, or asks again.
#
# Runs Debian's package in a temporary folder, 300 times for each signal. Fails if no SIGINT or any SIGTERM is lost. Needs
# dpkg-deb, curl, python3, x86-64. DEBIAN_MIRROR: where packages come from.
set -eu
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
curl -fsSL -o "$folder/dash.deb" "$mirror/pool/main/d/dash/dash_0.5.12-2_amd64.deb"
dpkg-deb -x "$folder/dash.deb" "$folder/root"
dash=$folder/root/bin/dash
[ -x "$dash" ] || dash=$folder/root/usr/bin/dash

lost() {
    python3 - "$dash" "$1" <<'END'
import os, signal, subprocess, sys
dash, name = sys.argv[1:]
lost = 0
for _ in range(300):
    shell = subprocess.Popen([dash, "-c", "echo x; sleep 5; true"], stdout=subprocess.PIPE, process_group=0)
    shell.stdout.readline()
    os.killpg(shell.pid, getattr(signal, name))
    try:
        shell.wait(1)
    except subprocess.TimeoutExpired:
        lost += 1
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
print(lost)
END
}
interrupts=$(lost SIGINT)
terminations=$(lost SIGTERM)
echo "lost of 300: $interrupts SIGINT, $terminations SIGTERM"
[ "$interrupts" -gt 0 ] && [ "$terminations" = 0 ]
