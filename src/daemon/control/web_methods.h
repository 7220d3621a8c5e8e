// The calls about the web page: its servers, links for signing in, and sessions
// (docs/design/web-sessions.md). State thread only.
#pragma once

#include "daemon/control/call_context.h"
#include "daemon/users/web_sessions.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::daemon {

class WebMethods {
 public:
  explicit WebMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::ServeWeb&);
  Outcome on(const Caller& caller, const proto::MakeWebLink&);
  Outcome on(const Caller& caller, const proto::GetWebLink&);
  Outcome on(const Caller& caller, const proto::SignIn&);
  Outcome on(const Caller& caller, const proto::SignInByProxy&);
  Outcome on(const Caller& caller, const proto::ListWebSessions&);
  Outcome on(const Caller& caller, const proto::EndWebSessions&);

  // The caller of a call with this token. Empty: the token belongs to no session.
  std::optional<Caller> caller_of(const Caller& server, std::string_view token) const;

 private:
  proto::WebSession describe(const Caller& caller, const WebSessions::Session& session) const;

  const CallContext& parts_;
};

}  // namespace gpurota::daemon
