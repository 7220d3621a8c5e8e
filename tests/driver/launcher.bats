#!/usr/bin/env bats
# Tests gpurota-sim itself: machines, directories, exit codes, mistakes. Needs GPUROTA_SIM, the
# program; DRIVER_PROGRAMS, the folder of the conformance programs; and DRIVER_FUNCTIONS, the list
# of functions.

bats_require_minimum_version 1.5.0

setup() {
    scratch=$(mktemp -d)
    export TMPDIR=$scratch
}

teardown() {
    # A machine is removed shortly after its last process has ended.
    for _ in $(seq 50); do
        compgen -G "$scratch/gpurota-sim*" >/dev/null || break
        sleep 0.1
    done
    rm -rf "$scratch"
}

@test "the command keeps its process, its exit code and its arguments" {
    run "$GPUROTA_SIM" demo -- sh -c 'exit 7'
    [ "$status" -eq 7 ]
    run "$GPUROTA_SIM" demo -- printf '%s|' 'a b' '' '--dir'
    [ "$output" = "a b||--dir|" ]
    run "$GPUROTA_SIM" demo -- sh -c 'kill -TERM $$'
    [ "$status" -eq 143 ]
}

@test "a command that is not there is 127, one that cannot run is 126" {
    run -127 "$GPUROTA_SIM" demo -- no-such-command-anywhere
    [ "$status" -eq 127 ]
    run "$GPUROTA_SIM" demo -- /etc/passwd
    [ "$status" -eq 126 ]
}

@test "a machine of its own is gone after its last process" {
    "$GPUROTA_SIM" demo -- true
    for _ in $(seq 50); do
        [ -z "$(ls "$scratch")" ] && break
        sleep 0.1
    done
    [ -z "$(ls "$scratch")" ]
}

@test "a machine lives as long as a process left in the background" {
    # shellcheck disable=SC2016 # for the inner shell
    "$GPUROTA_SIM" demo -- sh -c 'echo "$GPUROTA_SIM_DIR" >"$TMPDIR/dir"; mkfifo "$TMPDIR/end";
      (read -r _ <"$TMPDIR/end") 3>&- &'
    dir=$(cat "$scratch/dir")
    sleep 0.5
    [ -e "$dir/state" ]
    echo >"$scratch/end"
    for _ in $(seq 50); do
        [ -e "$dir" ] || break
        sleep 0.1
    done
    [ ! -e "$dir" ]
}

@test "a directory keeps a machine for others to share" {
    "$GPUROTA_SIM" --dir "$scratch/m" demo -- true
    [ -e "$scratch/m/state" ]
    run "$GPUROTA_SIM" --dir "$scratch/m" -- "$GPUROTA_SIM" show
    [ "$status" -eq 0 ]
    [[ "$output" == "machine demo"* ]]
    run "$GPUROTA_SIM" --dir "$scratch/none" -- true
    [ "$status" -eq 125 ]
}

@test "a shared machine is for other users too, whatever the umask; the command keeps its own" {
    [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
    other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    chmod 755 "$scratch"
    umask 077
    run "$GPUROTA_SIM" --dir "$scratch/m" --shared demo -- sh -c umask
    [ "$output" = 0077 ]
    run other "$GPUROTA_SIM" --dir "$scratch/m" -- "$GPUROTA_SIM" set gpu0.temperature=77
    [ "$status" -eq 0 ]
    "$GPUROTA_SIM" --dir "$scratch/own" demo -- true
    run other "$GPUROTA_SIM" --dir "$scratch/own" -- true
    [ "$status" -eq 125 ]
    run "$GPUROTA_SIM" --shared demo -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"--shared needs --dir"* ]]
}

@test "mistakes in a machine file name file, line and key" {
    printf 'name = "x"\n[[gpu]]\nname = "g"\nmemory = "many"\n' >"$scratch/bad.toml"
    run "$GPUROTA_SIM" "$scratch/bad.toml" -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"bad.toml:4: gpu.memory:"* ]]
    printf 'name = "x"\n[[gpu]]\nname = "g"\nmemory = "8G"\ncolour = 1\n' >"$scratch/bad.toml"
    run "$GPUROTA_SIM" "$scratch/bad.toml" -- true
    [[ "$output" == *"bad.toml:5: gpu.colour:"* ]]
    printf 'name = "x"\n[[gpu\n' >"$scratch/bad.toml"
    run "$GPUROTA_SIM" "$scratch/bad.toml" -- true
    [[ "$output" == *"bad.toml:2:"* ]]
}

@test "an unknown machine and a wrong setting say what there is" {
    run "$GPUROTA_SIM" nosuch -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"gpurota-sim list"* ]]
    run "$GPUROTA_SIM" demo -- "$GPUROTA_SIM" set gpu0.colour=1
    [ "$status" -eq 125 ]
    [[ "$output" == *"copy_rate"* ]]
    run "$GPUROTA_SIM" demo -- "$GPUROTA_SIM" set gpu9.lost=1
    [ "$status" -eq 125 ]
}

@test "every installed machine starts and passes the memory checks" {
    for machine in $("$GPUROTA_SIM" list); do
        run "$GPUROTA_SIM" "$machine" -- "$DRIVER_PROGRAMS/driver_memory_check"
        [ "$status" -eq 0 ] || { echo "$machine: $output"; false; }
    done
}

@test "CUDA_VISIBLE_DEVICES chooses by index, UUID prefix and MIG UUID" {
    count() { CUDA_VISIBLE_DEVICES=$1 "$GPUROTA_SIM" "$2" -- "$DRIVER_PROGRAMS/driver_list"; }
    [ "$(count 1 h100x8 | wc -l)" -eq 1 ]
    [ "$(count 3,1 h100x8 | wc -l)" -eq 2 ]
    [ "$(count 0,9,1 h100x8 | wc -l)" -eq 1 ]
    [ "$(count 0,1,0 h100x8 | wc -l)" -eq 0 ] # a GPU named twice: no GPU at all
    [ "$(count '' h100x8 | wc -l)" -eq 0 ]
    second=$("$GPUROTA_SIM" h100x2 -- "$DRIVER_PROGRAMS/driver_list" | sed -n 2p)
    [ "$(count "GPU-$(echo "$second" | cut -c5-12)" h100x2)" = "$second" ]
    instance=$("$GPUROTA_SIM" h100-mig -- "$GPUROTA_SIM" show |
        grep -o 'MIG-[0-9a-f-]*' | sed -n 2p)
    [ "$(count "$instance" h100-mig)" = "$instance" ]
}

@test "libcuda exports exactly the functions of the list, and both libraries need only the C library" {
    lib=$(dirname "$GPUROTA_SIM")/lib
    grep -v '^#' "$DRIVER_FUNCTIONS" | cut -f1 | sort >"$scratch/want"
    nm -D --defined-only "$lib/libcuda.so.1" | awk '{print $3}' | sort >"$scratch/got"
    diff "$scratch/want" "$scratch/got"
    for library in libcuda.so.1 libnvidia-ml.so.1; do
        readelf -d "$lib/$library" | grep -q "SONAME.*\[$library\]"
        needed=$(readelf -d "$lib/$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
        [[ "$needed" == *san.so* ]] && continue # a sanitizer needs libraries of its own
        if echo "$needed" | grep -v -e '^libc\.so' -e '^libm\.so' -e '^ld-linux'; then false; fi
    done
}

@test "calls of functions that are not simulated are counted" {
    # shellcheck disable=SC2016 # for the inner shell
    run "$GPUROTA_SIM" demo -- sh -c '"$DRIVER_PROGRAMS/driver_list" cuTexRefCreate >/dev/null;
      "$GPUROTA_SIM" --show-unsupported'
    [ "$output" = "1 cuTexRefCreate" ]
}
