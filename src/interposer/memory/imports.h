// Memory that several processes share: charges for imported memory, and records of exported memory.
//
// An import is charged to its importer like an allocation, unless the importer's lease is charged
// for that memory already. A key identifies the memory. The key of a descriptor is a random number,
// which the exporter's libgpurota puts onto the descriptor as a lock. The lock belongs to the open
// file and so travels with it, and /proc/self/fdinfo shows the lock to any process that has the
// file. The key of a handle is a hash of the handle's bytes. Memory without a key belongs to a
// process without libgpurota, and is always charged. Any thread.
#pragma once

#include "interposer/account/holdings.h"
#include "interposer/memory/memory_part.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// 0: no random number could be had.
uint64_t new_key();
// False: the descriptor cannot have a key.
bool put_key(int fd, uint64_t key);
// 0: the descriptor has no key.
uint64_t key_of_descriptor(int fd);
uint64_t key_of_bytes(const void* bytes, size_t size);

// Charges `bytes` for `import`, whose key and slot are known; nothing more if `import` is charged
// already. False: refused, and the user has been told.
bool charge_import(Import* import, uint64_t bytes);
// Like charge_import(), but if the lease has the memory already, only the bytes that the daemon
// names are charged. `size()` is called if the daemon does not know the size.
template <typename Size>
bool charge_import_of(Import* import, Size size) {
  uint64_t bytes = 0;
  if (import->key != 0) {
    if (join_memory(import->slot, import->key, &bytes) == Answer::kYes) {
      import->bytes = bytes;
      import->kind = swapping() ? ImportKind::kJoined : ImportKind::kCharged;
      return charge_import(import, 0);
    }
  }
  return charge_import(import, bytes != 0 ? bytes : size());
}
void end_import(const Import& import);

// Charges memory that is known by an address, or by a handle. Memory that is opened again is
// charged once. CUDA_ERROR_OUT_OF_MEMORY: refused.
CUresult import_opened(State& s, uint64_t address, Import import, uint64_t bytes);
// Counts one opening fewer; the last closing removes the import. False: not known. Call before the
// memory is closed: afterwards other memory may have the address.
bool import_closes(State& s, uint64_t address, Import* out);
// Undoes import_closes(): the memory was not closed after all.
void import_stays(State& s, uint64_t address, const Import& import);
// Calls `call`, which closes memory that may be imported. The import leaves the table first: as
// soon as the memory is closed, another thread may get its address.
template <typename Call>
CUresult close_counted(State& s, uint64_t address, Call call) {
  Import import{};
  const bool known = import_closes(s, address, &import);
  const CUresult result = call();
  if (known && result == CUDA_SUCCESS) end_import(import);
  if (known && result != CUDA_SUCCESS) import_stays(s, address, import);
  return result;
}

// Linear memory was exported by a handle, or by export data, with this key.
void export_begins(State& s, uint64_t address, uint64_t key);
// The memory at this address was freed; kCharged: its charge goes back with this call. False: the
// memory was not exported. Cheap where nothing is exported.
bool export_ends(State& s, uint64_t address, Left left);
// Ends what was imported and exported in a context that is gone. The memory of the context is
// credited already.
void shared_ends_in(State& s, uint32_t context);

}  // namespace gpurota::interposer
