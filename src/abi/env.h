/* Environment variables of gpurota: the one place where their names stand. */
#pragma once

/* Set by `gpurota run` for its command; read by libgpurota when it is loaded. */
#define GPUROTA_ENV_LEASE "GPUROTA_LEASE" /* "L12" */
#define GPUROTA_ENV_TOKEN "GPUROTA_TOKEN" /* GPUROTA_TOKEN_CHARS hex digits */
/* Path of the tenant socket. Without it the lease has its GPUs whole: there is nothing to hold. */
#define GPUROTA_ENV_SOCKET "GPUROTA_SOCKET"
/* In a container, and 1: the lease has its GPUs whole; cuInit tells the daemon whose the program is, as neither control group nor
   ancestors do, and nothing is held. */
#define GPUROTA_ENV_WHOLE "GPUROTA_WHOLE"

/* In a container, and 1: it asks for an automatic lease, which is for all of the container, and without which it has no GPU. */
#define GPUROTA_ENV_CONTAINER "GPUROTA_CONTAINER"

/* What belongs to a lease in an environment, besides libgpurota in LD_PRELOAD: names between commas. An environment is replaced, not
   added to: whoever puts a program into a lease takes all of these out first, as each of them may be of another lease. */
#define GPUROTA_LEASE_VARIABLES                                                \
  GPUROTA_ENV_LEASE, GPUROTA_ENV_TOKEN, GPUROTA_ENV_SOCKET, GPUROTA_ENV_WHOLE, \
      "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
/* For people: how a shell leaves a lease. Without the first nothing else of the lease has an effect on gpurota. */
#define GPUROTA_LEAVE_LEASE \
  "unset " GPUROTA_ENV_LEASE " LD_PRELOAD CUDA_VISIBLE_DEVICES, or open a new shell"
/* The library's file, by which its entry in LD_PRELOAD is known. */
#define GPUROTA_LIBRARY_NAME "libgpurota.so"

/* Set by people. */
/* What a program that asks for a lease by itself wants, within what the site gives: "8G" or "50%", of each GPU; how many GPUs; 1: in
   turns; -100 to 100. */
#define GPUROTA_ENV_MEMORY "GPUROTA_MEMORY"
#define GPUROTA_ENV_GPUS "GPUROTA_GPUS"
#define GPUROTA_ENV_SWAP "GPUROTA_SWAP"
#define GPUROTA_ENV_PRIORITY "GPUROTA_PRIORITY"
/* 1: libgpurota explains itself on stderr; else a file's path. */
#define GPUROTA_ENV_DEBUG "GPUROTA_DEBUG"
/* 0: libgpurota says nothing on standard error of what it refuses. */
#define GPUROTA_ENV_NOTICES "GPUROTA_NOTICES"
/* Longest wait of an allocation for a daemon that is away. */
#define GPUROTA_ENV_WAIT_MS "GPUROTA_WAIT_MS"
/* Where the sockets are, for the daemon, the CLI, and programs that ask for a lease by themselves. */
#define GPUROTA_ENV_RUNTIME_DIR "GPUROTA_RUNTIME_DIR"

/* Where a daemon of root is, and what libgpurota looks for in a runtime directory. */
#define GPUROTA_SYSTEM_RUNTIME_DIR "/run/gpurota"
#define GPUROTA_TENANT_SOCKET_NAME "tenant.sock"
/* In the runtime directory: what a container may have of it. */
#define GPUROTA_CONTAINER_FOLDER "container"
/* Names libgpurota, for /etc/ld.so.preload of a container (docs/operate/containers.md). */
#define GPUROTA_PRELOAD_NAME "ld.so.preload"
/* There while the site gives leases to programs that have none (docs/design/automatic-leases.md). */
#define GPUROTA_AUTOMATIC_MARKER "automatic"
