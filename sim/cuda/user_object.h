// Objects of the program's that live as long as graphs refer to them. Under the driver's lock.
#pragma once

#include "abi/cuda_abi.h"

#include <cstdint>
#include <map>

namespace gpurota::sim {

struct UserObject {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  std::uint64_t references = 0;  // the program's and the graphs' together
};

// The user objects that a graph refers to. A copy, of a graph that is cloned or made ready, refers
// to it once more each.
class UserObjects {
 public:
  UserObjects() = default;
  UserObjects(const UserObjects& other);
  UserObjects& operator=(const UserObjects&) = delete;
  ~UserObjects();
  void add(UserObject* object, std::uint64_t count) { counts_[object] += count; }
  // False if there are not that many.
  bool take(UserObject* object, std::uint64_t count);

 private:
  std::map<UserObject*, std::uint64_t> counts_;
};

// Takes references away; with the last one the object is destroyed.
void release_user_object(UserObject* object, std::uint64_t count);

}  // namespace gpurota::sim
