// The claims prepared on this node, with their tokens: the state of the DRA driver, in one small
// file. State thread only.
//
// Kubelet may ask for a claim any number of times, even after its own restart, and always reports
// the end of a claim. So the book has the claims that kubelet believes to be prepared, and those
// being prepared; the file has only the former.
#pragma once

#include "kube/dra/claim.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

class ClaimBook {
 public:
  // A missing file is an empty book; the folder must exist. An unreadable file is an error: without
  // it, running containers would have no lease.
  static Result<ClaimBook> open(std::string file);

  // Adds the leases of a claim that is being prepared, in memory only: attempts that fail are
  // repeated often and must write nothing. A claim already in the book stays as it is, with its
  // tokens.
  Result<void> add(std::vector<Claim> leases);
  // Stores the claim in the file too; call it before kubelet gets the answer. On return either all
  // of its leases are stored or none; a stored claim is not stored again.
  Result<void> keep(const std::string& uid);
  // Removes all leases of the claim.
  Result<void> remove(const std::string& uid);
  // One lease, by its key.
  Claim* find(const std::string& key);
  // All leases of the claim; empty if the claim is not in the book.
  std::vector<const Claim*> leases_of(const std::string& uid) const;

  std::map<std::string, Claim>& all() { return claims_; }
  const std::map<std::string, Claim>& all() const { return claims_; }

 private:
  explicit ClaimBook(std::string file) : file_(std::move(file)) {}
  Result<void> store() const;
  // Removes from memory only.
  void drop(const std::string& uid);

  std::string file_;
  std::map<std::string, Claim> claims_;  // by key
};

}  // namespace gpurota::kube
