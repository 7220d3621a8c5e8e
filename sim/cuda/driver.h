// The simulated driver of one process: what cuInit found, and every object handed out.
//
// One instance, made on first use and never destroyed. `mutex` is the driver's lock. The lock
// guards all fields except those that lock themselves, and is never held while waiting for work.
#pragma once

#include "sim/cuda/objects.h"
#include "sim/cuda/space.h"
#include "sim/cuda/work.h"
#include "sim/state/machine.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace gpurota::sim {

struct ArrayMemory;
struct Capture;
struct ExternalMemory;
struct Function;
struct Graph;
struct GraphExec;
struct GraphMemory;
struct GreenContext;
struct MemPool;
struct MemoryHandle;
struct MipmappedArray;
struct Module;
struct ResourceDesc;
struct UserObject;

// Owns the objects of one type; a handle is valid while its object is in the registry.
template <class T>
class Registry {
 public:
  T* add(std::unique_ptr<T> object) {
    T* raw = object.get();
    objects_[raw] = std::move(object);
    return raw;
  }
  // The object behind a handle; null if there is none, or no longer.
  template <class Handle>
  T* find(Handle handle) const {
    const auto found = objects_.find(reinterpret_cast<T*>(handle));
    return found == objects_.end() ? nullptr : found->second.get();
  }
  // Removes the object from the registry; the caller decides when to destroy it.
  std::unique_ptr<T> take(T* object) {
    const auto found = objects_.find(object);
    if (found == objects_.end()) return nullptr;
    std::unique_ptr<T> taken = std::move(found->second);
    objects_.erase(found);
    return taken;
  }
  template <class Wanted>
  std::vector<T*> select(const Wanted& wanted) const {
    std::vector<T*> selected;
    for (const auto& [raw, object] : objects_) {
      if (wanted(*object)) selected.push_back(raw);
    }
    return selected;
  }

 private:
  std::unordered_map<T*, std::unique_ptr<T>> objects_;
};

class Driver {
 public:
  static Driver& get();

  CUresult init(unsigned flags);
  // The result that every call checks first: not initialised, forked, or in a host function.
  CUresult ready() const;

  int machine_device(CUdevice ordinal) const;  // -1: no such device
  CUresult create_context(CUdevice ordinal, unsigned flags, unsigned version, Context** out);
  // Waits for the context's work and frees everything in the context. The caller holds the driver's
  // lock in `lock`; this function releases the lock while waiting, and holds it again on return.
  void destroy_context(Context* context, std::unique_lock<std::mutex>& lock);
  std::vector<WorkPtr> tails(const Context& context) const;
  void wait_all(const std::vector<WorkPtr>& work, std::unique_lock<std::mutex>& lock);

  std::mutex mutex;
  std::unique_ptr<Machine> machine;
  std::vector<int> visible;  // ordinal -> device of the machine
  std::vector<Primary> primary;
  Engine engine;  // locks itself
  Space space;    // locks itself
  Registry<Context> contexts;
  Registry<Stream> streams;
  Registry<Event> events;
  Registry<MemPool> pools;
  std::vector<MemPool*> default_pools, current_pools;  // by ordinal; null: not made yet
  std::map<CUdeviceptr, GraphMemory> graph_memory;
  cuuint64_t graph_memory_high[2] = {0, 0};  // used, reserved; updated when queried
  std::unordered_map<Graph*, std::shared_ptr<Graph>> graphs;
  Registry<GraphExec> execs;
  std::vector<std::shared_ptr<Capture>> captures;  // captures under way
  Registry<Module> modules;
  Registry<Function> functions;
  Registry<UserObject> user_objects;
  Registry<GreenContext> greens;
  Registry<ResourceDesc> resource_descs;
  Registry<ArrayMemory> arrays;
  Registry<MipmappedArray> mipmaps;
  Registry<MemoryHandle> handles;
  Registry<ExternalMemory> externals;
  std::map<CUdeviceptr, std::size_t> reservations;  // address -> size

  Driver();  // out of line: the types above are complete only there
  ~Driver();

 private:
  bool initialised_ = false;
  std::atomic<bool> forked_{false};
  std::atomic<bool> ended_{false};  // set by exit handlers when the program ends
};

// The devices a process sees according to CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER (either may be
// null).
std::vector<int> visible_devices(const MachineState& machine, const char* visible,
                                 const char* order);

// The contexts pushed by the calling thread; the last one is current.
std::vector<Context*>& context_stack();

// Destroys the objects that belong to a context; the file of each family of objects defines its
// function.
void destroy_memory_of(Driver& driver, Context* context);
void destroy_modules_of(Driver& driver, Context* context);
void destroy_arrays_of(Driver& driver, Context* context);
void destroy_streams_of(Driver& driver, Context* context);

}  // namespace gpurota::sim
