#include "cli/run/shell_lease.h"

#include "abi/env.h"
#include "base/text.h"
#include "cli/handles.h"
#include "cli/lease_variables.h"
#include "cli/text/ps_doctor_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpurota::cli {
namespace {

std::string value_of(const proto::GetEnvironment::Reply& known, std::string_view name) {
  for (const proto::Variable& variable : known.environment) {
    if (variable.name == name) return variable.value;
  }
  return {};
}

tl::unexpected<Error> not_ours(Code code, const std::string& what) {
  return fail(code, what + ": " GPUROTA_LEAVE_LEASE);
}

}  // namespace

std::string ShellLease::visible_devices() const { return value_of(known, "CUDA_VISIBLE_DEVICES"); }

Result<std::optional<ShellLease>> find_shell_lease(client::Connection& connection,
                                                   const char* const* environment) {
  const std::string name = find_variable(environment, GPUROTA_ENV_LEASE).value_or("");
  if (name.empty()) return std::optional<ShellLease>();
  const auto handle = lease_handle(name);
  if (!handle || !handle->name.empty()) {
    return not_ours(Code::kInvalid,
                    fmt::format("{}, which {} names, is not a lease of this machine",
                                display_text(name, 40), GPUROTA_ENV_LEASE));
  }
  auto known = connection.call(proto::GetEnvironment{*handle});
  if (!known && known.error().code == Code::kNotFound) {
    return not_ours(Code::kGone, to_string(LeaseId(*handle)) + " is over");
  }
  if (!known && known.error().code == Code::kDenied) {
    return not_ours(Code::kDenied, to_string(LeaseId(*handle)) + " is another user's");
  }
  if (!known) return tl::unexpected(known.error());
  // Ids start again if the daemon's state is deleted, so the token is compared, too.
  const std::string token = find_variable(environment, GPUROTA_ENV_TOKEN).value_or("");
  const std::string real = value_of(*known, GPUROTA_ENV_TOKEN);
  if (known->lease.state == proto::LeaseState::kEnding || (!token.empty() && token != real)) {
    return not_ours(Code::kGone, to_string(LeaseId(*handle)) + " is over");
  }
  return ShellLease{*handle, std::move(*known)};
}

std::string shell_lease_text(const proto::Lease& lease, const std::vector<std::string>& ignored) {
  std::string text = "in " + lease_line(lease);
  if (ignored.empty()) return text;
  return fmt::format("{}; {} {} of new leases only: no effect here", text,
                     fmt::join(ignored, " and "), ignored.size() == 1 ? "is" : "are");
}

}  // namespace gpurota::cli
