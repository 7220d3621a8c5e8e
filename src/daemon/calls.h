// What the files of calls (*_methods.cpp) share: how a call is answered, and whom a caller means. State thread
// only.
#pragma once

#include "base/result.h"
#include "daemon/control_server.h"
#include "proto/codec.h"

#include <cstddef>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

// Of a log in one answer: that is kept in memory until it is read, and a byte may become six in it.
inline constexpr std::size_t kMostLogBytes = std::size_t{1} << 20;

inline Outcome refused(const Error& error) {
  return {proto::error_json(proto::wire_error(error)), {}, {}, {}, {}};
}

template <class Method>
Outcome replied(const typename Method::Reply& reply) {
  return {proto::reply_json<Method>(reply), {}, {}, {}, {}};
}

// Whether `asked`, a name or a number, is this user.
inline bool is_user(const std::string& name, uid_t uid, const std::string& asked) {
  return name == asked || std::to_string(uid) == asked;
}

}  // namespace gpurota::daemon
