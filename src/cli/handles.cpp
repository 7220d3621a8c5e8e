#include "cli/handles.h"

#include "base/text.h"
#include "core/lease_name.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

// "12" and "l12" mean L12.
std::string spelled(std::string text, char letter) {
  const char small = static_cast<char>(letter - 'A' + 'a');
  if (!text.empty() && text.front() == small) text.front() = letter;
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') text.insert(0, 1, letter);
  return text;
}

}  // namespace

Result<LeaseHandle> lease_handle(const std::string& text) {
  if (const auto id = proto::parse_lease_id(spelled(text, 'L'))) return LeaseHandle{*id, {}};
  if (check_lease_name(text)) return LeaseHandle{{}, text};
  return fail(
      Code::kInvalid,
      fmt::format(
          "'{}' is not a lease: leases look like L12 ('gpurota status' lists them), or have "
          "a name of yours (--name)",
          display_text(text, 40)));
}

Result<RequestHandle> request_handle(const std::string& text) {
  if (const auto id = proto::parse_request_id(spelled(text, 'R'))) return RequestHandle{*id, {}};
  if (check_lease_name(text)) return RequestHandle{{}, text};
  return fail(
      Code::kInvalid,
      fmt::format("'{}' is not a request: requests look like R7 ('gpurota queue' lists them), or "
                  "have a name of yours (--name)",
                  display_text(text, 40)));
}

Error neither_request_nor_lease(const std::string& word) {
  return {Code::kInvalid, 0,
          fmt::format("'{}' is neither a request (R7, see 'gpurota queue') nor a lease (L12, see "
                      "'gpurota status').\n"
                      "  gpurota explain            all that you wait for and have\n"
                      "  gpurota job show NAME      a job\n"
                      "  gpurota turns              the turns on each GPU",
                      display_text(word, 40))};
}

}  // namespace gpurota::cli
