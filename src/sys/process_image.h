// Reads another process's mappings of libgpurota and of the driver, and the variables of libgpurota
// in its environment.
//
// Reading it takes the lock of that process's address space, which whoever runs in it can hold for
// as long as they like (a page of a slow FUSE file is enough): call read_process_image on a Worker,
// never on the loop's thread. The note_… functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota::sys {

struct ProcessImage {
  bool library = false;  // libgpurota.so, as code
  bool driver = false;   // libcuda.so, as code
  bool page = false;     // a page that a daemon gave it: it has been welcomed once
  // Of the environment it was started with. Programs that set their title write over that.
  bool has_environment = false;
  std::string lease;   // GPUROTA_LEASE; empty: none
  std::string socket;  // GPUROTA_SOCKET; empty: none
};

// One line of /proc/PID/maps, without its newline.
void note_mapping(std::string_view line, ProcessImage& image);
// The text of /proc/PID/environ.
void note_environment(std::string_view text, ProcessImage& image);

// Of the process that started at `start_ticks`; nullopt if it is gone, or may not be looked into.
std::optional<ProcessImage> read_process_image(pid_t pid, std::uint64_t start_ticks);

}  // namespace gpurota::sys
