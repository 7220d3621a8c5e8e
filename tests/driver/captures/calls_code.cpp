// Calls about kernels, their modules, and existing graphs.
#include "tests/driver/captures/scene.h"

#include <cstdint>
#include <iterator>

namespace captures {
namespace {

CUresult load(Scene& s) { return cuModuleLoadData(&s.loaded, kKernel); }

CUresult load_library(Scene& s) {
  return cuLibraryLoadData(&s.library, kKernel, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

void with_loaded(Scene& s) { s.need(load(s)); }
void with_library(Scene& s) { s.need(load_library(s)); }

CUkernel library_kernel(Scene& s) {
  CUkernel kernel = nullptr;
  return cuLibraryGetKernel(&kernel, s.library, kKernelName) == CUDA_SUCCESS ? kernel : nullptr;
}

// Launches a kernel that is not on the GPU yet. The CUDA runtime does the same: the first launch
// loads the kernel.
CUresult launch_first(Scene& s) {
  std::uint64_t none = 0;
  void* arguments[] = {&none};
  auto* const kernel = reinterpret_cast<CUfunction>(library_kernel(s));
  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, s.capturing, arguments, nullptr);
}

const Call kCode[] = {
    {"cuModuleLoadData", "-", {}, load},
    {"cuModuleLoadDataEx",
     "-",
     {},
     [](Scene& s) { return cuModuleLoadDataEx(&s.loaded, kKernel, 0, nullptr, nullptr); }},
    {"cuModuleUnload", "-", with_loaded,
     [](Scene& s) { return gone(s.loaded, cuModuleUnload(s.loaded)); }},
    {"cuModuleGetFunction", "new module", with_loaded,
     [](Scene& s) {
       CUfunction function = nullptr;
       return cuModuleGetFunction(&function, s.loaded, kKernelName);
     }},
    {"cuModuleGetGlobal_v2", "of no such name", with_loaded,
     [](Scene& s) {
       CUdeviceptr at = 0;
       std::size_t bytes = 0;
       return cuModuleGetGlobal_v2(&at, &bytes, s.loaded, "no_such_name");
     }},
    {"cuFuncGetAttribute",
     "-",
     {},
     [](Scene& s) {
       int value = 0;
       return cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, s.kernel);
     }},
    {"cuFuncSetAttribute",
     "-",
     {},
     [](Scene& s) {
       return cuFuncSetAttribute(s.kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
     }},
    {"cuFuncGetModule",
     "-",
     {},
     [](Scene& s) {
       CUmodule module = nullptr;
       return cuFuncGetModule(&module, s.kernel);
     }},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
     "-",
     {},
     [](Scene& s) {
       int blocks = 0;
       return cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, s.kernel, 32, 0);
     }},
    {"cuLibraryLoadData", "-", {}, load_library},
    {"cuLibraryUnload", "-", with_library,
     [](Scene& s) { return gone(s.library, cuLibraryUnload(s.library)); }},
    {"cuLibraryGetKernel", "-", with_library,
     [](Scene& s) {
       CUkernel kernel = nullptr;
       return cuLibraryGetKernel(&kernel, s.library, kKernelName);
     }},
    {"cuLibraryGetModule", "new library", with_library,
     [](Scene& s) {
       CUmodule module = nullptr;
       return cuLibraryGetModule(&module, s.library);
     }},
    {"cuKernelGetFunction", "new library", with_library,
     [](Scene& s) {
       CUfunction function = nullptr;
       return cuKernelGetFunction(&function, library_kernel(s));
     }},
    {"cuKernelGetAttribute", "new library", with_library,
     [](Scene& s) {
       int value = 0;
       return cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, library_kernel(s), 0);
     }},
    {"cuLaunchKernel", "capturing stream, new library", with_library, launch_first},
};

const Call kGraphs[] = {
    {"cuGraphCreate", "-", {}, [](Scene& s) { return cuGraphCreate(&s.new_graph, 0); }},
    {"cuGraphDestroy", "-", [](Scene& s) { s.need(cuGraphCreate(&s.new_graph, 0)); },
     [](Scene& s) { return gone(s.new_graph, cuGraphDestroy(s.new_graph)); }},
    {"cuGraphClone", "-", {}, [](Scene& s) { return cuGraphClone(&s.new_graph, s.graph); }},
    {"cuGraphGetNodes",
     "-",
     {},
     [](Scene& s) {
       std::size_t count = 0;
       return cuGraphGetNodes(s.graph, nullptr, &count);
     }},
    {"cuGraphNodeGetType",
     "-",
     {},
     [](Scene& s) {
       CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
       return cuGraphNodeGetType(s.graph_nodes[0], &type);
     }},
    {"cuGraphChildGraphNodeGetGraph",
     "-",
     {},
     [](Scene& s) {
       CUgraph child = nullptr;
       return cuGraphChildGraphNodeGetGraph(s.graph_nodes[1], &child);
     }},
    {"cuGraphMemAllocNodeGetParams",
     "-",
     {},
     [](Scene& s) {
       CUDA_MEM_ALLOC_NODE_PARAMS params = {};
       return cuGraphMemAllocNodeGetParams(s.memory_node, &params);
     }},
    {"cuGraphInstantiateWithFlags",
     "-",
     {},
     [](Scene& s) { return cuGraphInstantiateWithFlags(&s.new_exec, s.graph, 0); }},
    {"cuGraphExecDestroy", "-",
     [](Scene& s) { s.need(cuGraphInstantiateWithFlags(&s.new_exec, s.graph, 0)); },
     [](Scene& s) { return gone(s.new_exec, cuGraphExecDestroy(s.new_exec)); }},
};

}  // namespace

void add_code_calls(std::vector<Call>& calls) {
  calls.insert(calls.end(), std::begin(kCode), std::end(kCode));
  calls.insert(calls.end(), std::begin(kGraphs), std::end(kGraphs));
}

}  // namespace captures
