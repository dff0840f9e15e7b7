#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs commands side by side and prints what each said when it ends, so that it stays together. Exit 1 if one failed; all run to their end.
#
#   scripts/side_by_side.sh "NAME COMMAND..." ...
set -uo pipefail
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

declare -A name_of
for task in "$@"; do
  name=${task%% *}
  (
    started=$SECONDS
    bash -euo pipefail -c "${task#* }" >"$logs/$name" 2>&1 </dev/null
    status=$?
    echo "--- $name: exit status $status after $((SECONDS - started)) s" >>"$logs/$name"
    exit "$status"
  ) &
  name_of[$!]=$name
done

failed=()
while ((${#name_of[@]})); do
  wait -n -p pid "${!name_of[@]}"
  status=$?
  name=${name_of[$pid]}
  unset "name_of[$pid]"
  printf -- '--- %s\n' "$name"
  cat "$logs/$name"
  ((status == 0)) || failed+=("$name")
done
((${#failed[@]} == 0)) || { echo "error: ${failed[*]} failed (see above)" >&2; exit 1; }
