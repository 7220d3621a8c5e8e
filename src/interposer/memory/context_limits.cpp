// The heap and the printf buffer of kernels: the only memory of a context whose size the program
// passes as an argument.
//
// Such memory is charged by what NVML shows, as the rest of a context is, since nothing tells when
// the driver takes it. The hook only checks that there is room, and does not keep the room: an
// allocation right after it can take the same room, until the daemon measures again, about a second
// later.
#include "interposer/account/device.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/reserve.h"

namespace gpurota::interposer {
namespace {

// The bytes by which the new limit enlarges the context's memory; 0 for a limit whose value does
// not say how many bytes.
uint64_t growth_of(CUlimit limit, uint64_t value) {
  if (limit != CU_LIMIT_MALLOC_HEAP_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE) return 0;
  size_t before = 0;
  if (GPUROTA_OWN(cuCtxGetLimit)(&before, limit) != CUDA_SUCCESS || value <= before) return 0;
  return value - before;
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  GPUROTA_ENTER(cuCtxSetLimit, limit, value);
  const uint64_t growth = interposer::swapping() ? 0 : interposer::growth_of(limit, value);
  const interposer::Place place = interposer::current_place();
  if (growth == 0 || place.kind != interposer::Place::Kind::kSlot) return real(limit, value);
  const int64_t most = interposer::most_for(growth);
  interposer::Flight flight(interposer::state().slots[place.slot]);
  const interposer::Answer answer = interposer::reserve(place.slot, most, &flight);
  if (answer != interposer::Answer::kYes) return interposer::refuse(place.slot, growth, answer);
  const CUresult result = real(limit, value);
  interposer::put(place.slot, most);
  return result;
}
