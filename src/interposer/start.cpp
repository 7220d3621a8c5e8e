// Runs when the library is loaded. Constructors of other libraries may call the hooks earlier, so
// nothing relies on this having run.
#include "interposer/os/config.h"
#include "interposer/os/socket.h"

namespace gpurota::interposer {
namespace {

__attribute__((constructor)) void on_load() {
  if (has_lease()) widen_descriptor_table();
}

}  // namespace
}  // namespace gpurota::interposer
