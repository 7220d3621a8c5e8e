# fish completion for gpurota-sim: commands, machines and what `set` changes; behind `--` whatever the command itself completes.

# Whether the line is before its command or machine, or is at its words: not behind `--`.
function __gpurota_sim_at
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    set -l first (string match -v -- '-*' $words[2..])[1]
    test "$first" = "$argv[1]"
end

# What the command behind the dashes completes.
function __gpurota_sim_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -l line (string escape -- $words[(math $at + 1)..-1])
    test (count $words) -gt $at; or set line
    complete -C "$line "(commandline -ct | string escape)
end

complete -c gpurota-sim -f
complete -c gpurota-sim -n __gpurota_sim_at -a 'list show set (gpurota-sim list 2>/dev/null | string split -f1 " ")'
complete -c gpurota-sim -n '__gpurota_sim_at set' -a 'release_delay_ms= hold_for_children= park_delay_ms= host_budget= gpu0.{fail_allocation,lost,flip_bits,copy_rate,hidden,hide_processes,utilisation,temperature,power_w,compute_mode}='
complete -c gpurota-sim -n 'contains -- -- (commandline -opc)' -F -a '(__gpurota_sim_command)'
complete -c gpurota-sim -l dir -x -a '(__fish_complete_directories)' -d 'the machine that is kept there'
complete -c gpurota-sim -l shared -d 'for all users'
complete -c gpurota-sim -l show-unsupported -d 'what programs called that is not simulated'
