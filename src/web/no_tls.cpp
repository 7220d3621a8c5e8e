// Replaces tls.cpp in a build without GnuTLS.
#include "web/tls.h"

namespace gpurota::web {

Result<std::unique_ptr<Tls>> make_tls(const std::string&, const std::string&) {
  return fail(
      Code::kUnavailable,
      "this gpurota-web was built without TLS: put a server with TLS in front of it, and give "
      "--plain");
}

}  // namespace gpurota::web
