/* The page that gpurotad and one tenant share (docs/design/tenant-protocol.md).
 *
 * A memfd of one page, sealed against resizing, passed with the WELCOME message. Each field has one
 * writer; the page has no lock, and no two tenants share one. What the tenant writes is only shown,
 * or a hint that the daemon bounds by its ledger. All fields are read and written with relaxed
 * atomic accesses of their own size; no two fields need to agree.
 *
 * C-compatible: libgpurota, gpurotad and tests in other languages read it.
 */
#pragma once

#include "abi/limits.h"

#include <stdint.h>

/* The memfd's name: /proc/PID/maps shows whether a process has ever been welcomed. */
#define GPUROTA_PAGE_MEMFD "gpurota-page"
#define GPUROTA_PAGE_MAGIC 0x41544f52u /* "ROTA" */
#define GPUROTA_PAGE_VERSION 1u
#define GPUROTA_PAGE_BYTES 4096u
#define GPUROTA_PAGE_NAMES 8u
#define GPUROTA_PAGE_NAME_BYTES 64u

/* Written by the daemon only. One cache line. */
struct gpurota_page_grant {
  uint8_t uuid[GPUROTA_UUID_BYTES]; /* the GPU of this slot; all zero: slot unused */
  uint64_t limit_bytes;     /* the GPU's size as the program sees it; follows `gpurota update` */
  uint64_t available_bytes; /* what the lease could still give this tenant beyond its grant */
  /* After WINDOWS (wire_latency.h): odd while others have a window of the GPU's compute time, so
   * that submissions wait; larger, modulo 2^32, with each change. A word that is odd is changed at
   * least every 50 ms. */
  uint32_t window;
  uint32_t reserved[7];
};

/* Written by the tenant only. One cache line. */
struct gpurota_page_use {
  uint64_t used_bytes;     /* charged for hooked allocations, this process, this GPU */
  uint64_t headroom_bytes; /* granted and not used */
  uint64_t allocations;    /* hooked allocations that succeeded */
  uint64_t refusals;       /* allocations refused because of the limit */
  uint64_t unhooked;       /* driver functions handed out that should have a hook and have none */
  /* The part of used_bytes that another process made, where NVML may show it. */
  uint64_t imported_bytes;
  uint64_t held_us; /* for which submissions were held back (wire_latency.h) */
  uint64_t bursts;  /* of work on the GPU, in an interactive lease */
};

struct gpurota_page {
  uint32_t magic;   /* GPUROTA_PAGE_MAGIC */
  uint32_t version; /* GPUROTA_PAGE_VERSION; a newer daemon only adds fields */
  uint32_t slots;   /* slots in use, at most GPUROTA_SLOTS */
  uint32_t size;    /* bytes of this struct that the daemon knows; all of the page can be written */
  uint8_t reserved[48];
  struct gpurota_page_grant grant[GPUROTA_SLOTS];
  struct gpurota_page_use use[GPUROTA_SLOTS];
  /* Written by the tenant: the first few names of what use[0].unhooked counts, each once. */
  uint32_t unhooked_names;
  uint32_t reserved2;
  char unhooked_name[GPUROTA_PAGE_NAMES][GPUROTA_PAGE_NAME_BYTES]; /* with their NUL */
  /* Written by the tenant, after WINDOWS (wire_latency.h). `work`: odd while the process has
   * unfinished work on its GPU, and larger, modulo 2^32, with each change (a futex). `waiting`:
   * submissions that wait for a window. `waited_us`: for which submissions have waited so far. */
  uint32_t work;
  uint32_t waiting;
  uint64_t waited_us;
};
