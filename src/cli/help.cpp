#include "cli/help.h"

#include <array>
#include <utility>

namespace gpurota::cli {
namespace {

constexpr std::string_view kGeneral = R"(gpurota: share the GPUs of this machine

usage: gpurota COMMAND [OPTION…]

  run -- COMMAND…      run a program on a GPU that is kept for it; waits if there is none
  reserve              keep GPUs for some time
  status               which GPU is free, who has which, and how much of it
  queue                who waits for what
  explain              why you wait, and when and how a lease ends
  ps                   every process on every GPU
  turns                leases that share a GPU in turns: whose it is, and what moved
  release [LEASE]      end a lease and its processes; without a name, your reservations
  cancel REQUEST       stop waiting
  update LEASE         change the end, the memory limit, the priority or the note of a lease
  drain, undrain GPU   take a GPU out of service, and put it back (administrators)
  set                  what leases may have of a GPU, and its turns (administrators)
  events               what happened: leases, refusals, findings of the watch
  report               who used how much
  doctor               what would stop gpurota on this machine, and how to mend it
  reload               let the daemon read its configuration again (administrators)
  job                  programs that are looked after: started again, after a reboot too
  filler               programs that use what nobody needs, and go when somebody does
  burn                 keep GPUs busy and check what they compute
  version              of this program and of the daemon

  gpurota COMMAND --help    explains a command; 'man gpurota' is the whole story

  gpurota run -- python train.py                 a whole GPU, for this program only
  gpurota run --memory 8G -- python serve.py     8 GiB of a GPU; others may have the rest
  gpurota run --swap -- python train.py          nearly all of its memory, in turns with others
  gpurota run --gpus 2 -- torchrun train.py      two whole GPUs

options of every command:
  -v, --verbose         say on stderr what is done
  --runtime-dir DIR     the daemon whose sockets are in DIR. Without it, the first there is of
                        $GPUROTA_RUNTIME_DIR (if set, no other is tried), your own daemon's
                        ($XDG_RUNTIME_DIR/gpurota, /tmp/gpurota-UID), and /run/gpurota
  -h, --help
  -V, --version
)";

constexpr std::string_view kRun = R"(gpurota run: run a program on GPUs that are kept for it

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
  --soft-limit SIZE     below --memory: from here on the use is reported, or as the site says
  --memory-threshold SIZE  take a whole GPU although programs without a lease hold up to SIZE of it,
                        instead of what the site has set; 0: only if there are none
  --swap                share the GPU in turns: the program may have nearly all of its memory (or
                        --memory) while others do too. When they do not fit together one runs at a
                        time, and what it needs of the others' moves to host memory
  --oversize            with --swap and --memory: more than the GPU has. What does not fit lies in
                        host memory, which the GPU reaches far more slowly
  --priority WHICH      high, normal, low, or a number, up to what the site allows you: who goes
                        first in turns, and who is stopped last
  --quantum TIME        with --swap: how long its turns last while somebody waits, to 5m; auto: so
                        long that moving takes 5 % of the time
  --note TEXT           shown in 'gpurota status' to you and administrators
  --as NAME             who you are, where several people share an account
  -w, --wait TIME       do not wait for GPUs for longer than that: 30s, 10m, 2h, 1h30m
  --nonblock            do not wait at all, but for fillers that make way
  --filler              make way for whoever needs the GPU, and end then (see 'gpurota filler')
  -t, --timeout TIME    end the program and all it started after that time (exit status 124). Also
                        lets it use GPUs that are kept for somebody until then
  --lease LEASE         under this reservation of yours, which goes on without it
  -v, --verbose         say what is done: the lease, its GPUs, the variables that are overridden
  --runtime-dir DIR     see 'gpurota --help'

SIZE is a number with K, M, G or T (KB, KiB and so on are the same: all are binary, 8G is 8 GiB), a
bare number of bytes, or a percentage of the GPU.

If no GPU is free it waits, in the order of coming; it says why and until when, and Ctrl-C leaves.

The program has your terminal, its signals and its job control as without gpurota. GPUs come as
CUDA_VISIBLE_DEVICES, which replaces an inherited one. All processes of the program end with the
lease, and the lease ends with the program.

exit status: the program's own; if a signal ended the program, the same ends gpurota. Otherwise
   75   no GPU that fits was free (--nonblock), or not in time (--wait)
  123   the lease was lost or released before the program ended
  124   the time of --timeout was over
  125   gpurota itself failed, or was told something wrong: the message says why
  126   the command cannot be executed      127   there is no such command
)";

constexpr std::string_view kStatus =
    R"(gpurota status: which GPU is free, who has which, and how much of it

usage: gpurota status [--json | --summary] [--watch] [--memory-threshold SIZE]

  -s, --summary         one line: how many GPUs, of which kinds, how many are available
  -w, --watch           again and again until Ctrl-C; into a pipe whenever something changes
  --memory-threshold SIZE  call it unreserved use from SIZE on, and not from what the site has set;
                        0: any memory at all
  --json                everything, for programs; fields are only ever added (man gpurota, JSON)

A GPU is 'available', 'in use' by leases, in 'unreserved use' by a program without a lease, or in
'error'. Each lease on it has a row, and each use without one. MEMORY is what the driver counts, and
the limit; FOR is how long it has been so; VALIDATION is whether the driver sees what the lease
says. Commands, models and notes of other users are not shown unless the site has opened them. Where
the terminal is narrow, columns are left out.
)";

constexpr std::string_view kPs = R"(gpurota ps: every process on every GPU, with and without a lease

usage: gpurota ps [LEASE] [--json]

  gpurota ps          all of them
  gpurota ps L12      those of one lease

A process without a lease shows '-'. LIMITED is 'yes' if it is connected through libgpurota, which
holds it to its limit; an exclusive lease needs none. Under a limit it may also be 'not loaded' (a
static binary, an emptied environment: what it holds is charged to its lease), 'no' (loaded, but it
does not hold the program: the watch stops that; please report it), 'away' or 'not known'. ALLOCS
and REFUSED are its allocations so far that succeeded and that the limit refused.
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

The processes get SIGTERM and, after a grace, SIGKILL; programs that use a reservation's GPUs
without having been started under it (by `run --lease`, or with what `reserve` printed) are left
alone. Administrators may name anybody's lease.
)";

constexpr std::string_view kUpdate = R"(gpurota update: change a running lease

usage: gpurota update LEASE [--for TIME] [--memory SIZE] [--soft-limit SIZE] [--note TEXT]
                      [--priority WHICH] [--quantum TIME|auto]

  gpurota update L12 --for 2h       ends two hours from now
  gpurota update L12 --memory 12G
  gpurota update L12 --note "until 18:00"
  gpurota update L12 --priority low     lets others go first, from now on

More time or memory is given if nobody waits for its GPUs, and memory if the GPU has it left. Less
bounds what comes next at once; what the program holds already stays or, where the site says so, has
some time to go. SIZE, WHICH and --quantum are as for 'gpurota run';
administrators may give those of others any priority.
)";

constexpr std::string_view kVersion = R"(gpurota version: of this program, the daemon and the driver

usage: gpurota version
)";

constexpr std::string_view kEvents = R"(gpurota events: what happened

usage: gpurota events [--follow] [--since TIME] [--lease LEASE] [--json]

  gpurota events                    all that is still known
  gpurota events --since 2h         of the last two hours
  gpurota events --follow           what comes, until control-C
  gpurota events --lease L12        of one lease

  -f, --follow      go on for as long as this runs, over restarts of the daemon
  --since TIME      30m, 2h or 7d (ago), 2026-11-21, "2026-11-21 14:05"
  --lease LEASE
  --json            one JSON object on each line, for programs

Leases made, started, changed, ended; memory and calls refused (again and again is told as one); what
the watch found (unreserved_use, foreign_use, over_limit, unused, not_limited) and stopped; GPUs in
error. Pids, commands and notes of other users are not shown unless the site has opened them.
)";

constexpr std::string_view kReport = R"(gpurota report: who used how much

usage: gpurota report [--days N | --since TIME] [--by WHAT] [--json | --csv]

  gpurota report                    the last 30 days, by user
  gpurota report --days 7 --by gpu

  -d, --days N      the last N days (30)
  --since TIME      as for 'gpurota events'
  --by WHAT         user, group, note, gpu or kind
  --json, --csv     for programs

GPU HOURS are GPUs held, times how long; a slice counts as its part of the GPU. GIB HOURS are memory
really used, times how long. Leases that go on are in it up to now. Notes of other users are one row.
)";

constexpr std::string_view kReload =
    R"(gpurota reload: let the daemon read its configuration again

usage: gpurota reload

For administrators; 'systemctl reload gpurotad' does the same. A file with a mistake is refused whole,
with its line and key, and the old configuration goes on to hold. gpurota.toml(5) says what takes a
restart.
)";

constexpr std::string_view kDoctor =
    R"(gpurota doctor: what would stop gpurota on this machine, and how to mend it

usage: gpurota doctor [--json]

Looks from here (sockets, groups, libraries), and asks the daemon what it sees (driver, NVML,
control groups and so on). Also of use when no daemon is running.

exit status: 0 if all is well or there are only warnings, 1 if there is an error
)";

constexpr std::string_view kJob =
    R"(gpurota job: programs that the daemon looks after

usage: gpurota job add NAME [OPTION…] -- COMMAND [ARGUMENT…]
       gpurota job update NAME [OPTION…] [-- COMMAND [ARGUMENT…]]
       gpurota job list [--json]
       gpurota job show | start | stop | restart NAME
       gpurota job logs NAME [-f] [-n LINES]
       gpurota job remove NAME [--force]
       gpurota job export [NAME] [--with-secrets]
       gpurota job apply FILE.toml

  gpurota job add web --memory 8G --restart on-failure -- python serve.py
  gpurota job show web          how it goes, and how its runs ended
  gpurota job logs web -f       what it prints
  gpurota job update web --memory 12G
  gpurota job stop web          remembered, over a reboot too
  gpurota job remove --force web   although it runs, or others are --after it
  gpurota job export > jobs.toml; gpurota job apply jobs.toml

  --restart WHEN     no (if not given), on-failure, always; with longer and longer pauses
  --env NAME         hand this variable of yours on (repeat it for more)
  --env-file FILE    variables, NAME=VALUE on each line
  --workdir DIR      where it runs (here, if not given)
  --after NAME       after a reboot start it after that job of yours (update: '' for none)
  --output WHERE     file (if not given): 'gpurota job logs' shows it; or journal
  --timeout TIME     end a run that lasts longer than that
  and every option of 'gpurota run'

It runs as you, with a clean environment (your PATH only with --env PATH) and its output in a log of at
most 16 MiB; it waits in the queue like everybody. It survives your logout and a restart of the daemon.
After a reboot what ran is started again; what was stopped or has finished is not.

update: limits, priority, quantum, note and time hold at once, the rest from the next start. export writes
jobs as a file, with the values of their variables only if asked to; apply adds and changes jobs as a file
says, all of them or, if there is a mistake in it, none. Administrators: --user USER is whose job is meant.
)";

constexpr std::string_view kFiller =
    R"(gpurota filler: programs that use GPUs which nobody needs

usage: gpurota filler add NAME [OPTION…] -- COMMAND [ARGUMENT…]
       gpurota filler list [NAME] [--user USER] [--json]
       gpurota filler logs | pause | resume | remove NAME [--user USER]

  gpurota filler add fold --memory 88% -- ./fold
  gpurota filler list           where it is, and what keeps it off the other GPUs
  gpurota filler logs fold      the end of what it printed on each GPU
  gpurota filler pause fold     remembered, over a reboot too

  -i, --gpu-ids ID,…   only on these GPUs
      --instances N    on so many at once (if not given, on each idle GPU)
  -m, --memory SIZE    its limit on each: 88%, 8G (if not given, none)
      --idle-after T   only where nobody has been for so long: 30s (if not given), 10m
      --grace T        from TERM to KILL when it has to leave: 2s (if not given)
      --on-yield stop|evict  what becomes of it then: it is ended (if not given), or moved to host
                       memory and goes on later. --grace is how long its work may take to end
      --env NAME, --env-file FILE, --workdir DIR   as for 'gpurota job'

It runs as you, one on a GPU, and leaves as soon as anybody asks for a lease that needs the GPU, who
gets it when its memory is free, or any other program computes there. It comes back when nobody has been
there for long enough, later each time it had to leave soon. A GPU with a filler is shown as available,
and does not count against your limits. One that ends by itself is started again, with pauses.
Where several wait for a GPU they go round: after an hour (or as the site says) one is ended for the next.
So is one that is out because it was paused: what it has in host memory is lost then.
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
