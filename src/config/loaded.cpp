#include "config/loaded.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::config {

std::string to_string(const Place& place) {
  const std::string file = display_text(place.file);
  return place.line == 0 ? file : fmt::format("{}:{}", file, place.line);
}

std::string to_string(const Problem& problem) {
  std::string text;
  if (!problem.place.file.empty()) text += to_string(problem.place) + ": ";
  if (!problem.key.empty()) text += display_text(problem.key, 120) + ": ";
  return text + display_text(problem.what, 400);
}

Place Loaded::place_of(std::string_view key) const {
  std::string name(key);
  while (!name.empty()) {
    if (const auto found = places.find(name); found != places.end()) return found->second;
    const std::size_t dot = name.rfind('.');
    name.resize(dot == std::string::npos ? 0 : dot);
  }
  return {};
}

std::string mistakes_text(const Loaded& loaded) {
  std::string text;
  for (const Problem& mistake : loaded.mistakes) {
    text += (text.empty() ? "" : "\n") + to_string(mistake);
  }
  if (loaded.more_mistakes > 0) text += fmt::format("\nand {} more", loaded.more_mistakes);
  return text;
}

std::string drop_in_folder(const std::string& path) { return path + ".d"; }

}  // namespace gpurota::config
