// A client of Kubernetes' API server: one call, one answer, by HTTPS with a token. Any thread,
// several at once; every call blocks, at most as long as it is told.
#pragma once

#include "base/result.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace gpurota::kube {

// As Kubernetes names things: it becomes a part of addresses.
bool is_object_name(std::string_view name);

// The address of the API server, and the credentials for it.
struct ApiAccess {
  std::string server;      // "https://10.96.0.1:443"
  std::string token_file;  // read before each call, as Kubernetes renews it; empty: no token
  std::string ca_file;     // CA certificates for the server; empty: the system's
  bool operator==(const ApiAccess&) const = default;
};
// The access that a pod of the cluster is given. kNotFound: this is no pod, so options must name
// the access.
Result<ApiAccess> access_in_cluster();
// kInvalid: no https, which only a server of this machine may lack, as the token would be readable
// on its way.
Result<void> check_access(const ApiAccess& access);

struct ApiAnswer {
  int status = 0;
  std::string body;
  bool good() const { return status >= 200 && status < 300; }
};

class ApiClient {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // `program`: what the API server calls us in its log.
  ApiClient(ApiAccess access, std::string program);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // An answer of whatever status; kUnavailable, kTimeout: there is none. `body`: JSON; empty: none.
  Result<ApiAnswer> call(const char* method, const std::string& path, const std::string& body,
                         Milliseconds patience);
  // GETs an answer that comes bit by bit (a watch): `take` has each line as soon as it is there.
  // Until it returns false, the server ends it, `stop` is true (within a second) or the time is
  // over; none of these is an error. The answer has a body if its status is not good.
  Result<ApiAnswer> follow(const std::string& path,
                           const std::function<bool(std::string_view line)>& take,
                           const std::atomic<bool>& stop, Milliseconds patience);

 private:
  struct Handles;
  struct Request;
  Result<int> perform(const Request& request, Milliseconds patience);

  const ApiAccess access_;
  const std::string program_;
  const std::unique_ptr<Handles> handles_;  // connections that are kept
};

// The answer's own words, as an error: "cannot WHAT: …".
Error error_of(const ApiAnswer& answer, const std::string& what);

}  // namespace gpurota::kube
