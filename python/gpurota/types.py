"""What the daemon answers, as dataclasses: a field that an older daemon does not send is None.

Amounts of memory are bytes, times are datetimes in UTC. Words (of a state, a kind, ...) are text,
as newer daemons know more of them.
Made by tools/python_types.py from dev.gpurota.varlink and CMakeLists.txt: edit those.
"""

import datetime
from dataclasses import dataclass
from typing import List, Optional

VERSION = "0.9.0"
# Calls of these do nothing twice.
READ_ONLY = frozenset((
    "Hold",
    "CheckRequest",
    "GetEnvironment",
    "ListRequests",
    "ListTurns",
    "ListJobs",
    "ListJobItems",
    "ReadJobLog",
    "Status",
    "ListProcesses",
    "Events",
))


@dataclass(frozen=True)
class Size:
    """A size as a user may write it: absolute, or a share of the GPU's memory. Exactly one is
    set."""

    bytes: Optional[int] = None
    percent: Optional[int] = None


@dataclass(frozen=True)
class Reason:
    """Why somebody waits: one whole sentence. Clients put `time` where `text` has {time}, and add
    nothing else. docs/design/control-protocol.md says what each code means."""

    # out_of_service, behind_requests, behind_request, kept, leased_until, leased_open_ended,
    # ending, expired_in_use, booked, booked_open_ended, free_until, over_capacity, unreserved_use,
    # machine_memory, filler_leaving, cannot_start, leased, wanted, foreign_process, load, paused,
    # removed, other_filler, idle_time, resting
    code: str
    text: str
    time: Optional[datetime.datetime] = None  # None: `text` has no place for one
    # owner; what the waiter can do now: "starts now with --timeout 40m". Null: nothing, or far back
    # in the queue
    remedy: Optional[str] = None


@dataclass(frozen=True)
class Gpu:
    index: int  # PCI order, as in nvidia-smi; of a MIG instance its place on its GPU
    uuid: str
    name: str
    pci: str  # 00000000:01:00.0
    # available, held, in_use, unreserved_use, draining, error, split. available: nobody has it but
    # fillers, whose time is not over; held: idle, but kept for `held_for`; split: its MIG instances
    # are given out instead
    state: str
    memory_bytes: int  # size
    reserved_bytes: int  # promised to slices; all of it while a lease has it exclusively
    leases: List[str]  # lease_ids
    # used without a lease: by processes, as far as NVML tells, and hidden_bytes once that is more
    # than 1 GiB for 10 s
    unreserved_bytes: int
    # what people call it: "0"; a MIG instance "0:1", which run --gpu-ids takes
    label: Optional[str] = None
    parent: Optional[str] = None  # UUID of the GPU a MIG instance is part of
    # everybody's together: NVML's figure, or with unified memory the machine's; None: nobody can
    # say
    used_bytes: Optional[int] = None
    # what a new slice without a time limit would be given at once: fillers leave for it, and what
    # requests that wait have planned is not in it
    available_bytes: Optional[int] = None
    swap_available_bytes: Optional[int] = None  # the same of a lease that takes turns
    held_for: Optional[str] = None  # the request_id that this idle GPU is kept for
    # when its last lease ended; None: it has one, or had none yet
    idle_since: Optional[datetime.datetime] = None
    # of the last moments, NVML's figure; None: it tells none (MIG)
    utilisation_percent: Optional[int] = None
    detail: Optional[str] = None  # why it is in error, or who uses it unreserved
    classes: Optional[List[str]] = None  # the site's classes that it is in
    # what it takes now; None, as in all that follows: the driver does not tell
    power_mw: Optional[int] = None
    power_limit_mw: Optional[int] = None  # what it may take
    temperature_celsius: Optional[int] = None
    slowdown_celsius: Optional[int] = None  # from there on it lowers its clocks
    sm_clock_mhz: Optional[int] = None
    # why its clocks are lower than they could be: power, temperature, hardware, power_brake,
    # setting, sync
    clock_limits: Optional[List[str]] = None
    ecc_uncorrected: Optional[int] = None  # errors of its memory since the driver was loaded
    xid_errors: Optional[int] = None  # that the driver reported of it since gpurotad runs
    compute_capability: Optional[str] = None  # "9.0"
    # GPUs that NVLink joins, directly or through others, have the same one: the smallest UUID of
    # them
    nvlink_group: Optional[str] = None
    # in use, and no listed process has it, beyond what is normal there; None: not known, as beside
    # a lease of the whole GPU
    hidden_bytes: Optional[int] = None
    freeing: Optional[bool] = None  # hidden_bytes is taken for memory of an ended program
    # it uses the machine's memory, which programs without a GPU use as well
    unified: Optional[bool] = None


@dataclass(frozen=True)
class LeaseGpu:
    index: int  # as a Gpu's; -1: a GPU that the driver no longer shows
    uuid: str
    granted_bytes: int  # what its tenants may hold now, contexts included
    processes: int  # of the lease on this GPU
    label: Optional[str] = None  # as a Gpu's; "lost" then
    limit_bytes: Optional[int] = None  # None: the whole GPU, exclusively
    soft_limit_bytes: Optional[int] = None
    # of the lease's processes on this GPU: NVML's figure, else what libgpurota counts; None: nobody
    # can say
    used_bytes: Optional[int] = None
    # nothing of the lease uses this GPU, and that is a finding
    unused_since: Optional[datetime.datetime] = None
    # of limit_bytes: more than a turn can have of the GPU, so it lies in host memory
    oversize_bytes: Optional[int] = None
    # swap, while its GPUs take turns: the phase of a TurnLease; else None
    turn: Optional[str] = None
    turn_position: Optional[int] = None  # of a turn: 1: next; 0: it has it, or does not want it
    moved_out_bytes: Optional[int] = None  # swap: in host memory until its next turn
    # what the driver lets its command have of this GPU; None: the driver sets no limit
    driver_limit_bytes: Optional[int] = None


@dataclass(frozen=True)
class Pod:
    """A container as Kubernetes names it."""

    namespace: str
    name: str
    container: str


@dataclass(frozen=True)
class Lease:
    lease_id: str  # "L12"
    kind: str  # run, reservation, job, filler, pod, slurm
    share: str  # exclusive, slice, swap
    # active, ending, expired. ending: its processes are being ended, or its memory is not back yet;
    # expired: its time is over, but its programs hold memory still
    state: str
    uid: int
    user: str
    since: datetime.datetime
    gpus: List[LeaseGpu]
    processes: int
    as_name: Optional[str] = None  # who of a shared account, as they said
    ends: Optional[datetime.datetime] = None  # its enforced end; None: with what it is for
    pid: Optional[int] = None  # owner: the command's first process
    command: Optional[List[str]] = None  # owner
    note: Optional[str] = None  # owner
    model: Optional[str] = None  # owner; read off the command line (vllm serve, --model)
    priority: Optional[int] = None  # higher goes first in turns, and is stopped last
    # swap: how long its turns last; None: as its GPUs say; 0: by what moving costs
    quantum_ms: Optional[int] = None
    name: Optional[str] = None  # owner; what they call it
    pod: Optional[Pod] = None  # kind pod: for which container it is, once that is known
    allocation: Optional[str] = None  # owner; kind pod: as AcquireForPod
    warn_seconds: Optional[int] = None  # as of its LeaseRequest; None: its programs are not warned
    warn_signal: Optional[str] = None
    # by then it has to leave for a booking; None: it is not known to leave
    leaves: Optional[datetime.datetime] = None
    enforced_by: Optional[str] = None  # library, library_and_driver. None: it has no limit
    # why the driver does not, where the site's enforcement asks for it
    not_by_driver: Optional[str] = None
    # owner; the control group of a driver's limit that somebody else set and that counts
    limited_group: Optional[str] = None


@dataclass(frozen=True)
class JobRun:
    """One run of a job that is over. `reason`: exited, signalled (`code` says which), stopped,
    timeout, over-limit, lease-lost, booking, cannot-start, reboot, unknown."""

    ended: datetime.datetime
    reason: str
    code: int
    started: Optional[datetime.datetime] = None  # None: it never ran
    detail: Optional[str] = None
    # the most GPU memory that its lease used, all its GPUs together; None: nobody knows
    max_used_bytes: Optional[int] = None


@dataclass(frozen=True)
class ItemCounts:
    """How many items of an array are how far. `done`: ended with exit status 0; `unknown`: nobody
    saw the end; `cancelled`: by a person, before the end or before the start; `waiting`: not
    started, or to be started again."""

    running: int
    done: int
    failed: int
    unknown: int
    cancelled: int
    waiting: int


@dataclass(frozen=True)
class JobItem:
    """One item of an array. `state`: waiting, running, stopping, backing-off, done, failed,
    unknown, cancelled."""

    index: int
    state: str
    runs: List[JobRun]  # the last ones, newest last
    detail: Optional[str] = None  # as that of Job
    command: Optional[List[str]] = None  # of an array of commands
    since: Optional[datetime.datetime] = None  # of the run that is on
    max_used_bytes: Optional[int] = None  # of the run that is on, as in JobRun
    lease_id: Optional[str] = None
    request_id: Optional[str] = None  # while it waits in the queue
    position: Optional[int] = None  # there


@dataclass(frozen=True)
class Job:
    name: str
    uid: int
    user: str
    # stopped, waiting, running, stopping, backing-off, finished, failed, cancelled (another job has
    # ended so that this one cannot start)
    state: str
    command: List[str]
    options: List[str]
    workdir: str  # empty: the user's home
    variables: List[str]  # the names only
    restart: str
    after: List[str]  # jobs that are started before it at boot
    failures: int  # in a row
    runs: List[JobRun]  # the last ones, newest last
    # what it waits for, why it is being stopped, or which administrator stopped it
    detail: Optional[str] = None
    after_success: Optional[List[str]] = None  # jobs that have to end well before it starts
    after_end: Optional[List[str]] = None  # jobs that have to end before it starts
    output: Optional[str] = None  # where what it prints goes: file (a log of its own), journal
    tty: Optional[bool] = None  # what it prints goes to a terminal
    since: Optional[datetime.datetime] = None  # of the run that is on
    max_used_bytes: Optional[int] = None  # of the run that is on, as in JobRun
    lease_id: Optional[str] = None
    request_id: Optional[str] = None  # while it waits in the queue
    position: Optional[int] = None  # there
    # while it waits in the queue: why; `detail` has the same as text, its time by this machine's
    # clock
    wait_reason: Optional[Reason] = None
    array: Optional[str] = None  # an array: the indices of its items, "1-50"
    at_once: Optional[int] = None  # an array: so many items run at most at the same time
    items: Optional[ItemCounts] = None  # an array


@dataclass(frozen=True)
class Variable:
    name: str
    value: str


@dataclass(frozen=True)
class FairShare:
    """How much GPU time a user has had, where the site orders the queue by that: what is
    `half_life_seconds` old counts half. Less `used_seconds` for each of `weight` goes first; where
    there is a group, its members' together is compared first."""

    used_seconds: int
    weight: int
    half_life_seconds: int
    group: Optional[str] = None  # None: the user stands for themselves
    group_used_seconds: Optional[int] = None
    group_weight: Optional[int] = None


@dataclass(frozen=True)
class Passing:
    """A request that is ahead of another though it came later."""

    request_id: str
    user: str
    fair_share: FairShare


@dataclass(frozen=True)
class Request:
    """Somebody who waits for a lease."""

    request_id: str  # "R7"
    position: int  # from 1
    kind: str  # of the lease it will be
    uid: int
    user: str
    since: datetime.datetime
    gpus: int  # how many
    free: int  # of them free now, for this request
    planned: List[int]  # indices of the GPUs it will start on, as things stand; idle ones are held
    reason: str  # wait_reason as text, its time by this machine's clock
    as_name: Optional[str] = None
    gpu_ids: Optional[List[str]] = None  # which, if they were named: UUIDs
    memory: Optional[Size] = None
    seconds: Optional[int] = None  # its enforced end, from its start on
    planned_labels: Optional[List[str]] = None  # what people call them
    # when it starts at the latest, as things stand; None: nobody knows
    expected: Optional[datetime.datetime] = None
    next: Optional[str] = None  # of an older daemon: goes behind the reason
    next_at: Optional[datetime.datetime] = None  # of an older daemon
    pid: Optional[int] = None  # owner: who waits
    command: Optional[List[str]] = None  # owner
    note: Optional[str] = None  # owner
    swap: Optional[bool] = None  # to take turns
    oversize: Optional[bool] = None
    gpu_type: Optional[str] = None  # as asked for
    min_memory_bytes: Optional[int] = None
    min_cc: Optional[int] = None
    name: Optional[str] = None  # owner; what they call it
    gpu_class: Optional[str] = None  # as asked for
    fair_share: Optional[FairShare] = None  # of its user; None: the order is that of coming
    passed_by: Optional[Passing] = None  # the nearest ahead of it that came later; None: nobody
    # it has waited for so long that nobody who comes later goes first
    overdue: Optional[bool] = None
    wait_reason: Optional[Reason] = None  # None: of an older daemon


@dataclass(frozen=True)
class Booking:
    """GPUs that somebody will have from a time on: a reservation that has not begun. When it begins
    it is a lease, and no booking any more."""

    request_id: str  # "R7": what Cancel takes
    uid: int
    user: str
    made: datetime.datetime
    begins: datetime.datetime
    ends: datetime.datetime
    gpu_ids: List[str]  # the UUIDs of the GPUs that are kept for it
    labels: List[str]  # what people call them
    as_name: Optional[str] = None
    memory: Optional[Size] = None  # of each; None: the whole GPU
    trouble: Optional[str] = None  # wait_reason as text, its time by this machine's clock
    note: Optional[str] = None  # owner
    wait_reason: Optional[Reason] = None  # why it has not begun, though its time has come
    # leases without a stated end leave when it begins, not when it is used
    on_time: Optional[bool] = None
    # its time has come; leases without a stated end go on there until its owner uses it
    waits_for_use: Optional[bool] = None


@dataclass(frozen=True)
class Container:
    """As the engine's control groups name it."""

    # docker, podman, nerdctl, containerd, crio, lxc, kubernetes. kubernetes: of which engine its
    # group does not say
    engine: str
    container_id: str  # 64 hex digits; LXC: its name; empty: only the pod is known
    pod: Optional[str] = None  # Kubernetes' UID of it
    # as people call it; of a pod's container NAMESPACE/POD/CONTAINER; None: not known
    name: Optional[str] = None
    image: Optional[str] = None  # as whoever started it called the image; None: not known


@dataclass(frozen=True)
class Process:
    gpu: int
    gpu_uuid: str
    type: str  # compute, graphics
    tenant: bool  # connected through libgpurota
    pid: Optional[int] = None  # owner
    uid: Optional[int] = None  # None: ended between two samples, or hidden
    user: Optional[str] = None
    gpu_label: Optional[str] = None  # as a Gpu's label
    # NVML's figure, else what libgpurota counts; None: nobody can say
    used_bytes: Optional[int] = None
    lease_id: Optional[str] = None
    command: Optional[List[str]] = None  # owner
    container: Optional[Container] = None  # owner; None: in none
    # owner; hooked allocations so far (a hint from the process itself)
    allocations: Optional[int] = None
    refusals: Optional[int] = None  # owner
    unhooked: Optional[int] = None  # owner; driver functions it got that libgpurota does not know
    unhooked_names: Optional[List[str]] = None  # owner; the first few of them
    # absent, silent, away. what libgpurota does in a process that a limit is for and that is no
    # tenant. absent: not loaded, or not told to limit it; silent: loaded and told, and does not (a
    # finding not_limited); away: welcomed by an earlier daemon
    library: Optional[str] = None


@dataclass(frozen=True)
class FoundProcess:
    pid: int
    # NVML's figure, else what libgpurota counts; None: nobody can say
    used_bytes: Optional[int] = None
    command: Optional[List[str]] = None  # None: gone or hidden
    container: Optional[Container] = None  # None: in none


@dataclass(frozen=True)
class Finding:
    """What the watch found: a use of a GPU that does not agree with the leases."""

    # unreserved_use, foreign_use, over_limit, unused, not_limited. foreign_use: of a GPU that
    # somebody else has whole; not_limited: libgpurota is loaded there to hold a limit, and does not
    kind: str
    gpu: int
    gpu_uuid: str
    since: datetime.datetime  # unused: the last use
    process_count: int
    action: str  # report, notify, stop
    # a container's process: what an engine starts for a command is not in its lease
    container: bool
    # foreign_use: whose GPU it is; over_limit, unused, not_limited: which
    lease_id: Optional[str] = None
    uid: Optional[int] = None  # on whose account; None: owner unknown
    user: Optional[str] = None
    # by its processes, as far as it is known; None: of none of them
    used_bytes: Optional[int] = None
    perhaps_of: Optional[str] = None  # the lease whose command may have started that container
    processes: Optional[List[FoundProcess]] = None  # owner


@dataclass(frozen=True)
class Event:
    event_id: int  # grows with time
    time: datetime.datetime
    # lease_made, lease_started, lease_updated, lease_ending, lease_gone, request_queued,
    # request_granted, request_cancelled, call_denied, grant_denied, finding_begun, finding_ended,
    # process_stopped, gpu_error, gpu_recovered, gpu_drained, gpu_undrained, config_reloaded,
    # daemon_started, daemon_stopped, filler_started, filler_yielded, filler_ended, turn_trouble,
    # gpu_set, filler_resumed, booking_made, booking_moved, booking_begun, booking_cancelled,
    # booking_missed, access_set, access_mended, job_changed, filler_changed. job_changed,
    # filler_changed: by an administrator, of somebody else
    type: str
    count: int  # how many times; repeated denials are told as one
    message: str  # one sentence
    lease_id: Optional[str] = None
    gpu: Optional[int] = None
    gpu_uuid: Optional[str] = None
    uid: Optional[int] = None  # on whose account
    user: Optional[str] = None
    finding: Optional[str] = None  # its kind
    used_bytes: Optional[int] = None
    pids: Optional[List[int]] = None  # owner
    detail: Optional[str] = None  # owner


@dataclass(frozen=True)
class TurnLease:
    """A swap lease on one GPU. Of several processes everything is the sum."""

    lease_id: str
    uid: int
    user: str
    priority: int
    phase: str  # holding, waiting, entering, leaving
    waits_for: str  # nothing, its turn, its memory, the last holder's work, …: a few words
    position: int  # 1: next; 0: it does not wait
    quantum_ms: int  # of its next turn
    limit_bytes: int
    resident_bytes: int
    out_bytes: int  # in host memory
    wired_bytes: int  # that cannot be moved
    behind: Optional[str] = None  # the lease_id that has the turn
    pid: Optional[int] = None  # owner: the process that cannot answer
    earliest: Optional[datetime.datetime] = None  # when that may end, if nobody yields before
    own_quantum_ms: Optional[int] = None  # that was set for this lease; 0: by what moving costs
    soft_limit_bytes: Optional[int] = None
    above_soft_limit: Optional[bool] = None  # it stands behind all that are not
    oversize_bytes: Optional[int] = None  # of limit_bytes: what it may have in host memory for good
    hosted_bytes: Optional[int] = None  # and has
    coming_bytes: Optional[int] = None  # of neither resident_bytes nor out_bytes: being moved back
    # host memory that its programs say they have pinned, so that its memory moves fast
    pinned_bytes: Optional[int] = None
    may_pin_bytes: Optional[int] = None  # host memory that its programs may pin now
    # of its memory: what may have to move before long. Pinning more than that is of no use
    may_move_bytes: Optional[int] = None


@dataclass(frozen=True)
class TurnSwitch:
    time: datetime.datetime
    to: str
    in_bytes: int  # moved since the switch before: each byte is in one
    out_bytes: int
    clean_bytes: int  # of these: they did not have to be copied
    # from the last holder's drained work to the next one's open gates; with what was given up
    # between
    microseconds: int
    from_: Optional[str] = None  # lease_id; None: nobody had the turn before


@dataclass(frozen=True)
class TurnGpu:
    index: int
    uuid: str
    mode: str  # auto, on, off
    takes_turns: bool  # now; else everybody there runs
    capacity_bytes: int  # what slices leave of it
    used_bytes: int
    deficit_bytes: int  # too little for all to be there at once
    waiting: List[str]  # lease_ids, in order
    leases: List[TurnLease]
    switches: List[TurnSwitch]  # the last ones, newest last
    quantum_ms: Optional[int] = None  # None: from the cost of moving
    holder: Optional[str] = None  # lease_id
    # these four count since the daemon started: times that memory was moved out,
    evictions: Optional[int] = None
    evicted_bytes: Optional[int] = None  # what was,
    restored_bytes: Optional[int] = None  # what came back,
    handovers: Optional[int] = None  # and turns that went from one lease to another


@dataclass(frozen=True)
class AcquireReply:
    """What Acquire answers."""

    lease: Lease
    environment: List[Variable]  # to set for the command
    preload: Optional[str] = None  # library to put first into LD_PRELOAD; None when none is needed


@dataclass(frozen=True)
class StartReply:
    """What Start answers."""

    # None where there is no cgroup v2 to write to: followed by pidfds instead
    cgroup: Optional[str] = None


@dataclass(frozen=True)
class HoldReply:
    """What Hold answers."""

    lease: Lease
    # finished, released, lost, expired, booking. how it ended; booking: somebody uses one of its
    # GPUs
    ended: Optional[str] = None
    reason: Optional[str] = None  # one sentence for the user: who released it, or why it was lost
    notice: Optional[str] = None  # something to tell the user now; the lease has not changed
    # so many processes its command had left running, which were ended with it; None: none
    left_behind: Optional[int] = None


@dataclass(frozen=True)
class ReleaseReply:
    """What Release answers."""

    lease_ids: List[str]


@dataclass(frozen=True)
class UpdateReply:
    """What Update answers."""

    lease: Lease


@dataclass(frozen=True)
class EnqueueReply:
    """What Enqueue answers."""

    environment: List[Variable]
    request: Optional[Request] = None  # while it waits
    lease: Optional[Lease] = None  # at last
    preload: Optional[str] = None


@dataclass(frozen=True)
class CheckRequestReply:
    """What CheckRequest answers."""

    pass


@dataclass(frozen=True)
class GetEnvironmentReply:
    """What GetEnvironment answers."""

    lease: Lease
    environment: List[Variable]
    preload: Optional[str] = None
    cdi_device: Optional[str] = None


@dataclass(frozen=True)
class ListRequestsReply:
    """What ListRequests answers."""

    requests: List[Request]


@dataclass(frozen=True)
class ListTurnsReply:
    """What ListTurns answers."""

    gpus: List[TurnGpu]
    host_budget_bytes: int  # for evicted memory
    host_out_bytes: int  # that is evicted now


@dataclass(frozen=True)
class AddJobReply:
    """What AddJob answers."""

    job: Job


@dataclass(frozen=True)
class ListJobsReply:
    """What ListJobs answers."""

    jobs: List[Job]


@dataclass(frozen=True)
class ListJobItemsReply:
    """What ListJobItems answers."""

    items: List[JobItem]
    next: Optional[int] = None


@dataclass(frozen=True)
class ControlJobReply:
    """What ControlJob answers."""

    pass


@dataclass(frozen=True)
class ReadJobLogReply:
    """What ReadJobLog answers."""

    text: str
    cursor: str
    missed: bool


@dataclass(frozen=True)
class StatusReply:
    """What Status answers."""

    gpus: List[Gpu]
    leases: List[Lease]
    findings: List[Finding]  # as of the last sample of each GPU
    waiting: Optional[int] = None  # requests in the queue
    bookings: Optional[List[Booking]] = None  # in the order of their times


@dataclass(frozen=True)
class ListProcessesReply:
    """What ListProcesses answers."""

    processes: List[Process]


@dataclass(frozen=True)
class EventsReply:
    """What Events answers."""

    events: List[Event]
    missed: int
    left_out: int
