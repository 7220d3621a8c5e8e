/* Messages between libgpurota and gpurotad on the tenant socket (docs/design/tenant-protocol.md).
 *
 * SOCK_SEQPACKET over AF_UNIX: one message is one packet, a fixed struct, little-endian as the
 * machine is. A receiver accepts a longer message than it knows and ignores the tail. A shorter
 * message counts as one of an older version, down to its size in version 1, so fields are only ever
 * appended. Anything else (unknown type before HELLO, short packet, slot out of range) ends the
 * connection, not the daemon.
 *
 * Two sockets: the tenant connects the CALL socket and asks on it, one request at a time, each
 * answered once; WELCOME brings the other end of an EVENT socket on which the daemon speaks first.
 *
 *   tenant                          daemon
 *     HELLO (call)            ->           who, which lease, what is held already (after a restart)
 *                             <-  WELCOME  + fds: page memfd, event socket; or a refusal
 *     GROW (call)             ->           gives back all headroom, asks for `need`
 *                             <-  GROWN    granted ≥ need, or 0 and why
 *     QUERY (call)            ->
 *                             <-  INFO     exact figures for cuMemGetInfo
 *     RETURN (call or event)  ->           headroom given back; no answer
 *                             <-  RECALL   (event) give back all headroom of a slot
 *     RETURN (event)          ->           answers the RECALL by its seq, 0 bytes if none
 *     PROCESSES (call)        ->           which are of the lease? (GPUROTA_FEATURE_PROCESSES)
 *                             <-  MEMBERS  those that are
 *     CONTEXTS (call)         ->           how many contexts live on a slot now
 *                             <-  INFO     once the daemon has measured what they take
 *     OPEN (call)             ->           memory that another tenant shares (wire_share.h)
 *                             <-  OPENED
 *     HOLDING (call)          ->           memory that other processes may have, too (wire_share.h)
 *                             <-  COUNTED
 *     AUTOMATIC (call)        ->           instead of HELLO: a program without a lease asks for one
 *                             <-  LEASE    which one; HELLO follows on a connection of its own
 */
#pragma once

#include "abi/limits.h"

#include <stdint.h>

#define GPUROTA_WIRE_MAGIC 0x61746f72u
#define GPUROTA_WIRE_VERSION 1u
/* Longest packet either side sends; receivers use a buffer of this size. */
#define GPUROTA_WIRE_MAX 1024u

enum gpurota_msg_type {
  GPUROTA_MSG_HELLO = 1,
  GPUROTA_MSG_WELCOME = 2,
  GPUROTA_MSG_GROW = 3,
  GPUROTA_MSG_GROWN = 4,
  GPUROTA_MSG_RETURN = 5,
  GPUROTA_MSG_RECALL = 6,
  GPUROTA_MSG_QUERY = 7,
  GPUROTA_MSG_INFO = 8,
  GPUROTA_MSG_CONTEXTS = 9,
  GPUROTA_MSG_AUTOMATIC = 10,
  GPUROTA_MSG_LEASE = 11,
  GPUROTA_MSG_PROCESSES = 20,
  GPUROTA_MSG_MEMBERS = 21,
};

enum gpurota_status {
  GPUROTA_OK = 0,
  GPUROTA_REFUSED_LIMIT = 1,   /* the lease has no room for it */
  GPUROTA_REFUSED_LEASE = 2,   /* no such lease (ended), or not this user's */
  GPUROTA_REFUSED_VERSION = 3, /* the daemon does not speak this version */
  GPUROTA_REFUSED_BUSY = 4,    /* too many tenants of this user or lease, or not now: ask again */
  /* 5 is not used */
  GPUROTA_UNMANAGED = 6, /* to AUTOMATIC: continue without a lease and without limits */
  /* To SWAP_GROW only (docs/design/turns.md): */
  GPUROTA_REFUSED_CAPACITY = 7,  /* some lease of the GPU could no longer be resident on its own */
  GPUROTA_REFUSED_HOST = 8,      /* host memory could not take all that would be evicted at once */
  GPUROTA_REFUSED_TURNS_OFF = 9, /* the request would need turns, which are off */
  /* The GPU has no room for all of it, but has room for the rest if `bytes` of it are asked for as
   * HOSTED. */
  GPUROTA_REFUSED_TO_HOST = 10,
};

/* In the `features` of WELCOME: what the daemon understands beyond version 1. */
#define GPUROTA_FEATURE_PROCESSES (UINT64_C(1) << 0)
/* In HELLO: the library can move memory. In WELCOME: the lease is a swap lease (wire_swap.h). */
#define GPUROTA_FEATURE_SWAP (UINT64_C(1) << 1)

/* In WELCOME: the site wants no notices on a program's standard error. */
#define GPUROTA_FEATURE_QUIET (UINT64_C(1) << 3)
/* In WELCOME: the time of the lease, a reservation, is over; the lease continues while its programs
 * hold memory. */
#define GPUROTA_FEATURE_EXPIRED (UINT64_C(1) << 5)

struct gpurota_msg_header {
  uint16_t type; /* enum gpurota_msg_type */
  uint16_t size; /* bytes of the whole message as the sender knows it */
  uint32_t seq;  /* chosen by the asker, repeated in the answer */
};

struct gpurota_held {
  uint8_t uuid[GPUROTA_UUID_BYTES];
  uint64_t granted_bytes; /* used + headroom, by the tenant's own books */
  uint32_t contexts;
  uint32_t reserved;
};

struct gpurota_msg_hello {
  struct gpurota_msg_header header;
  uint32_t magic;
  uint32_t version;
  uint64_t features; /* GPUROTA_FEATURE_… of the library */
  uint64_t lease;    /* number of the lease; 0: the pod's lease of this token */
  char token[GPUROTA_TOKEN_CHARS];
  uint32_t held_count; /* 0 on the first connection of a process */
  uint32_t reserved;
  struct gpurota_held held[GPUROTA_SLOTS];
};

struct gpurota_msg_welcome {
  struct gpurota_msg_header header;
  uint32_t version;
  uint32_t status; /* enum gpurota_status; fds come only with GPUROTA_OK */
  uint64_t features;
  uint64_t tenant;
};

enum gpurota_grow_kind {
  GPUROTA_GROW_MEMORY = 0,
  /* Reserve for a context that is about to be created. `need_bytes` is ignored, as the daemon knows
   * what earlier ones cost. The grant is not headroom. */
  GPUROTA_GROW_CONTEXT = 1,
};

struct gpurota_msg_grow {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t kind;           /* enum gpurota_grow_kind */
  uint64_t returned_bytes; /* headroom of this slot given back with the request */
  uint64_t need_bytes;     /* must be granted in full */
  uint64_t want_bytes;     /* ≥ need: what would be nice to have */
};

struct gpurota_msg_grown {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t status;
  uint64_t granted_bytes;   /* becomes headroom (for a context: 0) */
  uint64_t available_bytes; /* what the lease could still give when it refused */
};

struct gpurota_msg_return {
  struct gpurota_msg_header header;
  uint32_t slot;
  /* seq of the last GROWN whose bytes were in the headroom that is given back. If the daemon has
   * sent a later GROWN, that grant was still on its way when the RECALL was answered, and the
   * daemon asks again. */
  uint32_t grown_seq;
  uint64_t bytes;
};

struct gpurota_msg_recall {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t reserved;
};

struct gpurota_msg_query {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t reserved;
};

struct gpurota_msg_info {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t reserved;
  uint64_t limit_bytes;
  uint64_t available_bytes; /* beyond this tenant's grant, others' slack included */
};

struct gpurota_msg_contexts {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t count;
};

/* docs/design/automatic-leases.md */
struct gpurota_msg_automatic {
  struct gpurota_msg_header header;
  uint32_t magic;
  uint32_t version;
  uint64_t features;
  /* The lease that the program's environment names (GPUROTA_WHOLE), and the token that proves it;
   * 0: none, or the pod's lease of this token. Not sent by older libraries. */
  uint64_t lease;
  char token[GPUROTA_TOKEN_CHARS];
  /* The wishes in the environment (abi/env.h), as they stand there. "": not set. A text that is too
   * long has no NUL. */
  uint32_t ask; /* GPUROTA_ASK_… */
  uint32_t reserved;
  char memory[16];
  char gpus[8];
  char swap[8];
  char priority[8];
};
#define GPUROTA_AUTOMATIC_LEAST 24u
/* The lease is for the program's whole container, and without one the program has no GPU. */
#define GPUROTA_ASK_CONTAINER 1u

struct gpurota_msg_lease {
  struct gpurota_msg_header header;
  uint32_t version;
  uint32_t status; /* OK, UNMANAGED, or why there is no lease */
  uint64_t features;
  uint64_t lease;
  char token[GPUROTA_TOKEN_CHARS];
  /* The value for CUDA_VISIBLE_DEVICES, in PCI order, with its NUL; "": leave it alone. */
  char visible[GPUROTA_VISIBLE_BYTES];
  /* Why there is no lease, for the program's user, with its NUL; "": print nothing. */
  char why[GPUROTA_WHY_BYTES];
};
#define GPUROTA_LEASE_LEAST 768u

/* Both ways: the library asks about process ids as NVML lists them, and MEMBERS repeats those that
 * are of the lease. */
#define GPUROTA_WIRE_PIDS 60u
struct gpurota_msg_processes {
  struct gpurota_msg_header header;
  uint32_t count; /* at most GPUROTA_WIRE_PIDS */
  uint32_t reserved;
  int32_t pid[GPUROTA_WIRE_PIDS];
};

#include "abi/wire_latency.h"
#include "abi/wire_park.h"
#include "abi/wire_share.h"
#include "abi/wire_swap.h"
