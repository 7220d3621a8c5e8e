#include "core/model_name.h"

#include <string_view>

namespace gpurota {
namespace {

constexpr std::size_t kLongest = 200;

std::optional<std::string> name_of(std::string_view text) {
  if (text.empty() || text.front() == '-') return std::nullopt;
  return std::string(text.substr(0, kLongest));
}

// "pretrained=NAME,dtype=float16" -> NAME
std::optional<std::string> pretrained_of(std::string_view arguments) {
  constexpr std::string_view kKey = "pretrained=";
  for (std::size_t at = 0; at < arguments.size();) {
    const std::size_t end = std::min(arguments.find(',', at), arguments.size());
    const std::string_view part = arguments.substr(at, end - at);
    if (part.starts_with(kKey)) return name_of(part.substr(kKey.size()));
    at = end + 1;
  }
  return std::nullopt;
}

// The value of `option` at argv[i]: after '=', or the next word.
std::optional<std::string_view> value_of(const std::vector<std::string>& argv, std::size_t i,
                                         std::string_view option) {
  const std::string_view word = argv[i];
  if (!word.starts_with(option)) return std::nullopt;
  if (word.size() > option.size()) {
    if (word[option.size()] != '=') return std::nullopt;
    return word.substr(option.size() + 1);
  }
  if (i + 1 < argv.size()) return argv[i + 1];
  return std::nullopt;
}

bool is_program(std::string_view word, std::string_view name) {
  const std::size_t slash = word.rfind('/');
  return (slash == word.npos ? word : word.substr(slash + 1)) == name;
}

}  // namespace

std::optional<std::string> model_of(const std::vector<std::string>& argv) {
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const bool vllm = is_program(argv[i], "vllm");
    if (vllm && i + 2 < argv.size() && argv[i + 1] == "serve") {
      if (auto name = name_of(argv[i + 2])) return name;
    }
    if (const auto value = value_of(argv, i, "--model_args")) {
      if (auto name = pretrained_of(*value)) return name;
    }
  }
  // Tried last: lm_eval's own --model is the kind of backend ("hf").
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (const auto value = value_of(argv, i, "--model")) {
      if (auto name = name_of(*value)) return name;
    }
  }
  return std::nullopt;
}

}  // namespace gpurota
