// Modules and libraries: loading them, finding kernels in them, unloading them.
#include "sim/cuda/api.h"
#include "sim/cuda/module.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace gpurota::sim {
namespace {

constexpr std::uint32_t kElf = 0x464c457f, kFatBinary = 0xba55ed50, kFatWrapper = 0x466243b1;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$';
}

std::vector<std::string> entries_of(std::string_view ptx) {
  std::vector<std::string> names;
  constexpr std::string_view kEntry = ".entry";
  for (auto at = ptx.find(kEntry); at != std::string_view::npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    while (at < ptx.size() && (ptx[at] == ' ' || ptx[at] == '\t' || ptx[at] == '\n')) ++at;
    const auto begin = at;
    while (at < ptx.size() && is_word(ptx[at])) ++at;
    names.emplace_back(ptx.substr(begin, at - begin));
  }
  return names;
}

void add_function(Driver& driver, Module& module, const std::string& name) {
  auto function = std::make_unique<Function>();
  function->module = &module;
  function->name = name;
  function->spec = find_kernel(name);
  module.functions[name] = driver.functions.add(std::move(function));
}

// The kernels of an image. The simulator can read PTX only; a compiled image counts as having every
// kernel that the simulator knows.
CUresult read_image(const void* image, std::vector<std::string>* names) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kElf || magic == kFatBinary || magic == kFatWrapper) {
    *names = kernel_names();
    return CUDA_SUCCESS;
  }
  const std::string_view text = static_cast<const char*>(image);
  if (text.find(".version") == std::string_view::npos) return CUDA_ERROR_INVALID_IMAGE;
  if (text.find(".target") == std::string_view::npos) return CUDA_ERROR_INVALID_PTX;
  *names = entries_of(text);
  return CUDA_SUCCESS;
}

CUresult load(Driver& driver, Context* context, bool is_library, const void* image, Module** out) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::string> names;
  const CUresult readable = read_image(image, &names);
  if (readable != CUDA_SUCCESS) return readable;
  auto module = std::make_unique<Module>();
  if (context != nullptr) {
    const std::uint64_t bytes = driver.machine->config(context->device).module_bytes;
    if (!driver.machine->charge(context->device, bytes, false)) return CUDA_ERROR_OUT_OF_MEMORY;
    module->device = context->device;
    module->charged_bytes = bytes;
    module->context = is_library ? nullptr : context;
  }
  for (const std::string& name : names) add_function(driver, *module, name);
  *out = driver.modules.add(std::move(module));
  return CUDA_SUCCESS;
}

void unload(Driver& driver, Module* module) {
  for (const auto& [name, function] : module->functions) (void)driver.functions.take(function);
  if (module->charged_bytes > 0) driver.machine->discharge(module->device, module->charged_bytes);
  (void)driver.modules.take(module);
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

void destroy_modules_of(Driver& driver, Context* context) {
  for (Module* module :
       driver.modules.select([&](const Module& m) { return m.context == context; })) {
    unload(driver, module);
  }
}

}  // namespace gpurota::sim

using gpurota::sim::Call;
using gpurota::sim::Context;
using gpurota::sim::context_stack;
using gpurota::sim::ContextCall;
using gpurota::sim::Function;
using gpurota::sim::Module;

GPUROTA_SIM_API cuModuleLoadData(CUmodule* out, const void* image) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  const CUresult result = gpurota::sim::load(call.driver(), call.context(), false, image, &module);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUmodule>(module);
  return result;
}

GPUROTA_SIM_API cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned, CUjit_option*,
                                   void**) {
  return cuModuleLoadData(out, image);
}

GPUROTA_SIM_API cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return cuModuleLoadData(out, image);
}

GPUROTA_SIM_API cuModuleLoad(CUmodule* out, const char* path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::string image = gpurota::sim::read_file(path);
  if (image.size() < 4) return CUDA_ERROR_FILE_NOT_FOUND;
  return cuModuleLoadData(out, image.c_str());
}

GPUROTA_SIM_API cuModuleUnload(CUmodule handle) {
  ContextCall call;
  if (call.failed()) return call.error();
  Module* module = call.driver().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  call.driver().wait_all(call.driver().tails(*call.context()), call.lock());
  gpurota::sim::unload(call.driver(), module);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  const Call call;
  if (call.failed()) return call.error();
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = call.driver().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *out = reinterpret_cast<CUfunction>(found->second);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  const Call call;
  if (call.failed()) return call.error();
  const Module* module = call.driver().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuModuleEnumerateFunctions(CUfunction* out, unsigned room, CUmodule handle) {
  const Call call;
  if (call.failed()) return call.error();
  const Module* module = call.driver().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned at = 0;
  for (const auto& [name, function] : module->functions) {
    if (at < room) out[at++] = reinterpret_cast<CUfunction>(function);
  }
  return CUDA_SUCCESS;
}

// The simulator keeps no module variables: every lookup fails.
GPUROTA_SIM_API cuModuleGetGlobal_v2(CUdeviceptr*, std::size_t*, CUmodule handle,
                                     const char* name) {
  const Call call;
  if (call.failed()) return call.error();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return call.driver().modules.find(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                       : CUDA_ERROR_NOT_FOUND;
}

GPUROTA_SIM_API cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option*, void**,
                                  unsigned, CUlibraryOption*, void**, unsigned) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = context_stack().empty() ? nullptr : context_stack().back();
  if (call.driver().contexts.find(context) == nullptr) context = nullptr;
  Module* library = nullptr;
  const CUresult result = gpurota::sim::load(call.driver(), context, true, image, &library);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUlibrary>(library);
  return result;
}

GPUROTA_SIM_API cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option*, void**,
                                      unsigned, CUlibraryOption*, void**, unsigned) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::string image = gpurota::sim::read_file(path);
  if (image.size() < 4) return CUDA_ERROR_FILE_NOT_FOUND;
  return cuLibraryLoadData(out, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
}

GPUROTA_SIM_API cuLibraryUnload(CUlibrary handle) {
  Call call;
  if (call.failed()) return call.error();
  Module* library = call.driver().modules.find(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<gpurota::sim::WorkPtr> pending;
  for (const Context* context :
       call.driver().contexts.select([](const Context&) { return true; })) {
    const auto tails = call.driver().tails(*context);
    pending.insert(pending.end(), tails.begin(), tails.end());
  }
  call.driver().wait_all(pending, call.lock());
  gpurota::sim::unload(call.driver(), library);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(out), reinterpret_cast<CUmodule>(handle),
                             name);
}

GPUROTA_SIM_API cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  return cuModuleGetFunctionCount(count, reinterpret_cast<CUmodule>(handle));
}

GPUROTA_SIM_API cuLibraryEnumerateKernels(CUkernel* out, unsigned room, CUlibrary handle) {
  return cuModuleEnumerateFunctions(reinterpret_cast<CUfunction*>(out), room,
                                    reinterpret_cast<CUmodule>(handle));
}

GPUROTA_SIM_API cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.driver().modules.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUmodule>(handle);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
                                   const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, reinterpret_cast<CUmodule>(handle), name);
}

GPUROTA_SIM_API cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
                                    const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, reinterpret_cast<CUmodule>(handle), name);
}

GPUROTA_SIM_API cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.driver().functions.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUfunction>(handle);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
  const Call call;
  if (call.failed()) return call.error();
  const Function* function = call.driver().functions.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUlibrary>(function->module);
  return CUDA_SUCCESS;
}
