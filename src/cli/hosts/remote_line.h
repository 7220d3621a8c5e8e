// A command line for the shell of another machine. Pure.
//
// ssh passes one line to the user's login shell there. Each word is written so that every POSIX
// shell, fish and csh (for csh: words without a newline) read exactly that word.
#pragma once

#include <string>
#include <vector>

namespace gpurota::cli {

std::string remote_word(const std::string& word);
std::string remote_line(const std::vector<std::string>& words);

// The command line that ssh runs on the other machine to start gpurota.
struct RemoteRun {
  std::string host;                    // for messages
  std::string folder;                  // folder to run in; empty: where ssh begins
  bool terminal = false;               // ssh provides one
  std::vector<std::string> arguments;  // of gpurota
};
// The exit status is that of gpurota there, 128 plus the number of the signal that ended it, or 125
// if it cannot begin. But 255, which ssh uses for itself, becomes kExitFor255. Without a terminal
// gpurota gets SIGTERM when the connection ends.
std::string run_line(const RemoteRun& run);

inline constexpr int kExitOfSsh = 255;
inline constexpr int kExitFor255 = 249;

}  // namespace gpurota::cli
