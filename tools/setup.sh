#!/usr/bin/env bash
# Installs what is missing on Debian for: tools/setup.sh PURPOSE (the last line of this file has them
# all). Looks first, so that it is silent and quick if everything is there. Says what it is
# about to install, and asks on a terminal. BRAIDCAST_INSTALL=yes does not ask,
# BRAIDCAST_INSTALL=no installs nothing. The default toolchain of rustup is never changed.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

say() { echo "setup: $*"; }
die() { say "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif has sudo; then sudo "$@"
    else die "these Debian packages are missing and there is no sudo to install them: ${packages[*]}"
    fi
}

# apt-get, which waits up to five minutes while another package manager works, as a fresh machine's
# own updates do: `update` has no waiting of its own.
apt_get() {
    local end=$((SECONDS + ${SETUP_PATIENCE:-300})) said=no complaint
    complaint=$(mktemp)
    while ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null 2>"$complaint"; do
        if ! grep -q "Could not get lock" "$complaint" || [ "$SECONDS" -ge "$end" ]; then
            cat "$complaint" >&2
            rm -f "$complaint"
            return 1
        fi
        [ $said = yes ] || say "another package manager is at work; waiting for it"
        said=yes
        sleep "${SETUP_PAUSE:-5}"
    done
    cat "$complaint" >&2
    rm -f "$complaint"
}

# Says what is about to be installed: $1; on a terminal a "no" ends it, elsewhere, as in CI, only
# BRAIDCAST_INSTALL=no does.
agree() {
    case ${BRAIDCAST_INSTALL:-ask} in
    no) die "needed, and BRAIDCAST_INSTALL=no: $1" ;;
    yes) say "installing $1" ;;
    *)
        if [ -t 0 ] && [ -t 2 ]; then
            read -r -p "setup: needed: $1. Install? [y/N] " answer
            case $answer in y* | Y*) ;; *) die "not installed; install it by hand, or set BRAIDCAST_INSTALL=yes" ;; esac
        else
            say "needed and installed now (BRAIDCAST_INSTALL=no would end here): $1"
        fi
        ;;
    esac
}

# The Debian packages that PURPOSE needs and that are not there, into `packages`.
packages=()
want() { packages+=("$1"); }
look_for_packages() {
    has curl || want curl
    [ -e /etc/ssl/certs/ca-certificates.crt ] || want ca-certificates
    # The linker for Rust; g++ for libFuzzer.
    has cc && has g++ || want build-essential
    case $1 in
    test | soak)
        # Networks that are made bad for real processes, and an application of the tunnel.
        has ip && has tc || want iproute2
        has wg && has wireguard-go || { want wireguard-tools; want wireguard-go; }
        ;;&
    test)
        has ffmpeg && has ffprobe || want ffmpeg
        has tshark || want tshark
        # What a packet costs, counted (tools/count.py).
        has valgrind || want valgrind
        has strace || want strace
        # The C library's ABI beside its baseline (make c-test).
        has abidiff || want abigail-tools
        # NATs and firewalls between namespaces.
        has nft || want nftables
        # The codes' kernels for 64-bit ARM, in emulation (tools/neon.sh).
        has aarch64-linux-gnu-gcc || want gcc-aarch64-linux-gnu
        [ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || want libc6-dev-arm64-cross
        has qemu-aarch64 || want qemu-user
        # A machine whose clock is a year ahead.
        has faketime || want faketime
        # Another TLS that has raw public keys.
        has gnutls-cli && has gnutls-serv || want gnutls-bin
        # Shows the pages that viz makes.
        has chromium || want chromium
        # Telephones for a call through the tunnel; 15 small packages.
        has baresip || want baresip-core
        # A call beside TCP.
        has espeak-ng || want espeak-ng
        has iperf3 || want iperf3
        # Neighbours that speak SRT and RIST.
        has srt-live-transmit || want srt-tools
        has ristsender && has ristreceiver || want rist-tools
        [ -x /usr/lib/usrsctp/tsctp ] || want libusrsctp-examples
        # What its programs do not show is asked of the library (interop/programs).
        [ -e /usr/include/usrsctp.h ] || want libusrsctp-dev
        [ -e /usr/include/srt/srt.h ] || want libsrt-gnutls-dev
        # The guest with Linux's own SCTP (interop/README.md).
        if [ -d ../shared/interop/linux-peer ]; then
            has qemu-system-x86_64 || want qemu-system-x86
            has busybox && has cpio || { want busybox-static; want cpio; }
            [ -e /usr/include/netinet/sctp.h ] || want libsctp-dev
            has ip && has python3 || { want iproute2; want python3; }
        fi
        ;;&
    encode)
        # A display to encode. A microphone needs pulseaudio, which is not installed where another
        # server of audio may run: its test says so.
        has Xvfb || want xvfb
        [ -e /usr/share/doc/gstreamer1.0-x ] || want gstreamer1.0-x
        ;;&
    recipes)
        has obs || want obs-studio
        has vlc || want vlc
        has srt-live-transmit || want srt-tools
        has nginx || want nginx
        [ -e /usr/lib/nginx/modules/ngx_rtmp_module.so ] || want libnginx-mod-rtmp
        [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || want libnginx-mod-stream
        has openssl || want openssl
        has nft || want nftables
        has Xvfb || want xvfb
        has ip && has tc || want iproute2
        [ -e /usr/share/doc/gstreamer1.0-x ] || want gstreamer1.0-x
        [ -e /usr/lib/python3/dist-packages/gi ] || want python3-gi
        compgen -G '/usr/lib/*/girepository-1.0/Gst-1.0.typelib' >/dev/null || want gir1.2-gstreamer-1.0
        ;;&
    gst | test | encode | recipes)
        # GStreamer's headers for the encoder's program and the plugin, and the elements that are
        # used; x264enc is in "ugly", decoders are libav's.
        has pkg-config || want pkg-config
        has gst-inspect-1.0 || want gstreamer1.0-tools
        has ffprobe || want ffmpeg
        if ! { pkg-config --exists gstreamer-1.0; } 2>/dev/null; then want libgstreamer1.0-dev; fi
        for plugins in plugins-base plugins-good plugins-bad plugins-ugly libav; do
            [ -e "/usr/share/doc/gstreamer1.0-$plugins" ] || want "gstreamer1.0-$plugins"
        done
        ;;
    dist)
        # For a static binary: docs/install.md names the target of rustup.
        has dpkg-deb || want dpkg
        has musl-gcc || want musl-tools
        # For wheels, besides pip's maturin and ziglang.
        python3 -m venv --help >/dev/null 2>&1 || want python3-venv
        has readelf || want binutils
        # For make dist-test.
        has debootstrap || want debootstrap
        has bwrap || want bubblewrap
        ;;
    field)
        has srt-live-transmit || want srt-tools
        has ristsender && has ristreceiver || want rist-tools
        ;;&
    field | demo)
        has ffmpeg && has ffprobe || want ffmpeg
        has python3 && python3 -m pip --version >/dev/null 2>&1 || want python3-pip
        ;;
    formal)
        has spin || want spin
        has python3 || want python3
        ;;
    bench)
        has python3 || want python3
        has ffmpeg || want ffmpeg
        has srt-live-transmit || want srt-tools
        [ -x /usr/lib/usrsctp/tsctp ] || want libusrsctp-examples
        compgen -G '/usr/lib*/*/libisal.so.2' >/dev/null || want libisal2
        has turnserver || want coturn
        ;;
    esac
}

install_packages() {
    has apt-get || die "no apt-get here: install ${packages[*]} by hand"
    agree "the Debian packages ${packages[*]}"
    # Wireshark asks whether users may capture from interfaces. They need not: the tests read files.
    if has debconf-set-selections; then
        echo "wireshark-common wireshark-common/install-setuid boolean false" | as_root debconf-set-selections
    fi
    apt_get update -qq
    apt_get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

# Whether version $1 is at least version $2.
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

rust_is_new_enough() {
    has cargo && at_least "$(cargo --version | cut -d ' ' -f 2)" "$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
}

look_for_rust() {
    if ! rust_is_new_enough; then
        if has rustup; then
            # rust-toolchain.toml names it for this folder alone.
            agree "the newest stable Rust toolchain, by rustup, beside those that are there"
            rustup toolchain install stable --profile minimal --no-self-update >/dev/null
        else
            agree "Rust, by rustup, into ~/.cargo and ~/.rustup"
            curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --quiet --profile minimal --no-modify-path
        fi
        rust_is_new_enough || die "cargo is still older than Cargo.toml's rust-version"
    fi
    [ "$1" = test ] || return 0
    if ! { has cargo-fmt && has cargo-clippy; }; then
        agree "rustfmt and clippy, by rustup"
        rustup component add rustfmt clippy
    fi
    local arm=aarch64-unknown-linux-gnu
    if has rustup && ! [ -d "$(rustc --print sysroot)/lib/rustlib/$arm" ]; then
        agree "Rust's library for $arm, by rustup"
        rustup target add $arm || say "without it NEON is not run"
    fi
}

# Toolchains that one command needs, beside the one that is in use.
look_for_toolchains() {
    local oldest it lacks=()
    case $1 in systems | nightly) has rustup || die "needs rustup: other compilers come from there" ;; esac
    case $1 in
    systems)
        oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
        if ! rustup toolchain list | grep "^$oldest-" >/dev/null; then
            agree "Rust $oldest, the oldest that is promised, by rustup"
            rustup toolchain install "$oldest" --profile minimal --no-self-update >/dev/null
        fi
        for it in aarch64-apple-darwin x86_64-pc-windows-gnu; do
            [ -d "$(rustc --print sysroot)/lib/rustlib/$it" ] || lacks+=("$it")
        done
        [ ${#lacks[@]} != 0 ] || return 0
        agree "Rust's libraries for ${lacks[*]}, by rustup"
        rustup target add "${lacks[@]}"
        ;;
    nightly)
        for it in miri rust-src; do
            rustup component list --installed --toolchain nightly 2>/dev/null | grep "^$it" >/dev/null || lacks+=("$it")
        done
        [ ${#lacks[@]} != 0 ] || return 0
        agree "a nightly Rust with ${lacks[*]}, by rustup"
        # To the nightly that is there; if there is none, or it never had them, the newest that has both.
        rustup component add --toolchain nightly "${lacks[@]}" >/dev/null 2>&1 ||
            rustup toolchain install nightly --profile minimal --component miri,rust-src --no-self-update >/dev/null
        ;;
    esac
}

purpose=${1:?usage: tools/setup.sh test | demo | field | bench | fuzz | soak | dist | gst | encode | recipes | formal | systems | nightly}
look_for_packages "$purpose"
[ ${#packages[@]} = 0 ] || install_packages
look_for_rust "$purpose"
look_for_toolchains "$purpose"
