// A program that shares memory with another process by handle. Carries out each line of its input,
// and answers with one line, which is CUDA's result unless the list says otherwise. "The memory" is
// what the program has allocated, opened, mapped or imported last.
//   alloc MIB, small BYTES   allocates the memory
//   keep MIB       allocates other memory, which stays until the program ends
//   handle         CUDA's result, and the memory's handle as 128 hexadecimal digits
//   open HEX       opens another process's memory by this handle
//   close, free    closes the opened memory; frees the allocated memory
//   set VALUE      sets all words
//   check VALUE    "same" if all checked words are VALUE; otherwise a wrong word and its place
//   number         writes the number of each MiB into its first word
//   numbered       "same" if each MiB has its number; otherwise a wrong word and its place
//   size, bytes    the size in MiB; in bytes
//   map MIB        maps memory that can be exported
//   export         CUDA's result, and the path of a descriptor of the mapped memory
//   letgo          closes that descriptor; answers with the result of close()
//   import PATH MIB  maps memory that another process exported
//   take PATH      imports the memory without mapping it
//   unmap, release   unmaps and releases the memory; releases the handle of the memory
//   charged        MiB, by cuMemGetInfo
#include "tests/driver/device_memory.h"
#include "tests/interposer/families_probe.h"

#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Memory {
  CUdeviceptr at = 0;
  std::size_t size = 0;
  CUmemGenericAllocationHandle handle = 0;
};

CUresult map(Memory& memory) {
  CUresult result = cuMemAddressReserve(&memory.at, memory.size, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = cuMemMap(memory.at, memory.size, 0, memory.handle, 0);
  if (result == CUDA_SUCCESS) result = cuMemSetAccess(memory.at, memory.size, &kReadWrite, 1);
  return result;
}

std::string make_mapped(Memory& memory, std::size_t size) {
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  memory.size = size;
  const CUresult result = cuMemCreate(&memory.handle, size, &prop, 0);
  return code_name(result == CUDA_SUCCESS ? map(memory) : result);
}

int exported = -1;

std::string export_mapped(const Memory& memory) {
  int& fd = exported;
  const CUresult result =
      cuMemExportToShareableHandle(&fd, memory.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result != CUDA_SUCCESS) return code_name(result);
  return code_name(result) + " /proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd);
}

// Duplicates another process's descriptor, as PyTorch does. Opening the descriptor's path would
// give another file.
int duplicate_of(const std::string& path) {
  int pid = 0;
  int number = -1;
  if (std::sscanf(path.c_str(), "/proc/%d/fd/%d", &pid, &number) != 2) return -1;
  constexpr long kPidfdOpen = 434, kPidfdGetfd = 438;
  const int process = static_cast<int>(::syscall(kPidfdOpen, pid, 0));
  const int fd = static_cast<int>(::syscall(kPidfdGetfd, process, number, 0));
  ::close(process);
  return fd;
}

CUresult take_handle(Memory& memory, const std::string& path) {
  const int fd = duplicate_of(path);
  const CUresult result = cuMemImportFromShareableHandle(
      &memory.handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  ::close(fd);
  return result;
}

std::string import_mapped(Memory& memory, const std::string& path, std::size_t size) {
  memory.size = size;
  const CUresult result = take_handle(memory, path);
  return code_name(result == CUDA_SUCCESS ? map(memory) : result);
}

std::string unmap(const Memory& memory) {
  CUresult result = cuMemUnmap(memory.at, memory.size);
  if (result == CUDA_SUCCESS) result = cuMemRelease(memory.handle);
  if (result == CUDA_SUCCESS) result = cuMemAddressFree(memory.at, memory.size);
  return code_name(result);
}

std::string to_hex(const CUipcMemHandle& handle) {
  std::string text;
  char two[3];
  for (const char byte : handle.reserved) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  return text;
}

CUipcMemHandle from_hex(const std::string& text) {
  CUipcMemHandle handle = {};
  for (std::size_t i = 0; i < sizeof handle.reserved && 2 * i + 1 < text.size(); ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

std::string give_handle(const Memory& memory) {
  const auto get = function<CUresult(CUipcMemHandle*, CUdeviceptr)>("cuIpcGetMemHandle");
  CUipcMemHandle handle = {};
  const CUresult result = get(&handle, memory.at);
  return code_name(result) + (result == CUDA_SUCCESS ? " " + to_hex(handle) : "");
}

std::string open(Memory& memory, const std::string& hex) {
  const auto open_handle =
      function<CUresult(CUdeviceptr*, CUipcMemHandle, unsigned)>("cuIpcOpenMemHandle_v2");
  const auto range =
      function<CUresult(CUdeviceptr*, std::size_t*, CUdeviceptr)>("cuMemGetAddressRange_v2");
  CUresult result = open_handle(&memory.at, from_hex(hex), 1);
  if (result == CUDA_SUCCESS) result = range(nullptr, &memory.size, memory.at);
  return code_name(result);
}

// Checks the first and last word of each MiB.
std::string check(const Memory& memory, unsigned value) {
  for (std::size_t at = 0; at < memory.size; at += at % kMiB == 0 ? kMiB - 4 : 4) {
    unsigned got = 0;
    const CUresult result = cuMemcpyDtoH_v2(&got, memory.at + at, 4);
    if (result != CUDA_SUCCESS) return code_name(result);
    if (got != value) return std::to_string(got) + " at " + std::to_string(at);
  }
  return "same";
}

std::string number(const Memory& memory) {
  CUresult result = CUDA_SUCCESS;
  for (unsigned i = 0; i * kMiB < memory.size && result == CUDA_SUCCESS; ++i) {
    result = cuMemsetD32_v2(memory.at + i * kMiB, i, 1);
  }
  return code_name(result);
}

std::string check_numbers(const Memory& memory) {
  for (unsigned i = 0; i * kMiB < memory.size; ++i) {
    unsigned got = 0;
    const CUresult result = cuMemcpyDtoH_v2(&got, memory.at + i * kMiB, 4);
    if (result != CUDA_SUCCESS) return code_name(result);
    if (got != i) return std::to_string(got) + " at MiB " + std::to_string(i);
  }
  return "same";
}

std::string carry_out(Memory& memory, std::istringstream& line) {
  std::string word, argument;
  std::size_t mib = 0;
  line >> word >> argument >> mib;
  const auto value = static_cast<unsigned>(std::atoi(argument.c_str()));
  if (word == "handle") return give_handle(memory);
  if (word == "open") return open(memory, argument);
  if (word == "check") return check(memory, value);
  if (word == "map") return make_mapped(memory, value * kMiB);
  if (word == "export") return export_mapped(memory);
  if (word == "import") return import_mapped(memory, argument, mib * kMiB);
  if (word == "letgo") return std::to_string(::close(exported));
  if (word == "take") return code_name(take_handle(memory, argument));
  if (word == "release") return code_name(cuMemRelease(memory.handle));
  if (word == "unmap") return unmap(memory);
  CUdeviceptr kept = 0;
  if (word == "keep") return code_name(cuMemAlloc_v2(&kept, value * kMiB));
  if (word == "number") return number(memory);
  if (word == "numbered") return check_numbers(memory);
  if (word == "size") return std::to_string(memory.size / kMiB);
  if (word == "bytes") return std::to_string(memory.size);
  if (word == "charged") return std::to_string(charged());
  if (word == "free") return code_name(cuMemFree_v2(memory.at));
  if (word == "set") return code_name(cuMemsetD32_v2(memory.at, value, memory.size / 4));
  if (word == "close") {
    return code_name(function<CUresult(CUdeviceptr)>("cuIpcCloseMemHandle")(memory.at));
  }
  if (word != "alloc" && word != "small") return "what?";
  memory.size = word == "small" ? value : value * kMiB;
  return code_name(cuMemAlloc_v2(&memory.at, memory.size));
}

}  // namespace

int main() {
  if (!load_driver()) return 2;
  const WithContext with;
  if (with.context() == nullptr) return 2;
  Memory memory;
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // other processes duplicate its descriptors
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::cout << carry_out(memory, words) << std::endl;
  }
  return 0;
}
