// Settings of the web page: a part of config.h. Plain data.
#pragma once

#include <chrono>
#include <string>

namespace gpurota::config {

// [web]: who may sign in to the web page (docs/design/web-sessions.md).
struct Web {
  bool sign_in = true;  // by links of gpurota web
  // The user who may serve the page, besides root and the daemon's own user.
  std::string user = "gpurota-web";
  std::chrono::milliseconds idle{3600000};      // a session that is unused for this long ends
  std::chrono::milliseconds longest{43200000};  // a session of this age ends
  bool accept_proxy_users = false;              // a proxy in front of the page names its users

  bool operator==(const Web&) const = default;
};

}  // namespace gpurota::config
