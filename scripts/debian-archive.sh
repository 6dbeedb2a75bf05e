# shellcheck shell=sh
# For scripts that unpack packages of Debian's archive and install nothing; they source it. apt has lists,
# cache and status of its own in $work, a folder that the script makes and removes.
# Of the environment: DEBIAN_MIRROR.
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# archive SUITES ARCHITECTURE [OTHER]: apt is to read these suites, for a machine of this architecture, which can
# have packages of another one.
archive() {
    mkdir -p "$work/parts" "$work/none" "$work/lists/partial" "$work/cache/archives/partial"
    : >"$work/status"
    cat >"$work/parts/archive.sources" <<END
Types: deb
URIs: $mirror
Suites: $1
Components: main
Architectures: $2 ${3-}
Signed-By: $keyring
END
    cat >"$work/apt.conf" <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$work/parts";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$work/none";
Dir::State "$work";
Dir::State::Lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
APT::Architecture "$2";
APT::Architectures { "$2"; "${3-$2}"; };
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
END
    export APT_CONFIG="$work/apt.conf"
    # While a mirror is renewed a list is missing; one that stays away is named in $why.
    for pause in 0 5 20; do
        sleep "$pause"
        why=
        apt-get -q -o APT::Update::Error-Mode=any update >"$work/log" 2>&1 && return
        why="apt-get update: $(grep '^[EW]: ' "$work/log" | head -n1)"
    done
}

download() { (cd "$work/cache/archives" && apt-get -q download "$@") >"$work/log" 2>&1; }

# unpack FOLDER: all that was downloaded.
unpack() {
    mkdir -p "$work/new"
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$work/new"
    done
    rm -f "$work"/cache/archives/*.deb
    rm -rf "${1:?}"
    mv "$work/new" "$1"
}
