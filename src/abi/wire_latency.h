/* Messages about latency classes and shares of the compute time between libgpurota and gpurotad
 * (docs/design/latency.md, docs/design/compute-shares.md).
 *
 * Part of wire.h, under its rules. The daemon sends these messages on the event socket to a library
 * that has set GPUROTA_FEATURE_LATENCY in HELLO. A new connection begins without any page: the
 * library forgets the pages of the previous connection.
 *
 *   tenant                          daemon
 *                             <-  MARK       (event) + fd: this process marks its bursts of work
 *     MARKED (event)          ->             the page is mapped; others may be told of it
 *                             <-  HOLD       (event) + fd: hold back work during another's bursts
 *                             <-  HOLD_END   (event) that process no longer counts
 *                             <-  WINDOWS    (event) submit work only in windows, or at any time
 *
 * The page is a memfd of GPUROTA_PAGE_BYTES. Its only content is one word, written by the marking
 * process: odd while the process has unfinished work on the GPU, and larger, modulo 2^32, with each
 * change. The word of a new page is even, and not that of the page before. A process that holds
 * back work maps the page for reading and waits on the word (futex).
 */
#pragma once

#include "abi/wire.h"

#include <stdint.h>

enum gpurota_latency_msg_type {
  GPUROTA_MSG_MARK = 40,
  GPUROTA_MSG_MARKED = 41,
  GPUROTA_MSG_HOLD = 42,
  GPUROTA_MSG_HOLD_END = 43,
  GPUROTA_MSG_WINDOWS = 44,
};

/* In HELLO: the library understands these messages. */
#define GPUROTA_FEATURE_LATENCY (UINT64_C(1) << 6)

/* In HELLO: the library understands WINDOWS. */
#define GPUROTA_FEATURE_WINDOWS (UINT64_C(1) << 8)

/* In HELLO: the library understands these messages in a swap lease, too. */
#define GPUROTA_FEATURE_SWAP_LATENCY (UINT64_C(1) << 9)

/* The memfd's name, as /proc/PID/maps shows it. */
#define GPUROTA_BURSTS_MEMFD "gpurota-bursts"

/* The most processes for whose bursts one process holds back work. */
#define GPUROTA_MOST_HOLDS 8u

struct gpurota_msg_mark {
  struct gpurota_msg_header header;
  uint32_t on; /* 1: with the page's descriptor; 0: stop marking, no descriptor */
  uint32_t reserved;
};

struct gpurota_msg_marked {
  struct gpurota_msg_header header; /* seq: that of the MARK */
};

struct gpurota_msg_hold {
  struct gpurota_msg_header header;
  uint64_t tenant; /* the process that marks its bursts, as WELCOME numbered it */
  /* The part of the time, in thousandths, for which all marking processes together may hold back
   * this process. */
  uint32_t budget;
  uint32_t reserved;
};

/* To a library that has set GPUROTA_FEATURE_WINDOWS, of a lease with one GPU. The page of WELCOME
 * has the words: gpurota_page_grant::window and gpurota_page::work. A process that marks its bursts
 * gets no WINDOWS. */
struct gpurota_msg_windows {
  struct gpurota_msg_header header;
  uint32_t on;
  uint32_t reserved;
};

struct gpurota_msg_hold_end {
  struct gpurota_msg_header header;
  uint64_t tenant;
};
