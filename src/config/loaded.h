// The files of a configuration and the result of reading them: every mistake with its place, and
// the origin of each value.
//
// The main file is read first, then the files of the folder beside it (gpurota.toml.d/*.toml) in
// the order of their names. For each key the last file that has it counts. Parsing is pure; reading
// touches only the files.
#pragma once

#include "config/config.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::config {

// A longer list of mistakes helps nobody; further ones are only counted.
inline constexpr std::size_t kMostMistakes = 50;
inline constexpr std::size_t kMostDropIns = 64;
// Of all files together; protects memory from a device or a log given by mistake.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;

struct Place {
  std::string file;
  int line = 0;  // 0: the whole file

  bool operator==(const Place&) const = default;
};
// "gpurota.toml:12", safe for a terminal.
std::string to_string(const Place& place);

// A mistake, or a warning.
struct Problem {
  Place place;      // no file name in it: the problem is in no particular file
  std::string key;  // "limits.gpus"; empty: none
  std::string what;

  bool operator==(const Problem&) const = default;
};
// "gpurota.toml:12: limits.gpus: …": one line, safe for a terminal.
std::string to_string(const Problem& problem);

// The text of a file.
struct Text {
  std::string file;
  std::string text;
};

struct Loaded {
  Config config;  // to be used only if there are no mistakes
  // The place of each key in the files ("limits.gpus"), and of sections by their names
  // ("limits.user.alice").
  std::map<std::string, Place> places;
  std::vector<std::string> files;  // that were read, in order
  std::vector<Problem> mistakes;   // in the order of the files
  std::size_t more_mistakes = 0;   // only counted

  std::size_t mistake_count() const { return mistakes.size() + more_mistakes; }
  // Where `key` is written, or else the place of the nearest section around it. An empty place: no
  // file has the key or such a section.
  Place place_of(std::string_view key) const;
};

// All mistakes, a line each.
std::string mistakes_text(const Loaded& loaded);

// The texts in the order in which they are applied. Unknown keys are mistakes: a misspelt limit
// must not silently be without effect.
Loaded parse(const std::vector<Text>& texts);

// Reads and parses. A file that cannot be read is a mistake, too. A missing main file is a mistake
// only if it is `required`.
Loaded load(const std::string& path, bool required);

// Like load(), as if the drop-in of this name existed with this text.
Loaded load_with(const std::string& path, bool required, const Text& drop_in);

// The folder of drop-ins for a main file: "/etc/gpurota/gpurota.toml.d".
std::string drop_in_folder(const std::string& path);

}  // namespace gpurota::config
