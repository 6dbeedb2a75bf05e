# Starts a command so that each x86-64 program that it or its children execute
# runs under the emulator: in a user and mount namespace of its own, which has
# binary formats of its own (Linux 6.7). The host's are not touched.
#   $1 scratch folder, $2 the emulator, $3 $4 user and group id, rest: the command
# The rule must not match the emulator itself: a copy gets another last byte of
# its e_ident, which is padding that no loader reads. The command waits as a native
# shell until the rule stands; a file "following" marks that it does.
scratch=$1 emulator=$2 uid=$3 gid=$4
shift 4
cp "$emulator" "$scratch/qemu" &&
    printf '\001' | dd of="$scratch/qemu" bs=1 seek=15 conv=notrunc status=none &&
    mkdir "$scratch/formats" &&
    mount -t binfmt_misc none "$scratch/formats" &&
    [ -w "$scratch/formats/register" ] &&
    mkfifo "$scratch/ready" "$scratch/go" &&
    unshare --user --map-user="$uid" --map-group="$gid" true || exit 125
# Twice away, so that the command finds no child that it does not know.
(
    {
        read -r _ <"$scratch/ready"
        magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00'
        mask='\xff\xff\xff\xff\xff\xff\xff\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
        printf '%s' ":symbiont:M::$magic:$mask:$scratch/qemu:POF" >"$scratch/formats/register" &&
            : >"$scratch/following"
        echo >"$scratch/go"
    } &
)
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --user --map-user="$uid" --map-group="$gid" sh -c '
    scratch=$1
    shift
    echo >"$scratch/ready"
    read -r _ <"$scratch/go"
    [ -e "$scratch/following" ] || exit 125
    exec "$@"' sh "$scratch" "$@"
