// Which claims are prepared on this node, under which token: the state of the DRA driver, in one
// small file. State thread only.
//
// Kubelet asks again for a claim as often as it likes, also after its own restart, and always says
// when one is over; so what is here is what kubelet believes to be prepared, or is being prepared;
// the file has the former only.
#pragma once

#include "kube/dra/claim.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

class ClaimBook {
 public:
  // `file` need not be there; its folder must. A file that cannot be read is an error: without it
  // containers that run would be without a lease.
  static Result<ClaimBook> open(std::string file);

  // The leases of one claim that is being prepared, in memory only: what cannot be had is tried
  // often, and writes nothing. If the claim is there it stays as it is, with its tokens.
  Result<void> add(std::vector<Claim> leases);
  // From now on in the file as well: before kubelet is told of the claim. All of its leases are
  // stored on return, or none; what is stored already is not stored again.
  Result<void> keep(const std::string& uid);
  // All of the claim's.
  Result<void> remove(const std::string& uid);
  // One of them.
  Claim* find(const std::string& key);
  // All of them; none: the claim is not there.
  std::vector<const Claim*> leases_of(const std::string& uid) const;

  std::map<std::string, Claim>& all() { return claims_; }
  const std::map<std::string, Claim>& all() const { return claims_; }

 private:
  explicit ClaimBook(std::string file) : file_(std::move(file)) {}
  Result<void> store() const;
  // From memory only.
  void drop(const std::string& uid);

  std::string file_;
  std::map<std::string, Claim> claims_;  // by key
};

}  // namespace gpurota::kube
