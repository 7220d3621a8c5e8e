#!/bin/bash
# ./dev release says what is missing before it builds anything: release_refusals.sh SOURCE
#
# Asks for a release of these sources in a checkout of its own, which lacks one thing at a time.
set -euo pipefail
command -v git >/dev/null || { echo "git is not installed" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1/packaging/copy_sources.sh" "$work/tree"
cd "$work/tree"
git init -q
git add -A
commit() { git -c user.name=test -c user.email=test@gpurota.example commit -qam test; }
commit

# refused WORDS [NAME=VALUE…]: `./dev release` fails with these words, and makes no file.
refused() {
  local words=$1 code=0
  shift
  env "$@" packaging/make_release.sh "$work/made" "$work/work" 1 >"$work/said" 2>&1 || code=$?
  if [ "$code" = 0 ] || ! grep -qF -- "$words" "$work/said"; then
    echo "FAIL: '$words' is not what it says (exit status $code):" && cat "$work/said" && exit 1
  fi
  if compgen -G "$work/made/*"; then echo "FAIL: the above is there" && exit 1; fi
  echo "ok $words"
}

echo later >later
refused "there are changes that are not committed:"
rm later
python=$(python3 -c 'import sys; print(sys.executable)')
mkdir "$work/tools"
for tool in bash cat dirname env git ls readlink realpath; do
  ln -s "$(command -v "$tool")" "$work/tools/$tool"
done
ln -s "$python" "$work/tools/python3"
refused "npm is not there" "PATH=$work/tools"
printf '#!/bin/sh\necho no such host: registry\nexit 1\n' >"$work/tools/npm"
chmod +x "$work/tools/npm"
if /usr/bin/python3 -c 'import setuptools, wheel' 2>/dev/null; then
  refused "no such host: registry" "PATH=$work/tools:$PATH"
else
  refused "has no setuptools or no wheel" "PATH=$work/tools:$PATH"
fi
sed -i 's/^appVersion: .*/appVersion: 0.0.1/' packaging/kubernetes/chart/Chart.yaml
commit
refused "Chart.yaml: has version 0.0.1"
rm -rf .git
refused "is no git checkout"
