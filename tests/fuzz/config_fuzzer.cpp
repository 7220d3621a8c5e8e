// A configuration: whatever the two files contain, errors are bounded, safe for a terminal and on
// one line each; a configuration without errors can be shown and compared.
#include "base/text.h"
#include "config/changes.h"
#include "config/loaded.h"
#include "config/names.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace gpurota;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_line(const std::string& line) {
  require(line.find('\n') == line.npos && line.find('\x1b') == line.npos);
  require(valid_utf8(line) == line);
}

void check_mistakes(const config::Loaded& loaded) {
  require(loaded.mistakes.size() <= config::kMostMistakes);
  for (const config::Problem& mistake : loaded.mistakes) {
    require(!mistake.what.empty());
    check_line(to_string(mistake));
  }
}

void check_values(const config::Loaded& loaded) {
  const auto shown = config::shown_settings(loaded.config);
  const auto defaults = config::shown_settings(config::Config{});
  require(config::changes(shown, shown).empty());
  for (const config::Change& change : config::changes(defaults, shown)) {
    check_line(to_string(change));
  }
  const auto nobody = config::unknown_accounts(
      config::named_accounts(loaded, 0),
      {[](const auto&) -> Result<void> { return fail(Code::kNotFound, "none"); },
       [](bool) {
         return std::vector<std::string>{"alice", "root"};
       }});
  for (const config::Problem& problem : nobody) check_line(to_string(problem));
}

}  // namespace

// The bytes up to a form feed are the main file, the rest is a drop-in.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\f'), input.size());
  std::vector<config::Text> texts = {{"gpurota.toml", std::string(input.substr(0, end))}};
  if (end < input.size()) {
    texts.push_back({"gpurota.toml.d/a.toml", std::string(input.substr(end + 1))});
  }
  const config::Loaded loaded = config::parse(texts);
  check_mistakes(loaded);
  if (loaded.mistake_count() == 0) check_values(loaded);
  return 0;
}
