// Messages of libgpurota to the user of the program, on standard error: why something was refused,
// each reason once in a process.
//
// A message is written only if descriptor 2 takes a line at once and is the same file as when the
// library was loaded: a program may have closed the descriptor and opened a file of its own there.
// Silent with GPUROTA_NOTICES=0, or where the site says so (program_notices). No allocation, no
// stdio. Any thread.
#pragma once

#include <atomic>

namespace gpurota::interposer {

enum class Notice { kRefused, kLeaseOver, kNoLease, kAway, kCrowded, kForeign, kNoThread };

// Records which file standard error is. Call when the environment is read.
void remember_standard_error();
// Turns notices off, because the site wants none.
void silence_notices();
// Writes "gpurota: " and the text.
__attribute__((format(printf, 2, 3))) void notice_once(Notice notice, const char* format, ...);

// "1.5 GiB", "256 MiB", "12 KiB": for a notice.
struct SizeText {
  char text[24];
};
SizeText size_text(unsigned long long bytes);

}  // namespace gpurota::interposer
