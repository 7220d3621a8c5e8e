# fish completion for gpurota: commands, options, and the leases and GPUs that there are; behind `--`
# whatever the command itself completes. Silent when no daemon answers.

function __gpurota_names
    set -l words (commandline -opc)
    set -l dir
    if set -l at (contains -i -- --runtime-dir $words)
        test (count $words) -gt $at; and set dir --runtime-dir $words[(math $at + 1)]
    end
    gpurota $dir __complete $argv[1] 2>/dev/null
end

# The ids behind the last comma.
function __gpurota_gpu_ids
    set -l before (string match -r '^.*,' -- (commandline -ct))
    for name in (__gpurota_names gpus)
        echo "$before$name"
    end
end

# Whether the line is at its command's own words: not behind `--`.
function __gpurota_at
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    set -l command
    set -l i 2
    while test $i -le (count $words)
        switch $words[$i]
            case --runtime-dir
                set i (math $i + 1)
            case '-*'
            case '*'
                set command $words[$i]
                break
        end
        set i (math $i + 1)
    end
    if test (count $argv) = 0
        test -z "$command"
    else
        contains -- "$command" $argv
    end
end

function __gpurota_behind_dashes
    contains -- -- (commandline -opc)
end

# What the command behind the dashes completes.
function __gpurota_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -l line (string escape -- $words[(math $at + 1)..-1])
    test (count $words) -gt $at; or set line
    complete -C "$line "(commandline -ct | string escape)
end

complete -c gpurota -f
complete -c gpurota -n __gpurota_behind_dashes -F
complete -c gpurota -n __gpurota_behind_dashes -a '(__gpurota_command)'
complete -c gpurota -n __gpurota_at -a run -d 'run a program on a GPU reserved for it'
complete -c gpurota -n __gpurota_at -a status -d 'which GPUs are free, and who has the others'
complete -c gpurota -n __gpurota_at -a ps -d 'every process on every GPU'
complete -c gpurota -n __gpurota_at -a reserve -d 'reserve GPUs for some time'
complete -c gpurota -n __gpurota_at -a queue -d 'waiting requests, in order'
complete -c gpurota -n __gpurota_at -a cancel -d 'stop waiting'
complete -c gpurota -n __gpurota_at -a explain -d 'why a request waits, and when a lease ends'
complete -c gpurota -n __gpurota_at -a drain -d 'take a GPU out of service'
complete -c gpurota -n __gpurota_at -a undrain -d 'put a GPU back into service'
complete -c gpurota -n __gpurota_at -a turns -d 'who has the turn on shared GPUs'
complete -c gpurota -n __gpurota_at -a set -d 'capacity and turns of a GPU'
complete -c gpurota -n __gpurota_at -a release -d 'end leases and their processes'
complete -c gpurota -n __gpurota_at -a update -d 'change a running lease'
complete -c gpurota -n __gpurota_at -a doctor -d 'what would stop gpurota here'
complete -c gpurota -n __gpurota_at -a events -d 'history of leases, refusals and findings'
complete -c gpurota -n __gpurota_at -a report -d 'GPU use by user, group or GPU'
complete -c gpurota -n __gpurota_at -a reload -d 'make the daemon read its configuration again'
complete -c gpurota -n __gpurota_at -a filler -d 'programs that use idle GPUs'
complete -c gpurota -n __gpurota_at -a job -d 'commands that the daemon keeps running'
complete -c gpurota -n __gpurota_at -a burn -d 'keep GPUs busy and check their results'
complete -c gpurota -n __gpurota_at -a version -d 'versions of this program and the daemon'
complete -c gpurota -n __gpurota_at -a help -d 'explain a command'
complete -c gpurota -n __gpurota_at -s V -l version -d 'the version'
complete -c gpurota -n 'not __gpurota_behind_dashes' -s h -l help -d 'explain'
complete -c gpurota -n 'not __gpurota_behind_dashes' -s v -l verbose -d 'print what is done'
complete -c gpurota -n 'not __gpurota_behind_dashes' -l runtime-dir -x -a '(__fish_complete_directories)' -d 'the daemon whose sockets are there'
complete -c gpurota -n '__gpurota_at status ps turns doctor burn events report queue' -l json -d 'for programs'
complete -c gpurota -n '__gpurota_at status' -s s -l summary -d 'one line'
complete -c gpurota -n '__gpurota_at status' -s w -l watch -d 'redraw until interrupted'
complete -c gpurota -n '__gpurota_at status run reserve' -l memory-threshold -x -d 'threshold of unreserved use'
complete -c gpurota -n '__gpurota_at run reserve job' -s g -l gpus -x -d 'how many GPUs'
complete -c gpurota -n '__gpurota_at run reserve release burn job turns set' -s i -l gpu-ids -x -a '(__gpurota_gpu_ids)' -d 'which GPUs'
complete -c gpurota -n '__gpurota_at run reserve update burn job' -s m -l memory -x -d 'memory of each GPU: 8G, 50%'
complete -c gpurota -n '__gpurota_at run reserve update job' -l soft-limit -x -d 'report use above this'
complete -c gpurota -n '__gpurota_at run reserve update job' -l note -x -d 'shown in status'
complete -c gpurota -n '__gpurota_at burn reserve update' -l for -x -d 'how long: 90s, 10m'
complete -c gpurota -n '__gpurota_at run reserve' -l as -x -d 'your name, on a shared account'
complete -c gpurota -n '__gpurota_at run reserve' -s w -l wait -x -d 'wait at most this long: 10m'
complete -c gpurota -n '__gpurota_at run reserve' -l nonblock -d 'fail if no GPU is free now'
complete -c gpurota -n '__gpurota_at run' -s t -l timeout -x -d 'end it after this time: 2h'
complete -c gpurota -n '__gpurota_at run' -l filler -d 'end when anybody needs the GPU'
complete -c gpurota -n '__gpurota_at run' -l lease -x -a '(__gpurota_names leases)' -d 'under this reservation'
complete -c gpurota -n '__gpurota_at reserve' -s f -l force -d 'take over what your processes use'
complete -c gpurota -n '__gpurota_at reserve' -s s -l short -d 'print only the ids'
complete -c gpurota -n '__gpurota_at drain' -l reason -x -d 'shown to everybody'
complete -c gpurota -n '__gpurota_at drain undrain' -a '(__gpurota_gpu_ids)' -d 'GPU'
complete -c gpurota -n '__gpurota_at cancel explain' -a '(__gpurota_names requests)' -d 'request'
complete -c gpurota -n '__gpurota_at run reserve job' -l swap -d 'in turns with others'
complete -c gpurota -n '__gpurota_at run reserve update job' -l priority -x -a 'high normal low' -d 'who goes first'
complete -c gpurota -n '__gpurota_at run reserve job' -l oversize -d 'with --swap, more than the GPU has'
complete -c gpurota -n '__gpurota_at set' -l capacity -x -d 'usable memory: 24G, 90%'
complete -c gpurota -n '__gpurota_at set run reserve update job' -l quantum -x -a auto -d 'how long a turn lasts'
complete -c gpurota -n '__gpurota_at set' -l turns -x -a 'auto on off' -d 'when to take turns'
complete -c gpurota -n '__gpurota_at set' -l reset -d 'return to the configuration'
complete -c gpurota -n '__gpurota_at burn' -l hold -d 'hold memory, compute nothing'
complete -c gpurota -n '__gpurota_at burn' -l self-test -d 'check that errors are found'
complete -c gpurota -n '__gpurota_at events' -s f -l follow -d 'keep printing new events'
complete -c gpurota -n '__gpurota_at events report' -l since -x -d 'start: 2h, 2026-11-21'
complete -c gpurota -n '__gpurota_at events' -l lease -x -a '(__gpurota_names leases)' -d 'of one lease'
complete -c gpurota -n '__gpurota_at report' -s d -l days -x -d 'the last days'
complete -c gpurota -n '__gpurota_at report' -l by -x -a 'user group note gpu kind' -d 'group by'
complete -c gpurota -n '__gpurota_at report' -l csv -d 'for spreadsheets'
complete -c gpurota -n '__gpurota_at job' -a 'add list show logs update start stop restart remove export apply'
complete -c gpurota -n '__gpurota_at job' -l restart -x -a 'no on-failure always' -d 'when it ends'
complete -c gpurota -n '__gpurota_at job' -l output -x -a 'file journal' -d 'where its output goes'
complete -c gpurota -n '__gpurota_at job' -l env -x -d 'a variable to pass on'
complete -c gpurota -n '__gpurota_at job' -l env-file -r -d 'variables'
complete -c gpurota -n '__gpurota_at job' -l workdir -x -a '(__fish_complete_directories)' -d 'working directory'
complete -c gpurota -n '__gpurota_at job' -l user -x -d 'whose (administrators)'
complete -c gpurota -n '__gpurota_at job' -l force -d 'even if it runs'
complete -c gpurota -n '__gpurota_at job' -s f -l follow -d 'keep printing new output'
complete -c gpurota -n '__gpurota_at job' -l with-secrets -d 'with the values of variables'
complete -c gpurota -n '__gpurota_at job' -l after -x -a '(__gpurota_names jobs)' -d 'a job to start after'
complete -c gpurota -n '__gpurota_at job; and not __fish_seen_subcommand_from add list apply' -a '(__gpurota_names jobs)'
complete -c gpurota -n '__gpurota_at run' -a -- -d 'the command follows'
complete -c gpurota -n '__gpurota_at release' -s a -l all -d 'all of yours'
complete -c gpurota -n '__gpurota_at release' -l all-users -d 'everybody\'s (administrators)'
complete -c gpurota -n '__gpurota_at release' -s y -l yes -d 'do not ask'
complete -c gpurota -n '__gpurota_at ps release update explain' -a '(__gpurota_names leases)'
complete -c gpurota -n '__gpurota_at filler' -a 'add list logs pause resume remove'
complete -c gpurota -n '__gpurota_at filler; and not __fish_seen_subcommand_from add' -a '(__gpurota_names fillers)'
complete -c gpurota -n '__gpurota_at filler' -l instances -x -d 'on at most this many GPUs'
complete -c gpurota -n '__gpurota_at filler' -l idle-after -x -d 'idle time before it starts'
complete -c gpurota -n '__gpurota_at filler' -l grace -x -d 'time from SIGTERM to SIGKILL'
complete -c gpurota -n '__gpurota_at filler' -l on-yield -x -a 'stop evict' -d 'when it has to leave'
complete -c gpurota -n '__gpurota_at filler' -l env -x -d 'a variable to pass on'
complete -c gpurota -n '__gpurota_at filler' -l env-file -r -d 'variables'
complete -c gpurota -n '__gpurota_at filler' -l workdir -x -a '(__fish_complete_directories)' -d 'working directory'
complete -c gpurota -n '__gpurota_at filler' -l user -x -d 'whose (administrators)'
complete -c gpurota -n '__gpurota_at help' -a 'run reserve status queue cancel explain drain undrain turns set ps release update events report doctor burn filler job reload version'
