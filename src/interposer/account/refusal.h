// Refusing memory: each refusal has its reason, which the page counts, GPUROTA_DEBUG shows and the
// program's user is told once. Any thread.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/account/answer.h"

#include <cstdint>

namespace gpurota::interposer {

// Of an allocation on a GPU of the lease; `bytes` 0: of a context. `why` is not kYes.
CUresult refuse(int slot, uint64_t bytes, Answer why);
// Of memory of another process.
CUresult refuse_import(int slot, uint64_t bytes, Answer why);
// On a GPU that is not of the lease, or that nobody can say of whether it is.
CUresult refuse_elsewhere();

}  // namespace gpurota::interposer
