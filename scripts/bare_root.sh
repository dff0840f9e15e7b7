#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a clone of this tree on a bare system: a minimal Debian with make, git and certificates, and nothing else, as a newcomer
# has it. The clone holds what is committed. The root is taken away afterwards; nothing of this machine is seen in it but its package
# sources, proxies, certificates, kernel and network.
#
#   sudo scripts/bare_root.sh SUITE COMMAND...     SUITE: bookworm (Debian 12) or trixie (Debian 13); COMMAND runs in the clone
#
#   NANET_BARE_STORE=DIR     where made roots and the caches of pip and ccache are kept (/var/cache/nanet/bare); delete it for a cold start
#   NANET_BARE_COLD=1        use no kept root and no cache
#   NANET_BARE_KEEP=1        keep the root after the run and print where it is
#   NANET_DEBIAN_MIRROR=URL  where Debian's packages come from (what this machine's apt uses)
set -euo pipefail
readonly packages=make,git,ca-certificates
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {  # problem, why, suggestion
  echo "error: $1 ($2) $3" >&2
  exit 2
}

(($# >= 2)) || fail "nothing to run" "SUITE and COMMAND are needed" "scripts/bare_root.sh bookworm make demo"
suite=$1
shift
((EUID == 0)) || fail "cannot make a bare root" "only root may change its root folder" "run as root: sudo $0 $suite $*"
command -v debootstrap >/dev/null || fail "cannot make a bare root" "no debootstrap" "run scripts/system_packages.sh bare"
command -v git >/dev/null || fail "cannot clone the tree" "no git" "run apt-get install git"

store=${NANET_BARE_STORE:-/var/cache/nanet/bare}
mkdir -p "$store" || fail "cannot write $store" "see above" "set NANET_BARE_STORE to a folder with 10 GB free"
root=$(mktemp -d "$store/run.XXXXXX")
clean() {
  if [[ -n ${NANET_BARE_KEEP:-} ]]; then echo "kept: $root" >&2; else rm -rf --one-file-system "$root"; fi
}
trap clean EXIT

debian_mirror() {  # the first that this machine's apt uses, so that a local mirror is taken where one is set
  local site=${NANET_DEBIAN_MIRROR:-}
  [[ -n $site ]] || site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/*$' || true)
  echo "${site:-http://deb.debian.org/debian}"
}

make_base() {  # folder
  local mirror log
  mirror=$(debian_mirror)
  log=$(mktemp)
  echo "bare root: making $suite from $mirror" >&2
  if ! debootstrap --variant=minbase --include="$packages" "$suite" "$1" "$mirror" >"$log" 2>&1; then
    tail -n 5 "$log" "$1/debootstrap/debootstrap.log" >&2 || true
    rm -rf --one-file-system "$1" "$log"
    fail "cannot make $suite from $mirror" "debootstrap says why above" \
      "fix that (network, space, name of the suite), or set NANET_DEBIAN_MIRROR, then try again"
  fi
  rm -rf "$log" "$1"/var/cache/apt/archives/*.deb
}

# A base is whole or not there: it is made beside its place and moved. The lock makes two runs at once make it once.
key=$(printf '%s\n' "$suite" "$packages" "$(debian_mirror)" | sha256sum | cut -c 1-12)
base=$store/$suite-$key
if [[ -n ${NANET_BARE_COLD:-} ]]; then
  make_base "$root/system"
else
  exec 9>"$base.lock"
  flock 9
  if [[ ! -d $base ]]; then
    rm -rf --one-file-system "$base.part"
    make_base "$base.part"
    mv "$base.part" "$base"
  fi
  flock --unlock 9
  cp -a "$base" "$root/system" || fail "cannot copy $base" "see above" "free some space in $store"
fi

# Settings of this machine that reach its package sources: without them no bare system here could install anything.
install -D -m 644 /etc/resolv.conf "$root/system/etc/resolv.conf"
printf '127.0.0.1 localhost bare\n::1 localhost\n' >"$root/system/etc/hosts"
if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
  install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/system/etc/ssl/certs/ca-certificates.crt"
fi
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  if [[ -e $file ]]; then install -D -m 644 "$file" "$root/system/etc/pip.conf"; fi
done
apt-config dump 2>/dev/null | grep -i '^Acquire::[a-z:]*\(proxy\|verify\|retries\)' >"$root/system/etc/apt/apt.conf.d/90machine" || true
environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while IFS='=' read -r -d '' name value; do
  case $name in
    CI | TERM | FUZZ_SECONDS | FUZZ_SEED | JOBS | OPENBLAS_* | NANET_CI_* | *_proxy | *_PROXY) ;;
    PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_TRUSTED_HOST | PIP_DEFAULT_TIMEOUT | PIP_CERT) ;;
    SSL_CERT_FILE | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | GIT_SSL_CAINFO) [[ $value == /etc/ssl/certs/ca-certificates.crt ]] || continue ;;
    *) continue ;;
  esac
  environment+=("$name=$value")
done </proc/self/environ

if [[ -n $(git -C "$tree" -c safe.directory='*' status --porcelain 2>/dev/null) ]]; then
  echo "bare root: note: what is not committed is not in the clone" >&2
fi
git -c safe.directory='*' clone --quiet "file://$tree" "$root/system/srv/nanet" || fail "cannot clone $tree" "git says why above" "fix that"
cache=$store/cache
if [[ -n ${NANET_BARE_COLD:-} ]]; then cache=$root/cache; fi
mkdir -p "$cache"

# Mounts, processes and shared memory of its own; the kernel takes them away when the command has ended.
inside='
set -eu
system=$1; cache=$2; shift 2
mount --make-rprivate /
mount --bind "$system" "$system"
mount -t proc proc "$system/proc"
mount -t sysfs sysfs "$system/sys"
mount --rbind /dev "$system/dev"
mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$system/run"
mkdir -p "$system/root/.cache"
mount --bind "$cache" "$system/root/.cache"
hostname bare
exec chroot "$system" /usr/bin/env -i "$@"
'
status=0
unshare --mount --pid --ipc --uts --fork --kill-child /bin/sh -c "$inside" sh "$root/system" "$cache" \
  "${environment[@]}" /bin/sh -c 'cd /srv/nanet && exec "$@"' sh "$@" || status=$?
exit "$status"
