#include "cli/hosts/remote_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gpurota::cli {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:,+").find(c) != std::string_view::npos;
}

// $1: the name of the host; $2: the folder, which may be empty; $3: whether there is a terminal;
// $4: kSecond; then arguments of gpurota. One line, and without '!', for csh.
constexpr std::string_view kScript =
    R"(host=$1 folder=$2 terminal=$3; shift 3; )"
    R"([ -z "$folder" ] || cd -- "$folder" 2>/dev/null || )"
    R"({ printf 'gpurota: cannot run in %s on %s: there is no such folder for you; )"
    R"(start in a folder that both machines have\n' "$folder" "$host" >&2; exit 125; }; )"
    R"(command -v gpurota >/dev/null || )"
    R"({ printf 'gpurota: there is no gpurota on the PATH of %s\n' "$host" >&2; exit 125; }; )"
    R"(with=; )"
    R"([ "$terminal" = 1 ] || { setpriv --pdeathsig TERM true 2>/dev/null && )"
    R"(with='setpriv --pdeathsig TERM'; }; exec $with sh -c "$1" sh "$with" "$@")";
// Waits for the end of gpurota. Signals from the terminal are left to gpurota.
constexpr std::string_view kSecond =
    R"(with=$1; shift 2; trap : INT QUIT; $with gpurota "$@"; code=$?; )"
    R"([ "$code" -ne 255 ] || code=249; exit "$code")";

}  // namespace

std::string remote_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string out = "'";
  for (const char c : word) {
    // In quotes, fish also interprets a backslash, so it is put outside of quotes.
    if (c == '\'' || c == '\\') {
      out += std::string("'\\") + c + "'";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string remote_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + remote_word(word);
  return line;
}

std::string run_line(const RemoteRun& run) {
  std::vector<std::string> words = {"exec",
                                    "sh",
                                    "-c",
                                    std::string(kScript),
                                    "sh",
                                    run.host,
                                    run.folder,
                                    run.terminal ? "1" : "0",
                                    std::string(kSecond)};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  return remote_line(words);
}

}  // namespace gpurota::cli
