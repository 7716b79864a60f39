#!/usr/bin/env bash
# Fails when a crate uses one that the design does not let it use, or when a source file is too long to be one idea.
# A shell script because `cargo tree` prints the edges as text: nothing to compile, nothing to install.
set -euo pipefail
cd "$(dirname "$0")/.."

# Crate: what it may use besides `core`. Lower floors only; dev-dependencies are free, and `testing` is for them alone.
declare -A may=(
    [core]="" [queue]="" [fec]="" [cc]="" [mpath]="" [rate]="" [trace]="" [media]="" [secure]="" [relay]=""
    [sctp]="queue fec cc mpath rate secure"
    [dccp]="queue cc mpath secure"
    [sim]="cc trace"
    [driver]="" [gateway]="media"
    [emulate]="driver sim"
    [socket]="driver sctp secure"
    [session]="queue fec mpath rate media sctp dccp"
    [live]="session socket sctp driver media secure"
    [lab]="session sctp dccp cc mpath rate sim driver emulate media trace"
    [viz]="trace sctp dccp"
    [testing]=""
)
# These stand on top and may use all.
top=" braidcast cli count fuzz-targets interop "

status=0
crate=
while read -r depth package; do
    name=${package#braidcast-}
    if [ "$depth" = 0 ]; then
        crate=$name
        if [[ $top != *" $crate "* && ! -v may[$crate] ]]; then
            echo "layers: $crate is not in the table of $0: say what it may use"
            status=1
        fi
    elif [[ $package = braidcast* && $name != core && $top != *" $crate "* && " ${may[$crate]-} " != *" $name "* ]]; then
        echo "layers: $crate uses $name, which is not below it (design: crates, from the ground up)"
        status=1
    fi
done < <(cargo tree --workspace --locked --edges normal,build --depth 1 --no-dedupe --prefix depth --format ' {p}' | awk 'NF { print $1, $2 }')
[ -n "$crate" ] || status=1

while read -r lines file; do
    if [ "$lines" -gt 600 ]; then
        echo "size: $file has $lines lines, over 600: it is more than one idea, split it"
        status=1
    fi
done < <(git ls-files --cached --others --exclude-standard '*.rs' | xargs wc -l | awk '$2 != "total"')
exit $status
