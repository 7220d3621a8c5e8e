// Shared by the files of calls (*_methods.cpp): how a call is answered, and which user a caller
// means. State thread only.
#pragma once

#include "base/result.h"
#include "base/text.h"
#include "daemon/control/control_server.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

// The most bytes of a log in one answer. The answer is kept in memory until the client has read it,
// and a byte of the log may take six bytes in JSON.
inline constexpr std::size_t kMostLogBytes = std::size_t{1} << 20;

inline Outcome refused(const Error& error) {
  return {.answer = proto::error_json(proto::wire_error(error))};
}

template <class Method>
Outcome replied(const typename Method::Reply& reply) {
  return {.answer = proto::reply_json<Method>(reply)};
}

inline Error no_such_lease(LeaseId id) {
  return {
      Code::kNotFound, 0,
      fmt::format("there is no lease {}: 'gpurota status' lists the current ones", to_string(id))};
}

// Whether `asked`, a name or a number, is this user.
inline bool is_user(const std::string& name, uid_t uid, const std::string& asked) {
  return name == asked || std::to_string(uid) == asked;
}

// The jobs or fillers that a call is about: their name and their owner, who is the caller or
// `user`.
struct Meant {
  const char* what;  // "job"
  std::string name;  // empty: all jobs or fillers of the owner
  std::optional<std::string> user;
  uid_t caller = 0;
  std::string caller_name;
  bool administrator = false;
  std::function<bool(const std::string& user)> may_exist;  // Users::may_exist

  bool own() const { return !user || is_user(caller_name, caller, *user); }
  std::string thing() const {
    return name.empty() ? fmt::format("{}s", what) : fmt::format("{} {}", what, name);
  }
};

// Report 'not found', not 'denied', so that existence does not leak.
inline Error not_found(const Meant& meant) {
  std::string text =
      fmt::format("you have no {} ('gpurota {} list' shows yours)", meant.thing(), meant.what);
  if (!meant.own() && !meant.administrator) {
    text = fmt::format("no {}: only administrators see and change those of others", meant.thing());
  } else if (!meant.own() && !meant.may_exist(*meant.user)) {
    text = fmt::format("there is no user \"{}\": --user takes the name of an account, or its uid",
                       display_text(*meant.user, 60));
  } else if (!meant.own()) {
    text = fmt::format("they have no {} ('gpurota {} list --user {}' shows theirs)", meant.thing(),
                       meant.what, display_text(*meant.user, 60));
  }
  return {Code::kNotFound, 0, std::move(text)};
}

// For a list, which may be empty. Only administrators can list what another user has, and that user
// must exist.
inline Result<void> check_meant(const Meant& meant, bool found) {
  if (meant.own() || (meant.administrator && (found || meant.may_exist(*meant.user)))) return {};
  return tl::unexpected(not_found(meant));
}

// Finds the one entry that the call names. `entries` maps ids to entries. kNotFound: see
// not_found().
template <class Entries>
Result<const typename Entries::mapped_type*> find_meant(const Entries& entries,
                                                        const Meant& meant) {
  for (const auto& [id, entry] : entries) {
    if (entry.spec.name != meant.name || entry.is_removed()) continue;
    const bool own = entry.uid == meant.caller;
    const bool asked = meant.user ? is_user(entry.user, entry.uid, *meant.user) : own;
    if (asked && (own || meant.administrator)) return &entry;
  }
  return tl::unexpected(not_found(meant));
}

// For a list: calls `show` for the entry named `meant.name`. If that name is empty, calls `show`
// for each entry (of `meant.user`, if set) that the caller may see. `show` returns whether it shows
// the entry.
template <class Entries, class Show>
Result<void> for_all_meant(const Entries& entries, const Meant& meant, const Show& show) {
  if (!meant.name.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(const auto* const entry, find_meant(entries, meant));
    (void)show(*entry);
    return {};
  }
  bool found = false;
  for (const auto& [id, entry] : entries) {
    if (entry.uid != meant.caller && !meant.administrator) continue;
    if (meant.user && !is_user(entry.user, entry.uid, *meant.user)) continue;
    found |= show(entry);
  }
  return check_meant(meant, found);
}

}  // namespace gpurota::daemon
