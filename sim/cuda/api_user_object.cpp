// User objects: creating them, counting references, giving references to graphs.
#include "sim/cuda/graph_call.h"

namespace gpurota::sim {

UserObjects::UserObjects(const UserObjects& other) {
  for (const auto& [object, count] : other.counts_) {
    ++object->references;
    counts_[object] = 1;
  }
}

UserObjects::~UserObjects() {
  for (const auto& [object, count] : counts_) release_user_object(object, count);
}

bool UserObjects::take(UserObject* object, std::uint64_t count) {
  const auto found = counts_.find(object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  return true;
}

// The program's destructor must not call the driver: a call fails as inside a host function.
void release_user_object(UserObject* object, std::uint64_t count) {
  object->references -= count;
  if (object->references > 0) return;
  const std::unique_ptr<UserObject> gone = Driver::get().user_objects.take(object);
  Engine::set_in_host_function(true);
  gone->destroy(gone->pointer);
  Engine::set_in_host_function(false);
}

}  // namespace gpurota::sim

using gpurota::sim::Call;
using gpurota::sim::GraphCall;
using gpurota::sim::UserObject;

namespace {

class ObjectCall : public Call {
 public:
  ObjectCall(CUuserObject handle, unsigned count) {
    if (failed()) return;
    object_ = driver_.user_objects.find(handle);
    if (object_ == nullptr || count == 0) error_ = CUDA_ERROR_INVALID_VALUE;
  }
  UserObject& object() const { return *object_; }

 private:
  UserObject* object_ = nullptr;
};

}  // namespace

GPUROTA_SIM_API cuUserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy,
                                   unsigned count, unsigned flags) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || destroy == nullptr || count == 0 ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto object = std::make_unique<UserObject>(UserObject{pointer, destroy, count});
  *out = reinterpret_cast<CUuserObject>(call.driver().user_objects.add(std::move(object)));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuUserObjectRetain(CUuserObject handle, unsigned count) {
  const ObjectCall call(handle, count);
  if (call.failed()) return call.error();
  call.object().references += count;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuUserObjectRelease(CUuserObject handle, unsigned count) {
  const ObjectCall call(handle, count);
  if (call.failed()) return call.error();
  if (call.object().references < count) return CUDA_ERROR_INVALID_VALUE;
  gpurota::sim::release_user_object(&call.object(), count);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count,
                                        unsigned flags) {
  const GraphCall call(graph);
  if (call.failed()) return call.error();
  UserObject* object = call.driver().user_objects.find(handle);
  if (object == nullptr || count == 0 || (flags & ~1U) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  call.graph().objects.add(object, count);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count) {
  const GraphCall call(graph);
  if (call.failed()) return call.error();
  UserObject* object = call.driver().user_objects.find(handle);
  if (object == nullptr || !call.graph().objects.take(object, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  gpurota::sim::release_user_object(object, count);
  return CUDA_SUCCESS;
}
