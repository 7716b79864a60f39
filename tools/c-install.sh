#!/usr/bin/env bash
# Lays the C library out as a prefix: tools/c-install.sh RELEASE-FOLDER PREFIX     (`make c` does both)
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:?the folder with libbraidcast.so} to=${2:?where to put it}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' bindings/Cargo.toml | head -n 1)
mkdir -p "$to/lib/pkgconfig" "$to/include"
to=$(cd "$to" && pwd)
# The shared library under its own version, its SONAME and the name that the linker looks for.
soname=$(readelf -d "$from/libbraidcast.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
install -m 755 "$from/libbraidcast.so" "$to/lib/libbraidcast.so.$version"
ln -sfn "libbraidcast.so.$version" "$to/lib/$soname"
ln -sfn "$soname" "$to/lib/libbraidcast.so"
install -m 644 "$from/libbraidcast.a" "$to/lib/"
install -m 644 bindings/c/include/braidcast.h bindings/c/include/braidcast.hpp "$to/include/"
cat >"$to/lib/pkgconfig/braidcast.pc" <<PC
prefix=$to
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: braidcast
Description: messages over several networks at once, encrypted
Version: $version
Libs: -L\${libdir} -lbraidcast
Libs.private: -lm -lpthread -ldl
Cflags: -I\${includedir}
PC
echo "c: $to"
