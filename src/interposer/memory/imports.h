// Memory that several processes have: what of another process's is charged here, and what others
// may have of ours.
//
// An import is charged to its importer like an allocation, except where its lease is charged for
// that memory already. Which memory it is tells a key: a random number that the exporter's
// libgpurota puts onto each descriptor (as a lock, which belongs to the open file and so travels
// with it; /proc/self/fdinfo shows it to whoever has the file), or a hash of the bytes of a handle.
// Memory without a key is of a process without libgpurota, and is charged always. Any thread.
#pragma once

#include "interposer/account/holdings.h"
#include "interposer/memory/memory_part.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// 0: no random numbers.
uint64_t new_key();
// False: the descriptor cannot have one.
bool put_key(int fd, uint64_t key);
// 0: it has none.
uint64_t key_of_descriptor(int fd);
uint64_t key_of_bytes(const void* bytes, size_t size);

// Charges `bytes` for `import`, whose key and slot are known; nothing more if the lease has been
// charged for it already. False: refused, and the user has been told.
bool charge_import(Import* import, uint64_t bytes);
// The same, but for memory that the lease has already, which is charged as the daemon says.
// `size()` is called if the daemon does not know the size.
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

// The same for what is known by an address, or by a handle. Opened again it is charged once;
// CUDA_ERROR_OUT_OF_MEMORY: refused.
CUresult import_opened(State& s, uint64_t address, Import import, uint64_t bytes);
// One less; the last one ends it. False: not known. To be called before it is closed, as its
// address may then be another's.
bool import_closes(State& s, uint64_t address, Import* out);
// To be called when it was not closed after all.
void import_stays(State& s, uint64_t address, const Import& import);
// Closes by `call` memory that may be imported. The import is taken out of the table before: as
// soon as it is closed, another thread may be given its address.
template <typename Call>
CUresult close_counted(State& s, uint64_t address, Call call) {
  Import import{};
  const bool known = import_closes(s, address, &import);
  const CUresult result = call();
  if (known && result == CUDA_SUCCESS) end_import(import);
  if (known && result != CUDA_SUCCESS) import_stays(s, address, import);
  return result;
}

// Linear memory was given away by a handle or by words with this key.
void export_begins(State& s, uint64_t address, uint64_t key);
// The memory at this address was freed; kCharged: its charge goes back with that. False: it was not
// exported. Cheap where nothing is.
bool export_ends(State& s, uint64_t address, Left left);
// The context is gone, and its memory credited.
void shared_ends_in(State& s, uint32_t context);

}  // namespace gpurota::interposer
