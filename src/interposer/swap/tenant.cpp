#include "interposer/swap/tenant.h"

namespace gpurota::interposer {
namespace {

alignas(Swap) unsigned char g_spare[sizeof(Swap)];

}  // namespace

const SpareMemory g_spare_memory = {g_spare, sizeof(g_spare)};

}  // namespace gpurota::interposer
