/* Messages about memory that several processes share: memory shared by a handle of libgpurota's
 * (docs/design/swap-tenant.md, "Sharing between processes"), and for whom such memory is counted
 * (docs/design/memory.md, "Imported memory").
 *
 * Part of wire.h, under its rules. The driver gives no handle (cuIpcGetMemHandle) of memory that
 * moves, so libgpurota gives one of its own, which names the process and the allocation. A process
 * that opens such a handle asks the daemon, which connects the two processes: each gets one end of
 * a new socket, over which the owner sends descriptors of the memory.
 *
 *   opener                          daemon                              owner, a swap tenant
 *     OPEN (call)             ->
 *                                     SWAP_OPEN (event) + socket ->
 *                             <-  OPENED + socket
 *     <------------------------------------ SHARED (socket) + fds, until all blocks were sent
 *
 * Nothing comes back to the daemon: it takes no descriptor of a tenant's, as closing one may block
 * for ever (a file on a FUSE mount of the tenant's own). Only processes under leases of the same
 * user are connected. An opener reads each answer before it asks again.
 */
#pragma once

enum gpurota_share_msg_type {
  GPUROTA_MSG_OPEN = 12,
  GPUROTA_MSG_OPENED = 13,
  GPUROTA_MSG_SHARED = 14,
  GPUROTA_MSG_HOLDING = 15,
  GPUROTA_MSG_COUNTED = 16,
  GPUROTA_MSG_SWAP_OPEN = 39,
};

/* In WELCOME: OPEN is understood. */
#define GPUROTA_FEATURE_OPEN (UINT64_C(1) << 2)
/* In WELCOME: HOLDING is understood. */
#define GPUROTA_FEATURE_HOLDING (UINT64_C(1) << 4)

/* Descriptors that come with one SHARED at most. */
#define GPUROTA_SHARED_BLOCKS 16u

/* What a handle names. */
struct gpurota_shared_name {
  uint64_t owner[2]; /* gpurota_msg_swap_here::key of its process */
  uint64_t address;  /* of the allocation, in that process */
  uint64_t number;   /* of the sharing, unique in that process: addresses are reused */
};

struct gpurota_msg_open { /* OPEN, SWAP_OPEN */
  struct gpurota_msg_header header;
  struct gpurota_shared_name name;
};

struct gpurota_msg_opened {
  struct gpurota_msg_header header;
  uint32_t status; /* GPUROTA_OK; REFUSED_LEASE: there is no such process, or it is another user's;
                      REFUSED_BUSY: not now, to be asked again in a moment */
  /* 1: the owner is of the opener's lease, for which the memory is counted already. */
  uint32_t own_lease;
};

struct gpurota_msg_shared {
  struct gpurota_msg_header header;
  uint32_t status; /* GPUROTA_OK; REFUSED_LEASE: no such memory (any more) */
  uint32_t blocks; /* in all */
  uint32_t first_block;
  uint32_t count;        /* descriptors that come with this packet, of blocks from first_block on */
  uint64_t mapped_bytes; /* of all blocks */
  uint64_t block_bytes;  /* of each but the last */
  uint64_t offset_bytes; /* of the allocation in its first block */
  uint64_t bytes;        /* of the allocation */
};

enum gpurota_holding_kind {
  /* `bytes` of this tenant's grant are for the memory `key`, which was exported, or imported. */
  GPUROTA_HOLDING_MINE = 0,
  /* The memory was imported. If the lease has it already, it is counted once. */
  GPUROTA_HOLDING_JOIN = 1,
  /* The grant is no longer for this memory. No answer. */
  GPUROTA_HOLDING_END = 2,
};

/* HOLDING, on the call socket. `key` identifies the memory: a random number that the exporter's
 * library has put onto its descriptor, or a hash of a handle's bytes. */
struct gpurota_msg_holding {
  struct gpurota_msg_header header;
  uint32_t slot;
  uint32_t kind; /* enum gpurota_holding_kind */
  uint64_t key;
  uint64_t bytes; /* 0: not known (JOIN) */
  /* END: headroom given back in the same message, so that the memory is never counted twice, and
   * never missing from a sum. */
  uint64_t returned_bytes;
};

/* COUNTED answers MINE and JOIN. */
struct gpurota_msg_counted {
  struct gpurota_msg_header header;
  uint32_t slot;
  /* OK: noted; a JOIN has added `bytes` to the grant (not in a swap lease). REFUSED_LIMIT: the
   * lease does not have the memory of a JOIN yet, so it must be asked for like any other. */
  uint32_t status;
  uint64_t bytes; /* of the memory; 0: not known */
};
