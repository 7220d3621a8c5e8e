#include "interposer/memory/imports.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/reserve.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpurota::interposer {
namespace {

// A descriptor's key is stored as a one-byte lock on its open file: the key is the lock's offset,
// in [kFirstKey, 2 * kFirstKey), where nobody else has locks.
constexpr uint64_t kFirstKey = uint64_t{1} << 61;

void note_imported(State& s, const Import& import, bool begins) {
  std::atomic<uint64_t>& imported = s.slots[import.slot].imported;
  begins ? imported.fetch_add(import.bytes) : imported.fetch_sub(import.bytes);
  s.mirror(import.slot);
}

// Parses "lock: 1: OFDLCK ADVISORY  READ -1 00:06:1171 FIRST LAST", a lock of the open file.
uint64_t key_in_line(const char* line) {
  const char* at = strstr(line, "OFDLCK");
  const char* const end = strchr(line, '\n');
  if (at == nullptr || end == nullptr || at > end) return 0;
  const char* words[2] = {};
  for (const char* space = at; space != nullptr && space < end; space = strchr(space + 1, ' ')) {
    words[0] = words[1];
    words[1] = space + 1;
  }
  if (words[0] == nullptr) return 0;
  const uint64_t first = strtoull(words[0], nullptr, 10);
  const uint64_t last = strtoull(words[1], nullptr, 10);
  return first == last && first >= kFirstKey && first < 2 * kFirstKey ? first : 0;
}

}  // namespace

uint64_t new_key() {
  ErrnoGuard guard;
  uint64_t random = 0;
  if (::syscall(SYS_getrandom, &random, sizeof(random), 0) != sizeof(random)) return 0;
  return kFirstKey | (random & (kFirstKey - 1));
}

bool put_key(int fd, uint64_t key) {
  ErrnoGuard guard;
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(key);
  lock.l_len = 1;
  return ::syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;
}

uint64_t key_of_descriptor(int fd) {
  ErrnoGuard guard;
  char path[48];
  char text[4096];
  snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
  const int info = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
  if (info < 0) return 0;
  const long n = ::syscall(SYS_read, info, text, sizeof(text) - 1);
  sys_close(info);
  if (n <= 0) return 0;
  text[n] = '\0';
  for (const char* line = strstr(text, "lock:"); line != nullptr;
       line = strstr(line + 1, "lock:")) {
    if (const uint64_t key = key_in_line(line)) return key;
  }
  return 0;
}

uint64_t key_of_bytes(const void* bytes, size_t size) {
  uint64_t hash = size;
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    const size_t left = size - at;
    memcpy(&word, static_cast<const char*>(bytes) + at, left < sizeof(word) ? left : sizeof(word));
    hash = mix_key(hash * 0x100000001b3u + mix_key(word + 1));
  }
  return hash | uint64_t{1} << 63;  // never a descriptor's key, and not 0
}

bool charge_import(Import* import, uint64_t bytes) {
  State& s = state();
  if (import->bytes == 0) {
    if (bytes == 0) return true;
    const Answer answer = reserve(import->slot, most_for(bytes));
    if (answer != Answer::kYes) {
      refuse_import(import->slot, bytes, answer);
      return false;
    }
    import->bytes = static_cast<uint64_t>(most_for(bytes));
    import->kind = ImportKind::kCharged;
    if (import->key != 0) hold_memory(import->slot, import->key, import->bytes);
  }
  if (import->kind == ImportKind::kCharged) note_imported(s, *import, true);
  return true;
}

void end_import(const Import& import) {
  if (import.bytes == 0) return;
  const bool is_charged = import.kind == ImportKind::kCharged;
  const bool goes_with_message = is_charged && import.key != 0 && !swapping();
  if (is_charged) note_imported(state(), import, false);
  if (is_charged && !goes_with_message) put(import.slot, static_cast<int64_t>(import.bytes));
  if (import.key == 0) return;
  leave_memory(import.slot, import.key, import.bytes,
               goes_with_message ? Left::kCharged : Left::kCredited);
}

CUresult import_opened(State& s, uint64_t address, Import import, uint64_t bytes) {
  Shared& shared = memory_of(s).shared;
  {
    Lock lock(shared.mutex);
    if (Import* known = shared.imported.find(address)) {
      ++known->opens;
      return CUDA_SUCCESS;
    }
  }
  if (!charge_import_of(&import, [bytes] { return bytes; })) return CUDA_ERROR_OUT_OF_MEMORY;
  import.opens = 1;
  bool is_new = false;
  {
    Lock lock(shared.mutex);
    Import* entry = shared.imported.put(address);
    is_new = entry == nullptr || entry->opens == 0;  // without an entry, the charge stays
    if (entry != nullptr && is_new) *entry = import;
    if (entry != nullptr && !is_new) ++entry->opens;  // another thread has opened it meanwhile
    shared.imports.store(static_cast<uint32_t>(shared.imported.size()), std::memory_order_release);
  }
  if (!is_new) end_import(import);
  return CUDA_SUCCESS;
}

bool import_closes(State& s, uint64_t address, Import* out) {
  Shared& shared = memory_of(s).shared;
  if (shared.imports.load(std::memory_order_acquire) == 0 || address == 0) return false;
  Lock lock(shared.mutex);
  Import* known = shared.imported.find(address);
  if (known == nullptr) return false;
  *out = *known;
  out->opens = 1;
  if (--known->opens != 0) {
    out->bytes = 0;  // still open, and charged
    return true;
  }
  Import gone{};
  shared.imported.take(address, &gone);
  shared.imports.store(static_cast<uint32_t>(shared.imported.size()), std::memory_order_release);
  return true;
}

void import_stays(State& s, uint64_t address, const Import& import) {
  Shared& shared = memory_of(s).shared;
  Lock lock(shared.mutex);
  Import* entry = shared.imported.put(address);
  if (entry == nullptr) return;
  if (entry->opens++ == 0) {
    *entry = import;
  }
  shared.imports.store(static_cast<uint32_t>(shared.imported.size()), std::memory_order_release);
}

void export_begins(State& s, uint64_t address, uint64_t key) {
  CUdeviceptr base = 0;
  size_t size = 0;
  Allocation allocation{};
  if (GPUROTA_OWN(cuMemGetAddressRange_v2)(&base, &size, address) != CUDA_SUCCESS ||
      !find_allocation(s, base, &allocation) || allocation.moves) {
    return;
  }
  const auto bytes = static_cast<uint64_t>(most_for(size));
  Shared& shared = memory_of(s).shared;
  {
    Lock lock(shared.mutex);
    Export* entry = shared.exported.put(base);
    // The daemon knows only one key for each piece of memory.
    if (entry == nullptr || entry->key != 0) return;
    *entry = {key, bytes, allocation.context, allocation.slot};
    shared.exports.store(static_cast<uint32_t>(shared.exported.size()), std::memory_order_release);
  }
  hold_memory(allocation.slot, key, bytes);
}

bool export_ends(State& s, uint64_t address, Left left) {
  Shared& shared = memory_of(s).shared;
  if (shared.exports.load(std::memory_order_acquire) == 0 || address == 0) return false;
  Export gone{};
  {
    Lock lock(shared.mutex);
    if (!shared.exported.take(address, &gone)) return false;
    shared.exports.store(static_cast<uint32_t>(shared.exported.size()), std::memory_order_release);
  }
  leave_memory(gone.slot, gone.key, gone.bytes, left);
  return true;
}

void shared_ends_in(State& s, uint32_t context) {
  Shared& shared = memory_of(s).shared;
  for (;;) {
    Import import{};
    uint64_t address = 0;
    uint64_t exported = 0;
    {
      Lock lock(shared.mutex);
      shared.imported.for_each([&](uint64_t at, const Import& i) {
        if (i.context == context) address = at;
      });
      shared.exported.for_each([&](uint64_t at, const Export& e) {
        if (e.context == context) exported = at;
      });
      if (address != 0) shared.imported.take(address, &import);
      shared.imports.store(static_cast<uint32_t>(shared.imported.size()),
                           std::memory_order_release);
    }
    if (address == 0 && exported == 0) return;
    end_import(import);
    export_ends(s, exported, Left::kCredited);
  }
}

}  // namespace gpurota::interposer
