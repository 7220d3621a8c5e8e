#include "sim/cuda/pool.h"

#include "sim/cuda/stream.h"

#include <algorithm>

#include <sys/mman.h>

namespace gpurota::sim {
namespace {

constexpr std::size_t kChunk = std::size_t{32} << 20;
constexpr std::size_t kPoolAlignment = 512;

bool take(PoolChunk& chunk, std::size_t size, PoolBlock& block) {
  for (auto hole = chunk.free.begin(); hole != chunk.free.end(); ++hole) {
    const auto [offset, length] = *hole;
    if (length < size) continue;
    chunk.free.erase(hole);
    if (length > size) chunk.free[offset + size] = length - size;
    chunk.used += size;
    block = {chunk.mapping.get(), offset, size};
    return true;
  }
  return false;
}

void put_back(MemPool& pool, const PoolBlock& block) {
  const auto found = pool.chunks.find(block.chunk);
  if (found == pool.chunks.end()) return;
  auto& holes = found->second.free;
  found->second.used -= block.size;
  auto hole = holes.emplace(block.offset, block.size).first;
  const auto next = std::next(hole);
  if (next != holes.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes.erase(next);
  }
  if (hole == holes.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second == hole->first) {
    before->second += hole->second;
    holes.erase(hole);
  }
}

bool grow(Driver& driver, MemPool& pool, std::size_t size) {
  const std::size_t most = pool.properties.maxSize;
  for (const std::size_t unit : {kChunk, kDevicePage}) {
    const std::size_t bytes = round_up(size, unit);
    if (most != 0 && pool.reserved + bytes > most) continue;
    auto memory =
        Physical::create(*driver.machine, pool.device, bytes, Physical::Sharing::kPrivate);
    if (!memory) continue;
    auto mapping = Mapping::create(std::move(memory), kDevicePage);
    if (!mapping) return false;
    PoolChunk& chunk = pool.chunks[mapping.get()];
    chunk.mapping = std::move(mapping);
    chunk.free[0] = bytes;
    pool.reserved += bytes;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    return true;
  }
  return false;
}

// A block of the same size that was freed earlier in the same stream can be reused at once.
bool take_pending(MemPool& pool, const Stream& stream, std::size_t size, PoolBlock& block) {
  for (auto it = pool.pending.begin(); it != pool.pending.end(); ++it) {
    if ((*it)->stream != stream.id || (*it)->block.size != size) continue;
    (*it)->is_taken = true;
    block = (*it)->block;
    pool.pending.erase(it);
    return true;
  }
  return false;
}

bool find_block(Driver& driver, MemPool& pool, const Stream& stream, std::size_t size,
                PoolBlock& block) {
  if (take_pending(pool, stream, size, block)) return true;
  for (auto& [mapping, chunk] : pool.chunks) {
    if (take(chunk, size, block)) return true;
  }
  if (!grow(driver, pool, size)) {
    trim_pool(pool, 0);
    if (!grow(driver, pool, size)) return false;
  }
  for (auto& [mapping, chunk] : pool.chunks) {
    if (take(chunk, size, block)) return true;
  }
  return false;
}

// Another process owns the memory: remove only this process's mapping.
void free_imported(Driver& driver, CUdeviceptr address, Stream* stream) {
  if (stream == nullptr) {
    (void)driver.space.remove(address);
    return;
  }
  append(driver, *stream, [&driver, address] {
    (void)driver.space.remove(address);
    return CUDA_SUCCESS;
  });
}

void forget_if_empty(Driver& driver, MemPool& pool) {
  if (!pool.is_destroyed || !pool.blocks.empty() || !pool.pending.empty()) return;
  (void)driver.pools.take(&pool);
}

}  // namespace

MemPool& default_pool(Driver& driver, int ordinal) {
  MemPool*& pool = driver.default_pools[static_cast<std::size_t>(ordinal)];
  if (pool == nullptr) {
    auto made = std::make_unique<MemPool>();
    made->ordinal = ordinal;
    made->device = driver.machine_device(ordinal);
    made->is_default = true;
    made->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    made->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
    pool = driver.pools.add(std::move(made));
  }
  return *pool;
}

CUresult allocate_from_pool(Driver& driver, MemPool& pool, Context& context, Stream& stream,
                            std::size_t bytes, CUdeviceptr* out) {
  const std::size_t size = round_up(bytes, kPoolAlignment);
  if (bytes == 0 || size < bytes) return CUDA_ERROR_INVALID_VALUE;
  PoolBlock block;
  if (!find_block(driver, pool, stream, size, block)) return CUDA_ERROR_OUT_OF_MEMORY;
  const PoolChunk& chunk = pool.chunks[block.chunk];
  Allocation allocation;
  allocation.base = reinterpret_cast<CUdeviceptr>(chunk.mapping->address() + block.offset);
  allocation.size = bytes;
  allocation.room = size;
  allocation.kind = Allocation::Kind::kPool;
  allocation.context = &context;
  allocation.device = pool.device;
  allocation.mapping = chunk.mapping;
  allocation.mapping_offset = block.offset;
  allocation.id = driver.machine->next_id();
  allocation.pool = &pool;
  driver.space.add(allocation);
  pool.blocks[allocation.base] = block;
  pool.used += size;
  pool.used_high = std::max(pool.used_high, pool.used);
  append(driver, stream, nullptr);
  *out = allocation.base;
  return CUDA_SUCCESS;
}

CUresult free_pool_memory(Driver& driver, CUdeviceptr address, Stream* stream) {
  if (driver.graph_memory.count(address) > 0) {
    const GraphMemory& memory = driver.graph_memory[address];
    if (stream == nullptr) return finish_graph_free(driver, address, false);
    if (memory.runs <= memory.ending) return CUDA_ERROR_INVALID_VALUE;  // not allocated (yet)
    expect_graph_free(driver, address);
    append(driver, *stream, [&driver, address] {
      const std::lock_guard lock(driver.mutex);
      return finish_graph_free(driver, address, true);
    });
    return CUDA_SUCCESS;
  }
  const auto found = driver.space.find(address);
  if (found && found->kind == Allocation::Kind::kImported && found->base == address) {
    free_imported(driver, address, stream);
    return CUDA_SUCCESS;
  }
  if (!found || found->pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MemPool* pool = found->pool;
  const auto entry = pool->blocks.find(address);
  if (found->base != address || entry == pool->blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  const PoolBlock block = entry->second;
  pool->blocks.erase(entry);
  pool->used -= block.size;
  if (stream == nullptr) {
    (void)driver.space.remove(address);
    put_back(*pool, block);
    trim_pool(*pool, pool->release_threshold);
    forget_if_empty(driver, *pool);
    return CUDA_SUCCESS;
  }
  auto pending = std::make_shared<PendingFree>();
  pending->block = block;
  pending->stream = stream->id;
  pool->pending.push_back(pending);
  pending->point = append(driver, *stream, [&driver, pool, pending, address] {
    const std::lock_guard lock(driver.mutex);
    if (pending->is_taken) return CUDA_SUCCESS;
    pool->pending.erase(std::find(pool->pending.begin(), pool->pending.end(), pending));
    (void)driver.space.remove(address);
    put_back(*pool, pending->block);
    forget_if_empty(driver, *pool);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

void trim_pool(MemPool& pool, std::uint64_t keep) {
  for (auto it = pool.chunks.begin(); it != pool.chunks.end() && pool.reserved > keep;) {
    if (it->second.used > 0) {
      ++it;
      continue;
    }
    pool.reserved -= it->second.mapping->memory().size();
    it = pool.chunks.erase(it);
  }
}

void trim_pools_of(Driver& driver, int ordinal) {
  for (MemPool* pool : driver.pools.select([](const MemPool&) { return true; })) {
    if (pool->ordinal == ordinal) trim_pool(*pool, pool->release_threshold);
  }
}

void empty_pools_of(Driver& driver, int ordinal) {
  for (MemPool* pool :
       driver.pools.select([&](const MemPool& p) { return p.ordinal == ordinal; })) {
    (void)driver.space.remove_if([pool](const Allocation& a) { return a.pool == pool; });
    pool->blocks.clear();
    pool->chunks.clear();
    pool->used = pool->reserved = 0;
  }
  for (auto& [address, memory] : driver.graph_memory) {
    if (memory.ordinal != ordinal) continue;
    (void)driver.space.remove(address);
    memory.runs = memory.ending = 0;
    memory.mapping = nullptr;
  }
}

CUresult make_graph_memory(Driver& driver, int ordinal, std::size_t bytes, CUdeviceptr* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  GraphMemory memory;
  memory.ordinal = ordinal;
  memory.device = driver.machine_device(ordinal);
  memory.bytes = bytes;
  memory.size = round_up(bytes, kDevicePage);
  std::byte* address = reserve_addresses(memory.size, kDevicePage, nullptr);
  if (address == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUdeviceptr>(address);
  driver.graph_memory[*out] = std::move(memory);
  return CUDA_SUCCESS;
}

CUresult back_graph_memory(Driver& driver, CUdeviceptr address) {
  const auto found = driver.graph_memory.find(address);
  if (found == driver.graph_memory.end()) return CUDA_ERROR_INVALID_VALUE;
  GraphMemory& memory = found->second;
  if (memory.mapping) return CUDA_SUCCESS;
  auto physical =
      Physical::create(*driver.machine, memory.device, memory.size, Physical::Sharing::kPrivate);
  if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
  memory.mapping = Mapping::create_at(std::move(physical), 0, host_view(address), memory.size);
  return memory.mapping ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult provide_graph_memory(Driver& driver, Context& context, CUdeviceptr address,
                              bool frees_itself) {
  const auto found = driver.graph_memory.find(address);
  if (found == driver.graph_memory.end()) return CUDA_ERROR_INVALID_VALUE;
  GraphMemory& memory = found->second;
  const bool is_held = memory.runs > memory.ending;
  if (is_held && !frees_itself) return CUDA_ERROR_INVALID_VALUE;
  const CUresult backed = back_graph_memory(driver, address);
  if (backed != CUDA_SUCCESS) return backed;
  if (!is_held) ++memory.runs;
  if (driver.space.find(address)) return CUDA_SUCCESS;
  Allocation allocation;
  allocation.base = address;
  allocation.size = memory.bytes;
  allocation.kind = Allocation::Kind::kGraph;
  allocation.context = &context;
  allocation.device = memory.device;
  allocation.mapping = memory.mapping;
  allocation.id = driver.machine->next_id();
  driver.space.add(allocation);
  return CUDA_SUCCESS;
}

void expect_graph_free(Driver& driver, CUdeviceptr address) {
  const auto found = driver.graph_memory.find(address);
  if (found != driver.graph_memory.end()) ++found->second.ending;
}

CUresult finish_graph_free(Driver& driver, CUdeviceptr address, bool was_expected) {
  const auto found = driver.graph_memory.find(address);
  if (found == driver.graph_memory.end()) return CUDA_ERROR_INVALID_VALUE;
  GraphMemory& memory = found->second;
  if (was_expected && memory.ending > 0) --memory.ending;
  if (memory.runs == 0) return CUDA_ERROR_INVALID_VALUE;
  if (--memory.runs == 0) (void)driver.space.remove(address);
  return CUDA_SUCCESS;
}

void trim_graph_memory(Driver& driver, int ordinal) {
  for (auto& [address, memory] : driver.graph_memory) {
    if (memory.ordinal == ordinal && memory.runs == 0) memory.mapping = nullptr;
  }
}

}  // namespace gpurota::sim
