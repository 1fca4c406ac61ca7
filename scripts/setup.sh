#!/usr/bin/env bash
# Sets up everything that building, testing and running Tilewright from this checkout needs:
#   1. Debian packages: LLVM 19 and what a static link of it wants; for the tests of crates/xesim and crates/xe the assembler and the
#      validator of SPIR-V, and Intel's offline compiler (ocloc);
#   2. .venv/ with the pinned Python packages of requirements.txt;
#   3. the extension module, built by cargo and put where Python sees it, and the `tilewright` command, which calls it.
# Each step is skipped when what it depends on has not changed (.venv/.stamps holds a hash of each step's inputs), so a
# second run only takes the time of hashing the sources. TILEWRIGHT_PROFILE=release builds with optimisation.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
profile=${TILEWRIGHT_PROFILE:-dev}
venv=$root/.venv
stamps=$venv/.stamps

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
fresh() { [ -f "$stamps/$1" ] && [ "$(cat "$stamps/$1")" = "$2" ]; }
stamp() { mkdir -p "$stamps"; printf '%s\n' "$2" >"$stamps/$1"; }

command -v cargo >/dev/null || die "cargo is missing: install Rust 1.95 or later (https://rustup.rs)"

# One setup at a time in a checkout: `make test` and `make lint` may be started together.
mkdir -p target
exec 9>target/.setup.lock
flock 9

python=${TILEWRIGHT_PYTHON:-python3}

# 1. Debian packages.
debian_packages=(llvm-19-dev libpolly-19-dev libzstd-dev zlib1g-dev intel-opencl-icd libigc-tools)
install_debian_packages() {
  local missing=()
  if command -v dpkg-query >/dev/null; then
    for package in "${debian_packages[@]}"; do
      dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
  elif ! command -v llvm-config-19 >/dev/null; then
    die "LLVM 19 with its headers is needed: install what your system calls ${debian_packages[*]}"
  fi
  command -v cc >/dev/null || missing+=(gcc libc6-dev)
  # Debian's Python comes without what makes a virtual environment.
  [ -x "$venv/bin/python" ] || "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || die "missing packages; run: sudo apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}" >target/apt.log 2>&1 ||
    { "${as_root[@]}" apt-get update >target/apt.log 2>&1 &&
      "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}" >>target/apt.log 2>&1; } ||
    { tail -20 target/apt.log >&2; die "apt-get install ${missing[*]} failed (whole log: target/apt.log)"; }
}
packages_key="${debian_packages[*]}"
if ! fresh debian "$packages_key" || [ ! -e /usr/lib/llvm-19/include/llvm-c/Core.h ]; then
  install_debian_packages
  debian_done=1
fi

# 2. The virtual environment.
if [ ! -x "$venv/bin/python" ]; then
  command -v "$python" >/dev/null || die "$python is missing: install Python 3.11 or later with its venv module"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$python is older than Python 3.11"
  say "making .venv"
  rm -rf "$venv"
  "$python" -m venv "$venv" || die "could not make .venv (on Debian: apt-get install python3-venv)"
fi
[ -z "${debian_done:-}" ] || stamp debian "$packages_key"
requirements_key=$(sha256sum requirements.txt | cut -d' ' -f1)
if ! fresh requirements "$requirements_key"; then
  say "installing requirements.txt"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt
  stamp requirements "$requirements_key"
fi
# An editable install: Python reads the package straight from python/.
site=$(echo "$venv"/lib/python3.*/site-packages)
pth=$site/tilewright-checkout.pth
[ "$(cat "$pth" 2>/dev/null)" = "$root/python" ] || printf '%s\n' "$root/python" >"$pth"
cmp -s python/wheel.data/purelib/tilewright_as_triton.pth "$site/tilewright_as_triton.pth" ||
  cp python/wheel.data/purelib/tilewright_as_triton.pth "$site/"

# 3. The extension module, in the profile that `cargo test` uses, too: nothing is compiled twice. The command is the console
# script that a wheel would install.
case $profile in
  dev) out=target/debug ;;
  *) out=target/$profile ;;
esac
extension=python/tilewright/_tilewright.abi3.so
# The Python files of the language are embedded in the front end, so they count as sources.
sources_key=$profile-$({
  cat Cargo.toml Cargo.lock
  find crates python/tilewright/language python/tilewright/tle python/tilewright/experimental -type f \
    \( -name '*.rs' -o -name '*.toml' -o -name '*.py' \) -print0 |
    sort -z | xargs -0 sha256sum
} | sha256sum | cut -d' ' -f1)
if ! fresh build "$sources_key" || [ ! -e "$extension" ] || [ ! -x "$venv/bin/tilewright" ]; then
  say "building the extension ($profile)"
  # The stable ABI is the same whichever interpreter builds it; naming one keeps pyo3's build script from rerunning.
  PYO3_PYTHON="$venv/bin/python" cargo build --quiet --profile "$profile" -p tilewright-python
  # A running process keeps the old file: it is replaced, never written into.
  cp "$out/lib_tilewright.so" "$extension.new.$$" && mv -f "$extension.new.$$" "$extension"
  command=$venv/bin/tilewright
  printf '#!%s\nimport sys\n\nfrom tilewright.__main__ import main\n\nsys.exit(main())\n' \
    "$venv/bin/python" >"$command.new.$$"
  chmod +x "$command.new.$$" && mv -f "$command.new.$$" "$command"
  stamp build "$sources_key"
fi
