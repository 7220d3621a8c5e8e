// Memory of other processes that has no handle of cuMemCreate and was not opened by an IPC handle:
// memory of an imported pool, and external memory.
//
// External memory is charged if it has a key, which only a process with libgpurota gives. Other
// external memory is usually this process's own, made through another interface (Vulkan), and NVML
// counts it for this process.
#include "interposer/account/device.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/memory/imports.h"

namespace gpurota::interposer {
namespace {

CUresult piece_imported(CUdeviceptr address, uint64_t key) {
  State& s = state();
  int ordinal = -1;
  if (GPUROTA_OWN(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) !=
      CUDA_SUCCESS) {
    return CUDA_SUCCESS;
  }
  Import import{};
  import.key = key;
  import.slot = static_cast<int16_t>(slot_of_device(ordinal));
  if (import.slot < 0) return CUDA_SUCCESS;
  CUdeviceptr base = 0;
  size_t size = 0;
  GPUROTA_OWN(cuMemGetAddressRange_v2)(&base, &size, address);
  const CUresult result = import_opened(s, address, import, size);
  if (result == CUDA_SUCCESS) return result;
  const RelaxedCapture relaxed;
  GPUROTA_OWN(cuMemFree_v2)(relaxed, address);
  return result;
}

uint64_t address_of(CUexternalMemory memory) { return reinterpret_cast<uint64_t>(memory); }

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr ptr) {
  GPUROTA_ENTER(cuMemPoolExportPointer, out, ptr);
  const CUresult result = interposer::gated(interposer::GateClass::kResidency, nullptr, false,
                                            [=] { return real(out, ptr); });
  if (result == CUDA_SUCCESS) {
    interposer::export_begins(interposer::state(), ptr,
                              interposer::key_of_bytes(out->reserved, sizeof(out->reserved)));
  }
  return result;
}

// The pool's memory is charged when a piece of it is imported.
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* os_handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  GPUROTA_ENTER(cuMemPoolImportFromShareableHandle, out, os_handle, type, flags);
  return interposer::ask_obstacle(interposer::kParkImports,
                                  [=] { return real(out, os_handle, type, flags); });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  GPUROTA_ENTER(cuMemPoolImportPointer, out, pool, data);
  if (out == nullptr) return real(out, pool, data);
  CUdeviceptr imported = 0;
  CUresult result = interposer::ask_obstacle(interposer::kParkImports,
                                             [&] { return real(&imported, pool, data); });
  if (result != CUDA_SUCCESS) return result;
  result = interposer::piece_imported(
      imported, interposer::key_of_bytes(data->reserved, sizeof(data->reserved)));
  if (result == CUDA_SUCCESS) *out = imported;
  return result;
}

// A successful call gives the descriptor to the driver, so the key is read before the call.
CUresult cuImportExternalMemory(CUexternalMemory* out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* desc) {
  GPUROTA_ENTER(cuImportExternalMemory, out, desc);
  const bool is_descriptor =
      desc != nullptr && desc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  const uint64_t key = is_descriptor ? interposer::key_of_descriptor(desc->handle.fd) : 0;
  const auto call = [=] { return real(out, desc); };
  const CUresult result =
      key != 0 ? interposer::ask_obstacle(interposer::kParkImports, call) : call();
  const interposer::Place place = interposer::current_place();
  if (result != CUDA_SUCCESS || key == 0 || place.kind != interposer::Place::Kind::kSlot) {
    return result;
  }
  interposer::Import import{};
  import.key = key;
  import.slot = static_cast<int16_t>(place.slot);
  import.context = place.context;
  const CUresult charged = interposer::import_opened(
      interposer::state(), interposer::address_of(*out), import, desc->size);
  if (charged != CUDA_SUCCESS) GPUROTA_REAL(cuDestroyExternalMemory)(*out);
  return charged;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  GPUROTA_ENTER(cuDestroyExternalMemory, memory);
  return interposer::close_counted(interposer::state(), interposer::address_of(memory),
                                   [=] { return real(memory); });
}
