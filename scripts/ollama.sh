#!/bin/sh
# Makes the Ollama that the tests with real engines use, in llamasweep's cache: ollama/VERSION/bin/ollama, with the
# llama.cpp programs that it starts linked into ollama/VERSION/lib/ollama. Argument: VERSION, 0.32.15 or 0.11.4 (engine
# inside). Where it is not there yet and Go is missing it is left out, and the tests that want it are skipped. llamasweep itself never installs Ollama.
set -eu

cd "$(dirname "$0")/.."
version=${1-}
case $version in
*[!0-9.]* | '')
    echo "usage: scripts/ollama.sh VERSION, such as 0.32.15" >&2
    exit 2
    ;;
esac

find_folders='
from llamasweep.builds.registry import Registry
from llamasweep.cache import cache_root
print(cache_root())
print(Registry().program("10488", "llama-server").parent)
'
folders=$(.venv/bin/python -c "$find_folders")
folder=$(printf '%s\n' "$folders" | sed -n 1p)/ollama/$version
programs=$(printf '%s\n' "$folders" | sed -n 2p)

if [ ! -x "$folder/bin/ollama" ]; then
    if ! command -v go >/dev/null 2>&1 || ! command -v gcc >/dev/null 2>&1; then
        echo "No Ollama for the tests: it is made with Go 1.26 (go.dev/dl) and gcc, and one of them is not on PATH." >&2
        exit 0
    fi
    echo "Making Ollama $version (some minutes, the first time only)"
    if [ "$version" = 0.11.4 ]; then
        # They replace cgo's own -O2; without -march=native the engine inside has no vector units. The module lacks the
        # sources for AMX, which the compiler must therefore not announce.
        flags='-O3 -march=native'
        if [ "$(uname -m)" = x86_64 ]; then
            flags="$flags -mno-amx-int8"
        fi
        CGO_CFLAGS=$flags
        CGO_CXXFLAGS=$flags
        export CGO_CFLAGS CGO_CXXFLAGS
    fi
    rm -rf "$folder/unfinished"
    mkdir -p "$folder/unfinished" "$folder/bin"
    CGO_ENABLED=1 GOBIN=$folder/unfinished go install \
        -ldflags "-X=github.com/ollama/ollama/version.Version=$version" "github.com/ollama/ollama@v$version"
    mv "$folder/unfinished/ollama" "$folder/bin/ollama"
    rmdir "$folder/unfinished"
fi

if [ "$version" != 0.11.4 ]; then
    mkdir -p "$folder/lib/ollama"
    for program in llama-server llama-quantize; do
        ln -sfn "$programs/$program" "$folder/lib/ollama/$program"
    done
fi
echo "Ollama $version: $folder/bin/ollama"
