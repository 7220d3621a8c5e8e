/* Messages of swap leases on the tenant socket: turns, and memory that moves
 * (docs/design/turns.md).
 *
 * Part of wire.h, under its rules. Used when both ends have set GPUROTA_FEATURE_SWAP: the library
 * in HELLO if it can move memory, the daemon in WELCOME if the lease is a swap lease. All these
 * messages use the EVENT socket, in both directions, from any thread of the tenant. None holds up
 * the CALL socket, where QUERY, CONTEXTS and PROCESSES stay as they are. GROW, RETURN and RECALL
 * are for slices only.
 *
 *   tenant                          daemon
 *     SWAP_HERE               ->           first on every new connection: what it has
 *                             <-  SWAP_TERMS     what it may use; sent again when that changes
 *     SWAP_GROW               ->           wants memory; the answer may take a whole turn
 *                             <-  SWAP_GROWN     the answer, by its seq
 *     SWAP_SHRINK             ->           memory was freed; no answer
 *                             <-  SWAP_GATE      open, close, let one submission through
 *     SWAP_STATUS             ->           on a change, and for each SWAP_GATE carried out
 *                             <-  SWAP_MOVE      evict or restore, in addition to earlier orders
 *     SWAP_MOVED              ->           repeatedly, until all ordered is moved or returned
 *
 * Numbers of the tenant are hints that the daemon bounds by what it knows. A lost connection
 * cancels all orders and questions: SWAP_HERE then tells the tenant's state, a thread that waits
 * for a SWAP_GROWN asks again, and the daemon sends new orders. A tenant's gate is shut until the
 * first SWAP_GATE of the tenant's life opens it; later a lost connection leaves the gate as it is.
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
  uint64_t movable_bytes;  /* that can be evicted; resident or evicted */
  uint64_t resident_bytes; /* of these, in GPU memory now */
  /* Memory that cannot be evicted, as far as the library knows. A context counts with the size
   * that was granted for it. */
  uint64_t wired_bytes;
};

struct gpurota_msg_swap_here {
  struct gpurota_msg_header header;
  uint32_t gate_open;
  uint32_t slots;
  struct gpurota_swap_memory memory[GPUROTA_SLOTS]; /* by slot of the page */
  /* In host memory for good (GPUROTA_SWAP_HOSTED), and in none of the figures above. Older
   * libraries do not send it: 0. */
  uint64_t hosted_bytes[GPUROTA_SLOTS];
  /* Random, for the life of the process: other processes name its memory by this key
   * (wire_share.h). 0: none does. */
  uint64_t key[2];
};
/* The size in the first release. */
#define GPUROTA_SWAP_HERE_LEAST (16u + GPUROTA_SLOTS * 24u)

enum gpurota_turns {
  GPUROTA_TURNS_NONE = 0,
  /* The lease takes turns on its GPUs, so its memory there will be evicted before long. Or it is
   * a filler's lease, which gives way to any other: its memory may have to be evicted at once at
   * any time. */
  GPUROTA_TURNS_TAKEN = 1,
  /* The lease's GPUs are nearly full: host memory is pinned ahead. Older libraries take this value
   * for GPUROTA_TURNS_TAKEN. */
  GPUROTA_TURNS_LIKELY = 2,
};

struct gpurota_msg_swap_terms {
  struct gpurota_msg_header header;
  uint64_t host_bytes;   /* of host memory that evicted memory may take, this process */
  uint64_t pinned_bytes; /* of these, that may be pinned */
  /* Host memory that may be held while nothing is evicted: copies, and what is pinned. 0: no such
   * bound, as before this field existed; older daemons do not send it. */
  uint64_t kept_bytes;
  uint32_t copy_all;    /* 1: unchanged memory is copied too */
  uint32_t takes_turns; /* gpurota_turns */
};
/* The size in the first release. */
#define GPUROTA_SWAP_TERMS_LEAST 24u

enum gpurota_swap_grow_kind {
  GPUROTA_SWAP_MOVABLE = 0,
  GPUROTA_SWAP_WIRED = 1,
  /* A context that is about to be created, which is wired. `bytes` is ignored; the answer has the
   * size that the daemon assumes for a context. */
  GPUROTA_SWAP_CONTEXT = 2,
  /* For an oversize lease: memory that lies in host memory and is used there, never moved. Asked
   * for only after GPUROTA_REFUSED_TO_HOST, in whole pages of 2 MiB; answered at once. */
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
  /* Granted: all that was asked for, or 0. With REFUSED_TO_HOST: what to ask for as HOSTED. */
  uint64_t bytes;
};

struct gpurota_msg_swap_shrink {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t reserved;
  uint64_t resident_bytes; /* freed in GPU memory */
  uint64_t out_bytes;      /* freed while evicted */
  uint64_t wired_bytes;
  uint64_t hosted_bytes; /* not sent by older libraries: 0 */
};
/* The size in the first release. */
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
  uint32_t gate_seq; /* of the last SWAP_GATE that was carried out */
  uint32_t busy;     /* 1: the tenant's work is in flight, or being submitted */
  uint32_t waiting;  /* calls that wait at the tenant's gate */
  uint32_t ready;    /* of these, for a GPU on which the tenant has nothing in flight */
  /* Host memory that the tenant has pinned for evictions, in bytes, on all GPUs. Only shown. Older
   * libraries do not send it: 0. */
  uint64_t pinned_bytes;
};
/* As it was first released. */
#define GPUROTA_SWAP_STATUS_LEAST 24u

enum gpurota_swap_direction {
  GPUROTA_SWAP_EVICT = 0,
  GPUROTA_SWAP_RESTORE = 1,
};

struct gpurota_msg_swap_move {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t direction; /* enum gpurota_swap_direction */
  uint64_t bytes;     /* to evict; or room to restore into, returned if unused */
};

enum gpurota_swap_failure {
  GPUROTA_SWAP_FAILED = 1, /* a step failed and was rolled back */
  /* The process has an open device that may have registered its memory: no memory of the process
   * moves until that device is closed. */
  GPUROTA_SWAP_RDMA = 2,
};

#define GPUROTA_CLEAN_PAGE 4096u

struct gpurota_msg_swap_moved {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t direction;
  /* enum gpurota_swap_failure; 0: no failure. An unknown value is a failure too. */
  uint32_t failed;
  /* The part of `bytes`, in pages of GPUROTA_CLEAN_PAGE, that was evicted without a copy, as host
   * memory had it already. Older libraries send 0. */
  uint32_t clean_pages;
  uint64_t bytes;    /* moved since the last SWAP_MOVED */
  uint64_t returned; /* ordered, and will not be done */
};
