/* For libraries that tests preload into gpurotad. */
#pragma once
#include <errno.h>
#include <string.h>

/* Whether this process is gpurotad, which may also be installed as gpurotad.real, behind a script
 * named gpurotad. */
static inline int is_daemon(void) {
  static const char name[] = "gpurotad";
  return strncmp(program_invocation_short_name, name, sizeof name - 1) == 0;
}
