/* Messages about parking between libgpurota and gpurotad (docs/design/park.md).
 *
 * Part of wire.h, under its rules. On the event socket, with a library that has set
 * GPUROTA_FEATURE_PARK in HELLO.
 *
 *   tenant                          daemon
 *                             <-  PARK        close: from now on no thread may ask the driver
 *                                             whether work has ended
 *     PARK_READY              ->              none does, and the library's own threads rest
 *                             <-  PARK        parked: the process is locked, so all its work has
 *                                             ended; questions are answered
 *                             <-  PARK        run: the process is unlocked, or will not be parked
 *
 * Before the process is unlocked, it gets `close` again, because questions must not be answered
 * while it may submit new work. A library that has sent PARK_READY stays closed until it hears
 * `run`, even from the next daemon: the process may be locked. A library that has not opens when
 * its connection ends.
 */
#pragma once

#include "abi/wire.h"

#include <stdint.h>

enum gpurota_park_msg_type {
  GPUROTA_MSG_PARK = 50,
  GPUROTA_MSG_PARK_READY = 51,
};

/* In HELLO: the library understands these messages. */
#define GPUROTA_FEATURE_PARK (UINT64_C(1) << 7)

enum gpurota_park_order {
  GPUROTA_PARK_RUN = 0,
  GPUROTA_PARK_CLOSE = 1,
  GPUROTA_PARK_PARKED = 2, /* ignored by a library that is not closed */
};

struct gpurota_msg_park {
  struct gpurota_msg_header header;
  uint32_t order; /* enum gpurota_park_order */
  uint32_t reserved;
};

/* What this process has had that prevents parking: bits of `obstacles`. */
#define GPUROTA_PARK_HOST_MEMORY 1u /* memory of cuMemCreate on the host */
#define GPUROTA_PARK_IMPORTS 2u     /* memory of another process */

struct gpurota_msg_park_ready {
  struct gpurota_msg_header header; /* seq: that of the PARK */
  uint32_t obstacles;
  uint32_t reserved;
};
