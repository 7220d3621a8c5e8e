#include "core/lease_name.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether a name could be mistaken for the id of a lease or a request.
bool resembles_id(std::string_view name) {
  constexpr std::string_view kFirst = "LlRr";
  return kFirst.find(name.front()) != std::string_view::npos && is_number(name.substr(1));
}

}  // namespace

Result<void> check_lease_name(std::string_view name) {
  constexpr std::string_view kOthers = "0123456789._-";
  bool plain = !name.empty() && name.size() <= kMostLeaseName && is_letter(name.front());
  for (const char c : name) plain = plain && (is_letter(c) || kOthers.find(c) != kOthers.npos);
  if (!plain) {
    return fail(
        Code::kInvalid,
        fmt::format("'{}' cannot be the name of a lease: write up to {} letters, digits, '.', "
                    "'_' and '-', with a letter first",
                    display_text(name, 40), kMostLeaseName));
  }
  if (resembles_id(name)) {
    return fail(Code::kInvalid, fmt::format("'{}' looks like the id of a lease or a request: write "
                                            "another name",
                                            name));
  }
  return {};
}

}  // namespace gpurota
