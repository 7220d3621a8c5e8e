/* For what is preloaded into gpurotad by tests. */
#pragma once
#include <errno.h>
#include <string.h>

/* Whether this process is gpurotad, which may also be installed behind a script of that name, as gpurotad.real. */
static inline int is_daemon(void) {
  static const char name[] = "gpurotad";
  return strncmp(program_invocation_short_name, name, sizeof name - 1) == 0;
}
