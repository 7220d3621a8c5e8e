// The program's objects that live as long as graphs refer to them. Under the driver's lock.
#pragma once

#include "abi/cuda_abi.h"

#include <cstdint>
#include <map>

namespace gpurota::sim {

struct UserObject {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  std::uint64_t references = 0;  // of the program and the graphs together
};

// The user objects that a graph refers to. A copy, for a clone or an instantiation, adds one
// reference to each object.
class UserObjects {
 public:
  UserObjects() = default;
  UserObjects(const UserObjects& other);
  UserObjects& operator=(const UserObjects&) = delete;
  ~UserObjects();
  void add(UserObject* object, std::uint64_t count) { counts_[object] += count; }
  // False if the graph has fewer references to `object`.
  bool take(UserObject* object, std::uint64_t count);

 private:
  std::map<UserObject*, std::uint64_t> counts_;
};

// Drops `count` references; destroys the object with the last one.
void release_user_object(UserObject* object, std::uint64_t count);

}  // namespace gpurota::sim
