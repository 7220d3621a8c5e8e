#include "core/gpu_wishes.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota {
namespace {

constexpr std::size_t kLongestType = 64;

bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    if (is_of_word(c)) {
      if (!inside) words.emplace_back();
      words.back() += lower(c);
    }
    inside = is_of_word(c);
  }
  return words;
}

}  // namespace

bool is_of_type(std::string_view type, std::string_view model) {
  if (type.empty()) return true;
  const std::vector<std::string> has = words_of(model);
  auto from = has.begin();
  for (const std::string& word : words_of(type)) {
    const auto found = std::find(from, has.end(), word);
    if (found == has.end()) return false;
    from = std::next(found);
  }
  return true;
}

bool is_of_kind(const GpuWishes& wishes, const GpuInfo& gpu) {
  const auto& among = wishes.among;
  const bool there =
      among.empty() || std::find(among.begin(), among.end(), gpu.uuid) != among.end();
  return there && is_of_type(wishes.type, gpu.name) && gpu.memory >= wishes.min_memory &&
         gpu.compute_major * 10 + gpu.compute_minor >= wishes.min_cc;
}

std::string kind_text(const GpuWishes& wishes) {
  std::string text = display_text(wishes.type, kLongestType);
  if (!wishes.gpu_class.empty()) {
    text += (text.empty() ? "class " : " of class ") + display_text(wishes.gpu_class, kLongestType);
  }
  const auto add = [&text](const std::string& part) {
    text += (text.empty()                       ? "a GPU with "
             : text.find(" with ") == text.npos ? " with "
                                                : " and ") +
            part;
  };
  if (!wishes.min_memory.is_zero()) add("at least " + to_string(wishes.min_memory));
  if (wishes.min_cc != 0) {
    add(fmt::format("compute capability {}.{}", wishes.min_cc / 10, wishes.min_cc % 10));
  }
  return text;
}

}  // namespace gpurota
