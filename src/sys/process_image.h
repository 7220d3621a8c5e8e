// Reads which libraries of interest another process has mapped (libgpurota, the driver), and
// libgpurota's variables in its environment.
//
// Reading takes the lock of that process's address space, which the process can hold as long as it
// likes (a page of a slow FUSE file is enough): call read_process_image on a Worker, never on the
// loop's thread. The note_… functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota::sys {

struct ProcessImage {
  bool library = false;  // libgpurota.so is mapped as code
  bool driver = false;   // libcuda.so is mapped as code
  bool page = false;     // a page of a daemon is mapped: a daemon once accepted the process
  // Whether the initial environment is known: a program that sets its title overwrites it.
  bool has_environment = false;
  std::string lease;   // GPUROTA_LEASE; empty: none
  std::string socket;  // GPUROTA_SOCKET; empty: none
};

// `line` is one line of /proc/PID/maps, without its newline.
void note_mapping(std::string_view line, ProcessImage& image);
// `text` is the text of /proc/PID/environ.
void note_environment(std::string_view text, ProcessImage& image);

// The image of the process that started at `start_ticks`; nullopt if the process has ended or may
// not be inspected.
std::optional<ProcessImage> read_process_image(pid_t pid, std::uint64_t start_ticks);

}  // namespace gpurota::sys
