// Which claims are prepared on this node, under which token: the state of the DRA driver, in one small file. State thread only.
//
// Kubelet asks again for a claim as often as it likes, also after its own restart, and always says when one is over; so what is here is what
// kubelet believes to be prepared, or is being prepared.
#pragma once

#include "kube/dra/claim.h"

#include <map>
#include <string>

namespace gpurota::kube {

class ClaimBook {
 public:
  // `file` need not be there; its folder must. A file that cannot be read is an error: without it containers that run would be without a lease.
  static Result<ClaimBook> open(std::string file);

  // Stored on return. One that is there stays as it is, with its token.
  Result<Claim*> add(Claim claim);
  Result<void> remove(const std::string& uid);
  Claim* find(const std::string& uid);

  std::map<std::string, Claim>& all() { return claims_; }
  const std::map<std::string, Claim>& all() const { return claims_; }

 private:
  explicit ClaimBook(std::string file) : file_(std::move(file)) {}
  Result<void> store() const;

  std::string file_;
  std::map<std::string, Claim> claims_;  // by uid
};

}  // namespace gpurota::kube
