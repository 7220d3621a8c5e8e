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
    """The reason for a wait: one whole sentence. Clients put `time` where `text` has {time}, and
    add nothing else. docs/design/control-protocol.md says what each code means."""

    # one of out_of_service, behind_requests, behind_request, kept, leased_until, leased_open_ended,
    # ending, expired_in_use, booked, booked_open_ended, free_until, over_capacity, unreserved_use,
    # machine_memory, filler_leaving, cannot_start, leased, wanted, foreign_process, load, paused,
    # removed, other_filler, idle_time, resting
    code: str
    text: str
    time: Optional[datetime.datetime] = None  # None: `text` has no {time}
    # owner; what the waiting user can do now: "starts now with --timeout 40m"; None: no remedy, or
    # the request is far back in the queue
    remedy: Optional[str] = None


@dataclass(frozen=True)
class Gpu:
    index: int  # in PCI order, as in nvidia-smi; for a MIG instance, its index on its GPU
    uuid: str
    name: str
    pci: str  # 00000000:01:00.0
    # one of available, held, in_use, unreserved_use, draining, error, split; available: no lease
    # has it, except fillers that have not expired and parked leases; held: idle, but kept for
    # `held_for`; split: leases get its MIG instances instead
    state: str
    memory_bytes: int  # size
    reserved_bytes: int  # promised to slices; all memory while a lease has the GPU exclusively
    leases: List[str]  # lease_ids
    # in use without a lease: by processes that NVML shows, plus hidden_bytes once these have been
    # more than 1 GiB for 10 s
    unreserved_bytes: int
    # the name for people, which run --gpu-ids accepts: "0", or "0:1" for a MIG instance
    label: Optional[str] = None
    parent: Optional[str] = None  # for a MIG instance: the UUID of its GPU
    # by all processes together: NVML's figure, or with unified memory the machine's; None: unknown
    used_bytes: Optional[int] = None
    # what a new slice without a time limit would get at once: fillers leave for it, and memory
    # planned for waiting requests is not included
    available_bytes: Optional[int] = None
    swap_available_bytes: Optional[int] = None  # the same for a lease that takes turns
    held_for: Optional[str] = None  # the request for which this idle GPU is kept
    # when its last lease ended; None: it has a lease, or has never had one
    idle_since: Optional[datetime.datetime] = None
    # over NVML's last sample period, a second or less; None: unknown (MIG)
    utilisation_percent: Optional[int] = None
    detail: Optional[str] = None  # why the GPU is in error, or who uses it without a lease
    classes: Optional[List[str]] = None  # the site's classes that contain it
    # the current power; None, here and in the fields below: the driver does not report it
    power_mw: Optional[int] = None
    power_limit_mw: Optional[int] = None  # the power limit
    temperature_celsius: Optional[int] = None
    slowdown_celsius: Optional[int] = None  # at this temperature the GPU lowers its clocks
    sm_clock_mhz: Optional[int] = None
    # why its clocks are lower than they could be: power, temperature, hardware, power_brake,
    # setting, sync
    clock_limits: Optional[List[str]] = None
    ecc_uncorrected: Optional[int] = None  # uncorrected memory errors since the driver was loaded
    # Xid errors that the driver has reported since gpurotad started
    xid_errors: Optional[int] = None
    compute_capability: Optional[str] = None  # "9.0"
    # the same for all GPUs that NVLink connects, directly or through others: the smallest of their
    # UUIDs
    nvlink_group: Optional[str] = None
    # memory in use that no listed process has, beyond the normal amount on this GPU; None: not
    # known, for example while a lease has the whole GPU
    hidden_bytes: Optional[int] = None
    freeing: Optional[bool] = None  # true: hidden_bytes are taken for memory of an ended program
    # the GPU uses the machine's memory, which programs without a GPU use as well
    unified: Optional[bool] = None


@dataclass(frozen=True)
class LeaseGpu:
    index: int  # as in Gpu; -1: the driver no longer shows the GPU
    uuid: str
    granted_bytes: int  # the memory that its tenants may hold now, contexts included
    processes: int  # of the lease on this GPU
    label: Optional[str] = None  # as in Gpu; "lost" if the driver no longer shows the GPU
    limit_bytes: Optional[int] = None  # None: the whole GPU, exclusively
    soft_limit_bytes: Optional[int] = None
    # by the lease's processes on this GPU: NVML's figure, else libgpurota's; None: unknown
    used_bytes: Optional[int] = None
    # set if the lease does not use this GPU, and that is a finding
    unused_since: Optional[datetime.datetime] = None
    # the part of limit_bytes that does not fit on the GPU during a turn, and stays in host memory
    oversize_bytes: Optional[int] = None
    # for a swap lease whose GPUs take turns: the phase of its TurnLease; else None
    turn: Optional[str] = None
    # 1: gets the next turn; 0: has the turn, or does not want one
    turn_position: Optional[int] = None
    # for a swap lease: memory that is in host memory until its next turn
    moved_out_bytes: Optional[int] = None
    # the driver's limit for the lease's programs on this GPU, or for only a part of them
    # (not_by_driver says why); if the lease is a pod's: for all leases of the pod together; None:
    # there is none
    driver_limit_bytes: Optional[int] = None


@dataclass(frozen=True)
class Pod:
    """A container as Kubernetes names it."""

    namespace: str
    name: str
    container: str


@dataclass(frozen=True)
class HeldFor:
    """A lease for which work of another lease was held back."""

    lease_id: str
    percent: int  # of the time
    latency: Optional[str] = None


@dataclass(frozen=True)
class LastMinute:
    """The last minute of the work that a lease's programs gave to a GPU."""

    seconds: int  # of how much of the last minute the rest is known, 1 to 60
    # of this time, the part for which work was held back: for interactive leases, or until it was
    # the lease's turn to compute
    held_percent: int
    # for whom, the longest first; work that waits for several leases counts for each of them
    held_for: List[HeldFor]
    # of the GPU's time, the part that the lease got; None: the time is not divided
    got_percent: Optional[int] = None
    # of the time, the part for which work waited because of the lease's `compute_max_percent`;
    # None: it has none
    bounded_percent: Optional[int] = None


@dataclass(frozen=True)
class Lease:
    lease_id: str  # "L12"
    kind: str  # one of run, reservation, job, filler, pod, slurm
    share: str  # one of exclusive, slice, swap
    # one of active, ending, expired; ending: its processes are being ended, or its memory is not
    # free yet; expired: its time is over, but its programs still hold memory
    state: str
    uid: int
    user: str
    since: datetime.datetime
    gpus: List[LeaseGpu]
    processes: int
    as_name: Optional[str] = None  # the person who uses a shared account, as given by that person
    # the enforced end; None: ends with its command, container or other purpose
    ends: Optional[datetime.datetime] = None
    pid: Optional[int] = None  # owner: the command's first process
    command: Optional[List[str]] = None  # owner
    note: Optional[str] = None  # owner
    model: Optional[str] = None  # owner; read from the command line (vllm serve, --model)
    # leases with a higher priority get turns first, and are stopped last
    priority: Optional[int] = None
    # for a swap lease: the length of its turns; None: as set for its GPUs; 0: from the cost of
    # moving its memory
    quantum_ms: Optional[int] = None
    name: Optional[str] = None  # owner; the name that the owner gave it
    pod: Optional[Pod] = None  # kind pod: its container, once that is known
    allocation: Optional[str] = None  # owner; kind pod: as in AcquireForPod
    warn_seconds: Optional[int] = None  # as in its LeaseRequest; None: its programs get no warning
    warn_signal: Optional[str] = None
    # when it leaves for a booking, at the earliest; known a day ahead; None: no such booking is
    # known
    leaves: Optional[datetime.datetime] = None
    enforced_by: Optional[str] = None  # one of library, library_and_driver; None: it has no limit
    # if the site wants limits enforced by the driver as well: why the driver does not enforce this
    # one, or only for a part of the lease's programs
    not_by_driver: Optional[str] = None
    # owner; the control group of a driver's limit that somebody else set and that applies to the
    # lease, or to a part of its programs
    limited_group: Optional[str] = None
    latency: Optional[str] = None  # one of normal, interactive
    # the interactive leases for which its programs hold back work; None: none
    held_back_for: Optional[List[str]] = None
    # owner; the longest time for which one of its programs has held back work, as that program
    # reports; programs that have ended do not count
    held_seconds: Optional[int] = None
    # one of parking, parked, unparking, waiting; its processes are off its GPUs, are leaving them,
    # or are returning to them; waiting: parked, and brought back as soon as there is room
    parked: Optional[str] = None
    # owner; why it could not be parked, or brought back, the last time
    park_trouble: Optional[str] = None
    compute_percent: Optional[int] = None  # its share of its GPU's compute time; None: none
    # the most that it gets of its GPU's compute time; None: no bound
    compute_max_percent: Optional[int] = None
    # if `parked` is "waiting": why the lease has no room on its GPUs yet; None also if this has not
    # been checked yet
    park_wait: Optional[Reason] = None
    # owner; None: its work is not held back, and its GPU's time not divided
    last_minute: Optional[LastMinute] = None


@dataclass(frozen=True)
class JobRun:
    """One ended run of a job. `reason`: exited, signalled (`code` says which), stopped, timeout,
    over-limit, lease-lost, booking, cannot-start, reboot, unknown."""

    ended: datetime.datetime
    reason: str
    code: int
    started: Optional[datetime.datetime] = None  # None: it never ran
    detail: Optional[str] = None
    # the most GPU memory that its lease used on all GPUs together; None: unknown
    max_used_bytes: Optional[int] = None


@dataclass(frozen=True)
class ItemCounts:
    """The number of items of an array in each state. `done`: ended with exit status 0; `unknown`:
    the end was not seen; `cancelled`: by a person, before the end or before the start; `waiting`:
    not started, or to be started again."""

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
    detail: Optional[str] = None  # as in Job
    command: Optional[List[str]] = None  # for an array of commands
    since: Optional[datetime.datetime] = None  # of the current run
    max_used_bytes: Optional[int] = None  # of the current run, as in JobRun
    lease_id: Optional[str] = None
    request_id: Optional[str] = None  # while it waits in the queue
    position: Optional[int] = None  # in the queue


@dataclass(frozen=True)
class Job:
    name: str
    uid: int
    user: str
    # stopped, waiting, running, stopping, backing-off, finished, failed, cancelled (this job cannot
    # start, because of the way in which another job has ended)
    state: str
    command: List[str]
    options: List[str]
    workdir: str  # empty: the user's home
    variables: List[str]  # the names only
    restart: str
    after: List[str]  # jobs that are started before this job at boot
    failures: int  # in a row
    runs: List[JobRun]  # the last ones, newest last
    # the reason of a wait or a stop, or the administrator who stopped the job
    detail: Optional[str] = None
    # jobs that must end successfully before this job starts
    after_success: Optional[List[str]] = None
    after_end: Optional[List[str]] = None  # jobs that must end before this job starts
    output: Optional[str] = None  # where the job's output goes: file (a log of its own), journal
    tty: Optional[bool] = None  # the job's output is a terminal
    since: Optional[datetime.datetime] = None  # of the current run
    max_used_bytes: Optional[int] = None  # of the current run, as in JobRun
    lease_id: Optional[str] = None
    request_id: Optional[str] = None  # while it waits in the queue
    position: Optional[int] = None  # in the queue
    # why the job waits in the queue; `detail` has the same as text, with its time in the local time
    # of the daemon's machine
    wait_reason: Optional[Reason] = None
    array: Optional[str] = None  # for an array: the indices of its items, "1-50"
    at_once: Optional[int] = None  # for an array: the most items that run at the same time
    items: Optional[ItemCounts] = None  # for an array


@dataclass(frozen=True)
class Variable:
    name: str
    value: str


@dataclass(frozen=True)
class FairShare:
    """The GPU time that a user has used, if the site orders the queue by use: use that is
    `half_life_seconds` old counts half. The user with the smaller quotient of `used_seconds` and
    `weight` goes first; if there are groups, the quotients of the groups are compared first."""

    used_seconds: int
    weight: int
    half_life_seconds: int
    group: Optional[str] = None  # None: the user is compared without a group
    group_used_seconds: Optional[int] = None
    group_weight: Optional[int] = None


@dataclass(frozen=True)
class Passing:
    """A request that is ahead of an earlier one."""

    request_id: str
    user: str
    fair_share: FairShare


@dataclass(frozen=True)
class Request:
    """A request that waits for a lease."""

    request_id: str  # "R7"
    position: int  # from 1
    kind: str  # of its lease
    uid: int
    user: str
    since: datetime.datetime
    gpus: int  # how many
    free: int  # the number of GPUs that are free for this request now
    # indices of the GPUs on which it will start, as far as known now; idle ones are held
    planned: List[int]
    reason: str  # wait_reason as text, with its time in the daemon's local time
    as_name: Optional[str] = None
    gpu_ids: Optional[List[str]] = None  # the GPUs that were named; None: any
    memory: Optional[Size] = None
    seconds: Optional[int] = None  # the enforced end of the lease, counted from its start
    planned_labels: Optional[List[str]] = None  # their names for people
    # the latest start, as far as known now; None: unknown
    expected: Optional[datetime.datetime] = None
    next: Optional[str] = None  # from an older daemon only: text to append to `reason`
    next_at: Optional[datetime.datetime] = None  # from an older daemon only
    pid: Optional[int] = None  # owner: the process that waits
    command: Optional[List[str]] = None  # owner
    note: Optional[str] = None  # owner
    swap: Optional[bool] = None  # share in turns
    oversize: Optional[bool] = None
    gpu_type: Optional[str] = None  # as requested
    min_memory_bytes: Optional[int] = None
    min_cc: Optional[int] = None
    name: Optional[str] = None  # owner; the name that the owner gave it
    gpu_class: Optional[str] = None  # as requested
    # of its user; None: the queue is in the order of arrival
    fair_share: Optional[FairShare] = None
    # the nearest later request that is ahead of this one; None: none
    passed_by: Optional[Passing] = None
    overdue: Optional[bool] = None  # it has waited for so long that no later request overtakes it
    wait_reason: Optional[Reason] = None  # None: from an older daemon
    latency: Optional[str] = None
    compute_percent: Optional[int] = None  # as requested
    compute_max_percent: Optional[int] = None


@dataclass(frozen=True)
class Booking:
    """A reservation that has not begun: GPUs that are kept for a user, beginning at a later time.
    Then the booking becomes a lease."""

    request_id: str  # "R7": for Cancel
    uid: int
    user: str
    made: datetime.datetime
    begins: datetime.datetime
    ends: datetime.datetime
    gpu_ids: List[str]  # the GPUs that are kept for it
    labels: List[str]  # their names for people
    as_name: Optional[str] = None
    memory: Optional[Size] = None  # of each GPU; None: the whole GPU
    trouble: Optional[str] = None  # wait_reason as text, with its time in the daemon's local time
    note: Optional[str] = None  # owner
    wait_reason: Optional[Reason] = None  # why it has not begun although its time has come
    # leases without a stated end leave when the booking begins, not when it is used
    on_time: Optional[bool] = None
    # the booking's time has come, but leases without a stated end continue on its GPUs until its
    # owner uses the booking
    waits_for_use: Optional[bool] = None
    latency: Optional[str] = None
    compute_percent: Optional[int] = None  # of each GPU; None: none
    compute_max_percent: Optional[int] = None


@dataclass(frozen=True)
class Container:
    """A container, as named by the control groups of its engine."""

    # one of docker, podman, nerdctl, containerd, crio, lxc, kubernetes; kubernetes: the group does
    # not name the engine
    engine: str
    container_id: str  # 64 hex digits; for LXC: its name; empty: only the pod is known
    pod: Optional[str] = None  # the pod's UID
    # the name for people; for a pod's container: NAMESPACE/POD/CONTAINER; None: not known
    name: Optional[str] = None
    image: Optional[str] = None  # the image as named at the container's start; None: not known


@dataclass(frozen=True)
class Process:
    gpu: int
    gpu_uuid: str
    type: str  # one of compute, graphics
    tenant: bool  # connected through libgpurota
    pid: Optional[int] = None  # owner
    uid: Optional[int] = None  # None: ended between two samples, or hidden
    user: Optional[str] = None
    gpu_label: Optional[str] = None  # the label of the Gpu
    used_bytes: Optional[int] = None  # NVML's figure, else libgpurota's; None: unknown
    lease_id: Optional[str] = None
    command: Optional[List[str]] = None  # owner
    container: Optional[Container] = None  # owner; None: not in a container
    # owner; allocations through libgpurota so far, as reported by the process itself
    allocations: Optional[int] = None
    refusals: Optional[int] = None  # owner
    # owner; driver functions that the process looked up and libgpurota does not know
    unhooked: Optional[int] = None
    unhooked_names: Optional[List[str]] = None  # owner; the first of these functions
    # owner; for which the process has held back work for interactive leases, as reported by the
    # process itself
    held_seconds: Optional[int] = None
    bursts: Optional[int] = None  # owner; of work, in an interactive lease
    # owner; for which submissions of the process have waited until it was its lease's turn to
    # compute, as reported by the process
    share_wait_seconds: Optional[int] = None
    # one of absent, silent, away; the state of libgpurota in a process that has a limit but is not
    # a tenant. absent: not loaded, or without a lease to enforce; silent: loaded with a lease, but
    # has never connected (a finding not_limited); away: was connected to an earlier daemon
    library: Optional[str] = None


@dataclass(frozen=True)
class FoundProcess:
    pid: int
    used_bytes: Optional[int] = None  # NVML's figure, else libgpurota's; None: unknown
    command: Optional[List[str]] = None  # None: the process has ended, or is hidden
    container: Optional[Container] = None  # None: not in a container


@dataclass(frozen=True)
class Finding:
    """A finding of the watch: use of a GPU that does not agree with the leases."""

    # one of unreserved_use, foreign_use, over_limit, unused, not_limited; foreign_use: use of a GPU
    # that another user has exclusively; not_limited: libgpurota is loaded to enforce a limit, but
    # does not enforce it
    kind: str
    gpu: int
    gpu_uuid: str
    since: datetime.datetime  # for unused: the last use
    process_count: int
    action: str  # one of report, notify, stop
    # some of the processes are in a container; they may still come from a command with a lease,
    # because a process that an engine starts for a command is not in the command's lease
    container: bool
    # foreign_use: the lease that has the GPU; over_limit, unused, not_limited: the lease itself
    lease_id: Optional[str] = None
    uid: Optional[int] = None  # the user concerned; None: unknown
    user: Optional[str] = None
    # by its processes, as far as known; None: known for none of them
    used_bytes: Optional[int] = None
    perhaps_of: Optional[str] = None  # the lease whose command may have started that container
    processes: Optional[List[FoundProcess]] = None  # owner


@dataclass(frozen=True)
class Event:
    event_id: int  # later events have greater ids
    time: datetime.datetime
    # one of lease_made, lease_started, lease_updated, lease_ending, lease_gone, request_queued,
    # request_granted, request_cancelled, call_denied, grant_denied, finding_begun, finding_ended,
    # process_stopped, gpu_error, gpu_recovered, gpu_drained, gpu_undrained, config_reloaded,
    # daemon_started, daemon_stopped, filler_started, filler_yielded, filler_ended, turn_trouble,
    # gpu_set, filler_resumed, booking_made, booking_moved, booking_begun, booking_cancelled,
    # booking_missed, access_set, access_mended, job_changed, filler_changed, lease_parked,
    # lease_unparked, park_failed, work_held_back; job_changed, filler_changed: an administrator has
    # changed another user's
    type: str
    count: int  # the number of times; repeated denials are one event
    message: str  # one sentence
    lease_id: Optional[str] = None
    gpu: Optional[int] = None
    gpu_uuid: Optional[str] = None
    uid: Optional[int] = None  # the user concerned
    user: Optional[str] = None
    finding: Optional[str] = None  # its kind
    used_bytes: Optional[int] = None
    pids: Optional[List[int]] = None  # owner
    detail: Optional[str] = None  # owner


@dataclass(frozen=True)
class TurnLease:
    """A swap lease on one GPU. Amounts are sums over all its processes."""

    lease_id: str
    uid: int
    user: str
    priority: int
    phase: str  # holding, waiting, entering, leaving
    waits_for: str  # nothing, its turn, its memory, the last holder's work, …: a few words
    position: int  # 1: gets the next turn; 0: does not wait
    quantum_ms: int  # the length of its next turn
    limit_bytes: int
    resident_bytes: int
    out_bytes: int  # in host memory
    wired_bytes: int  # memory that cannot be evicted
    behind: Optional[str] = None  # the lease that has the turn
    pid: Optional[int] = None  # owner: the process that does not answer
    earliest: Optional[datetime.datetime] = None  # when the wait may end, if no lease yields before
    # as set for this lease; 0: from the cost of moving its memory
    own_quantum_ms: Optional[int] = None
    soft_limit_bytes: Optional[int] = None
    above_soft_limit: Optional[bool] = None  # leases that are not above their soft limits go first
    # the part of limit_bytes that may stay in host memory, even during its turns
    oversize_bytes: Optional[int] = None
    hosted_bytes: Optional[int] = None  # the part of oversize_bytes that is in use
    # being moved back to the GPU; counted in neither resident_bytes nor out_bytes
    coming_bytes: Optional[int] = None
    # host memory that its programs report as pinned, for fast moves
    pinned_bytes: Optional[int] = None
    may_pin_bytes: Optional[int] = None  # host memory that its programs may pin now
    # the part of its memory that may have to move soon: pinning more host memory than this is
    # useless
    may_move_bytes: Optional[int] = None


@dataclass(frozen=True)
class TurnSwitch:
    time: datetime.datetime
    to: str
    # moved to the GPU since the previous switch; each byte is counted in one switch only
    in_bytes: int
    out_bytes: int
    clean_bytes: int  # the part of out_bytes that did not have to be copied
    # from the end of the last holder's work to the opening of the next holder's gates, including
    # turns that were given up in between
    microseconds: int
    from_: Optional[str] = None  # None: no lease had the turn before


@dataclass(frozen=True)
class TurnGpu:
    index: int
    uuid: str
    mode: str  # auto, on, off
    takes_turns: bool  # false: all leases run at the same time
    capacity_bytes: int  # the memory that slices leave to leases that take turns
    used_bytes: int
    deficit_bytes: int  # how much is missing for all leases to be in GPU memory together
    waiting: List[str]  # lease_ids, in order
    leases: List[TurnLease]
    switches: List[TurnSwitch]  # the last ones, newest last
    quantum_ms: Optional[int] = None  # None: from the cost of moving memory
    holder: Optional[str] = None  # lease_id
    # how often memory was evicted; like the next three fields, counted from the start of the daemon
    evictions: Optional[int] = None
    evicted_bytes: Optional[int] = None  # memory that was evicted
    restored_bytes: Optional[int] = None  # memory that was restored
    handovers: Optional[int] = None  # turns that passed from one lease to another


@dataclass(frozen=True)
class AcquireReply:
    """What Acquire answers."""

    lease: Lease
    environment: List[Variable]  # to set for the command
    preload: Optional[str] = None  # the library to put first into LD_PRELOAD; None: none is needed


@dataclass(frozen=True)
class StartReply:
    """What Start answers."""

    # None: there is no writable cgroup v2, and the daemon follows processes by pidfds instead
    cgroup: Optional[str] = None


@dataclass(frozen=True)
class HoldReply:
    """What Hold answers."""

    lease: Lease
    # one of finished, released, lost, expired, booking; how the lease ended; booking: it left for a
    # booking of one of its GPUs
    ended: Optional[str] = None
    # one sentence for the user: who released the lease, or why it was lost
    reason: Optional[str] = None
    notice: Optional[str] = None  # text to show to the user now; the lease has not changed
    # the number of processes that its command left running and that were ended with the lease;
    # None: none
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
    request: Optional[Request] = None  # while the request waits
    lease: Optional[Lease] = None  # in the last answer
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
    host_budget_bytes: int  # the most host memory for evicted memory
    host_out_bytes: int  # memory that is evicted now


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
