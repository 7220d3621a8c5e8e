#!/bin/bash
# The checks that need no build, and clang-tidy, which needs a configured one. Called by ./dev.
#
#   tools/check.sh fmt                          formats the sources in place
#   tools/check.sh shell                        shellcheck of every script
#   tools/check.sh check BUILD [--all|--staged] everything; --staged is for a hook, which must be
#                                               fast: no clang-tidy, and only staged sources are
#                                               checked for their format
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

# Git refuses a checkout that belongs to another user unless safe.directory names the checkout.
git_here() { git -c safe.directory="$PWD" "$@"; }

sources() {
  find src sim tests bench demo -name '*.cpp' -o -name '*.c' -o -name '*.h' 2>/dev/null | sort
}

scripts() {
  printf '%s\n' dev .ci/run
  find tools demo tests packaging debian .githooks bench \( -name '*.sh' -o -name '*.bash' \
    -o -name '*.bats' \
    -o -path '.githooks/*' -o -name '*.prerm' -o -name '*.postrm' -o -path debian/tests/lease \) \
    -type f 2>/dev/null | sort
}

shell() {
  command -v shellcheck >/dev/null || { echo "shellcheck is not installed"; exit 77; }
  local script list=()
  while read -r script; do [ -e "$script" ] && list+=("$script"); done < <(scripts)
  shellcheck -x "${list[@]}" || return 1
  echo "shellcheck: ${#list[@]} scripts"
}

# The sources that have changed since main, or that are staged; with --all, all of them.
changed() {
  case ${1:-} in
    --all) sources ;;
    --staged) git_here diff --cached --name-only --diff-filter=d ;;
    *) git_here diff --name-only --diff-filter=d \
      "$(git_here merge-base HEAD origin/main 2>/dev/null || echo HEAD~1)" ;;
  esac | grep -E '^(src|sim|tests|bench|demo)/.*\.(cpp|c|h)$' || true
}

tidy() {
  local build=$1 list=()
  mapfile -t list < <(changed "${2:-}" | grep -E '\.(cpp|c)$')
  if [ ${#list[@]} = 0 ]; then return 0; fi
  [ -f "$build/compile_commands.json" ] || cmake --preset dev -B "$build" --log-level=NOTICE
  printf '%s\0' "${list[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet -p "$build"
}

check() {
  local build=$1 mode=${2:-} list=() failed=0
  mapfile -t list < <(if [ "$mode" = --staged ]; then changed --staged; else sources; fi)
  if [ ${#list[@]} -gt 0 ]; then clang-format --dry-run -Werror "${list[@]}" || failed=1; fi
  python3 -B tools/check_layers.py || failed=1
  python3 -B tools/check_sizes.py || failed=1
  python3 -B tools/check_classes.py || failed=1
  python3 -B tools/check_fields.py || failed=1
  python3 -B tools/check_names.py || failed=1
  python3 -B tools/check_threads.py || failed=1
  python3 -B tools/check_packages.py || failed=1
  python3 -B tools/version.py --check || failed=1
  python3 -B tools/check_reasons.py || failed=1
  python3 -B tools/check_words.py || failed=1
  python3 -B tools/draw_top.py --check || failed=1
  (shell) || failed=1
  if [ "$mode" != --staged ]; then tidy "$build" "$mode" || failed=1; fi
  if [ "$failed" = 0 ]; then echo "check: nothing to complain of"; fi
  return "$failed"
}

case ${1:-} in
  fmt) sources | xargs clang-format -i ;;
  shell) shell ;;
  check) shift && check "$@" ;;
  *) echo "usage: tools/check.sh fmt | shell | check BUILD [--all|--staged]" >&2 && exit 2 ;;
esac
