#!/usr/bin/env bash
# Builds every wasm guest of the examples and the tests into target/guests/out/.
#
# With rustup and targets that it can add, nothing else is needed. Without (a Debian machine with
# package registries only), Debian's rustc, its sources of std, lld and wasi-libc do; they are
# installed where they are missing and this runs as root. PUGMARK_GUEST_TOOLCHAIN=debian chooses them
# even where rustup has targets.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
guests=$root/tests/guests
out=$root/target/guests/out
wasi_libc=/usr/lib/wasm32-wasi

export CARGO_TARGET_DIR=$root/target/guests
export CARGO_PROFILE_RELEASE_OPT_LEVEL=s
export CARGO_PROFILE_RELEASE_LTO=true
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
export CARGO_PROFILE_RELEASE_STRIP=true
export CARGO_PROFILE_RELEASE_PANIC=abort

say() { printf 'build-guests: %s\n' "$*" >&2; }

cargo_flags=()  # for every cargo call
program_flags=() # for rustc, for programs on wasm32-wasip1

has_target() {
    command -v rustup >/dev/null || return 1
    rustup target list --installed 2>/dev/null | grep -qx "$1" || rustup target add "$1" >/dev/null 2>&1
}

use_debian() {
    local packages=(rustc-web rust-web-src lld-19 wasi-libc)
    if ! { command -v wasm-ld-19 && test -x /usr/bin/rustc && test -f "$wasi_libc/libc.a" &&
        test -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std"; } >/dev/null 2>&1; then
        if [[ $(id -u) != 0 ]]; then
            say "install first: apt-get install --no-install-recommends ${packages[*]}"
            exit 1
        fi
        say "installing ${packages[*]}"
        apt-get update -qq >&2
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
    fi
    export RUSTC=/usr/bin/rustc
    export RUSTC_BOOTSTRAP=1
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-19
    export CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld-19
    export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-Clink-self-contained=no -Clink-arg=-L$wasi_libc -Clink-arg=-lc"
    cargo_flags=(-Zbuild-std=std,panic_abort)
    program_flags=("-Clink-arg=$wasi_libc/crt1-command.o" --cfg debian)
}

# guest OUT DIRECTORY PACKAGE KIND TARGET [RUSTC-FLAG…], where KIND is `lib` or a program's name.
guest() {
    local name=$1 directory=$2 package=$3 kind=$4 target=$5 select file
    shift 5
    if [[ $kind == lib ]]; then
        select=(--lib)
        file=${package//-/_}.wasm
    else
        select=(--bin "$kind")
        file=$kind.wasm
    fi
    say "$name.wasm for $target"
    (cd "$directory" && cargo rustc --quiet --release "${cargo_flags[@]}" -p "$package" "${select[@]}" \
        --target "$target" -- "$@")
    # A file that stays the same keeps its time.
    cmp -s "$CARGO_TARGET_DIR/$target/release/$file" "$out/$name.wasm" ||
        cp "$CARGO_TARGET_DIR/$target/release/$file" "$out/$name.wasm"
}

mkdir -p "$out"
if [[ ${PUGMARK_GUEST_TOOLCHAIN:-} != debian ]] && has_target wasm32-unknown-unknown && has_target wasm32-wasip1; then
    say "using rustup's targets"
else
    say "not using rustup's targets: Debian's rustc, building std from its sources"
    use_debian
fi

bare=wasm32-unknown-unknown
wasi=wasm32-wasip1

guest triage "$root" triage lib $bare
guest counter "$root" counter lib $bare
guest chat "$root" chat lib $bare
guest typed-probe "$guests" typed-probe lib $bare
guest http-probe "$guests" http-probe lib $bare
# Declares a maximum of 64 pages: growth beyond it is refused by the module's own word.
guest typed-probe-max "$guests" typed-probe lib $bare -Clink-arg=--max-memory=4194304

guest triage-wasip1 "$root" triage lib $wasi
guest typed-probe-wasip1 "$guests" typed-probe lib $wasi
guest wasi-echo "$root" wasi-echo wasi-echo $wasi "${program_flags[@]}"
guest command-probe "$guests" command-probe command-probe $wasi "${program_flags[@]}"
guest command-objects "$guests" command-probe command-objects $wasi "${program_flags[@]}"
guest command-http "$guests" command-probe command-http $wasi "${program_flags[@]}"

# Makes a component by itself, with a linker that only rustup's toolchains have.
if [[ ${#cargo_flags[@]} == 0 ]] && has_target wasm32-wasip2; then
    guest triage-wasip2 "$root" triage lib wasm32-wasip2
fi

say "built:"
(cd "$out" && wc -c -- *.wasm)
