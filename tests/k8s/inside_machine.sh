#!/bin/bash
# The first program in the namespaces of a test's node (own_machine.bash, second_node.py). Gives the
# node its addresses, folders and settings, and then becomes the command. FOLDER, ADDRESSES and
# PLACES are in the environment; with OWN_GROUPS=1 the node sees only the control groups of its
# namespace.
set -euo pipefail
ip link set lo up
for address in $ADDRESSES; do ip address add "$address/32" dev lo; done
ip route add default dev lo
mount --make-rshared /
for path in $PLACES; do mount --bind "$FOLDER/mounts$path" "$path"; done
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops; do
  mount --bind "$FOLDER/sysctl/${setting//\//.}" "/proc/sys/$setting"
done
groups=/sys/fs/cgroup
if [ -n "${OWN_GROUPS:-}" ] && [ -e $groups/cgroup.procs ]; then
  umount -l $groups
  mount -t cgroup2 none $groups
elif [ -n "${OWN_GROUPS:-}" ]; then
  mapfile -t controllers < <(cut -d: -f2 /proc/self/cgroup)
  umount -R -l $groups
  mount -t tmpfs none $groups
  for each in "${controllers[@]}"; do
    place=$groups/${each#name=}
    case $each in
      '') place=$groups/unified && mkdir $place && mount -t cgroup2 none $place ;;
      name=*) mkdir "$place" && mount -t cgroup -o "none,$each" none "$place" ;;
      *) mkdir "$place" && mount -t cgroup -o "$each" none "$place" ;;
    esac
  done
fi
exec "$@"
