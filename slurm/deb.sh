#!/bin/sh
# Makes a Debian package of the SPANK plugin that 'make' built: 'make deb' calls it.
#   deb.sh OUT MAJOR SLURM   OUT: folder of the plugin, and where the package goes; MAJOR: the release of Slurm
#                            that it was built for, as 22.05; SLURM: the folder of that Slurm
# The package goes with this release alone. Prints its path. Of the environment: SOURCE_DATE_EPOCH, its date;
# DEBFULLNAME and DEBEMAIL, its maintainer as for Debian's own tools.
set -eu
out=$(realpath "$1") major=$2 slurm=$3
cd "$(dirname "$0")"
# Of the sources next to it, else of what is installed.
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' ../Cargo.toml 2>/dev/null || true)
version=${version:-$(symbiont --version 2>/dev/null | cut -d' ' -f2)}
[ -n "$version" ] || { echo "deb: there is no symbiont here that has a version: install it first" >&2; exit 1; }
maintainer="${DEBFULLNAME:-The Symbiont developers} <${DEBEMAIL:-maintainers@symbiont.invalid}>"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(stat -c %Y symbiont_spank.c)}"
architecture=$(dpkg --print-architecture)
libc=$(objdump -T "$out/symbiont_spank.so" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -n1)

copyright=../packaging/debian/copyright
[ -e "$copyright" ] || copyright=copyright

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
doc=usr/share/doc/symbiont-slurm
install -D -m 644 -s "$out/symbiont_spank.so" "$root/usr/lib/symbiont/symbiont_spank.so"
install -D -m 644 "$copyright" "$root/$doc/copyright"
mkdir -p "$root/etc/slurm/plugstack.conf.d" "$root/DEBIAN"
echo "optional /usr/lib/symbiont/symbiont_spank.so" >"$root/etc/slurm/plugstack.conf.d/symbiont.conf"
echo /etc/slurm/plugstack.conf.d/symbiont.conf >"$root/DEBIAN/conffiles"
gzip -9n >"$root/$doc/changelog.Debian.gz" <<END
symbiont-slurm ($version-1+slurm$major) unstable; urgency=medium

  * Built for Slurm $major; what changed is in the changelog of symbiont.

 -- $maintainer  $(LC_ALL=C date -R -u -d "@$SOURCE_DATE_EPOCH")
END
# Slurm's daemons and its commands load plugins, and need Debian's basic ones. A Slurm of another folder is no package.
depends="libc6 (>= $libc)"
if [ "$slurm" = /usr ]; then
    next=$(echo "$major" | awk -F. '{ printf "%s.%02d", $1, $2 + 1 }')
    depends="$depends, slurm-wlm-basic-plugins (>= $major), slurm-wlm-basic-plugins (<< $next)"
fi
cat >"$root/DEBIAN/control" <<END
Package: symbiont-slurm
Version: $version-1+slurm$major
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: $depends
Recommends: symbiont
Section: admin
Priority: optional
Description: enrols tasks of Slurm jobs with Symbiont's daemon, for Slurm $major
 A SPANK plugin: each task of a job is enrolled with the symbiontd of its node,
 with the job, its user and a class (srun --symbiont=CLASS), and is placed by
 what it needs. Without a daemon jobs run as ever. Slurm loads it once
 plugstack.conf includes /etc/slurm/plugstack.conf.d/*.conf.
END
(cd "$root" && find usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
package=$out/symbiont-slurm_$version-1+slurm${major}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
