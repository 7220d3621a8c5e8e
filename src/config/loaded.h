// The files of a configuration, and what became of them: every mistake with its place, and where
// each value comes from.
//
// The main file is read first, then the files of the folder beside it (gpurota.toml.d/*.toml) in
// the order of their names; what a later one says counts, key by key. Parsing is pure; reading
// touches the files and nothing else.
#pragma once

#include "config/config.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::config {

// A longer list of mistakes helps nobody; the others are counted.
inline constexpr std::size_t kMostMistakes = 50;
inline constexpr std::size_t kMostDropIns = 64;
// Of all files together; keeps a device or a log given by mistake out of memory.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;

struct Place {
  std::string file;
  int line = 0;  // 0: the file as a whole

  bool operator==(const Place&) const = default;
};
// "gpurota.toml:12", safe for a terminal.
std::string to_string(const Place& place);

// A mistake, or a warning.
struct Problem {
  Place place;      // without a file: of no file
  std::string key;  // "limits.gpus"; empty: of none
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
  Config config;  // to be used only without mistakes
  // Of what the files say, by key ("limits.gpus"), and of sections by their names
  // ("limits.user.alice").
  std::map<std::string, Place> places;
  std::vector<std::string> files;  // that were read, in order
  std::vector<Problem> mistakes;   // in the order of the files
  std::size_t more_mistakes = 0;   // that are counted only

  std::size_t mistake_count() const { return mistakes.size() + more_mistakes; }
  // Where `key` is written: the place of the nearest section around it, if it has none. Without a
  // file: nowhere.
  Place place_of(std::string_view key) const;
};

// All mistakes, a line each.
std::string mistakes_text(const Loaded& loaded);

// The texts in the order in which they count. Unknown keys are mistakes: a misspelt limit must not
// silently not hold.
Loaded parse(const std::vector<Text>& texts);

// Reads and parses. A file that cannot be read is a mistake, too; a main file that does not exist
// is one only if it is `required`.
Loaded load(const std::string& path, bool required);

// The same, as if the drop-in of this name were there with this text.
Loaded load_with(const std::string& path, bool required, const Text& drop_in);

// The folder of the drop-ins of a main file: "/etc/gpurota/gpurota.toml.d".
std::string drop_in_folder(const std::string& path);

}  // namespace gpurota::config
