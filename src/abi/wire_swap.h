/* Messages of swap leases on the tenant socket: turns, and memory that moves (docs/design/turns.md).
 *
 * Part of wire.h, under its rules. Used when both ends said GPUROTA_FEATURE_SWAP: the library in HELLO
 * that it can, the daemon in WELCOME that the lease is one. All of these go over the EVENT socket, in
 * both directions, from any thread of the tenant; none holds up the CALL socket, where QUERY, CONTEXTS
 * and PROCESSES stay as they are. GROW, RETURN and RECALL are of slices only.
 *
 *   tenant                          daemon
 *     SWAP_HERE               ->           first on every new connection: what it has
 *                             <-  SWAP_TERMS     what it may use; again when that changes
 *     SWAP_GROW               ->           wants memory; it may be a turn's wait until the answer
 *                             <-  SWAP_GROWN     by its seq
 *     SWAP_SHRINK             ->           memory was freed; no answer
 *                             <-  SWAP_GATE      open, close, let one submission through
 *     SWAP_STATUS             ->           when it changes, and for each SWAP_GATE that it has carried out
 *                             <-  SWAP_MOVE      evict or restore, in addition to earlier orders
 *     SWAP_MOVED              ->           as it goes, until all that was ordered is moved or returned
 *
 * Numbers of the tenant are hints that the daemon bounds by what it knows. After a lost connection
 * nothing that was ordered or asked counts any more: SWAP_HERE says how things stand, whoever waits
 * for a SWAP_GROWN asks again, and orders come anew. A tenant's gate is shut until it is opened by the
 * first SWAP_GATE of its life; later a lost connection leaves it as it is.
 */
#pragma once

enum gpurota_swap_msg_type {
  GPUROTA_MSG_SWAP_HERE = 30,
  GPUROTA_MSG_SWAP_TERMS = 31,
  GPUROTA_MSG_SWAP_GROW = 32,
  GPUROTA_MSG_SWAP_GROWN = 33,
  GPUROTA_MSG_SWAP_SHRINK = 34,
  GPUROTA_MSG_SWAP_GATE = 35,
  GPUROTA_MSG_SWAP_STATUS = 36,
  GPUROTA_MSG_SWAP_MOVE = 37,
  GPUROTA_MSG_SWAP_MOVED = 38,
};

/* What a tenant has on one GPU. */
struct gpurota_swap_memory {
  uint64_t movable_bytes;  /* that can be evicted; here or out */
  uint64_t resident_bytes; /* of these, in GPU memory now */
  uint64_t
      wired_bytes; /* that cannot, as far as the library sees it; contexts as they were granted */
};

struct gpurota_msg_swap_here {
  struct gpurota_msg_header header;
  uint32_t gate_open;
  uint32_t slots;
  struct gpurota_swap_memory memory[GPUROTA_SLOTS]; /* by slot of the page */
  /* In host memory for good (GPUROTA_SWAP_HOSTED); of nothing above. Not said by older libraries: 0. */
  uint64_t hosted_bytes[GPUROTA_SLOTS];
  /* Random, for the life of the process: under it others open its memory (wire_share.h). 0: nobody does. */
  uint64_t key[2];
};
/* As it was first released. */
#define GPUROTA_SWAP_HERE_LEAST (16u + GPUROTA_SLOTS * 24u)

enum gpurota_turns {
  GPUROTA_TURNS_NONE = 0,
  /* Turns are taken on the lease's GPUs, or the lease makes way for whoever comes: what the lease
   * has there is evicted before long, or at once one day. */
  GPUROTA_TURNS_TAKEN = 1,
  /* The lease's GPUs are nearly full: host memory is pinned ahead. Older libraries take this value
   * for GPUROTA_TURNS_TAKEN. */
  GPUROTA_TURNS_LIKELY = 2,
};

struct gpurota_msg_swap_terms {
  struct gpurota_msg_header header;
  uint64_t host_bytes;   /* of host memory that evicted memory may take, this process */
  uint64_t pinned_bytes; /* of these, that may be pinned */
  /* Not said by older daemons: 0. */
  uint64_t
      kept_bytes; /* that may be held while nothing is out, copies and what is pinned; 0: as before */
  uint32_t copy_all; /* 1: what did not change is copied too */
  uint32_t takes_turns; /* gpurota_turns */
};
/* As it was first released. */
#define GPUROTA_SWAP_TERMS_LEAST 24u

enum gpurota_swap_grow_kind {
  GPUROTA_SWAP_MOVABLE = 0,
  GPUROTA_SWAP_WIRED = 1,
  /* A context that is about to be created: `bytes` is ignored, the answer says what it is taken for. Wired. */
  GPUROTA_SWAP_CONTEXT = 2,
  /* Of an oversize lease: memory that lies in host memory and is used there, never moved. Asked for only
   * after GPUROTA_REFUSED_TO_HOST, in whole pages of 2 MiB; answered at once. */
  GPUROTA_SWAP_HOSTED = 3,
};

struct gpurota_msg_swap_grow {
  struct gpurota_msg_header header; /* seq: the tenant's, unique among those not answered yet */
  uint32_t slot;
  uint32_t kind; /* enum gpurota_swap_grow_kind */
  uint64_t bytes;
};

struct gpurota_msg_swap_grown {
  struct gpurota_msg_header header; /* seq: of the question */
  uint32_t slot;
  uint32_t status; /* GPUROTA_OK or GPUROTA_REFUSED_… */
  uint64_t
      bytes; /* granted: all that was asked for, or 0; with REFUSED_TO_HOST: what to ask for as HOSTED */
};

struct gpurota_msg_swap_shrink {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t reserved;
  uint64_t resident_bytes; /* freed in GPU memory */
  uint64_t out_bytes;      /* freed while evicted */
  uint64_t wired_bytes;
  uint64_t hosted_bytes; /* not said by older libraries: 0 */
};
/* As it was first released. */
#define GPUROTA_SWAP_SHRINK_LEAST 40u

enum gpurota_swap_gate_order {
  GPUROTA_GATE_OPEN = 0,
  GPUROTA_GATE_CLOSE = 1,
  GPUROTA_GATE_LET_ONE_THROUGH = 2,
};

struct gpurota_msg_swap_gate {
  struct gpurota_msg_header header; /* seq: counts the orders of this connection */
  uint32_t order;                   /* enum gpurota_swap_gate_order */
  uint32_t reserved;
};

struct gpurota_msg_swap_status {
  struct gpurota_msg_header header;
  uint32_t gate_seq; /* of the last SWAP_GATE it has carried out */
  uint32_t busy;     /* 1: work of its is in flight, or being submitted */
  uint32_t waiting;  /* submissions that stand at its gate */
  uint32_t ready;    /* of these, for a GPU on which it has nothing in flight */
};

enum gpurota_swap_direction {
  GPUROTA_SWAP_EVICT = 0,
  GPUROTA_SWAP_RESTORE = 1,
};

struct gpurota_msg_swap_move {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t direction; /* enum gpurota_swap_direction */
  uint64_t bytes;     /* to bring out; or room to come back into, returned if unused */
};

enum gpurota_swap_failure {
  GPUROTA_SWAP_FAILED = 1, /* a step failed and was rolled back */
  /* The process has a device open that may have registered its memory: nothing of it moves until that is closed. */
  GPUROTA_SWAP_RDMA = 2,
};

#define GPUROTA_CLEAN_PAGE 4096u

struct gpurota_msg_swap_moved {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t direction;
  uint32_t
      failed; /* enum gpurota_swap_failure, 0: it did not; what is not known is a failure too */
  /* Of `bytes`, in pages of GPUROTA_CLEAN_PAGE: evicted without a copy, as host memory had them already. Older libraries
   * say 0. */
  uint32_t clean_pages;
  uint64_t bytes;    /* since the last of these */
  uint64_t returned; /* was ordered and will not be done */
};
