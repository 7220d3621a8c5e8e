/* Environment variables of gpurota: the one place where their names stand. */
#pragma once

/* Set by `gpurota run` for its command; read by libgpurota when it is loaded. */
#define GPUROTA_ENV_LEASE "GPUROTA_LEASE"   /* "L12" */
#define GPUROTA_ENV_TOKEN "GPUROTA_TOKEN"   /* GPUROTA_TOKEN_CHARS hex digits */
#define GPUROTA_ENV_SOCKET "GPUROTA_SOCKET" /* path of the tenant socket */

/* Set by people. */
/* 1: libgpurota explains itself on stderr; else a file's path. */
#define GPUROTA_ENV_DEBUG "GPUROTA_DEBUG"
/* Longest wait of an allocation for a daemon that is away. */
#define GPUROTA_ENV_WAIT_MS "GPUROTA_WAIT_MS"
/* Where the sockets are, for the daemon and the CLI. */
#define GPUROTA_ENV_RUNTIME_DIR "GPUROTA_RUNTIME_DIR"
