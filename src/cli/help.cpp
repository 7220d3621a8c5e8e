#include "cli/help.h"

#include <array>
#include <utility>

namespace gpurota::cli {
namespace {

constexpr std::string_view kGeneral = R"(gpurota: share the GPUs of this machine

usage: gpurota COMMAND [OPTION…]

  run -- COMMAND…      run a program on a GPU reserved for it; waits if none is free
  reserve              keep GPUs for some time
  status               which GPUs are free, and who has the others
  queue                waiting requests, in order
  explain              why a request waits, and when a lease ends
  ps                   every process on every GPU
  turns                leases that share a GPU in turns: who has the turn, and what moved
  release [LEASE]      end a lease and its processes; without a name, your reservations
  cancel REQUEST       stop waiting
  update LEASE         change the end, the memory limit, the priority or the note of a lease
  drain, undrain GPU   take a GPU out of service, and put it back (administrators)
  set                  capacity and turns of a GPU (administrators)
  events               history: leases, refusals, findings of the watch
  report               GPU use by user, group, note, GPU or kind
  doctor               what would stop gpurota on this machine, and how to fix it
  reload               make the daemon read its configuration again (administrators)
  job                  commands that the daemon keeps running, also after a reboot
  filler               programs that use idle GPUs, and leave when somebody needs them
  burn                 keep GPUs busy and check their results
  version              versions of this program, the daemon and the driver

  gpurota COMMAND --help    explains a command; 'man gpurota' has the details

  gpurota run -- python train.py                 a whole GPU, for this program only
  gpurota run --memory 8G -- python serve.py     8 GiB of a GPU; others may have the rest
  gpurota run --swap -- python train.py          nearly all of its memory, in turns with others
  gpurota run --gpus 2 -- torchrun train.py      two whole GPUs

options of every command:
  -v, --verbose         print on stderr what is done
  --runtime-dir DIR     use the daemon whose sockets are in DIR. Default: $GPUROTA_RUNTIME_DIR
                        if it is set, else your own daemon ($XDG_RUNTIME_DIR/gpurota or
                        /tmp/gpurota-UID) if it answers, else /run/gpurota
  -h, --help
  -V, --version
)";

constexpr std::string_view kRun = R"(gpurota run: run a program on GPUs reserved for it

usage: gpurota run [OPTION…] -- COMMAND [ARGUMENT…]

  gpurota run -- python train.py                 one whole GPU
  gpurota run --gpus 2 -- torchrun train.py      two whole GPUs
  gpurota run --gpu-ids 0,GPU-6f1f -- ./a.out    these two
  gpurota run --memory 8G -- python serve.py     8 GiB of one GPU; others may have the rest
  gpurota run --memory 50% -- python serve.py    half of one

  -g, --gpus N          how many GPUs (1)
  -i, --gpu-ids ID,…    which GPUs: index as in nvidia-smi, UUID or its unique beginning, MIG UUID,
                        PCI address
  -m, --memory SIZE     a slice of each GPU instead of the whole. The program sees a GPU of that
                        size, and an allocation beyond it fails as on a smaller GPU
  --soft-limit SIZE     below --memory: use above SIZE is reported, or handled as the site says
  --memory-threshold SIZE  take a whole GPU even if programs without a lease hold up to SIZE of it
                        (default: set by the site); 0: only if there are none
  --swap                share the GPU in turns: the program may have nearly all of its memory (or
                        --memory) while others do too. When they do not fit together, one runs at a
                        time, and memory of the others moves to host memory to make room
  --oversize            with --swap and --memory: more than the GPU has. What does not fit stays in
                        host memory, which the GPU accesses far more slowly
  --priority WHICH      high, normal, low, or a number, up to what the site allows you. A higher
                        priority gets its turn sooner and is stopped last
  --quantum TIME        with --swap: length of a turn while others wait, at most 5m; auto: chosen so
                        that moving memory takes 5 % of the time
  --note TEXT           shown in 'gpurota status' to you and administrators
  --as NAME             who you are, where several people share an account
  -w, --wait TIME       wait for GPUs at most this long: 30s, 10m, 2h, 1h30m
  --nonblock            fail if no GPU is free now (still waits for fillers to leave)
  --filler              end as soon as anybody else needs the GPU (see 'gpurota filler')
  -t, --timeout TIME    end the program and all it started after this time (exit status 124). It may
                        then also use GPUs that are kept for somebody else until that time
  --lease LEASE         run under this reservation of yours, which outlives the program
  -v, --verbose         print what is done: the lease, its GPUs, the variables that are overridden
  --runtime-dir DIR     see 'gpurota --help'

SIZE is a number with K, M, G or T (KB, KiB and so on are the same: all are binary, 8G is 8 GiB), a
plain number of bytes, or a percentage of the GPU.

If no GPU is free, the request waits in the queue, first come, first served. gpurota says why it
waits and when it is expected to start; Ctrl-C cancels the request.

Terminal, signals and job control work as without gpurota. CUDA_VISIBLE_DEVICES names the GPUs and
replaces an inherited one. All processes of the program end with the lease, and the lease ends with
the program.

exit status: the program's own; if a signal ended it, the same signal ends gpurota. Otherwise
   75   no GPU that fits was free (--nonblock), or not in time (--wait)
  123   the lease was lost or released before the program ended
  124   the time limit (--timeout) was over
  125   gpurota itself failed, or an argument was wrong: the message says why
  126   the command cannot be executed      127   there is no such command
)";

constexpr std::string_view kStatus =
    R"(gpurota status: which GPUs are free, and who has the others

usage: gpurota status [--json | --summary] [--watch] [--memory-threshold SIZE]

  -s, --summary         one line: how many GPUs, of which kinds, how many are available
  -w, --watch           redraw until Ctrl-C; into a pipe, print again whenever something changes
  --memory-threshold SIZE  report unreserved use from SIZE on (default: set by the site); 0: any
                        memory at all
  --json                everything, for programs; fields are only ever added (man gpurota, JSON)

A GPU is 'available', 'in use' by leases, in 'unreserved use' by a program without a lease, or in
'error'. Each lease has a row, and so has each use without a lease. MEMORY is the use that the
driver reports, and the limit; FOR is how long it has been like that; VALIDATION is whether the
driver sees what the lease says. Commands, models and notes of other users are hidden unless the
site shows them. On a narrow terminal, columns are left out.
)";

constexpr std::string_view kPs = R"(gpurota ps: every process on every GPU, with and without a lease

usage: gpurota ps [LEASE] [--json]

  gpurota ps          all of them
  gpurota ps L12      those of one lease

A process without a lease shows '-'. LIMITED is 'yes' if the process is connected through
libgpurota, which enforces its limit; an exclusive lease has no limit. Under a limit it may also be
'not loaded' (a static binary, an emptied environment: its memory is charged to its lease), 'no'
(loaded, but the limit is not enforced: the watch stops such a process; please report it), 'away'
(disconnected for now) or 'not known'. ALLOCS and REFUSED count its allocations that succeeded and
that the limit refused.
)";

constexpr std::string_view kRelease = R"(gpurota release: end leases and their processes

usage: gpurota release [LEASE…]
       gpurota release --gpu-ids ID,…
       gpurota release --all
       gpurota release --all-users [--yes]

  gpurota release                 all your reservations
  gpurota release L12             this one
  gpurota release --gpu-ids 0     all of yours on GPU 0
  gpurota release --all           all of yours
  gpurota release --all-users     everybody's: asks first, for administrators

The processes get SIGTERM and, after a grace period, SIGKILL. Programs that use a reservation's GPUs
but were not started under it (by 'run --lease', or with the variables that 'reserve' prints) are
left alone. Administrators can name anybody's lease.
)";

constexpr std::string_view kUpdate = R"(gpurota update: change a running lease

usage: gpurota update LEASE [--for TIME] [--memory SIZE] [--soft-limit SIZE] [--note TEXT]
                      [--priority WHICH] [--quantum TIME|auto]

  gpurota update L12 --for 2h       ends two hours from now
  gpurota update L12 --memory 12G
  gpurota update L12 --note "until 18:00"
  gpurota update L12 --priority low     lets others go first, from now on

A lease gets more time or memory only if nobody waits for its GPUs, and more memory only if the GPU
has it left. A lower limit applies to new allocations at once; memory that the program already holds
stays or, if the site says so, has to be freed within some time. SIZE, WHICH and --quantum are as
for 'gpurota run'; administrators can give others' leases any priority.
)";

constexpr std::string_view kVersion =
    R"(gpurota version: versions of this program, the daemon and the driver

usage: gpurota version
)";

constexpr std::string_view kEvents = R"(gpurota events: what happened

usage: gpurota events [--follow] [--since TIME] [--lease LEASE] [--json]

  gpurota events                    all events that are still stored
  gpurota events --since 2h         the last two hours
  gpurota events --follow           new events, until Ctrl-C
  gpurota events --lease L12        one lease

  -f, --follow      keep printing new events, across restarts of the daemon
  --since TIME      30m, 2h or 7d (ago), 2026-11-21, "2026-11-21 14:05"
  --lease LEASE
  --json            one JSON object on each line, for programs

Shows leases made, started, changed and ended; memory and calls refused (repeats are shown as one
event with a count); what the watch found (unreserved_use, foreign_use, over_limit, unused,
not_limited) and stopped; GPUs in error. Pids, commands and notes of other users are hidden unless
the site shows them.
)";

constexpr std::string_view kReport = R"(gpurota report: GPU use by user, group, note, GPU or kind

usage: gpurota report [--days N | --since TIME] [--by WHAT] [--json | --csv]

  gpurota report                    the last 30 days, by user
  gpurota report --days 7 --by gpu

  -d, --days N      the last N days (30)
  --since TIME      as for 'gpurota events'
  --by WHAT         user, group, note, gpu or kind
  --json, --csv     for programs

GPU HOURS is the number of GPUs held times the hours; a slice counts as its part of the GPU. GIB
HOURS is the memory really used times the hours. Running leases count up to now. The notes of other
users share one row.
)";

constexpr std::string_view kReload =
    R"(gpurota reload: make the daemon read its configuration again

usage: gpurota reload

For administrators; 'systemctl reload gpurotad' does the same. A file with a mistake is refused as a
whole, with the line and the key, and the old configuration stays in effect. gpurota.toml(5) says
which settings need a restart.
)";

constexpr std::string_view kDoctor =
    R"(gpurota doctor: what would stop gpurota on this machine, and how to fix it

usage: gpurota doctor [--json]

Checks the machine as seen from this shell (sockets, groups, libraries), and asks the daemon what it
sees (driver, NVML, control groups and so on). Also useful when no daemon is running.

exit status: 0 if everything is fine or there are only warnings, 1 if there is an error
)";

constexpr std::string_view kJob =
    R"(gpurota job: commands that the daemon keeps running

usage: gpurota job add NAME [OPTION…] -- COMMAND [ARGUMENT…]
       gpurota job update NAME [OPTION…] [-- COMMAND [ARGUMENT…]]
       gpurota job list [--json]
       gpurota job show | start | stop | restart NAME
       gpurota job logs NAME [-f] [-n LINES]
       gpurota job remove NAME [--force]
       gpurota job export [NAME] [--with-secrets]
       gpurota job apply FILE.toml

  gpurota job add web --memory 8G --restart on-failure -- python serve.py
  gpurota job show web          its state, and how its runs ended
  gpurota job logs web -f       its output
  gpurota job update web --memory 12G
  gpurota job stop web          stays stopped, also after a reboot
  gpurota job remove --force web   even if it runs, or other jobs start --after it
  gpurota job export > jobs.toml; gpurota job apply jobs.toml

  --restart WHEN     no (default), on-failure, always; pauses between restarts grow
  --env NAME         pass on this variable of yours (repeat it for more)
  --env-file FILE    variables, NAME=VALUE on each line
  --workdir DIR      working directory (default: the current one)
  --after NAME       after a reboot, start it after this job of yours (update: '' for none)
  --output WHERE     file (default; 'gpurota job logs' shows it) or journal
  --timeout TIME     end a run that lasts longer than this
  and every option of 'gpurota run'

A job runs as you, with a clean environment (your PATH only with --env PATH), and its output goes to
a log of at most 16 MiB. It waits in the queue like any other request. It survives your logout and a
restart of the daemon. After a reboot, jobs that were running are started again; jobs that were
stopped or had finished are not.

update: limits, priority, quantum, note and timeout change at once, the rest at the next start.
export writes jobs as a file, with the values of their variables only on request. apply adds and
changes the jobs in a file; if the file has a mistake, it changes none. Administrators name the
owner with --user.
)";

constexpr std::string_view kFiller =
    R"(gpurota filler: programs that use idle GPUs

usage: gpurota filler add NAME [OPTION…] -- COMMAND [ARGUMENT…]
       gpurota filler list [NAME] [--user USER] [--json]
       gpurota filler logs | pause | resume | remove NAME [--user USER]

  gpurota filler add fold --memory 88% -- ./fold
  gpurota filler list           where fillers run, and what keeps them off the other GPUs
  gpurota filler logs fold      the end of its output on each GPU
  gpurota filler pause fold     stays paused, also after a reboot

  -i, --gpu-ids ID,…   only on these GPUs
      --instances N    on at most N GPUs at once (default: every idle GPU)
  -m, --memory SIZE    its limit on each GPU: 88%, 8G (default: none)
      --idle-after T   start only on GPUs idle for this long: 30s (default), 10m
      --grace T        time from SIGTERM to SIGKILL when it has to leave (default: 2s)
      --on-yield stop|evict  when it has to leave: end it (default), or move its memory to host
                       memory and continue later. --grace then limits how long its work may
                       take to end
      --env NAME, --env-file FILE, --workdir DIR   as for 'gpurota job'

A filler runs as you, one per GPU. It leaves as soon as a lease needs the GPU, or another program
computes there; the lease gets the GPU when the filler's memory is free. It starts again when the
GPU has been idle for long enough, after a longer wait each time it had to leave early. A GPU with a
filler is shown as available and does not count against your limits. A filler that ends by itself is
started again, with pauses. If several fillers wait for a GPU they take it in rotation: after an
hour (or the site's setting) one is ended for the next. This also ends one that was paused while its
memory was in host memory; that memory is lost.
)";

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kTopics = {{
    {"job", kJob},
    {"filler", kFiller},
    {"run", kRun},
    {"status", kStatus},
    {"ps", kPs},
    {"release", kRelease},
    {"update", kUpdate},
    {"version", kVersion},
    {"doctor", kDoctor},
    {"events", kEvents},
    {"report", kReport},
    {"reload", kReload},
}};

}  // namespace

std::string_view help_text(std::string_view topic) {
  if (const std::string_view text = queue_help_text(topic); !text.empty()) return text;
  if (const std::string_view text = turns_help_text(topic); !text.empty()) return text;
  for (const auto& [name, text] : kTopics) {
    if (name == topic) return text;
  }
  return kGeneral;
}

}  // namespace gpurota::cli
