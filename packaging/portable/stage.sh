#!/bin/bash
# Lays out what other distributions install: stage.sh BUILD FOLDER PREFIX
#
# FOLDER gets the files of BUILD (a build folder) in the places of a system that installs below
# PREFIX, with /etc/gpurota. Called by make_portable.sh and tests/packages/portable_install.sh.
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
build=$1 folder=$2 prefix=$3

DESTDIR=$folder cmake --install "$build" --prefix "$prefix" --strip >/dev/null
# Debian alone has another folder for zsh.
mv "$folder$prefix/share/zsh/vendor-completions" "$folder$prefix/share/zsh/site-functions"
install -D -m 644 "$here/packaging/gpurota.toml" "$folder/etc/gpurota/gpurota.toml"
install -D -m 644 "$here/packaging/systemd/gpurota-web.service.d/group.conf" \
  "$folder$prefix/lib/systemd/system/gpurota-web.service.d/group.conf"
