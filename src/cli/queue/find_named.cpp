#include "cli/queue/find_named.h"

#include "base/text.h"
#include "client/connection.h"

#include <fmt/format.h>

#include <type_traits>

#include <unistd.h>

namespace gpurota::cli {
namespace {

LeaseId id_of(const proto::Lease& lease) { return lease.lease_id; }
RequestId id_of(const proto::Request& request) { return request.request_id; }

template <class Item>
auto find_one(const std::vector<Item>& items, const std::string& name, uid_t mine,
              std::string_view what, std::string_view where)
    -> Result<decltype(id_of(items.front()))> {
  const Item* found = nullptr;
  std::string others;
  for (const Item& item : items) {
    if (item.name != name) continue;
    if (item.uid == mine) return id_of(item);
    others += fmt::format("{}{} of {}", others.empty() ? "" : ", ", to_string(id_of(item)),
                          display_text(item.user, 32));
    if (found != nullptr) {
      return fail(Code::kInvalid, fmt::format("'{}' can be {}: write which", name, others));
    }
    found = &item;
  }
  if (found != nullptr) return id_of(*found);
  return fail(Code::kNotFound, fmt::format("no {} is called '{}' ('gpurota {}' lists them)", what,
                                           display_text(name, 64), where));
}

template <class Type>
concept IsHandle = std::is_same_v<Type, LeaseHandle> || std::is_same_v<Type, RequestHandle>;

// All names that were typed.
struct Names {
  std::vector<LeaseHandle*> leases;
  std::vector<RequestHandle*> requests;

  void add(LeaseHandle& handle) {
    if (!handle.name.empty()) leases.push_back(&handle);
  }
  void add(RequestHandle& handle) {
    if (!handle.name.empty()) requests.push_back(&handle);
  }
  template <IsHandle Handle>
  void add(std::optional<Handle>& handle) {
    if (handle) add(*handle);
  }
  template <IsHandle Handle>
  void add(std::vector<Handle>& handles) {
    for (Handle& handle : handles) add(handle);
  }
};

template <class Options>
void collect(Options& options, Names& names) {
  if constexpr (requires { names.add(options.near); }) names.add(options.near);
  if constexpr (requires { names.add(options.lease); }) names.add(options.lease);
  if constexpr (requires { names.add(options.leases); }) names.add(options.leases);
  if constexpr (requires { names.add(options.requests); }) names.add(options.requests);
}

}  // namespace

Result<LeaseId> find_named(const std::vector<proto::Lease>& leases, const std::string& name,
                           uid_t mine) {
  return find_one(leases, name, mine, "lease", "status");
}

Result<RequestId> find_named(const std::vector<proto::Request>& requests, const std::string& name,
                             uid_t mine) {
  return find_one(requests, name, mine, "request", "queue");
}

Result<void> find_all_named(const Context& context, Command& command) {
  Names names;
  std::visit([&](auto& options) { collect(options, names); }, command);
  if (names.leases.empty() && names.requests.empty()) return {};
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  if (!names.leases.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(const auto status, connection.call(proto::Status{}));
    for (LeaseHandle* const handle : names.leases) {
      GPUROTA_ASSIGN_OR_RETURN(static_cast<LeaseId&>(*handle),
                               find_named(status.leases, handle->name, ::geteuid()));
    }
  }
  if (!names.requests.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(const auto queue, connection.call(proto::ListRequests{}));
    for (RequestHandle* const handle : names.requests) {
      GPUROTA_ASSIGN_OR_RETURN(static_cast<RequestId&>(*handle),
                               find_named(queue.requests, handle->name, ::geteuid()));
    }
  }
  return {};
}

}  // namespace gpurota::cli
