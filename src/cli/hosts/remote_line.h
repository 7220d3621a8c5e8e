// A command line for the shell of another machine. Pure.
//
// ssh gives one line to the user's login shell there. Each word is written so that every POSIX
// shell, fish, and csh (words with a newline excepted) take it for exactly that word.
#pragma once

#include <string>
#include <vector>

namespace gpurota::cli {

std::string remote_word(const std::string& word);
std::string remote_line(const std::vector<std::string>& words);

// The command line between ssh and gpurota on the other machine.
struct RemoteRun {
  std::string host;                    // for messages
  std::string folder;                  // to run in; empty: where ssh begins
  bool terminal = false;               // ssh gives it one
  std::vector<std::string> arguments;  // of gpurota
};
// Its exit status is that of gpurota there, 128 and the number of the signal that ended it, or 125
// where it cannot begin; but 255, which ssh keeps for itself, becomes kExitFor255. Without a
// terminal gpurota gets SIGTERM when the connection ends.
std::string run_line(const RemoteRun& run);

inline constexpr int kExitOfSsh = 255;
inline constexpr int kExitFor255 = 249;

}  // namespace gpurota::cli
