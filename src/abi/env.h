/* Environment variables of gpurota: the only place for their names. */
#pragma once

/* Set by `gpurota run` for its command; read by libgpurota when it is loaded. */
#define GPUROTA_ENV_LEASE "GPUROTA_LEASE" /* "L12" */
#define GPUROTA_ENV_TOKEN "GPUROTA_TOKEN" /* GPUROTA_TOKEN_CHARS hex digits */
/* Path of the tenant socket. Not set: the lease has its GPUs whole, and no limit is enforced. */
#define GPUROTA_ENV_SOCKET "GPUROTA_SOCKET"
/* 1, in a container: the lease has its GPUs whole, and no limit is enforced. cuInit tells the
 * daemon which lease the program belongs to, because the daemon cannot learn that from the
 * program's control group or its ancestors. */
#define GPUROTA_ENV_WHOLE "GPUROTA_WHOLE"

/* 1, in a container: the program asks for an automatic lease for the whole container, and has no
 * GPU without it. */
#define GPUROTA_ENV_CONTAINER "GPUROTA_CONTAINER"

/* The variables of a lease in an environment, besides libgpurota in LD_PRELOAD, separated by
 * commas. Code that puts a program into a lease must first remove all of these, as each may be of
 * another lease. */
#define GPUROTA_LEASE_VARIABLES                                                \
  GPUROTA_ENV_LEASE, GPUROTA_ENV_TOKEN, GPUROTA_ENV_SOCKET, GPUROTA_ENV_WHOLE, \
      "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
/* Advice for users: how a shell leaves a lease. Without the first variable, the others have no
 * effect on gpurota. */
#define GPUROTA_LEAVE_LEASE \
  "unset " GPUROTA_ENV_LEASE " LD_PRELOAD CUDA_VISIBLE_DEVICES, or open a new shell"
/* The library's file name, by which its entry in LD_PRELOAD is known. */
#define GPUROTA_LIBRARY_NAME "libgpurota.so"

/* Set by users. */
/* The wishes of a program that asks for a lease by itself, within what the site gives: "8G" or
 * "50%", of each GPU; the number of GPUs; 1 for turns; a priority from -100 to 100. */
#define GPUROTA_ENV_MEMORY "GPUROTA_MEMORY"
#define GPUROTA_ENV_GPUS "GPUROTA_GPUS"
#define GPUROTA_ENV_SWAP "GPUROTA_SWAP"
#define GPUROTA_ENV_PRIORITY "GPUROTA_PRIORITY"
/* 1: libgpurota explains itself on stderr; else a file's path. */
#define GPUROTA_ENV_DEBUG "GPUROTA_DEBUG"
/* 0: libgpurota prints no notice of a refusal on standard error. */
#define GPUROTA_ENV_NOTICES "GPUROTA_NOTICES"
/* Longest wait of an allocation for a daemon that is away, in milliseconds. */
#define GPUROTA_ENV_WAIT_MS "GPUROTA_WAIT_MS"
/* The folder of the sockets, for the daemon, the CLI, and programs that ask for a lease by
 * themselves. */
#define GPUROTA_ENV_RUNTIME_DIR "GPUROTA_RUNTIME_DIR"

/* The runtime directory of a daemon of root, and the socket in a runtime directory that libgpurota
 * connects to. */
#define GPUROTA_SYSTEM_RUNTIME_DIR "/run/gpurota"
#define GPUROTA_TENANT_SOCKET_NAME "tenant.sock"
/* The part of the runtime directory that a container may have. */
#define GPUROTA_CONTAINER_FOLDER "container"
/* A file that names libgpurota, for a container's ld.so.preload (docs/operate/containers.md). */
#define GPUROTA_PRELOAD_NAME "ld.so.preload"
/* A file that exists while the site gives leases to programs that have none
 * (docs/design/automatic-leases.md). */
#define GPUROTA_AUTOMATIC_MARKER "automatic"
