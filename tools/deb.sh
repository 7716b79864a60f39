#!/usr/bin/env bash
# Makes a Debian package of a root, in the folder beside it; called by tools/dist.sh and
# tools/dist-gst.sh. tools/deb.sh ROOT NAME ARCH [DEPENDS] <FIELDS DEPENDS goes behind the C library
# in "Depends". FIELDS are lines of the control file that only this package has, its description
# last.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
root=${1:?ROOT} name=${2:?NAME} arch=${3:?ARCH} depends=${4:-}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)

mapfile -t programs < <(find "$root/usr" -type f \( -path '*/bin/*' -o -name '*.so' \))
[ "${#programs[@]}" -gt 0 ] || { echo "dist: no program in $root" >&2; exit 1; }
# Not grep -q: it would end before readelf does, which pipefail takes for an error.
if readelf -d "${programs[@]}" | grep NEEDED >/dev/null; then
    # The newest symbol version of glibc that they use.
    libc=$(readelf -V "${programs[@]}" | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
    depends="libc6 (>= ${libc#GLIBC_}), libgcc-s1${depends:+, $depends}"
    echo "dist: $name needs glibc ${libc#GLIBC_} or newer"
else
    echo "dist: $name is static"
fi
mkdir -p "$root/DEBIAN"
{
    cat <<CONTROL
Package: $name
Version: $version
Architecture: $arch
Maintainer: Braidcast <https://github.com/braidcast/braidcast>
Homepage: https://github.com/braidcast/braidcast
Priority: optional
Installed-Size: $(du -sk --exclude DEBIAN "$root" | cut -f 1)
CONTROL
    if [ -n "$depends" ]; then echo "Depends: $depends"; fi
    cat
} >"$root/DEBIAN/control"
deb=$(dirname "$root")/${name}_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$deb" >/dev/null
echo "dist: $deb $(du -h "$deb" | cut -f 1)"
