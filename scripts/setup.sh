#!/bin/sh
# Makes .venv with llamasweep in it, from nothing but Python 3.11 or newer. Argument "dev": the development tools too.
# PYTHON=… names the interpreter; otherwise the first suitable one on PATH is taken. uv does the work where it is installed.
set -eu

cd "$(dirname "$0")/.."
what=.
stamp=.venv/.installed
if [ "${1-}" = dev ]; then
    what='.[dev]'
    stamp=.venv/.installed-dev
fi

is_suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if is_suitable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or newer on PATH. Install one, or name it: make setup PYTHON=/path/to/python3" >&2
    return 1
}

make_venv() {
    python=$(find_python)
    if command -v uv >/dev/null 2>&1; then
        uv venv --quiet --seed --python "$python" .venv # seeded: installing a build of llama.cpp asks this pip
        return
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "$python has no venv module. On Debian and Ubuntu: apt install python$version-venv (or install uv)." >&2
        return 1
    fi
    if ! log=$("$python" -m venv .venv 2>&1); then
        printf '%s\n' "$log" >&2
        echo "$python could not make .venv; the lines above say why." >&2
        rm -rf .venv
        return 1
    fi
}

if [ ! -x .venv/bin/python ] || ! is_suitable .venv/bin/python; then
    rm -rf .venv
    make_venv
fi

if [ "$what" = . ]; then
    echo "Setting up .venv (about a minute, the first time only)"
else
    echo "Setting up .venv with the development tools (about a minute, the first time only)"
fi
if command -v uv >/dev/null 2>&1; then
    uv pip install --quiet --python .venv/bin/python --editable "$what"
else
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --editable "$what"
fi
touch "$stamp"
echo "Ready: .venv/bin/llamasweep"
