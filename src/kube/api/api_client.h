// A client of Kubernetes' API server: one call, one answer, by HTTPS with a token. Any thread,
// several at a time. Every call blocks, at most as long as the caller allows.
#pragma once

#include "base/result.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace gpurota::kube {

// Whether `name` is a valid object name of Kubernetes: the name becomes a part of URLs.
bool is_object_name(std::string_view name);

// The address of the API server, and the credentials for it.
struct ApiAccess {
  std::string server;      // "https://10.96.0.1:443"
  std::string token_file;  // read before each call, as Kubernetes renews it; empty: no token
  std::string ca_file;     // CA certificates for the server; empty: the system's
  bool operator==(const ApiAccess&) const = default;
};
// The access that the cluster gives a pod. kNotFound: this is not a pod, so options must set the
// access.
Result<ApiAccess> access_in_cluster();
// kInvalid: the server is not https. Only a server on this machine may use http, because the token
// would be readable on the network.
Result<void> check_access(const ApiAccess& access);

struct ApiAnswer {
  int status = 0;
  std::string body;
  bool good() const { return status >= 200 && status < 300; }
};

class ApiClient {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // `program`: our name in the API server's log.
  ApiClient(ApiAccess access, std::string program);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // An answer with any status; kUnavailable, kTimeout: no answer. `body`: JSON; empty: none.
  Result<ApiAnswer> call(const char* method, const std::string& path, const std::string& body,
                         Milliseconds patience);
  // GETs an answer that arrives bit by bit (a watch): `take` gets each line as soon as it arrives.
  // Ends when `take` returns false, the server ends the answer, `stop` becomes true (noticed within
  // a second) or the time is over; none of these is an error. The answer has a body if its status
  // is an error.
  Result<ApiAnswer> follow(const std::string& path,
                           const std::function<bool(std::string_view line)>& take,
                           const std::atomic<bool>& stop, Milliseconds patience);

 private:
  struct Handles;
  struct Request;
  Result<int> perform(const Request& request, Milliseconds patience);

  const ApiAccess access_;
  const std::string program_;
  const std::unique_ptr<Handles> handles_;  // idle connections
};

// An error with the answer's own text: "cannot WHAT: …".
Error error_of(const ApiAnswer& answer, const std::string& what);

}  // namespace gpurota::kube
